package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
)

// concrete is a path of a route, for a change.
func concrete(pattern, alias string) string {
	_, path, _ := strings.Cut(pattern, " ")
	if path == "/" {
		return "/nowhere"
	}
	return strings.NewReplacer("{$}", "", "{alias}", alias, "{secret}", "x", "{name}", "page.css").Replace(path)
}

// Every way in which somebody else's page or a rebound name could reach a route, on every route there is.
func TestNothingButOurOwnPagesReachesARoute(t *testing.T) {
	foreign := map[string]func(*http.Request){
		"cross-site form": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "https://evil.example")
		},
		"cross-site fetch without Origin": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site"); r.Header.Del("Origin") },
		"same site, another port": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Origin", "http://localhost:9999")
		},
		"foreign Origin, forged Sec-Fetch-Site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"null Origin without Sec-Fetch-Site":    func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Del("Sec-Fetch-Site") },
		"null Origin of a sandboxed frame":      func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"neither Origin nor Sec-Fetch-Site":     func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") },
		"https Origin of our host":              func(r *http.Request) { r.Header.Set("Origin", "https://localhost:7433") },
		"typed address":                         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none"); r.Header.Del("Origin") },
	}
	hosts := []string{"evil.example", "localhost", "localhost.:7433", "127.0.0.1:7433", "[::1]:7433", "localhost:80", "0.0.0.0:7433", "localhost:7433.evil.example", ""}
	o := open(t, wetink.Session)
	c := o.preview(setN2)
	ana := o.signedIn("ana")
	alias := strings.TrimPrefix(o.path(c), "/c/")
	before := o.everything()
	try := func(what string, code int, r page.RouteInfo) {
		t.Helper()
		if code < 400 && r.Decides || o.status(c) != wetink.Pending {
			t.Errorf("%s on %s: %d, and the change is %s", what, r.Pattern, code, o.status(c))
		}
		if now := o.everything(); now != before {
			t.Fatalf("%s on %s changed what is stored:\n%s\n%s", what, r.Pattern, before, now)
		}
	}
	n, pages := 0, map[string]bool{}
	for _, r := range page.Routes() {
		if path, ok := strings.CutPrefix(concrete(r.Pattern, alias), ""); ok && strings.HasPrefix(r.Pattern, "GET ") {
			pages[path] = true
		}
	}
	for _, r := range page.Routes() {
		method, _, _ := strings.Cut(r.Pattern, " ")
		form := url.Values{"form": {ana.form(c, true)}, "user": {"ana"}, "pass": {"five words make a phrase"}}
		path := concrete(r.Pattern, alias)
		if r.Decides != (method != "GET") {
			t.Errorf("%s decides: %t", r.Pattern, r.Decides)
		}
		for what, spoil := range foreign { // a GET is answered, and decides nothing
			q := request(method, path, form)
			spoil(q)
			code, _, _ := ana.sendBriefly(q)
			if try(what, code, r); r.Decides && code != http.StatusForbidden {
				t.Errorf("%s on %s: %d, want 403", what, r.Pattern, code)
			}
			n++
		}
		if r.Decides {
			for _, other := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
				code, _, _ := ana.sendBriefly(request(other, path+"?"+form.Encode(), nil))
				if pages[path] && (other == "GET" || other == "HEAD") {
					code = max(code, 400) // there is a page to look at
				}
				try(other, code, r)
				n++
			}
		} else {
			code, body, _ := ana.sendBriefly(request("HEAD", path, nil))
			try("HEAD", code, r)
			if n++; code >= 500 || strings.Contains(body, "only for ana") && code >= 400 {
				t.Errorf("HEAD on %s: %d", r.Pattern, code)
			}
		}
		for _, host := range hosts {
			q := request(method, path, form)
			q.Host = host
			code, _, _ := ana.sendBriefly(q)
			if try("Host "+host, code, r); code != http.StatusMisdirectedRequest {
				t.Errorf("Host %q on %s: %d", host, r.Pattern, code)
			}
			n++
		}
		q := request(method, path, form)
		q.URL.Scheme, q.URL.Host = "http", "evil.example" // absolute-form
		if code, _, _ := ana.sendBriefly(q); code != http.StatusMisdirectedRequest {
			t.Errorf("absolute-form on %s: %d", r.Pattern, code)
		}
		if method == "GET" {
			for _, header := range []string{"Sec-Purpose", "Purpose"} {
				q := request(method, path, nil)
				q.Header.Set(header, "prefetch")
				if code, _, _ := ana.sendBriefly(q); code != http.StatusServiceUnavailable {
					t.Errorf("%s on %s: %d", header, r.Pattern, code)
				}
				n++
			}
		}
	}
	if n < 400 {
		t.Errorf("only %d tries", n)
	}
	// The control: from our own page the same form is taken, also to sign out.
	if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}}); code != http.StatusSeeOther || o.status(c) != wetink.Approved {
		t.Errorf("our own page: %d, and the change is %s", code, o.status(c))
	}
	if code, _, _ := ana.post("/signout", nil); code != http.StatusSeeOther || o.everything() == before {
		t.Errorf("our own page cannot sign out: %d", code)
	}
}

