package main

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/oidc/oidctest"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/wetinktest"
)

// withIssuer is a configuration whose people sign in at an issuer.
func withIssuer(t *testing.T, issuer, more string) (Config, error) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	yaml := fmt.Sprintf("page:\n  oidc:\n    issuer: %s\n    client_id: %s\n    client_secret_file: client.secret\n%s", issuer, oidctest.ClientID, more)
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, "config.yaml"), []byte(yaml), 0o600),
		os.WriteFile(filepath.Join(home, "client.secret"), []byte(oidctest.Secret+"\n"), 0o600),
		os.WriteFile(filepath.Join(home, "empty.secret"), []byte(" \n"), 0o600),
		os.WriteFile(filepath.Join(home, "open.secret"), []byte("x"), 0o600), os.Chmod(filepath.Join(home, "open.secret"), 0o640)); err != nil {
		t.Fatal(err)
	}
	return loadConfig(func(k string) string {
		return map[string]string{"WETINK_HOME": home, "WETINK_WRITE_MODE": "guarded"}[k]
	})
}

func TestAMistakeInPageOIDCIsSaidWhenTheConfigurationIsRead(t *testing.T) {
	const at = "https://id.firm.example"
	cfg, err := withIssuer(t, at, "    approvers: [ops, on-call]\n")
	if err != nil || cfg.OIDC.Name != "id.firm.example" || cfg.OIDC.client.Redirect != "http://localhost:7433/signin/oidc/callback" ||
		string(cfg.OIDC.client.Secret.Reveal()) != oidctest.Secret {
		t.Fatalf("%+v %v", cfg.OIDC, err)
	}
	if s := fmt.Sprintf("%+v %#v %+v", cfg, cfg.OIDC, *cfg.OIDC); strings.Contains(s, oidctest.Secret) {
		t.Error("the secret is printed")
	}
	for name, tc := range map[string]struct{ issuer, more, want string }{
		"no issuer":          {`""`, "", "page.oidc.issuer in"},
		"http":               {"http://id.firm.example", "", "want https://HOST"},
		"another claim":      {at, "    person_claim: name\n", `page.oidc.person_claim in`},
		"groups for nothing": {at, "    groups_claim: roles\n", "page.oidc.approvers in"},
		"an empty group":     {at, "    approvers: ['']\n", "exactly as the issuer writes them"},
		"a group and blanks": {at, "    approvers: ['ops ']\n", "exactly as the issuer writes them"},
		"an unknown key":     {at, "    aprovers: [ops]\n", `unknown field "aprovers"`},
	} {
		if _, err := withIssuer(t, tc.issuer, tc.more); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want one that says %q", name, err, tc.want)
		}
	}
}

