package oidc_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink/approval/oidc"
	"github.com/wetink/wetink/approval/oidc/oidctest"
	"github.com/wetink/wetink/internal/secret"
)

const callback = "http://localhost:7433/signin/oidc/callback"

// desk is a client and its issuer, with one clock.
type desk struct {
	t      *testing.T
	issuer *oidctest.Issuer
	client *oidc.Service
	now    time.Time
}

func open(t *testing.T, more ...func(*oidc.Config)) *desk {
	t.Helper()
	d := &desk{t: t, issuer: oidctest.New(t, callback), now: time.Date(2030, 2, 3, 4, 5, 6, 0, time.UTC)}
	d.issuer.Now = func() time.Time { return d.now }
	cfg := oidc.Config{Issuer: d.issuer.URL, ClientID: oidctest.ClientID, Secret: secret.New([]byte(oidctest.Secret)), Redirect: callback}
	for _, f := range more {
		f(&cfg)
	}
	var err error
	if d.client, err = oidc.New(cfg, &oidc.Options{Now: d.issuer.Now}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) start(fresh bool) (string, []byte) {
	d.t.Helper()
	to, state, err := d.client.Start(d.t.Context(), fresh)
	if err != nil {
		d.t.Fatal(err)
	}
	return to, state
}

func TestAPersonSignsInWithCodeAndPKCE(t *testing.T) {
	d := open(t)
	d.issuer.Claims["email"] = "Ana@Firm.example"
	to, state := d.start(false)
	id, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to))
	if err != nil || id.Person != "ana@firm.example" || id.Subject != "1234" || id.Issuer != d.issuer.URL ||
		!slices.Equal(id.Groups, []string{"staff", "approvers"}) || !id.AuthTime.Equal(d.now) {
		t.Errorf("%+v %v", id, err)
	}
	if q := d.issuer.Asked; q.Get("scope") != "openid email" || q.Has("prompt") || q.Has("max_age") {
		t.Errorf("asked for %v", q)
	}
}

// Each row is one thing that is wrong with what the issuer says; without it the sign-in counts (the test above).
func TestASignInThatIsNotExactlyOursDoesNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*desk)
		want  string
	}{
		"another nonce":           {func(d *desk) { d.issuer.Claims["nonce"] = "another" }, "nonce is not ours"},
		"no nonce":                {func(d *desk) { d.issuer.Claims["nonce"] = nil }, "nonce is not ours"},
		"for another client":      {func(d *desk) { d.issuer.Claims["aud"] = "another" }, "expected audience"},
		"for others, too":         {func(d *desk) { d.issuer.Claims["aud"] = []string{oidctest.ClientID, "another"} }, "also for others"},
		"given to another client": {func(d *desk) { d.issuer.Claims["azp"] = "another" }, "was given to"},
		"ran out":                 {func(d *desk) { d.issuer.Claims["exp"] = d.now.Add(-time.Second).Unix() }, "expired"},
		"without an end":          {func(d *desk) { d.issuer.Claims["exp"] = nil }, "expired"},
		"of another issuer":       {func(d *desk) { d.issuer.Claims["iss"] = "https://evil.example" }, "different provider"},
		"another key":             {func(d *desk) { d.issuer.Key = oidctest.NewKey(d.t) }, "signature"},
		"not signed":              {func(d *desk) { d.issuer.Header["alg"] = "none" }, "malformed jwt"},
		"signed by a secret":      {func(d *desk) { d.issuer.Header["alg"] = "HS256" }, "malformed jwt"},
		"algorithm of nobody's":   {func(d *desk) { d.issuer.Header["alg"] = "ES512" }, "malformed jwt"},
		"of nobody":               {func(d *desk) { d.issuer.Claims["sub"] = nil }, "of whom"},
		"unknown address state":   {func(d *desk) { d.issuer.Claims["email_verified"] = nil }, "not verified"},
		"unverified address":      {func(d *desk) { d.issuer.Claims["email_verified"] = false }, "not verified"},
		"address state as number": {func(d *desk) { d.issuer.Claims["email_verified"] = 1 }, "not verified"},
		"no address":              {func(d *desk) { d.issuer.Claims["email"] = nil }, "not verified"},
		"groups as one text":      {func(d *desk) { d.issuer.Claims["groups"] = "approvers" }, "no list of texts"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			tc.spoil(d)
			to, state := d.start(false)
			id, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to))
			if !errors.Is(err, oidc.ErrRefused) || !strings.Contains(err.Error(), tc.want) || id.Person != "" {
				t.Errorf("%+v %v, want one that says %q", id, err, tc.want)
			}
		})
	}
}

