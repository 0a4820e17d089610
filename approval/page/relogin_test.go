package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/wetinktest"
)

// proving is cy, signed in at the issuer, in front of a change that needs more than a session.
func proving(t *testing.T) (*office, *browser, wetink.Change) {
	t.Helper()
	o := open(t, wetink.Reauth)
	b, code, body, _ := o.signOn(identity("1", "cy", "approvers"), nil)
	if code != http.StatusSeeOther {
		t.Fatalf("%d %s", code, body)
	}
	return o, b, o.preview(setN2)
}

// prove goes to the issuer for c and comes back.
func (b *browser) prove(c wetink.Change) (int, string, http.Header) {
	b.o.t.Helper()
	form := url.Values{"form": {b.form(c, true)}}
	b.o.issuer.id.AuthTime = b.o.now
	return b.home(b.travel(b.o.path(c)+"/prove", form))
}

func (b *browser) approve(c wetink.Change) (int, string) {
	b.o.t.Helper()
	code, body, _ := b.post(b.o.path(c)+"/approve", url.Values{"form": {b.form(c, true)}})
	return code, body
}

func TestWhoSignedInAtTheIssuerProvesThereAgainForOneChange(t *testing.T) {
	o, cy, c := proving(t)
	if _, body, _ := cy.get(o.path(c)); !strings.Contains(body, "Sign in again with Firm") || strings.Contains(body, `name="pass"`) {
		t.Error("the page does not lead to the issuer")
	}
	if code, body := cy.approve(c); code != http.StatusBadRequest || o.status(c) != wetink.Pending || !strings.Contains(body, "Prove first") {
		t.Fatalf("without a proof: %d", code)
	}
	code, _, h := cy.prove(c)
	if code != http.StatusSeeOther || h.Get("Location") != o.path(c) || o.status(c) != wetink.Pending {
		t.Fatalf("%d %v %s", code, h, o.status(c))
	}
	if got := o.issuer.fresh; !got[len(got)-1] {
		t.Error("the issuer was not asked for a fresh sign-in")
	}
	at := o.issuer.id.AuthTime.UTC().Format(time.RFC3339)
	if _, body, _ := cy.get(o.path(c)); !strings.Contains(body, "You proved who you are with Firm") || strings.Contains(body, "/prove") {
		t.Error("the page does not know of the proof")
	}
	if code, body := cy.approve(c); code != http.StatusSeeOther || o.status(c) != wetink.Approved || strings.Contains(cy.cookie, "proof") {
		t.Fatalf("%d %s %s", code, body, cy.cookie)
	}
	done, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil)
	if err != nil || done.Status != wetink.Applied || done.Approvals[0].Level != wetink.Reauth {
		t.Fatalf("%s %v", done.Status, err)
	}
	if got := done.Approvals[0].Sentence(); got != "cy re-authenticated with https://id.example at "+at+" for this exact change." {
		t.Error(got)
	}
}

func TestAProofIsGoodForTheChangeAndTheSessionItWasMadeFor(t *testing.T) {
	for name, spoil := range map[string]func(o *office, cy *browser, c wetink.Change) (*browser, wetink.Change){
		"another change": func(o *office, cy *browser, _ wetink.Change) (*browser, wetink.Change) {
			return cy, o.preview(`{"ops":[{"action":"update","object":"a","set":{"n":3}}]}`)
		},
		"another session": func(o *office, cy *browser, c wetink.Change) (*browser, wetink.Change) {
			other, _, _, _ := o.signOn(o.issuer.id, nil)
			for _, part := range strings.Split(cy.cookie, "; ") {
				if strings.Contains(part, "-proof=") {
					other.cookie += "; " + part
				}
			}
			return other, c
		},
		"ten minutes later": func(o *office, cy *browser, c wetink.Change) (*browser, wetink.Change) {
			o.now = o.now.Add(10 * time.Minute)
			return cy, c
		},
		"forged": func(_ *office, cy *browser, c wetink.Change) (*browser, wetink.Change) {
			cy.cookie = strings.Replace(cy.cookie, "-proof=", "-proof=A", 1)
			return cy, c
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, cy, c := proving(t)
			if code, _, _ := cy.prove(c); code != http.StatusSeeOther {
				t.Fatal(code)
			}
			b, c := spoil(o, cy, c)
			if code, body := b.approve(c); code != http.StatusBadRequest || !strings.Contains(body, "Prove first") || o.status(c) != wetink.Pending {
				t.Errorf("%d %s", code, o.status(c))
			}
		})
	}
}

func TestSomebodyElsesProofIsNone(t *testing.T) {
	o, cy, c := proving(t)
	o.signOn(identity("2", "dy", "approvers"), nil)
	for _, id := range []page.Identity{identity("2", "dy", "approvers"), identity("2", "cy", "approvers"), identity("3", "cy", "approvers")} {
		o.issuer.id = id
		if code, body, h := cy.prove(c); code != http.StatusForbidden || !strings.Contains(body, "That was somebody else") || strings.Contains(strings.Join(h.Values("Set-Cookie"), ""), "-proof") {
			t.Errorf("%+v: %d %v", id, code, h)
		}
	}
	if code, _ := cy.approve(c); code != http.StatusBadRequest || o.status(c) != wetink.Pending {
		t.Errorf("%d %s", code, o.status(c))
	}
	o.issuer.id = identity("1", "cy", "approvers")
	form := url.Values{"form": {cy.form(c, true)}}
	if code, _, _ := cy.home(cy.travel(o.path(c)+"/prove", form)); code != http.StatusForbidden {
		t.Errorf("a proof without a time: %d", code)
	}
}

