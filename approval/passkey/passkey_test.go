package passkey_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/passkey"
	"github.com/wetink/wetink/wetinktest"
)

const origin = "http://localhost:7433"

var site = passkey.RP{ID: "localhost", Origin: origin, Name: "wetink"}

// desk is one person with one passkey, in front of one change.
type desk struct {
	t       *testing.T
	kit     *wetinktest.Kit
	records *shelf
	service *passkey.Service
	auth    *authenticator
	now     time.Time
	change  wetink.Change
	terms   wetink.Terms
	nonce   []byte
}

func sit(t *testing.T, alg int64) *desk {
	t.Helper()
	d := &desk{t: t, kit: wetinktest.New(t, nil), records: newShelf(), now: time.Now(), nonce: bytes.Repeat([]byte{7}, 32)}
	var err error
	if d.service, err = passkey.New(d.records, site, &passkey.Options{Now: func() time.Time { return d.now }}); err != nil {
		t.Fatal(err)
	}
	d.auth = newAuthenticator(t, alg)
	d.enrol("ana", d.auth)
	d.kit.Target.Put("a", `{"n":1}`)
	d.change, d.terms = d.preview()
	return d
}

func (d *desk) preview() (wetink.Change, wetink.Terms) {
	d.t.Helper()
	c, _, err := d.kit.Preview(d.t.Context(), "test", wetink.Request{By: wetinktest.By, Args: []byte(`{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`)})
	if err != nil {
		d.t.Fatal(err)
	}
	terms, err := c.Terms()
	if err != nil {
		d.t.Fatal(err)
	}
	return c, terms
}

