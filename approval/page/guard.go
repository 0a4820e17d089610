package page

import (
	"net/http"
	"strings"
)

// maxForm bounds what a browser sends us.
const maxForm = 64 << 10

// policy lets our own files in and nothing else: no inline script or style, no frame around us, no form to elsewhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded stands before every route, also those that do not exist.
//
// Order: the Host is ours (a rebound name of somebody else's page is not) → nothing that could decide comes from another
// site → headers → the route. A POST that says neither where it comes from nor how it was made is no browser's form, and
// is refused: browsers send Origin with every POST (Fetch, section 3.1).
func (p *Server) guarded(next http.Handler) http.Handler {
	csrf := http.NewCrossOriginProtection()
	protected := csrf.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if p.origin.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !strings.EqualFold(r.Host, p.origin.Host) || r.URL.Host != "" && !strings.EqualFold(r.URL.Host, p.origin.Host) {
			http.Error(w, "this host is not served here", http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
			if origin == "null" && site == "same-origin" { // what Referrer-Policy: no-referrer makes of the Origin of our own forms
				origin = ""
			}
			switch {
			case origin == "" && site == "", origin != "" && origin != p.origin.String(), site != "" && site != "same-origin":
				http.Error(w, "only our own pages may send this", http.StatusForbidden)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		} else if isPrefetch(r) {
			http.Error(w, "nothing here is fetched ahead", http.StatusServiceUnavailable)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// isPrefetch: a page that is fetched before anybody asked for it was not shown to anybody.
func isPrefetch(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Sec-Purpose"), "prefetch") || r.Header.Get("Purpose") == "prefetch"
}
