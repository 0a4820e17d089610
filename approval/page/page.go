// Package page is where a person sees a change as it will be and decides: an http.Handler that serves the approval page
// of one origin, for the people of a Store.
//
// # What is promised
//
//   - A link carries no power: whoever opens it has to be signed in, and to have asked for the change or be an approver.
//   - GET and HEAD change nothing, but for the answer of a sign-in at an issuer. A decision is a POST from our own page, with a form that binds the change, the digest
//     and the revision that were drawn, the browser's session and a nonce; one that moved meanwhile is not decided.
//   - The page works without scripts, but for passkeys, which need one.
//   - What the record may say of an approval is what reached the server: a session (level Session), a passphrase given or
//     a sign-in made for this change (Reauth), a signature of a passkey (Passkey).
//
// # What is not promised
//
// That somebody read it, or that the browser is a person's: an agent that drives the browser can press. A passkey with
// user verification is the one step that it cannot do alone.
//
// Sources: WCAG 2.2, W3C CSP Level 3, RFC 6265bis (SameSite, __Host-), Fetch Metadata, OWASP ASVS 5 (sessions).
package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// Engine are the verbs that a person has. A *wetink.Engine has them.
type Engine interface {
	Approve(ctx context.Context, by wetink.Principal, id wetink.ChangeID, ev wetink.Evidence) (wetink.Change, error)
	Reject(ctx context.Context, by wetink.Principal, id wetink.ChangeID, why string) (wetink.Change, error)
	Replace(ctx context.Context, by wetink.Principal, old wetink.ChangeID, args []byte) (wetink.Change, wetink.Ticket, error)
	UndoAll(ctx context.Context, by wetink.Principal, ids ...wetink.ChangeID) (wetink.Change, wetink.Ticket, error)
	AskUndo(ctx context.Context, by wetink.Principal, ids ...wetink.ChangeID) error
	Reconcile(ctx context.Context, by wetink.Principal, id wetink.ChangeID) (wetink.Change, wetink.Ticket, error)
	Resolve(ctx context.Context, by wetink.Principal, id wetink.ChangeID, found []wetink.Step) (wetink.Change, wetink.Ticket, error)
	Status(ctx context.Context, by wetink.Principal, id wetink.ChangeID, wait time.Duration) (wetink.Change, *wetink.Change, error)
	Mode(ctx context.Context) (wetink.Mode, error)
}

// Ledger is what the page reads. Every wetink.Ledger has it.
type Ledger interface {
	Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (wetink.Change, error)
	List(ctx context.Context, f wetink.Filter) iter.Seq2[wetink.Change, error]
	Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error]
	Head(ctx context.Context) (int64, error)
	Now(ctx context.Context) (time.Time, error)
}

// Options of a Server. The zero value is the production default.
type Options struct {
	Passkeys    Passkeys    // nil: none
	Passphrases Passphrases // nil: none
	Push        Push        // nil: browsers are not told
	SignOn      *SignOn     // nil: nobody signs in at an issuer
	// Render says how changes of a target are drawn; nil: as they stand.
	Render func(target string) *render.Options
	// Exclude makes the request of some of a change's rows only; nil, or false: rows cannot be left out.
	Exclude func(c wetink.Change, keep []int) (json.RawMessage, bool)

	// Why says in words, in order of weight, why a change needs the level that it does; nil: nobody can say.
	Why func(ctx context.Context, c wetink.Change) []string

	Arm         time.Duration  // a press earlier than this after the page was drawn is not taken; 0: 0.7 s
	FormLife    time.Duration  // how long a drawn form is good; 0: 30 min
	SessionIdle time.Duration  // 0: 12 h
	SessionMax  time.Duration  // 0: 7 days
	Budget      int            // approvals of one person in an hour, before they have to pause; 0: 30
	Zone        *time.Location // of the times on the page; nil: time.Local
	Now         func() time.Time
	Log         *slog.Logger
}

// Server is the page. All methods are safe for concurrent use.
type Server struct {
	engine Engine
	ledger Ledger
	store  Store
	origin *url.URL
	opt    Options
	keys   keys
	mux    http.Handler

	mu      sync.Mutex
	streams map[wetink.Digest]int // live pages of each session
}