func TestAnAnswerThatThisBrowserDidNotAskForIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(d *desk, state *[]byte, answer url.Values)
		want  string
	}{
		"another browser":  {func(d *desk, s *[]byte, _ url.Values) { _, *s = d.start(false) }, "did not begin it"},
		"no state":         {func(_ *desk, _ *[]byte, a url.Values) { a.Del("state") }, "did not begin it"},
		"an empty browser": {func(_ *desk, s *[]byte, a url.Values) { *s = []byte(`{}`); a.Del("state") }, "did not begin it"},
		"too late":         {func(d *desk, _ *[]byte, _ url.Values) { d.now = d.now.Add(oidc.Life) }, "longer than"},
		"mix-up":           {func(_ *desk, _ *[]byte, a url.Values) { a.Set("iss", "https://evil.example") }, "answered by"},
		"no name":          {func(_ *desk, _ *[]byte, a url.Values) { a.Del("iss") }, "answered by"},
		"they said no":     {func(_ *desk, _ *[]byte, a url.Values) { a.Set("error", "access_denied") }, "access_denied"},
		"no code":          {func(_ *desk, _ *[]byte, a url.Values) { a.Del("code") }, "no code"},
		"another's code": {func(d *desk, _ *[]byte, a url.Values) {
			to, _ := d.start(false)
			a.Set("code", d.issuer.SignIn(d.t, to).Get("code"))
		}, "did not take"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			to, state := d.start(false)
			answer := d.issuer.SignIn(t, to)
			tc.spoil(d, &state, answer)
			if id, err := d.client.Finish(t.Context(), state, answer); !errors.Is(err, oidc.ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v %v, want one that says %q", id, err, tc.want)
			}
		})
	}
}

func TestAnAnswerCountsOnceEvenIfTheIssuerTakesItsCodeAgain(t *testing.T) {
	for _, reuse := range []bool{true, false} {
		d := open(t)
		d.issuer.Reuse = reuse
		to, state := d.start(false)
		answer := d.issuer.SignIn(t, to)
		if _, err := d.client.Finish(t.Context(), state, answer); err != nil {
			t.Fatal(err)
		}
		if _, err := d.client.Finish(t.Context(), state, answer); !errors.Is(err, oidc.ErrRefused) || !strings.Contains(err.Error(), "answered before") {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestAFreshSignInIsOneThatTheIssuerSaysHappenedNow(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*desk)
		want  string
	}{
		"now":                       {func(*desk) {}, ""},
		"within what clocks miss":   {func(d *desk) { d.issuer.Claims["auth_time"] = d.now.Add(-9 * time.Second).Unix() }, ""},
		"before":                    {func(d *desk) { d.issuer.Claims["auth_time"] = d.now.Add(-11 * time.Second).Unix() }, "before it was asked"},
		"an issuer that ignores it": {func(d *desk) { d.issuer.Stubborn, d.issuer.SignedIn = true, d.now.Add(-time.Hour) }, "before it was asked"},
		"it does not say":           {func(d *desk) { d.issuer.Claims["auth_time"] = nil }, "does not say when"},
		"to come":                   {func(d *desk) { d.issuer.Claims["auth_time"] = d.now.Add(time.Hour).Unix() }, "will sign in"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.issuer.SignedIn = d.now.Add(-time.Hour)
			tc.spoil(d)
			to, state := d.start(true)
			answer := d.issuer.SignIn(t, to)
			if q := d.issuer.Asked; q.Get("prompt") != "login" || q.Get("max_age") != "0" {
				t.Errorf("asked for %v", q)
			}
			_, err := d.client.Finish(t.Context(), state, answer)
			if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, oidc.ErrRefused) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// An agent that drives the browser takes the wish out of the address.
func TestAFreshSignInIsNotTakenFromAnAddressWithoutTheWish(t *testing.T) {
	d := open(t)
	d.issuer.SignedIn = d.now.Add(-time.Hour)
	to, state := d.start(true)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("prompt")
	q.Del("max_age")
	u.RawQuery = q.Encode()
	if _, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, u.String())); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("%v", err)
	}
}

