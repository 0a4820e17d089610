package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/store/sqlite"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "home", "people.db") }

func TestTwoHandlesOnOneFileKeepTheContractOfAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (a, b page.Store) {
		path := newPath(t)
		return open(t, path), open(t, path)
	})
}

func with(t *testing.T, people ...wetink.Person) *sqlite.Store {
	s := open(t, newPath(t))
	for _, p := range people {
		if err := s.AddPerson(t.Context(), page.Person{ID: p, Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestThePasskeyOfSomebodyStaysTheirs(t *testing.T) {
	s, ctx := with(t, "ana", "bo"), t.Context()
	put := func(p wetink.Person, record string) error {
		return s.PutPasskeyRecord(ctx, "", p, []byte{1, 2}, []byte(record))
	}
	if err := errors.Join(put("ana", "one"), put("ana", "two")); err != nil {
		t.Fatal(err)
	}
	if err := put("bo", "mine now"); !errors.Is(err, page.ErrTaken) {
		t.Errorf("bo took ana's: %v", err)
	}
	if err := s.RemovePasskeyRecord(ctx, "", "bo", []byte{1, 2}); !errors.Is(err, page.ErrUnknown) {
		t.Errorf("bo removed ana's: %v", err)
	}
	if _, p, record, err := s.PasskeyRecord(ctx, []byte{1, 2}); err != nil || p != "ana" || string(record) != "two" {
		t.Errorf("%s %s %v", p, record, err)
	}
	if list, err := s.PasskeyRecords(ctx, "", "ana"); err != nil || len(list) != 1 {
		t.Errorf("%q %v", list, err)
	}
	if list, err := s.PasskeyRecords(ctx, "other", "ana"); err != nil || len(list) != 0 {
		t.Errorf("of another tenant: %q %v", list, err)
	}
	if err := s.RemovePasskeyRecord(ctx, "", "ana", []byte{1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.PasskeyRecord(ctx, []byte{1, 2}); !errors.Is(err, page.ErrUnknown) {
		t.Error(err)
	}
}

// An approval that was given and not used yet is checked against what is registered: who was removed has nothing.
func TestWhoWasRemovedProvesNothingAnyMore(t *testing.T) {
	s, ctx := with(t, "ana"), t.Context()
	if err := errors.Join(s.PutPasskeyRecord(ctx, "", "ana", []byte{1}, []byte("key")), s.PutPassphraseRecord(ctx, "", "ana", []byte("phrase")),
		s.PutSubscription(ctx, "", "ana", "https://push.example/1", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	reach := func() string {
		k, err1 := s.AnyPasskey(ctx)
		p, err2 := s.AnyPassphrase(ctx)
		return fmt.Sprint(k, p, err1, err2)
	}
	if got := reach(); got != "true true <nil> <nil>" {
		t.Error(got)
	}
	if err := s.UpdatePerson(ctx, page.Person{ID: "ana", Removed: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := reach(); got != "false false <nil> <nil>" {
		t.Error(got)
	}
	if _, _, _, err := s.PasskeyRecord(ctx, []byte{1}); !errors.Is(err, page.ErrUnknown) {
		t.Errorf("passkey: %v", err)
	}
	if r, err := s.PassphraseRecord(ctx, "", "ana"); err != nil || r != nil {
		t.Errorf("passphrase: %q %v", r, err)
	}
	if list, err := s.Subscriptions(ctx); err != nil || len(list) != 0 {
		t.Errorf("still told: %q %v", list, err)
	}
	if list, err := s.PasskeyRecords(ctx, "", "ana"); err != nil || len(list) != 0 {
		t.Errorf("passkeys: %q %v", list, err)
	}
}

// What nobody reads must not look stored, and must not wait for whoever is added by that name.
func TestNobodyAndWhoWasRemovedGetNoProofs(t *testing.T) {
	s, ctx := with(t, "ana", "gone"), t.Context()
	if err := s.UpdatePerson(ctx, page.Person{ID: "gone", Removed: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct {
		tenant wetink.Tenant
		person wetink.Person
	}{{"", "gone"}, {"", "later"}, {"other", "ana"}} {
		if err := s.PutPassphraseRecord(ctx, who.tenant, who.person, []byte("x")); !errors.Is(err, page.ErrUnknown) {
			t.Errorf("passphrase of %v: %v", who, err)
		}
		if err := s.PutPasskeyRecord(ctx, who.tenant, who.person, []byte{1}, []byte("x")); !errors.Is(err, page.ErrUnknown) {
			t.Errorf("passkey of %v: %v", who, err)
		}
	}
	if err := errors.Join(s.AddPerson(ctx, page.Person{ID: "later", Created: time.Now()}), s.AddPerson(ctx, page.Person{Tenant: "other", ID: "ana", Created: time.Now()})); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []wetink.Tenant{"", "other"} {
		for _, person := range []wetink.Person{"later", "ana"} {
			if r, err := s.PassphraseRecord(ctx, tenant, person); err != nil || r != nil {
				t.Errorf("%q %q: %q %v", tenant, person, r, err)
			}
		}
	}
	if any, err := s.AnyPasskey(ctx); err != nil || any {
		t.Error(any, err)
	}
	if any, err := s.AnyPassphrase(ctx); err != nil || any {
		t.Error(any, err)
	}
}

func TestThePassphraseOfAnotherTenantIsAnother(t *testing.T) {
	s, ctx := with(t, "ana"), t.Context()
	if err := errors.Join(s.AddPerson(ctx, page.Person{Tenant: "other", ID: "ana", Created: time.Now()}), s.PutPassphraseRecord(ctx, "other", "ana", []byte("theirs"))); err != nil {
		t.Fatal(err)
	}
	if r, err := s.PassphraseRecord(ctx, "", "ana"); err != nil || r != nil {
		t.Errorf("%q %v", r, err)
	}
	if r, err := s.PassphraseRecord(ctx, "other", "ana"); err != nil || string(r) != "theirs" {
		t.Errorf("%q %v", r, err)
	}
}

func TestNamesThatDoNotFitAreRefusedEverywhere(t *testing.T) {
	s, ctx := with(t, "ana"), t.Context()
	for _, bad := range []string{"a\x00b", "\xff", strings.Repeat("x", 1<<20)} {
		id, now := wetink.Person(bad), time.Now()
		for what, err := range map[string]error{
			"person":       s.AddPerson(ctx, page.Person{ID: id, Created: now}),
			"a tenant":     s.AddPerson(ctx, page.Person{Tenant: wetink.Tenant(bad), ID: "ana", Created: now}),
			"a new name":   s.UpdatePerson(ctx, page.Person{ID: "ana", Name: bad}),
			"session":      s.AddSession(ctx, page.Session{Person: id, Created: now}),
			"browser":      s.AddSession(ctx, page.Session{Person: "ana", Agent: bad, Created: now}),
			"invitation":   s.AddInvitation(ctx, page.Invitation{Person: id}),
			"passphrase":   s.PutPassphraseRecord(ctx, "", id, []byte("x")),
			"passkey":      s.PutPasskeyRecord(ctx, "", id, []byte{1}, []byte("x")),
			"decision":     s.AddDecision(ctx, "", id, "chg_a", true, 0, now),
			"its change":   s.AddDecision(ctx, "", "ana", wetink.ChangeID(bad), true, 0, now),
			"cursor":       s.SetCursor(ctx, bad, 1),
			"subscription": s.PutSubscription(ctx, "", "ana", bad, []byte("x")),
		} {
			if err == nil || errors.Is(err, page.ErrUnknown) {
				t.Errorf("%s with %.10q: %v", what, bad, err)
			}
		}
		if _, err := s.Person(ctx, "", id); !errors.Is(err, page.ErrUnknown) {
			t.Errorf("looked for %.10q: %v", bad, err)
		}
	}
	for _, id := range [][]byte{nil, make([]byte, 1024)} {
		if err := s.PutPasskeyRecord(ctx, "", "ana", id, []byte("x")); err == nil {
			t.Errorf("a passkey with an id of %d bytes", len(id))
		}
	}
}

func TestPassphrasesCursorsSubscriptionsAndKeysComeBack(t *testing.T) {
	path, ctx := newPath(t), t.Context()
	s, other := open(t, path), open(t, path)
	if err := s.AddPerson(ctx, page.Person{ID: "ana", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.PassphraseRecord(ctx, "", "ana"); err != nil || r != nil {
		t.Errorf("before there is one: %q %v", r, err)
	}
	for _, want := range []string{"one", "two"} {
		if err := s.PutPassphraseRecord(ctx, "", "ana", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if r, err := other.PassphraseRecord(ctx, "", "ana"); err != nil || string(r) != want {
			t.Errorf("%q %v", r, err)
		}
	}
	if n, err := s.Cursor(ctx, "x"); err != nil || n != wetink.Newest {
		t.Errorf("a new reader begins at %d, %v", n, err)
	}
	if err := errors.Join(s.SetCursor(ctx, "x", 7), s.SetCursor(ctx, "x", 5)); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Cursor(ctx, "x"); err != nil || n != 5 {
		t.Errorf("%d %v", n, err)
	}
	if err := errors.Join(s.PutSubscription(ctx, "", "ana", "https://push.example/1", []byte("a")), s.PutSubscription(ctx, "", "ana", "https://push.example/1", []byte("b"))); err != nil {
		t.Fatal(err)
	}
	if list, err := other.Subscriptions(ctx); err != nil || len(list) != 1 || string(list[0]) != "b" {
		t.Errorf("%q %v", list, err)
	}
	if err := s.RemoveSubscription(ctx, "https://push.example/1"); err != nil {
		t.Fatal(err)
	}
	if list, err := other.Subscriptions(ctx); err != nil || len(list) != 0 {
		t.Errorf("%q %v", list, err)
	}
	first, err := s.KeepVAPIDKey(ctx, secret.New([]byte("first")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.KeepVAPIDKey(ctx, secret.New([]byte("second")))
	if err != nil || !bytes.Equal(first.Reveal(), second.Reveal()) || string(first.Reveal()) != "first" {
		t.Errorf("%s %s %v", first.Reveal(), second.Reveal(), err)
	}
}

func TestSessionsThatAreOverAreForgotten(t *testing.T) {
	s, ctx := with(t, "ana"), t.Context()
	now := time.Now()
	add := func(hash byte, created time.Time) {
		if err := s.AddSession(ctx, page.Session{Hash: wetink.Digest{hash}, Person: "ana", Created: created, Seen: created, Expires: created.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	add(1, now)
	add(2, now.Add(2*time.Hour))
	if list, err := s.ListSessions(ctx, "", "ana"); err != nil || len(list) != 1 || list[0].Hash != (wetink.Digest{2}) {
		t.Errorf("%+v %v", list, err)
	}
}

// Who can write the file sets the key that a passphrase is checked against. internal/sqlite holds the whole list, owners
// among it; here it is shown that this file is under it, and made private.
func TestAFileThatOthersCanReachIsRefused(t *testing.T) {
	for name, loosen := range map[string]func(path string) error{
		"others can read it":        func(p string) error { return os.Chmod(p, 0o644) },
		"the group can read it":     func(p string) error { return os.Chmod(p, 0o640) },
		"others can enter its home": func(p string) error { return os.Chmod(filepath.Dir(p), 0o755) },
		"a link": func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		},
	} {
		path := newPath(t)
		if err := open(t, path).Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Fatalf("a new one: %v, %v", info.Mode(), err)
		}
		if err := loosen(path); err != nil {
			t.Fatal(err)
		}
		if s, err := sqlite.Open(path); err == nil {
			t.Errorf("%s: it was opened", name)
			s.Close()
		}
	}
}