func TestWhoSignedInOtherwiseGivesTheirPassphrase(t *testing.T) {
	o := open(t, wetink.Reauth)
	c, ana := o.preview(setN2), o.signedIn("ana")
	if code, body, _ := ana.post(o.path(c)+"/prove", url.Values{"form": {ana.form(c, true)}}); code != http.StatusBadRequest || len(o.issuer.fresh) != 0 {
		t.Errorf("%d %s", code, body)
	}
	if _, body, _ := ana.get(o.path(c)); !strings.Contains(body, `name="pass"`) {
		t.Error("she is not asked for it")
	}
}

// renamed is a Store in which a subject became somebody else after the approval.
type renamed struct{ page.Store }

func (renamed) Identity(context.Context, wetink.Tenant, string, string) (wetink.Person, error) {
	return "dy", nil
}

func TestEvidenceOfAProofCountsOnlyAsItWasMade(t *testing.T) {
	o, cy, c := proving(t)
	cy.prove(c)
	if code, body := cy.approve(c); code != http.StatusSeeOther {
		t.Fatal(code, body)
	}
	c, err := o.kit.Ledger.Get(t.Context(), "", c.ID)
	if err != nil {
		t.Fatal(err)
	}
	terms, err := c.Terms()
	if err != nil {
		t.Fatal(err)
	}
	good := c.Approvals[0].Evidence
	v := page.ReloginVerifier(o.store, "https://id.example")
	if level, err := v.Verify(t.Context(), c, terms, good); err != nil || level != wetink.Reauth {
		t.Fatalf("%s %v", level, err)
	}
	no := func(what string, v wetink.Verifier, c wetink.Change, e wetink.Evidence) {
		t.Helper()
		if level, err := v.Verify(t.Context(), c, terms, e); err == nil || level != wetink.Auto {
			t.Errorf("%s: %s", what, level)
		}
	}
	data := func(f func(*wetink.Relogin)) func(*wetink.Evidence) {
		return func(e *wetink.Evidence) {
			var r wetink.Relogin
			if err := json.Unmarshal(e.Data, &r); err != nil {
				t.Fatal(err)
			}
			f(&r)
			e.Data, _ = json.Marshal(r)
		}
	}
	for what, spoil := range map[string]func(*wetink.Evidence){
		"kind":    func(e *wetink.Evidence) { e.Kind = wetink.EvidenceReauth },
		"digest":  func(e *wetink.Evidence) { e.Digest[0]++ },
		"person":  func(e *wetink.Evidence) { e.By = "ana" },
		"client":  func(e *wetink.Evidence) { e.Client = "terminal" },
		"shown":   func(e *wetink.Evidence) { e.Shown = e.Shown.Add(time.Second) },
		"no data": func(e *wetink.Evidence) { e.Data = nil },
		"a member": func(e *wetink.Evidence) {
			e.Data = []byte(strings.Replace(string(e.Data), `{`, `{"more":1,`, 1))
		},
		"issuer":  data(func(r *wetink.Relogin) { r.Issuer = "https://evil.example" }),
		"subject": data(func(r *wetink.Relogin) { r.Subject = "2" }),
		"time":    data(func(r *wetink.Relogin) { r.At = r.At.Add(time.Second) }),
		"MAC":     data(func(r *wetink.Relogin) { r.MAC[0]++ }),
		"no MAC":  data(func(r *wetink.Relogin) { r.MAC = nil }),
	} {
		e := good
		e.Data = append([]byte{}, good.Data...)
		spoil(&e)
		no(what, v, c, e)
	}
	other := o.preview(`{"ops":[{"action":"update","object":"a","set":{"n":3}}]}`)
	e := good
	e.Digest = other.Statement.Digest()
	no("another change", v, other, e)
	no("an issuer that is not trusted any more", page.ReloginVerifier(o.store, "https://new.example"), c, good)
	no("a subject that is somebody else now", page.ReloginVerifier(renamed{o.store}, "https://id.example"), c, good)
	if err := o.store.UpdatePerson(t.Context(), page.Person{ID: "cy"}); err != nil {
		t.Fatal(err)
	}
	no("an approver no more", v, c, good)
	if done, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrEvidence) || len(o.kit.Target.Journal()) != 0 {
		t.Errorf("%s %v", done.Status, err)
	}
}

func TestAnIssuerReachesAsFarAsSomebodyHasSignedInThere(t *testing.T) {
	o := open(t, wetink.Reauth)
	v := page.ReloginVerifier(o.store, "https://id.example")
	if got := v.Reach(t.Context()); got != wetink.Auto {
		t.Errorf("before: %s", got)
	}
	o.signOn(identity("1", "cy", "approvers"), nil)
	if got := v.Reach(t.Context()); got != wetink.Reauth {
		t.Errorf("after: %s", got)
	}
}