// everything that a route could have stored, but for when somebody was there last.
func (o *office) everything() string {
	o.t.Helper()
	var b strings.Builder
	for c, err := range o.kit.Ledger.List(o.t.Context(), wetink.Filter{AnyTenant: true}) {
		if err != nil {
			o.t.Fatal(err)
		}
		fmt.Fprintln(&b, c.ID, c.Rev, c.Status)
	}
	for _, who := range []wetink.Person{"ana", "bo"} {
		p, err := o.store.Person(o.t.Context(), "", who)
		if err != nil {
			o.t.Fatal(err)
		}
		list, err := o.store.ListSessions(o.t.Context(), "", who)
		if err != nil {
			o.t.Fatal(err)
		}
		fmt.Fprintln(&b, p, o.pass[who])
		for _, s := range list {
			fmt.Fprintln(&b, s.Hash, s.How, s.Expires)
		}
	}
	fmt.Fprintln(&b, o.store.Invitations())
	yes, all, _, err := o.store.Decisions(o.t.Context(), "", "ana", time.Time{})
	fmt.Fprintln(&b, yes, all, err)
	return b.String()
}

// brief is a connection that breaks as soon as an answer begins to stream.
type brief struct {
	*httptest.ResponseRecorder
	hangUp context.CancelFunc
}

func (b brief) Flush() { b.ResponseRecorder.Flush(); b.hangUp() }

// sendBriefly is send for every route, also for the one whose answer does not end.
func (b *browser) sendBriefly(r *http.Request) (int, string, http.Header) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	r.Header.Set("Cookie", b.cookie)
	w := httptest.NewRecorder()
	b.o.server.ServeHTTP(brief{w, stop}, r.WithContext(ctx))
	return w.Code, w.Body.String(), w.Header()
}

func TestEveryAnswerForbidsFramesAndForeignParts(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	alias := strings.TrimPrefix(o.path(c), "/c/")
	var paths []string
	for _, r := range page.Routes() {
		paths = append(paths, concrete(r.Pattern, alias))
	}
	for _, path := range paths {
		_, _, h := ana.sendBriefly(request("GET", path, nil))
		for header, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.Contains(h.Get(header), want) {
				t.Errorf("%s: %s is %q", path, header, h.Get(header))
			}
		}
		for _, never := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
			if h.Get(never) != "" {
				t.Errorf("%s has %s", path, never)
			}
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %s", path, h.Get("Content-Security-Policy"))
		}
	}
}

// The pages run under a policy without inline scripts and styles, so they must have none.
func TestNoPageHasInlineScriptOrStyle(t *testing.T) {
	o := open(t, wetink.Reauth)
	c, ana := o.preview(setN2), o.signedIn("ana")
	for _, path := range []string{"/", "/doubt", "/history", "/settings", "/signin", o.path(c)} {
		_, body, _ := ana.get(path)
		for _, no := range []string{" style=", " onclick=", " onload=", "<style", "javascript:"} {
			if strings.Contains(body, no) {
				t.Errorf("%s has %s", path, no)
			}
		}
		if strings.Count(body, "<script") != strings.Count(body, `<script src="/static/`) {
			t.Errorf("%s has a script of its own", path)
		}
		if len(body) > 60<<10 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
}

func TestACookieIsKeptFromScriptsAndOtherSites(t *testing.T) {
	o := open(t, wetink.Session)
	_, _, h := o.browser().post("/signin", url.Values{"user": {"ana"}, "pass": {"five words make a phrase"}})
	cookie := h.Get("Set-Cookie")
	for _, want := range []string{"wetink-7433=", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("%s lacks %s", cookie, want)
		}
	}
}

// Under Referrer-Policy: no-referrer a browser sends the forms of our own pages with Origin: null.
func TestOurOwnFormsAreTakenAsBrowsersSendThem(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	q := request("POST", o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}})
	q.Header.Set("Origin", "null")
	if code, body, _ := ana.send(q); code != http.StatusSeeOther || o.status(c) != wetink.Approved {
		t.Errorf("%d %s", code, body)
	}
}

// A link from a chat arrives without the cookie, which is SameSite=Strict: it must not look like being signed out.
func TestALinkFromElsewhereComesBackFromOurOwnSite(t *testing.T) {
	o := open(t, wetink.Session)
	c := o.preview(setN2)
	q := request("GET", o.path(c), nil)
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	code, body, _ := o.browser().send(q)
	if code != 200 || !strings.Contains(body, `content="0; url=`+o.path(c)+`?again=1"`) || strings.Contains(body, "only for ana") {
		t.Errorf("%d %s", code, body)
	}
}