func (d *desk) enrol(person wetink.Person, a *authenticator) {
	d.t.Helper()
	options, kept, err := d.service.BeginEnrol(d.t.Context(), "", person, string(person))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.service.FinishEnrol(d.t.Context(), "", person, "laptop", kept, a.create(options)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) approve() (wetink.Evidence, error) {
	d.t.Helper()
	options, err := d.service.BeginApproval(d.t.Context(), d.change, "ana", d.nonce)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.service.FinishApproval(d.t.Context(), d.change, "ana", d.nonce, d.now, d.auth.get(options))
}

func (d *desk) mustApprove() wetink.Evidence {
	d.t.Helper()
	e, err := d.approve()
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

func (d *desk) verify(c wetink.Change, e wetink.Evidence) (wetink.Level, error) {
	return d.service.Verifier().Verify(d.t.Context(), c, d.terms, e)
}

func TestAPasskeySignsAnExactChangeAndIsCheckedAgainFromWhatIsStored(t *testing.T) {
	for _, alg := range []int64{-7, -8, -257} {
		d := sit(t, alg)
		e := d.mustApprove()
		stored, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var again wetink.Evidence
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		if level, err := d.verify(d.change, again); err != nil || level != wetink.Passkey {
			t.Errorf("alg %d: %v %v", alg, level, err)
		}
		// Somebody without our store checks it as well.
		a, err := passkey.ParseAssertion(again.Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := passkey.Check(a, d.change.ID, d.change.Statement.Digest(), "", "ana"); err != nil {
			t.Errorf("alg %d, offline: %v", alg, err)
		}
	}
}

func TestTheEngineTakesItAndAppliesOnce(t *testing.T) {
	d := sit(t, -7)
	o := &wetink.Options{Policy: wetink.Floor{Level: wetink.Passkey, People: 1}, Verifiers: map[string]wetink.Verifier{passkey.EvidenceKind: d.service.Verifier()}, Mode: wetink.ModeGuarded}
	engine := wetink.New(d.kit.Ledger, map[string]wetink.Target{"test": d.kit.Target}, o)
	c, _, err := engine.Preview(t.Context(), "test", wetink.Request{By: wetinktest.By, Args: []byte(`{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	d.change = c
	if c, err = engine.Approve(t.Context(), wetinktest.By, c.ID, d.mustApprove()); err != nil || c.Status != wetink.Approved {
		t.Fatalf("%s %v", c.Status, err)
	}
	if s := c.Approvals[0].Sentence(); s != "A passkey registered to ana signed this exact change. Anyone can check the signature." {
		t.Errorf("%q", s)
	}
	if c, _, err = engine.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || c.Status != wetink.Applied {
		t.Fatalf("%s %v", c.Status, err)
	}
	if n := len(d.kit.Target.Journal()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Each part of what is stored, changed alone, must make it no evidence.
func TestNothingOfTheEvidenceCanBeChanged(t *testing.T) {
	d := sit(t, -7)
	good := d.mustApprove()
	other := newAuthenticator(t, -7)
	d.enrol("ana", other)
	otherEvidence := func() passkey.Assertion {
		mine := d.auth
		d.auth = other
		defer func() { d.auth = mine }()
		a, err := passkey.ParseAssertion(d.mustApprove().Data)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}()
	second, _ := d.preview()
	flip := func(b []byte) []byte { b = slices.Clone(b); b[len(b)/2] ^= 1; return b }
	inside := func(f func(*passkey.Assertion)) func(*wetink.Evidence, *wetink.Change) {
		return func(e *wetink.Evidence, _ *wetink.Change) {
			a, err := passkey.ParseAssertion(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			f(&a)
			e.Data, _ = json.Marshal(a)
		}
	}
	for name, spoil := range map[string]func(*wetink.Evidence, *wetink.Change){
		"kind":                func(e *wetink.Evidence, _ *wetink.Change) { e.Kind = "reauth" },
		"digest":              func(e *wetink.Evidence, _ *wetink.Change) { e.Digest[0] ^= 1 },
		"person":              func(e *wetink.Evidence, _ *wetink.Change) { e.By = "bo" },
		"nobody":              func(e *wetink.Evidence, _ *wetink.Change) { e.By = "" },
		"no time":             func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = time.Time{} },
		"another change":      func(e *wetink.Evidence, c *wetink.Change) { *c = second; e.Digest = second.Statement.Digest() },
		"another change's id": func(_ *wetink.Evidence, c *wetink.Change) { c.ID = second.ID },
		"another tenant":      func(_ *wetink.Evidence, c *wetink.Change) { c.Tenant = "other" },
		"statement": func(e *wetink.Evidence, c *wetink.Change) {
			c.Statement = flip(c.Statement)
			e.Digest = c.Statement.Digest()
		},
		"no data":                  func(e *wetink.Evidence, _ *wetink.Change) { e.Data = nil },
		"version":                  inside(func(a *passkey.Assertion) { a.V = 2 }),
		"credential":               inside(func(a *passkey.Assertion) { a.Credential = flip(a.Credential) }),
		"another of theirs":        inside(func(a *passkey.Assertion) { a.Credential = other.id }),
		"key":                      inside(func(a *passkey.Assertion) { a.SPKI = otherEvidence.SPKI }),
		"key and signature":        inside(func(a *passkey.Assertion) { c := a.Credential; *a = otherEvidence; a.Credential = c }),
		"algorithm":                inside(func(a *passkey.Assertion) { a.Alg = -257 }),
		"rp":                       inside(func(a *passkey.Assertion) { a.RP = "example.org" }),
		"origin":                   inside(func(a *passkey.Assertion) { a.Origin = "http://localhost:1" }),
		"nonce":                    inside(func(a *passkey.Assertion) { a.Nonce = flip(a.Nonce) }),
		"short nonce":              inside(func(a *passkey.Assertion) { a.Nonce = a.Nonce[:16] }),
		"client data":              inside(func(a *passkey.Assertion) { a.ClientData = flip(a.ClientData) }),
		"authenticator data":       inside(func(a *passkey.Assertion) { a.AuthenticatorData = flip(a.AuthenticatorData) }),
		"authenticator data short": inside(func(a *passkey.Assertion) { a.AuthenticatorData = a.AuthenticatorData[:36] }),
		"signature":                inside(func(a *passkey.Assertion) { a.Signature = flip(a.Signature) }),
		"no signature":             inside(func(a *passkey.Assertion) { a.Signature = nil }),
		"twice the same member": func(e *wetink.Evidence, _ *wetink.Change) {
			e.Data = []byte(strings.Replace(string(e.Data), `{"v":1`, `{"v":1,"v":1`, 1))
		},
	} {
		e, c := good, d.change
		e.Data = slices.Clone(good.Data)
		spoil(&e, &c)
		if level, err := d.verify(c, e); err == nil || level != wetink.Auto {
			t.Errorf("%s: it is taken as level %v", name, level)
		}
	}
	if level, err := d.verify(d.change, good); err != nil || level != wetink.Passkey {
		t.Errorf("the control: %v %v", level, err)
	}
}

// What a browser or an authenticator may truthfully sign, and what is still no approval on our page.
func TestASignatureMadeElsewhereOrByNobodyIsNoApproval(t *testing.T) {
	twice := func(b []byte) []byte { return append([]byte(`{"type":"webauthn.get",`), b[1:]...) }
	for name, spoil := range map[string]func(*authenticator){
		"user not verified": func(a *authenticator) { a.flags = 0x01 },
		"user not present":  func(a *authenticator) { a.flags = 0x04 },
		"another site":      func(a *authenticator) { a.rp = "example.org" },
		"another origin":    func(a *authenticator) { a.origin = "https://evil.example" },
		"another port":      func(a *authenticator) { a.origin = "http://localhost:7434" },
		"inside a frame":    func(a *authenticator) { a.spoilClient = func(c map[string]any) { c["crossOrigin"] = true } },
		"under another page": func(a *authenticator) {
			a.spoilClient = func(c map[string]any) { c["topOrigin"] = "https://evil.example" }
		},
		"an enrolment": func(a *authenticator) { a.spoilClient = func(c map[string]any) { c["type"] = "webauthn.create" } },
		"another challenge": func(a *authenticator) {
			a.spoilClient = func(c map[string]any) { c["challenge"] = b64.EncodeToString(make([]byte, 32)) }
		},
		"a member twice":      func(a *authenticator) { a.clientBytes = twice },
		"a member in capital": func(a *authenticator) { a.spoilClient = func(c map[string]any) { c["Type"] = "webauthn.get" } },
		"not registered":      func(a *authenticator) { a.id = make([]byte, 32) },
	} {
		d := sit(t, -7)
		spoil(d.auth)
		if e, err := d.approve(); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: %v %v", name, e.Kind, err)
		}
	}
}

// Two changes must never share a challenge, and a nonce that is guessed is none.
func TestAShortNonceIsRefused(t *testing.T) {
	d := sit(t, -7)
	short := make([]byte, 16)
	if _, err := d.service.BeginApproval(t.Context(), d.change, "ana", short); err == nil {
		t.Error("an approval begins with it")
	}
	challenge := passkey.Challenge(d.change.ID, d.change.Statement.Digest(), "", "ana", "localhost", origin, short)
	options := []byte(`{"challenge":"` + b64.EncodeToString(challenge) + `"}`)
	if e, err := d.service.FinishApproval(t.Context(), d.change, "ana", short, d.now, d.auth.get(options)); err == nil {
		t.Errorf("it is taken: %s", e.Data)
	}
}

func TestWhatWasSignedAtAnotherOriginOfTheSameSiteIsApprovedAgain(t *testing.T) {
	d := sit(t, -7)
	e := d.mustApprove()
	moved, err := passkey.New(d.records, passkey.RP{ID: "localhost", Origin: "http://localhost:8080", Name: "wetink"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if level, err := moved.Verifier().Verify(t.Context(), d.change, d.terms, e); err == nil || !strings.Contains(err.Error(), "approve it again") {
		t.Errorf("%v %v", level, err)
	}
}

func TestAPasskeyOfSomebodyElseApprovesNothing(t *testing.T) {
	d := sit(t, -7)
	bo := newAuthenticator(t, -7)
	d.enrol("bo", bo)
	options, err := d.service.BeginApproval(t.Context(), d.change, "ana", d.nonce)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(options), b64.EncodeToString(bo.id)) {
		t.Error("bo's passkey is offered to ana")
	}
	if _, err := d.service.FinishApproval(t.Context(), d.change, "ana", d.nonce, d.now, bo.get(options)); !errors.Is(err, passkey.ErrRefused) {
		t.Error(err)
	}
}

func TestAnApprovalIsVoidOnceItsPasskeyIsRemoved(t *testing.T) {
	d := sit(t, -7)
	e := d.mustApprove()
	list, err := d.service.List(t.Context(), "", "ana")
	if err != nil || len(list) != 1 || list[0].Name != "laptop" {
		t.Fatalf("%+v %v", list, err)
	}
	if err := d.service.Remove(t.Context(), "", "bo", list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.verify(d.change, e); err != nil {
		t.Errorf("bo removed ana's: %v", err)
	}
	if err := d.service.Remove(t.Context(), "", "ana", list[0].ID); err != nil {
		t.Fatal(err)
	}
	if level, err := d.verify(d.change, e); err == nil || !strings.Contains(err.Error(), "approve it again") {
		t.Errorf("%v %v", level, err)
	}
	if l := d.service.Verifier().Reach(t.Context()); l != wetink.Auto {
		t.Errorf("without a passkey it reaches %v", l)
	}
	if _, err := d.service.BeginApproval(t.Context(), d.change, "ana", d.nonce); err == nil {
		t.Error("an approval begins without a passkey")
	}
}

func TestSignInTellsWhoItIs(t *testing.T) {
	d := sit(t, -8)
	begin := func() (options, kept []byte) {
		options, kept, err := d.service.BeginSignIn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return options, kept
	}
	options, kept := begin()
	answer := d.auth.get(options)
	if tenant, person, err := d.service.FinishSignIn(t.Context(), kept, answer); err != nil || tenant != "" || person != "ana" {
		t.Fatalf("%q %q %v", tenant, person, err)
	}
	refused := func(what string, kept, answer []byte) {
		t.Helper()
		if _, person, err := d.service.FinishSignIn(t.Context(), kept, answer); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: signed in as %q, %v", what, person, err)
		}
	}
	refused("the same answer again", kept, answer)
	options, kept = begin()
	d.now = d.now.Add(6 * time.Minute)
	refused("too late", kept, d.auth.get(options))
	options, kept = begin()
	d.auth.flags = 0x01
	refused("without verification", kept, d.auth.get(options))
	d.auth.flags = 0x05
	_, kept = begin()
	options, _ = begin()
	refused("the answer to another question", kept, d.auth.get(options))
	options, kept = begin()
	owner := d.auth.owner
	d.auth.owner = []byte("somebody else")
	refused("another user handle", kept, d.auth.get(options))
	d.auth.owner = owner
	options, enrolling, err := d.service.BeginEnrol(t.Context(), "", "ana", "ana")
	if err != nil {
		t.Fatal(err)
	}
	refused("the state of an enrolment", enrolling, d.auth.get(options))
	approval, err := d.service.BeginApproval(t.Context(), d.change, "ana", d.nonce)
	if err != nil {
		t.Fatal(err)
	}
	_, kept = begin()
	refused("an approval", kept, d.auth.get(approval))
}

func TestEnrolmentRefusesWhatIsNotNewOrNotOurs(t *testing.T) {
	d := sit(t, -7)
	try := func(person wetink.Person, a *authenticator) error {
		options, kept, err := d.service.BeginEnrol(t.Context(), "", person, "x")
		if err != nil {
			t.Fatal(err)
		}
		return d.service.FinishEnrol(t.Context(), "", person, "x", kept, a.create(options))
	}
	if err := try("bo", d.auth); !errors.Is(err, passkey.ErrRefused) {
		t.Errorf("ana's authenticator id is bo's now: %v", err)
	}
	for name, spoil := range map[string]func(*authenticator){
		"no verification": func(a *authenticator) { a.flags = 0x01 },
		"another site":    func(a *authenticator) { a.rp = "example.org" },
		"another origin":  func(a *authenticator) { a.origin = "https://evil.example" },
	} {
		a := newAuthenticator(t, -7)
		spoil(a)
		if err := try("bo", a); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheOptionsDemandVerificationAndNameNoPerson(t *testing.T) {
	d := sit(t, -7)
	create, _, err := d.service.BeginEnrol(t.Context(), "", "ana", "Ana")
	if err != nil {
		t.Fatal(err)
	}
	signIn, _, err := d.service.BeginSignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	approval, err := d.service.BeginApproval(t.Context(), d.change, "ana", d.nonce)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string][]byte{"create": create, "sign in": signIn, "approval": approval} {
		if !strings.Contains(string(o), `"userVerification":"required"`) {
			t.Errorf("%s: %s", name, o)
		}
	}
	if !strings.Contains(string(create), `"residentKey":"required"`) || !strings.Contains(string(create), b64.EncodeToString(d.auth.id)) {
		t.Errorf("%s", create)
	}
	if strings.Contains(string(signIn), "allowCredentials\":[{") || strings.Contains(string(signIn), "ana") {
		t.Errorf("%s", signIn)
	}
}

func TestACounterThatGoesBackIsNoReasonToRefuse(t *testing.T) {
	d := sit(t, -7)
	d.auth.count = 100
	d.mustApprove()
	d.auth.count = 3
	d.mustApprove()
}

func TestASiteThatBrowsersWouldNotTakeIsRefused(t *testing.T) {
	for _, rp := range []passkey.RP{
		{ID: "127.0.0.1", Origin: "http://127.0.0.1:7433"}, {ID: "localhost", Origin: "http://127.0.0.1:7433"},
		{ID: "example.org", Origin: "http://example.org"}, {ID: "example.org", Origin: "https://evil.example"},
		{ID: "example.org", Origin: "https://badexample.org"}, {ID: "", Origin: "https://example.org"},
		{ID: "example.org", Origin: "https://example.org/path"}, {ID: "example.org", Origin: "example.org"},
	} {
		if _, err := passkey.New(newShelf(), rp, nil); err == nil {
			t.Errorf("%+v is taken", rp)
		}
	}
	if _, err := passkey.New(newShelf(), passkey.RP{ID: "example.org", Origin: "https://ink.example.org", Name: "x"}, nil); err != nil {
		t.Error(err)
	}
}

// The challenge is part of the format of stored evidence: it never changes.
func TestTheChallengeIsTheFrozenOne(t *testing.T) {
	digest := wetink.Statement(`{"v":1}`).Digest()
	got := passkey.Challenge("chg_06h321fgzyemcy6kcwxseh6ckg", digest, "acme", "ana", "example.org", "https://ink.example.org", bytes.Repeat([]byte{1}, 32))
	if want := "598bcd2e6f72d5c4fc6b9ce60e614baa828239f3d86a6cfab84e2d5f3105d5d0"; hex.EncodeToString(got) != want {
		t.Errorf("%x", got)
	}
	// No two ways to part the same bytes.
	if bytes.Equal(passkey.Challenge("a", digest, "b", "c", "d", "e", nil), passkey.Challenge("a", digest, "bc", "", "d", "e", nil)) {
		t.Error("the parts run into each other")
	}
}
