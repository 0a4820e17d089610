package page

import (
	"embed"
	"net/http"
)

// needs says who may ask for a route.
type needs int

const (
	nobody  needs = iota // anybody
	session              // somebody who is signed in
)

// route is one row of the table that the mux, the guards and the tests range over.
type route struct {
	method, pattern string
	needs           needs
	decides         bool // it changes something: never by GET
	handle          func(*Server, http.ResponseWriter, *http.Request)
}

var table = []route{
	{"GET", "/{$}", session, false, (*Server).inbox},
	{"GET", "/doubt", session, false, (*Server).doubt},
	{"GET", "/history", session, false, (*Server).history},
	{"POST", "/undo", session, true, (*Server).undoChosen},
	{"GET", "/c/{alias}", session, false, (*Server).detail},
	{"POST", "/c/{alias}/approve", session, true, (*Server).approve},
	{"POST", "/c/{alias}/prove", session, true, (*Server).prove},
	{"POST", "/c/{alias}/reject", session, true, (*Server).reject},
	{"POST", "/c/{alias}/again", session, true, (*Server).again},
	{"POST", "/c/{alias}/undo", session, true, (*Server).undo},
	{"POST", "/c/{alias}/look", session, true, (*Server).look},
	{"POST", "/c/{alias}/resolve", session, true, (*Server).resolve},
	{"GET", "/events", session, false, (*Server).events},
	{"GET", "/settings", session, false, (*Server).settings},
	{"POST", "/settings", session, true, (*Server).change},
	{"POST", "/signout", session, true, (*Server).signOut},
	{"GET", "/signin", nobody, false, (*Server).signInPage},
	{"POST", "/signin", nobody, true, (*Server).signIn},
	{"POST", "/signin/oidc", nobody, true, (*Server).startSignOn},
	{"GET", "/signin/oidc/callback", nobody, false, (*Server).finishSignOn}, // not by itself: see there
	{"GET", "/enrol/{secret}", nobody, false, (*Server).enrolPage},
	{"POST", "/enrol/{secret}", nobody, true, (*Server).enrol},
	{"GET", "/static/{name}", nobody, false, (*Server).static},
	{"GET", "/sw.js", nobody, false, (*Server).serviceWorker},
	{"GET", "/", nobody, false, (*Server).nowhere},
}

func (p *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range table {
		mux.HandleFunc(r.method+" "+r.pattern, func(w http.ResponseWriter, q *http.Request) {
			if r.needs == session {
				s, who, ok := p.signedIn(q)
				if !ok {
					p.askToSignIn(w, q)
					return
				}
				q = q.WithContext(withVisitor(q.Context(), visitor{s, who}))
			}
			r.handle(p, w, q)
		})
	}
	return mux
}

// nowhere answers what no other route does.
func (p *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	p.message(w, r, http.StatusNotFound, "There is no such page", "Nothing was done. What you look for may be under Waiting or History.")
}

//go:embed static
var files embed.FS

func (p *Server) static(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	http.ServeFileFS(w, r, files, "static/"+r.PathValue("name"))
}