// New returns the page of an origin: https://HOST, or http://localhost:PORT.
func New(ctx context.Context, origin string, e Engine, l Ledger, s Store, o *Options) (*Server, error) {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && !(u.Scheme == "http" && u.Hostname() == "localhost") {
		return nil, fmt.Errorf("approval page: %q is no origin; want https://HOST or http://localhost:PORT", origin)
	}
	p := &Server{engine: e, ledger: l, store: s, origin: u, streams: map[wetink.Digest]int{}}
	if o != nil {
		p.opt = *o
	}
	for d, def := range map[*time.Duration]time.Duration{
		&p.opt.Arm: 700 * time.Millisecond, &p.opt.FormLife: 30 * time.Minute, &p.opt.SessionIdle: 12 * time.Hour, &p.opt.SessionMax: 7 * 24 * time.Hour,
	} {
		if *d == 0 {
			*d = def
		}
	}
	if p.opt.Budget == 0 {
		p.opt.Budget = 30
	}
	if p.opt.Zone == nil {
		p.opt.Zone = time.Local
	}
	if p.opt.Now == nil {
		p.opt.Now = time.Now
	}
	if p.opt.Log == nil {
		p.opt.Log = slog.New(slog.DiscardHandler)
	}
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("approval page: %w", err)
	}
	p.keys = derive(secret)
	p.mux = p.guarded(p.routes())
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

func (p *Server) render(target string) *render.Options {
	if p.opt.Render == nil {
		return nil
	}
	return p.opt.Render(target)
}

// may reports whether a person may see and decide about a change: who asked for it, and approvers. On one machine nobody
// is known to have asked; who runs it decides there, too.
func may(who Person, c wetink.Change) bool {
	if who.Tenant != c.Tenant {
		return false
	}
	if who.Approver {
		return true
	}
	t, err := c.Statement.Terms()
	switch {
	case err != nil:
		return false
	case t.Requester == "":
		return who.Admin
	}
	return t.Requester == who.ID
}

func principal(who Person) wetink.Principal {
	return wetink.Principal{Tenant: who.Tenant, Person: who.ID, Client: "page"}
}

// said is the one table from what went wrong to a person's words. The first that matches counts.
var said = []struct {
	err  error
	says string
}{
	{errForm, "This page was not drawn for this browser and this change. Nothing was sent. Look at the change again."},
	{errOld, "This page was open for too long. Nothing was sent. Look at the change again."},
	{errSoon, "That was too quick to have been read. Nothing was sent. Look at it, then press again."},
	{wetink.ErrExpired, "This proposal ran out. Nothing was sent."},
	{wetink.ErrLate, "This proposal ran out. Nothing was sent."},
	{wetink.ErrConflict, "It moved while you looked. Nothing was sent."},
	{wetink.ErrStale, "It changed since it was seen. Nothing was sent, and nothing was overwritten."},
	{wetink.ErrNoTarget, "The process that serves this page does not reach it, so it cannot look there. Nothing was sent. Ask the agent for a fresh preview; or end the process that serves this page (wetink page, say), so that the server which reaches it takes the page over, then try again."},
	{wetink.ErrLevel, "This approval is not enough for it. Nothing was sent."},
	{wetink.ErrNoChannel, "Nobody here can approve at the level that it needs. Nothing was sent."},
	{wetink.ErrTampered, "Its stored record was edited. Nothing was sent. Ask for a fresh preview, and find out who can write the ledger."},
	{wetink.ErrNotFound, "There is no such change."},
	{wetink.ErrNoUndo, "It cannot be undone. Nothing was sent."},
	{wetink.ErrEarly, "The process that sends it may still be at work. Try again in a moment."},
	{wetink.ErrDenied, "The rules forbid it. Nothing was sent."},
	{wetink.ErrNotApproved, "It is not approved yet. Nothing was sent."},
}

// sentence is an error for a person: what happened, and whether anything was sent.
func sentence(err error) string {
	for _, s := range said {
		if errors.Is(err, s.err) {
			return s.says + " (" + strings.TrimSpace(err.Error()) + ")"
		}
	}
	return "It was not done: " + strings.TrimSpace(err.Error())
}