func TestAnIssuerThatIsDownIsAskedAgain(t *testing.T) {
	d := open(t)
	d.issuer.Down = true
	if _, _, err := d.client.Start(t.Context(), false); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("%v", err)
	}
	d.issuer.Down = false
	to, state := d.start(false)
	if _, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to)); err != nil {
		t.Error(err)
	}
}

func TestPeopleCanBeNamedBySubject(t *testing.T) {
	d := open(t, func(c *oidc.Config) { c.PersonClaim, c.GroupsClaim = "sub", "roles" })
	d.issuer.Claims["email"], d.issuer.Claims["roles"] = nil, []string{"boss"}
	to, state := d.start(false)
	id, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to))
	if err != nil || id.Person != "1234" || !slices.Equal(id.Groups, []string{"boss"}) {
		t.Errorf("%+v %v", id, err)
	}
}

// A sign for kelvin is not the letter k, whatever Unicode says of its lower case.
func TestTwoAddressesAreNotOnePerson(t *testing.T) {
	d := open(t)
	d.issuer.Claims["email"] = "\u212Aim@firm.example"
	to, state := d.start(false)
	if id, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to)); err != nil || id.Person != "\u212Aim@firm.example" {
		t.Errorf("%+v %v", id, err)
	}
}

// The secret goes to the endpoint that was discovered, and nowhere that this one points to.
func TestTheSecretDoesNotFollowARedirect(t *testing.T) {
	d, other := open(t), oidctest.New(t, callback)
	d.issuer.Meta["token_endpoint"] = d.issuer.URL + "/elsewhere?to=" + url.QueryEscape(other.URL+"/token")
	to, state := d.start(false)
	if _, err := d.client.Finish(t.Context(), state, d.issuer.SignIn(t, to)); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("%v", err)
	}
	if other.Given != nil {
		t.Errorf("sent %v", other.Given)
	}
}

func TestNothingIsSentWhereOthersCanRead(t *testing.T) {
	good := oidc.Config{Issuer: "https://id.firm.example", ClientID: "x", Redirect: callback}
	if _, err := oidc.New(good, nil); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*oidc.Config){
		"http":             func(c *oidc.Config) { c.Issuer = "http://id.firm.example" },
		"no scheme":        func(c *oidc.Config) { c.Issuer = "id.firm.example" },
		"a password in it": func(c *oidc.Config) { c.Issuer = "https://a:b@id.firm.example" },
		"a query":          func(c *oidc.Config) { c.Issuer = "https://id.firm.example?a=b" },
		"no client":        func(c *oidc.Config) { c.ClientID = "" },
		"another claim":    func(c *oidc.Config) { c.PersonClaim = "name" },
		"http redirect":    func(c *oidc.Config) { c.Redirect = "http://ink.firm.example/x" },
	} {
		c := good
		if spoil(&c); true {
			if _, err := oidc.New(c, nil); !errors.Is(err, oidc.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, member := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri"} {
		d := open(t)
		d.issuer.Meta[member] = "http://evil.example/x"
		if _, _, err := d.client.Start(t.Context(), false); err == nil || !strings.Contains(err.Error(), "want https") {
			t.Errorf("%s in the clear: %v", member, err)
		}
	}
}
