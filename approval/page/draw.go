package page

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"reveal": render.Reveal,
	"when":   func(t time.Time) string { return t.Format("Mon 2 Jan, 15:04") },
	"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"how":    how,
	"text":   func(d wetink.Digest) string { return d.String() },
}).ParseFS(templateFiles, "templates/*.html"))

// page is what a template gets. What came from outside is template.HTML that package render made, or text that the
// template escapes.
type page struct {
	Title   string
	Person  *Person // who is signed in
	Here    string  // of the links at the top
	Counts  counts
	Problem string
	Next    string
	Origin  string
	Form    string
	SignOut string
	After   string // the newest event when a list was drawn

	// sign-in, enrolment and settings
	Passkey    *ceremony
	Passphrase bool
	SignOn     string // name of the issuer; "": none
	ProveAgain bool   // at the issuer, before proofs are changed
	Name       string
	PushKey    string
	Passkeys   []PasskeyInfo
	Sessions   []Session

	Text   string // of a message
	Rows   []item
	More   string // where the next rows are
	Rate   string // "you approved 61 of 62"
	Filter filter
	Detail *detail
}

type counts struct{ Waiting, Doubt string }

// item is one row of a list.
type item struct {
	Path               string
	Title, Names, Risk string // as render.Line shows them
	Where, State       string
	When               time.Time
	Left               string
	Choose             string // the alias, where it can be undone together with others
}

// draw writes a page whole, or an error: never half of one.
func (p *Server) draw(w http.ResponseWriter, r *http.Request, code int, name string, d page) {
	if v := visiting(r); v.person.ID != "" {
		d.Person = &v.person
		d.SignOut = p.freshForm(r, "settings", wetink.Change{})
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, d); err != nil {
		p.opt.Log.ErrorContext(r.Context(), "draw a page", "page", name, "err", err)
		http.Error(w, "this page could not be drawn; nothing was sent", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// message says what happened when there is nothing else to show.
func (p *Server) message(w http.ResponseWriter, r *http.Request, code int, title, text string) {
	p.draw(w, r, code, "message", page{Title: title, Text: text})
}

func (p *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p.opt.Log.ErrorContext(r.Context(), "page", "path", r.Pattern, "err", err)
	p.message(w, r, http.StatusInternalServerError, "That did not work", sentence(err))
}

// freshForm is the hidden field of a page that is drawn now.
func (p *Server) freshForm(r *http.Request, purpose string, c wetink.Change) string {
	f := form{Nonce: make([]byte, nonceSize), Shown: p.opt.Now(), Rev: c.Rev}
	rand.Read(f.Nonce)
	return p.seal(f, purpose, visiting(r).session.Hash, c)
}

// how a session began, in words.
func how(s string) string {
	switch s {
	case howIssuer, howIssuerFresh:
		return "at the issuer"
	}
	return "with a " + s
}

func left(d time.Duration) string {
	if d <= 0 {
		return "ran out"
	}
	return render.Duration(d.Round(time.Minute)) + " left"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func capped(n, most int) string {
	if n > most {
		return fmt.Sprintf("%d+", most)
	}
	return fmt.Sprint(n)
}