func TestAClientSecretIsAFileOfItsOwner(t *testing.T) {
	cfg, err := withIssuer(t, "https://id.firm.example", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"client.secret": "", "empty.secret": "has 0 bytes", "open.secret": "can be read by others", "missing.secret": "no such file"} {
		_, err := readSecret(filepath.Join(cfg.Home, name))
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// tab is a browser of somebody of the company.
type tab struct {
	t      *testing.T
	page   http.Handler
	issuer *oidctest.Issuer
	jar    map[string]string
}

func (b *tab) send(method, path, site string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:7433"
	r.Header = http.Header{"Sec-Fetch-Site": {site}, "Sec-Fetch-Dest": {"document"}}
	if method == http.MethodPost {
		r.Header.Set("Origin", deskOrigin)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.jar {
		if site == "same-origin" || strings.HasSuffix(name, "-oidc") { // the session's cookie is Strict
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
	w := httptest.NewRecorder()
	b.page.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.jar[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.jar, c.Name)
		}
	}
	return w
}

var leadsOn = regexp.MustCompile(`content="0; url=([^"]+)"`)

// viaIssuer posts a form that leads to the issuer, proves who they are there, and comes back.
func (b *tab) viaIssuer(path string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.send("POST", path, "same-origin", form)
	m := leadsOn.FindStringSubmatch(w.Body.String())
	if m == nil {
		b.t.Fatalf("%d %s", w.Code, w.Body)
	}
	answer := b.issuer.SignIn(b.t, html.UnescapeString(m[1]))
	return b.send("GET", callbackPath+"?"+answer.Encode(), "cross-site", nil)
}

func TestATeamApprovesAfterItSignedInAtItsIssuer(t *testing.T) {
	issuer := oidctest.New(t, deskOrigin+callbackPath)
	cfg, err := withIssuer(t, issuer.URL, "    approvers: [approvers]\n    name: Firm\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := requirement(t, cfg); got.Level != wetink.Host {
		t.Errorf("before anybody signed in: %s", got.Level)
	}
	if says := strings.Join(cfg.OIDC.says(false), "\n"); !strings.Contains(says, "sign in with Firm, at "+issuer.URL) || !strings.Contains(says, "Who is in approvers") || !strings.Contains(says, "Nobody has signed in there yet") {
		t.Error(says)
	}
	who := peopleOf(t, cfg)
	o := cfg.Options(who)
	ledger, target := wetinktest.NewLedger(), wetinktest.NewTarget()
	target.Put("a", `{"n":1}`)
	k := wetinktest.On(ledger, target, o)
	signOn, err := cfg.OIDC.page()
	if err != nil {
		t.Fatal(err)
	}
	p, err := page.New(t.Context(), deskOrigin, k.Engine, ledger, who, &page.Options{SignOn: signOn, Arm: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{t, p, issuer, map[string]string{}}
	if w := b.viaIssuer("/signin/oidc", nil); w.Code != http.StatusSeeOther || b.jar["wetink-7433"] == "" || len(b.jar) != 1 {
		t.Fatalf("%d %s %v", w.Code, w.Body, b.jar)
	}
	if got := requirement(t, cfg); got.Level != wetink.Session {
		t.Errorf("once somebody has signed in: %s", got.Level)
	}
	c, _, err := k.Preview(t.Context(), "test", wetink.Request{By: wetink.Principal{Person: "ana", Client: "agent"}, Args: []byte(`{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(p.Link(c), deskOrigin)
	form := formField.FindStringSubmatch(b.send("GET", path, "same-origin", nil).Body.String())
	if form == nil {
		t.Fatal("no form")
	}
	if w := b.send("POST", path+"/approve", "same-origin", url.Values{"form": {form[1]}}); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if done, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || done.Status != wetink.Applied {
		t.Errorf("%s %v", done.Status, err)
	}
	// What needs more than a session needs a sign-in made for it, which the issuer dates.
	strict := *o
	strict.Policy = wetink.Floor{Level: wetink.Reauth, People: 1}
	k = wetinktest.On(ledger, target, &strict)
	if p, err = page.New(t.Context(), deskOrigin, k.Engine, ledger, who, &page.Options{SignOn: signOn, Arm: 1}); err != nil {
		t.Fatal(err)
	}
	b.page = p
	c, _, err = k.Preview(t.Context(), "test", wetink.Request{By: wetink.Principal{Person: "ana", Client: "agent"}, Args: []byte(`{"ops":[{"action":"update","object":"a","set":{"n":3}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimPrefix(p.Link(c), deskOrigin)
	drawn := func() url.Values {
		return url.Values{"form": formField.FindStringSubmatch(b.send("GET", path, "same-origin", nil).Body.String())[1:2]}
	}
	issuer.Stubborn, issuer.SignedIn = true, time.Now().Add(-time.Minute)
	if w := b.viaIssuer(path+"/prove", drawn()); w.Code != http.StatusUnauthorized {
		t.Errorf("an issuer that asked for nothing: %d", w.Code)
	}
	issuer.Stubborn = false
	if w := b.viaIssuer(path+"/prove", drawn()); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := b.send("POST", path+"/approve", "same-origin", drawn()); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	done, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil)
	if err != nil || done.Status != wetink.Applied {
		t.Fatalf("%s %v", done.Status, err)
	}
	if got, want := done.Approvals[0].Sentence(), "ana@firm.example re-authenticated with "+issuer.URL+" at "+issuer.SignedIn.UTC().Format(time.RFC3339)+" for this exact change."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Out of the group, they are let in, and decide nothing any more about what others asked for.
	issuer.Claims["groups"] = []string{"staff"}
	if w := b.viaIssuer("/signin/oidc", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	if w := b.send("GET", path, "same-origin", nil); w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
	issuer.Claims["sub"] = "another"
	if w := b.viaIssuer("/signin/oidc", nil); w.Code != http.StatusForbidden {
		t.Errorf("the same address, another subject: %d", w.Code)
	}
}
