package page_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
)

// concrete is a path of a route, for a change.
func concrete(pattern, alias string) string {
	_, path, _ := strings.Cut(pattern, " ")
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
	try := func(what string, code int, r page.RouteInfo) {
		t.Helper()
		if code < 400 && r.Decides || o.status(c) != wetink.Pending {
			t.Errorf("%s on %s: %d, and the change is %s", what, r.Pattern, code, o.status(c))
		}
	}
	n := 0
	for _, r := range page.Routes() {
		method, _, _ := strings.Cut(r.Pattern, " ")
		form := url.Values{"form": {ana.form(c, true)}, "user": {"ana"}, "pass": {"five words make a phrase"}}
		path := concrete(r.Pattern, alias)
		if path == "/events" || path == "/signout" {
			continue // the one does not end, the other one would end our session in the control
		}
		if r.Decides {
			for what, spoil := range foreign {
				q := request(method, path, form)
				spoil(q)
				code, _, _ := ana.send(q)
				if try(what, code, r); code != http.StatusForbidden {
					t.Errorf("%s on %s: %d, want 403", what, r.Pattern, code)
				}
				n++
			}
			for _, other := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
				code, _, _ := ana.send(request(other, path+"?"+form.Encode(), nil))
				if path == "/signin" || path == "/settings" || strings.HasPrefix(path, "/enrol") {
					code = max(code, 400) // there is a page to look at
				}
				try(other, code, r)
				n++
			}
		}
		for _, host := range hosts {
			q := request(method, path, form)
			q.Host = host
			code, _, _ := ana.send(q)
			if try("Host "+host, code, r); code != http.StatusMisdirectedRequest {
				t.Errorf("Host %q on %s: %d", host, r.Pattern, code)
			}
			n++
		}
		q := request(method, path, form)
		q.URL.Scheme, q.URL.Host = "http", "evil.example" // absolute-form
		if code, _, _ := ana.send(q); code != http.StatusMisdirectedRequest {
			t.Errorf("absolute-form on %s: %d", r.Pattern, code)
		}
		if method == "GET" {
			for _, header := range []string{"Sec-Purpose", "Purpose"} {
				q := request(method, path, nil)
				q.Header.Set(header, "prefetch")
				if code, _, _ := ana.send(q); code != http.StatusServiceUnavailable {
					t.Errorf("%s on %s: %d", header, r.Pattern, code)
				}
				n++
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d tries", n)
	}
}

func TestEveryAnswerForbidsFramesAndForeignParts(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	alias := strings.TrimPrefix(o.path(c), "/c/")
	paths := []string{"/nothing-here"}
	for _, r := range page.Routes() {
		if p := concrete(r.Pattern, alias); p != "/events" {
			paths = append(paths, p)
		}
	}
	for _, path := range paths {
		_, _, h := ana.get(path)
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
