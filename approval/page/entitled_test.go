package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
	"github.com/wetink/wetink/wetinktest"
)

// What a passphrase or a passkey proves stays proved. Whether it counts is asked again at the claim, as for a session.
func TestAnApprovalIsVoidOnceItsPersonMayNotDecideAnyMore(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(*page.Person)
		ok   bool
	}{
		"nothing happens":         {func(*page.Person) {}, true},
		"another name":            {func(p *page.Person) { p.Name = "Cy" }, true},
		"removed":                 {func(p *page.Person) { p.Removed = time.Now() }, false},
		"an approver no more":     {func(p *page.Person) { p.Approver = false }, false},
		"who may invite, instead": {func(p *page.Person) { p.Approver, p.Admin = false, true }, false},
	} {
		for _, level := range []wetink.Level{wetink.Session, wetink.Reauth} {
			t.Run(name+", "+level.String(), func(t *testing.T) {
				o := open(t, level)
				cy := page.Person{ID: "cy", Approver: true, Created: o.now}
				if err := o.store.AddPerson(t.Context(), cy); err != nil {
					t.Fatal(err)
				}
				o.pass["cy"] = "some five words more"
				c, b := o.preview(setN2), o.signedIn("cy")
				if code, body, _ := b.post(o.path(c)+"/approve", url.Values{"form": {b.form(c, true)}, "pass": {o.pass["cy"]}}); code != http.StatusSeeOther {
					t.Fatalf("%d %s", code, body)
				}
				if tc.then(&cy); o.store.UpdatePerson(t.Context(), cy) != nil {
					t.Fatal("cy is not there")
				}
				done, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil)
				if ok := err == nil && done.Status == wetink.Applied; ok != tc.ok || !ok && !errors.Is(err, wetink.ErrEvidence) {
					t.Errorf("%s %v", done.Status, err)
				}
				if sent := len(o.kit.Target.Journal()) == 1; sent != tc.ok {
					t.Errorf("sent: %t", sent)
				}
			})
		}
	}
}

func TestPeopleOfAnyTenantAreReached(t *testing.T) {
	s := storetest.NewMemory()
	if got := page.Verifier(s).Reach(t.Context()); got != wetink.Auto {
		t.Errorf("with nobody: %s", got)
	}
	if err := s.AddPerson(t.Context(), page.Person{Tenant: "acme", ID: "ana"}); err != nil {
		t.Fatal(err)
	}
	if got := page.Verifier(s).Reach(t.Context()); got != wetink.Session {
		t.Errorf("with somebody of acme: %s", got)
	}
}

func TestInvitationsThatNobodyUsedDoNotStay(t *testing.T) {
	o := open(t, wetink.Session)
	hash := func() wetink.Digest {
		t.Helper()
		if _, err := o.server.Invite(t.Context(), "", "bo"); err != nil {
			t.Fatal(err)
		}
		list := o.store.Invitations()
		return list[len(list)-1].Hash
	}
	old := hash()
	o.now = o.now.Add(59 * time.Minute)
	hash()
	if n := len(o.store.Invitations()); n != 2 {
		t.Fatalf("%d are there while both are good", n)
	}
	o.now = o.now.Add(2 * time.Minute)
	hash()
	if _, err := o.store.Invitation(t.Context(), old); !errors.Is(err, page.ErrUnknown) {
		t.Errorf("an invitation leaves an old one there: %v", err)
	}
	o.now = o.now.Add(2 * time.Hour)
	o.signedIn("ana")
	if n := len(o.store.Invitations()); n != 0 {
		t.Errorf("a sign-in leaves %d old ones there", n)
	}
}

// drawer is a Passkeys with a list: what is tested is what may be taken out of it.
type drawer map[string]string

func (d drawer) Has(context.Context, wetink.Tenant, wetink.Person) (bool, error) {
	return len(d) > 0, nil
}
func (drawer) BeginEnrol(context.Context, wetink.Tenant, wetink.Person, string) ([]byte, []byte, error) {
	return []byte(`{}`), nil, nil
}
func (drawer) FinishEnrol(context.Context, wetink.Tenant, wetink.Person, string, []byte, []byte) error {
	return nil
}
func (drawer) BeginSignIn(context.Context) ([]byte, []byte, error) { return []byte(`{}`), nil, nil }
func (drawer) FinishSignIn(context.Context, []byte, []byte) (wetink.Tenant, wetink.Person, error) {
	return "", "ana", nil
}
func (drawer) BeginApproval(context.Context, wetink.Change, wetink.Person, []byte) ([]byte, error) {
	return []byte(`{}`), nil
}
func (drawer) FinishApproval(context.Context, wetink.Change, wetink.Person, []byte, time.Time, []byte) (wetink.Evidence, error) {
	return wetink.Evidence{}, errors.New("none")
}
func (d drawer) List(context.Context, wetink.Tenant, wetink.Person) (out []page.PasskeyInfo, err error) {
	for id, name := range d {
		out = append(out, page.PasskeyInfo{ID: id, Name: name})
	}
	return out, nil
}
func (d drawer) Remove(_ context.Context, _ wetink.Tenant, _ wetink.Person, id string) error {
	delete(d, id)
	return nil
}

