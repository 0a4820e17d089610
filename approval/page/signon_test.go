package page_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
)

// counter is an Issuer that says what the test tells it: what is tested here is what the page does with the answer.
type counter struct {
	id    page.Identity
	down  bool
	fresh []bool // what was asked for
}

func (c *counter) Start(_ context.Context, fresh bool) (string, []byte, error) {
	if c.down {
		return "", nil, errors.New("down")
	}
	c.fresh = append(c.fresh, fresh)
	state := fmt.Sprint("state ", len(c.fresh))
	return "https://id.example/authorize?" + url.Values{"state": {state}, "nonce": {"secret of this flow"}}.Encode(), []byte(state + " secret of this flow"), nil
}

func (c *counter) Finish(_ context.Context, state []byte, answer url.Values) (page.Identity, error) {
	if string(state) != answer.Get("state")+" secret of this flow" {
		return page.Identity{}, errors.New("another flow")
	}
	return c.id, nil
}

func identity(subject, person string, groups ...string) page.Identity {
	return page.Identity{Issuer: "https://id.example", Subject: subject, Person: wetink.Person(person), Groups: groups}
}

var leadsTo = regexp.MustCompile(`content="0; url=([^"]+)"`)

// travel begins a trip; back is the path with which the browser comes home.
func (b *browser) travel(path string, form url.Values) (back string) {
	b.o.t.Helper()
	code, body, _ := b.post(path, form)
	m := leadsTo.FindStringSubmatch(body)
	if code != 200 || m == nil {
		b.o.t.Fatalf("%d %s", code, body)
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil || u.Host != "id.example" {
		b.o.t.Fatal(u, err)
	}
	return "/signin/oidc/callback?" + url.Values{"state": {u.Query().Get("state")}, "code": {"x"}}.Encode()
}

// home is how a browser comes from the issuer: from another site, with the cookies that are Lax.
func (b *browser) home(back string) (int, string, http.Header) {
	r := request("GET", back, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Dest", "document")
	return b.send(r)
}

// signOn signs somebody in at the issuer, in a browser that keeps its cookies by name.
func (o *office) signOn(id page.Identity, form url.Values) (*browser, int, string, http.Header) {
	o.t.Helper()
	o.issuer.id = id
	b := o.browser()
	code, body, h := b.home(b.travel("/signin/oidc", form))
	return b, code, body, h
}

func TestATeamSignsInAtItsIssuer(t *testing.T) {
	o := open(t, wetink.Session)
	if _, body, _ := o.browser().get("/signin"); !strings.Contains(body, "Sign in with Firm") {
		t.Error("no button")
	}
	eve, code, _, h := o.signOn(identity("7", "eve@firm.example", "approvers"), url.Values{"next": {"/history"}})
	if code != http.StatusSeeOther || h.Get("Location") != "/history" {
		t.Fatalf("%d %v", code, h)
	}
	who, err := o.store.Person(t.Context(), "", "eve@firm.example")
	if err != nil || !who.Approver || who.Admin {
		t.Errorf("%+v %v", who, err)
	}
	list, err := o.store.ListSessions(t.Context(), "", who.ID)
	if err != nil || len(list) != 1 || list[0].How != "oidc" {
		t.Errorf("%+v %v", list, err)
	}
	c := o.previewFor("bo", setN2)
	if code, body, _ := eve.post(o.path(c)+"/approve", url.Values{"form": {eve.form(c, true)}}); code != http.StatusSeeOther || o.status(c) != wetink.Approved {
		t.Errorf("%d %s", code, body)
	}
}

func TestASubjectIsOnePersonForGood(t *testing.T) {
	o := open(t, wetink.Session)
	in := func(what string, id page.Identity, want int) (who []string) {
		t.Helper()
		if _, code, _, _ := o.signOn(id, nil); code != want {
			t.Errorf("%s: %d, want %d", what, code, want)
		}
		list, err := o.store.ListPeople(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			who = append(who, fmt.Sprint(p.ID, " ", p.Approver))
		}
		return who
	}
	people := func(what string, got []string, want string) {
		t.Helper()
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", what, s, want)
		}
	}
	people("a stranger", in("a stranger", identity("1", "cy", "staff"), 403), "ana true, bo false")
	people("of no group", in("somebody who is known, of no group", identity("2", "bo", "staff"), 303), "ana true, bo false")
	people("into a group", in("bo is an approver now", identity("2", "bo", "approvers"), 303), "ana true, bo true")
	people("out of it", in("bo is none any more", identity("2", "bo"), 303), "ana true, bo false")
	people("a new one", in("somebody of the group", identity("1", "cy", "approvers"), 303), "ana true, bo false, cy true")
	people("the same name", in("the same name, another subject", identity("3", "cy", "approvers"), 403), "ana true, bo false, cy true")
	people("renamed", in("the same subject, another name", identity("1", "cyrus", "approvers"), 303), "ana true, bo false, cy true")
	people("a name of somebody else", in("the same subject, bo's name", identity("1", "bo", "approvers"), 303), "ana true, bo false, cy true")
	if err := o.store.UpdatePerson(t.Context(), page.Person{ID: "cy", Removed: o.now}); err != nil {
		t.Fatal(err)
	}
	people("removed", in("who was removed", identity("1", "cy", "approvers"), 403), "ana true, bo false")
	people("removed, renamed", in("who was removed, under another name", identity("1", "cyrus", "approvers"), 403), "ana true, bo false")
	people("removed, new subject", in("who was removed, as another subject", identity("4", "cy", "approvers"), 403), "ana true, bo false")
	o.company.Approvers = nil
	people("no groups", in("roles stay where groups say nothing", identity("5", "ana"), 303), "ana true, bo false")
	people("no groups, a stranger", in("a stranger where groups say nothing", identity("6", "dy", ""), 403), "ana true, bo false")
}

func TestAnAnswerOfAnIssuerCountsInTheBrowserThatAskedOnly(t *testing.T) {
	o := open(t, wetink.Session)
	o.issuer.id = identity("1", "cy", "approvers")
	refused := func(what string, code int) {
		t.Helper()
		if list, err := o.store.ListSessions(t.Context(), "", "cy"); code < 400 || err != nil || len(list) != 0 {
			t.Errorf("%s: %d, %d sessions, %v", what, code, len(list), err)
		}
	}
	asked := o.browser()
	back := asked.travel("/signin/oidc", nil)
	code, _, _ := o.browser().home(back)
	refused("a browser that did not ask", code)
	other := o.browser()
	other.travel("/signin/oidc", nil)
	code, _, _ = other.home(back)
	refused("a browser that asked for another", code)
	forged := o.browser()
	forged.cookie = strings.Replace(asked.cookie, "=", "=A", 1)
	code, _, _ = forged.home(back)
	refused("a forged cookie", code)
	for _, dest := range []string{"image", "iframe", "empty"} {
		r := request("GET", back, nil)
		r.Header.Set("Sec-Fetch-Dest", dest)
		code, _, _ = (&browser{o: o, cookie: asked.cookie}).send(r)
		refused("as "+dest, code)
	}
	code, _, _ = (&browser{o: o, cookie: asked.cookie}).send(request("HEAD", back, nil))
	refused("HEAD", code)
	now := o.now
	o.now = now.Add(10 * time.Minute)
	code, _, _ = (&browser{o: o, cookie: asked.cookie}).home(back)
	refused("after ten minutes", code)
	o.now = now
	code, _, h := asked.home(back)
	if code != http.StatusSeeOther {
		t.Fatalf("the browser that asked: %d", code)
	}
	if all := strings.Join(h.Values("Set-Cookie"), "\n"); !strings.Contains(all, "wetink-7433-oidc=; ") || !strings.Contains(all, "Max-Age=0") {
		t.Errorf("the cookie of the trip stays: %s", all)
	}
}

// An issuer that took any state for ours would still not sign anybody in who did not ask.
func TestAnAnswerOfAnIssuerNeedsItsCookie(t *testing.T) {
	o := open(t, wetink.Session)
	o.company.Issuer = credulous{o.issuer}
	o.issuer.id = identity("1", "cy", "approvers")
	for _, cookie := range []string{"", "wetink-7433-oidc=", "wetink-7433-oidc=eyJzdGF0ZSI6IiJ9"} {
		if code, _, h := (&browser{o: o, cookie: cookie}).home("/signin/oidc/callback?state=x&code=y"); code != http.StatusUnauthorized || strings.Contains(strings.Join(h.Values("Set-Cookie"), ""), "wetink-7433=") {
			t.Errorf("%q: %d %v", cookie, code, h)
		}
	}
}

// credulous is an Issuer that checks nothing.
type credulous struct{ *counter }

func (c credulous) Finish(context.Context, []byte, url.Values) (page.Identity, error) {
	return c.id, nil
}

func TestTheCookieOfATripIsSealedAndShort(t *testing.T) {
	for origin, want := range map[string]string{origin: "wetink-7433-oidc=", "https://ink.example": "__Host-wetink-oidc="} {
		o := open(t, wetink.Session)
		s, err := page.New(t.Context(), origin, o.kit.Engine, o.kit.Ledger, o.store, &page.Options{SignOn: o.company, Now: func() time.Time { return o.now }})
		if err != nil {
			t.Fatal(err)
		}
		r := request("POST", "/signin/oidc", nil)
		r.Host = strings.TrimPrefix(strings.TrimPrefix(origin, "https://"), "http://")
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		c := w.Header().Get("Set-Cookie")
		for _, part := range []string{want, "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"} {
			if !strings.Contains(c, part) {
				t.Errorf("%s lacks %s", c, part)
			}
		}
		if strings.Contains(c, "Secure") != strings.HasPrefix(origin, "https") || strings.Contains(c, "Domain") || strings.Contains(decoded(c), `"state":`) {
			t.Error(c)
		}
	}
}

// decoded is a cookie's value as bytes.
func decoded(c string) string {
	_, c, _ = strings.Cut(c, "=")
	c, _, _ = strings.Cut(c, ";")
	b, _ := base64.RawURLEncoding.DecodeString(c)
	return string(b)
}

func TestAnIssuerThatIsDownLeavesTheOtherWays(t *testing.T) {
	o := open(t, wetink.Session)
	o.issuer.down = true
	if code, body, _ := o.browser().post("/signin/oidc", nil); code != http.StatusBadGateway || !strings.Contains(body, "cannot be reached") {
		t.Errorf("%d %s", code, body)
	}
	o.signedIn("ana")
}

// A browser that has a session at the issuer is signed in without anybody there: that must not become a passphrase.
func TestASignInThatNobodyHadToProveDoesNotChangeHowOneSignsIn(t *testing.T) {
	o := open(t, wetink.Session)
	add := func(b *browser) int {
		t.Helper()
		code, _, _ := b.post("/settings", url.Values{"do": {"add"}, "form": {b.settingsForm()}, "pass": {"an attacker's own words"}, "pass2": {"an attacker's own words"}})
		return code
	}
	b, _, _, _ := o.signOn(identity("1", "cy", "approvers"), nil)
	if code := add(b); code != http.StatusForbidden || o.pass["cy"] != "" {
		t.Errorf("%d", code)
	}
	if _, body, _ := b.get("/settings"); !strings.Contains(body, "Sign in again with Firm") {
		t.Error("the settings do not say how")
	}
	b, _, _, h := o.signOn(identity("1", "cy", "approvers"), url.Values{"fresh": {"1"}, "next": {"/settings"}})
	if got := o.issuer.fresh; !got[len(got)-1] || h.Get("Location") != "/settings" {
		t.Errorf("asked for a fresh sign-in: %v, %v", got, h)
	}
	if code := add(b); code != http.StatusSeeOther || o.pass["cy"] == "" {
		t.Errorf("%d", code)
	}
}

func TestWithoutAnIssuerThereIsNoWayToOne(t *testing.T) {
	o := open(t, wetink.Session, func(p *page.Options) { p.SignOn = nil })
	if _, body, _ := o.browser().get("/signin"); strings.Contains(body, "oidc") {
		t.Error(body)
	}
	for _, r := range []*http.Request{request("POST", "/signin/oidc", nil), request("GET", "/signin/oidc/callback?state=x&code=y", nil)} {
		if code, _, _ := o.browser().send(r); code != http.StatusNotFound {
			t.Errorf("%s: %d", r.URL, code)
		}
	}
}
