// Package storetest holds what every page.Store must keep.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
)

// Run tests a Store. Each call of open returns two handles on one fresh and empty store; they may be the same. What
// has to be closed is open's to register with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) (a, b page.Store)) {
	for name, tell := range map[string]func(*testing.T, page.Store, page.Store){
		"people": people, "sessions": sessions, "invitations": invitations, "secret": oneSecret, "decisions": decisions,
		"identities": identities, "removal": removal, "hostile names": hostile,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			tell(t, a, b)
		})
	}
}

var now = time.Date(2030, 2, 3, 4, 5, 6, 789e6, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unknown(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, page.ErrUnknown) {
		t.Errorf("%s: %v, want ErrUnknown", what, err)
	}
}

func people(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	any := func(want bool) {
		t.Helper()
		if got, err := b.AnyPerson(ctx); err != nil || got != want {
			t.Errorf("anybody is there: %t, %v", got, err)
		}
	}
	any(false)
	elsewhere := page.Person{Tenant: "elsewhere", ID: "eve", Created: now}
	must(t, a.AddPerson(ctx, elsewhere))
	any(true)
	elsewhere.Removed = now
	must(t, a.UpdatePerson(ctx, elsewhere))
	any(false)
	ana := page.Person{ID: "ana", Name: "Ana", Approver: true, Admin: true, Created: now}
	must(t, a.AddPerson(ctx, ana))
	got, err := b.Person(ctx, "", "ana")
	must(t, err)
	if got != ana {
		t.Errorf("%+v, want %+v", got, ana)
	}
	if err := b.AddPerson(ctx, ana); !errors.Is(err, page.ErrTaken) {
		t.Errorf("a second ana: %v", err)
	}
	_, err = a.Person(ctx, "other", "ana")
	unknown(t, "ana of another tenant", err)
	must(t, a.AddPerson(ctx, page.Person{Tenant: "other", ID: "ana", Created: now}))
	ana.Name, ana.Approver, ana.NoKeys = "Ana Ruiz", false, true
	must(t, b.UpdatePerson(ctx, ana))
	if got, err = a.Person(ctx, "", "ana"); err != nil || got != ana {
		t.Errorf("%+v %v, want %+v", got, err, ana)
	}
	unknown(t, "an update of nobody", a.UpdatePerson(ctx, page.Person{ID: "bo"}))
	must(t, a.AddPerson(ctx, page.Person{ID: "Bo", Created: now}))
	list, err := b.ListPeople(ctx, "")
	if err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
	if err := a.AddPerson(ctx, page.Person{}); err == nil {
		t.Error("somebody without a name")
	}
	// Of many who add the same person at once, one does.
	var won atomic.Int32
	together(16, func(i int) {
		s := []page.Store{a, b}[i%2]
		switch err := s.AddPerson(context.WithoutCancel(ctx), page.Person{ID: "cy", Created: now}); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, page.ErrTaken):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d added cy", won.Load())
	}
}