func TestTheOnlyWayInIsNotTakenAway(t *testing.T) {
	keys := drawer{"k1": "laptop", "k2": "phone"}
	o := open(t, wetink.Session, func(p *page.Options) { p.Passkeys = keys })
	ana := o.signedIn("ana")
	remove := func(id string) (int, string) {
		code, body, _ := ana.post("/settings", url.Values{"do": {"remove"}, "form": {ana.settingsForm()}, "id": {id}})
		return code, body
	}
	phrase := o.pass["ana"]
	delete(o.pass, "ana")
	if code, _ := remove("k1"); code != http.StatusSeeOther || len(keys) != 1 {
		t.Fatalf("one of two: %d, %v", code, keys)
	}
	if code, body := remove("k2"); code != http.StatusBadRequest || len(keys) != 1 || !strings.Contains(body, "the only way in that you have") {
		t.Errorf("the last one: %d, %v", code, keys)
	}
	o.pass["ana"] = phrase
	if code, _ := remove("k2"); code != http.StatusSeeOther || len(keys) != 0 {
		t.Errorf("with a passphrase besides: %d, %v", code, keys)
	}
}

// The page may be served by a process that does not reach the outside system. What needs it says so, and what to do.
func TestWhatNeedsTheOutsideSystemSaysSoWhereItIsNotReached(t *testing.T) {
	o := open(t, wetink.Session)
	o.kit.Target.Put("b", `{"n":1}`)
	pending, doubtful, stale := o.preview(setN2), o.preview(setN2), o.preview(`{"ops":[{"action":"update","object":"b","set":{"n":2}}]}`)
	approved := func(c wetink.Change) {
		t.Helper()
		b := o.signedIn("ana")
		if code, body, _ := b.post(o.path(c)+"/approve", url.Values{"form": {b.form(c, true)}}); code != http.StatusSeeOther {
			t.Fatalf("%d %s", code, body)
		}
		if _, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	o.kit.Target.OnExecute = func(int, wetink.Op, func() error) error { return errors.New("connection reset") }
	approved(doubtful)
	o.kit.Target.OnExecute = nil
	o.kit.Target.Put("b", `{"n":7}`)
	approved(stale)
	if s := []wetink.Status{o.status(doubtful), o.status(stale)}; s[0] != wetink.InDoubt || s[1] != wetink.Failed {
		t.Fatal(s)
	}
	elsewhere := wetink.New(o.kit.Ledger, nil, &wetink.Options{Policy: wetink.Floor{Level: wetink.Session, People: 1},
		Verifiers: map[string]wetink.Verifier{page.EvidenceSession: page.Verifier(o.store)}})
	var err error
	o.server, err = page.New(t.Context(), origin, elsewhere, o.kit.Ledger, o.store, &page.Options{Passphrases: o.pass, Now: func() time.Time { return o.now },
		Exclude: func(wetink.Change, []int) (json.RawMessage, bool) { return json.RawMessage(setN2), true }})
	if err != nil {
		t.Fatal(err)
	}
	ana := o.signedIn("ana")
	for _, try := range []struct {
		c    wetink.Change
		verb string
	}{{pending, "again"}, {stale, "again"}, {doubtful, "look"}} {
		before := o.status(try.c)
		code, body, _ := ana.post(o.path(try.c)+"/"+try.verb, url.Values{"form": {ana.form(try.c, true)}})
		if code != http.StatusConflict || !strings.Contains(body, "does not reach it") || !strings.Contains(body, "Ask the agent for a fresh preview") || !strings.Contains(body, "Nothing was sent") {
			t.Errorf("%s of a change that is %s: %d %s", try.verb, before, code, notice(body))
		}
		if now := o.status(try.c); now != before {
			t.Errorf("%s made it %s", try.verb, now)
		}
	}
}

// notice is what a page says of a problem.
func notice(body string) string {
	return strings.Join(regexp.MustCompile(`role="status">([^<]*)`).FindStringSubmatch(body), " ")
}

func TestAPersonIsToldWhyItNeedsThatLevel(t *testing.T) {
	o := open(t, wetink.Session, func(p *page.Options) {
		p.Why = func(context.Context, wetink.Change) []string {
			return []string{"races. They are <b>not</b> moved\u202e lightly."}
		}
	})
	c, ana := o.preview(setN2), o.signedIn("ana")
	_, body, _ := ana.get(o.path(c))
	for _, want := range []string{"Why this level", "races. They are &lt;b&gt;not&lt;/b&gt; moved", "[U+202E"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	plain := open(t, wetink.Session)
	c, ana = plain.preview(setN2), plain.signedIn("ana")
	if _, body, _ := ana.get(plain.path(c)); strings.Contains(body, "Why this level") {
		t.Error("a heading with nothing under it")
	}
}