func sessions(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	must(t, a.AddPerson(ctx, page.Person{ID: "ana", Created: now}))
	s := page.Session{Hash: wetink.Digest{1}, Person: "ana", How: "passkey", Agent: "Browser 1", Created: now, Seen: now, Expires: now.Add(time.Hour)}
	must(t, a.AddSession(ctx, s))
	got, err := b.Session(ctx, s.Hash)
	must(t, err)
	if got != s {
		t.Errorf("%+v, want %+v", got, s)
	}
	s.Seen = now.Add(time.Minute)
	must(t, b.TouchSession(ctx, s.Hash, s.Seen))
	must(t, b.TouchSession(ctx, s.Hash, now)) // an answer that took longer
	if got, err = a.Session(ctx, s.Hash); err != nil || got != s {
		t.Errorf("%+v %v, want %+v", got, err, s)
	}
	second := s
	second.Hash, second.Created = wetink.Digest{2}, now.Add(time.Second)
	must(t, a.AddSession(ctx, second))
	list, err := b.ListSessions(ctx, "", "ana")
	if err != nil || len(list) != 2 || list[0].Hash != second.Hash {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := b.ListSessions(ctx, "other", "ana"); err != nil || len(list) != 0 {
		t.Errorf("of another tenant: %+v %v", list, err)
	}
	must(t, b.EndSession(ctx, s.Hash))
	must(t, b.EndSession(ctx, s.Hash)) // twice is no mistake
	_, err = a.Session(ctx, s.Hash)
	unknown(t, "a session that ended", err)
	must(t, b.TouchSession(ctx, s.Hash, now.Add(time.Hour)))
	_, err = a.Session(ctx, s.Hash)
	unknown(t, "a session that ended and was touched", err)
}

func invitations(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	i := page.Invitation{Hash: wetink.Digest{3}, Person: "ana", Expires: now}
	must(t, a.AddInvitation(ctx, i))
	for range 2 { // looking uses nothing up
		if got, err := b.Invitation(ctx, i.Hash); err != nil || got != i {
			t.Errorf("%+v %v, want %+v", got, err, i)
		}
	}
	var won atomic.Int32
	together(32, func(n int) {
		s := []page.Store{a, b}[n%2]
		switch got, err := s.TakeInvitation(context.WithoutCancel(ctx), i.Hash); {
		case err == nil && got == i:
			won.Add(1)
		case !errors.Is(err, page.ErrUnknown):
			t.Errorf("%+v %v", got, err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d took one invitation", won.Load())
	}
	_, err := a.Invitation(ctx, i.Hash)
	unknown(t, "an invitation that was used", err)
	old, open := page.Invitation{Hash: wetink.Digest{4}, Person: "ana", Expires: now}, page.Invitation{Hash: wetink.Digest{5}, Person: "ana", Expires: now.Add(time.Millisecond)}
	must(t, errors.Join(a.AddInvitation(ctx, old), a.AddInvitation(ctx, open), b.SweepInvitations(ctx, now)))
	_, err = a.Invitation(ctx, old.Hash)
	unknown(t, "an old invitation that was swept", err)
	if got, err := a.Invitation(ctx, open.Hash); err != nil || got != open {
		t.Errorf("one that is good still: %+v %v", got, err)
	}
}

func oneSecret(t *testing.T, a, b page.Store) {
	var mu sync.Mutex
	seen := map[string]bool{}
	together(16, func(i int) {
		s, err := []page.Store{a, b}[i%2].Secret(context.WithoutCancel(t.Context()))
		if err != nil || len(s.Reveal()) != 32 || bytes.Equal(s.Reveal(), make([]byte, 32)) {
			t.Errorf("%d bytes, %v", len(s.Reveal()), err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen[string(s.Reveal())] = true
	})
	if len(seen) != 1 {
		t.Errorf("%d secrets", len(seen))
	}
}

func decisions(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	for i, looked := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
		must(t, a.AddDecision(ctx, "", "ana", wetink.ChangeID("chg_"+string(rune('a'+i))), i != 1, looked, now.Add(time.Duration(i)*time.Hour)))
	}
	must(t, a.AddDecision(ctx, "", "bo", "chg_a", true, time.Hour, now))
	must(t, a.AddDecision(ctx, "other", "ana", "chg_a", true, time.Hour, now))
	if yes, all, median, err := b.Decisions(ctx, "", "ana", now); err != nil || yes != 2 || all != 3 || median != 2*time.Second {
		t.Errorf("%d of %d, median %s, %v", yes, all, median, err)
	}
	if yes, all, _, err := b.Decisions(ctx, "", "ana", now.Add(time.Minute)); err != nil || yes != 1 || all != 2 {
		t.Errorf("since later: %d of %d, %v", yes, all, err)
	}
	if yes, all, median, err := b.Decisions(ctx, "", "cy", now); err != nil || yes != 0 || all != 0 || median != 0 {
		t.Errorf("of nobody: %d of %d, median %s, %v", yes, all, median, err)
	}
}

func identities(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	const at, other = "https://id.example", "https://other.example"
	bind := func(s page.Store, who wetink.Person, issuer, subject string, want error) {
		t.Helper()
		if err := s.BindIdentity(context.WithoutCancel(ctx), "", who, issuer, subject); !errors.Is(err, want) {
			t.Errorf("%s as %s of %s: %v, want %v", who, subject, issuer, err, want)
		}
	}
	any := func(want bool) {
		t.Helper()
		if got, err := b.AnyIdentity(ctx, at); err != nil || got != want {
			t.Errorf("anybody of the issuer is there: %t, %v", got, err)
		}
	}
	any(false)
	_, err := a.Identity(ctx, "", at, "1")
	unknown(t, "a subject of nobody", err)
	bind(a, "ana", at, "1", page.ErrUnknown)
	must(t, errors.Join(a.AddPerson(ctx, page.Person{ID: "ana", Created: now}), a.AddPerson(ctx, page.Person{ID: "bo", Created: now}),
		a.AddPerson(ctx, page.Person{Tenant: "other", ID: "bo", Created: now})))
	bind(a, "ana", at, "1", nil)
	any(true)
	bind(b, "ana", at, "1", nil) // the next sign-in
	bind(b, "ana", at, "2", page.ErrTaken)
	bind(b, "bo", at, "1", page.ErrTaken)
	bind(b, "ana", other, "1", nil)
	must(t, a.BindIdentity(ctx, "other", "bo", at, "1"))
	for _, empty := range [][2]string{{"", "9"}, {at, ""}} {
		if a.BindIdentity(ctx, "", "bo", empty[0], empty[1]) == nil {
			t.Errorf("%q was bound", empty)
		}
	}
	if who, err := b.Identity(ctx, "", at, "1"); err != nil || who != "ana" {
		t.Errorf("%s %v", who, err)
	}
	// Of many subjects that come for one person at once, one gets them.
	var won atomic.Int32
	together(16, func(n int) {
		switch err := []page.Store{a, b}[n%2].BindIdentity(context.WithoutCancel(ctx), "", "bo", at, "many "+string(rune('a'+n))); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, page.ErrTaken):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d subjects are bo", won.Load())
	}
	must(t, a.UpdatePerson(ctx, page.Person{ID: "ana", Removed: now}))
	if who, err := b.Identity(ctx, "", at, "1"); err != nil || who != "ana" {
		t.Errorf("of somebody who was removed: %s %v", who, err)
	}
	must(t, a.UpdatePerson(ctx, page.Person{ID: "bo", Removed: now}))
	any(true) // bo of another tenant
	must(t, a.UpdatePerson(ctx, page.Person{Tenant: "other", ID: "bo", Removed: now}))
	any(false)
	bind(b, "ana", at, "1", page.ErrUnknown)
	must(t, a.AddPerson(ctx, page.Person{ID: "cy", Created: now}))
	bind(b, "cy", at, "1", page.ErrTaken)
}

func removal(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	ana := page.Person{ID: "ana", Created: now}
	must(t, a.AddPerson(ctx, ana))
	must(t, a.AddSession(ctx, page.Session{Hash: wetink.Digest{1}, Person: "ana", Created: now, Seen: now, Expires: now.Add(time.Hour)}))
	must(t, a.AddInvitation(ctx, page.Invitation{Hash: wetink.Digest{2}, Person: "ana", Expires: now}))
	ana.Removed = now
	must(t, b.UpdatePerson(ctx, ana))
	_, err := a.Person(ctx, "", "ana")
	unknown(t, "somebody who was removed", err)
	_, err = a.Session(ctx, wetink.Digest{1})
	unknown(t, "their session", err)
	_, err = a.TakeInvitation(ctx, wetink.Digest{2})
	unknown(t, "their invitation", err)
	unknown(t, "an update of them", a.UpdatePerson(ctx, page.Person{ID: "ana"}))
	if err := a.AddPerson(ctx, page.Person{ID: "ana", Created: now}); !errors.Is(err, page.ErrTaken) {
		t.Errorf("the name of somebody in the records was given away: %v", err)
	}
}

// hostile: a name is either kept to the byte or refused.
func hostile(t *testing.T, a, b page.Store) {
	ctx := t.Context()
	for _, name := range []string{"a\x00b", "a' OR 1=1 --", "%", "_", "ä\u0308", "\u202eevil", strings.Repeat("x", 1<<20), "\xff", "A", "a"} {
		p := page.Person{ID: wetink.Person(name), Name: name, Created: now}
		if err := a.AddPerson(ctx, p); err != nil {
			continue
		}
		if got, err := b.Person(ctx, "", p.ID); err != nil || got != p {
			t.Errorf("%.20q came back as %.20q, %v", name, got.ID, err)
		}
	}
	_, err := a.Person(ctx, "", "x' OR '1'='1")
	unknown(t, "a name that is a condition", err)
}

func together(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}
