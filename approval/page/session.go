package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

// visitor is who is signed in, and in which browser.
type visitor struct {
	session Session
	person  Person
}

type visitorKey struct{}

func withVisitor(ctx context.Context, v visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// visiting is the visitor of a route that needs a session.
func visiting(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// cookieName: browsers keep a __Host- cookie for this host alone, and want https for it. Cookies of localhost are shared
// by all its ports, so there the name says which.
func (p *Server) cookieName() string {
	if p.origin.Scheme == "https" {
		return "__Host-wetink"
	}
	return "wetink-" + p.origin.Port()
}

func newSecret() (secret string, hash wetink.Digest) {
	b := make([]byte, 32)
	rand.Read(b)
	secret = base64.RawURLEncoding.EncodeToString(b)
	return secret, hashOf(secret)
}

func hashOf(secret string) wetink.Digest {
	return sha256.Sum256([]byte("wetink/page/secret/v1\x00" + secret))
}

// signedIn finds the session of a request: there, not idle for too long, not too old, of somebody who is still there.
func (p *Server) signedIn(r *http.Request) (Session, Person, bool) {
	c, err := r.Cookie(p.cookieName())
	if err != nil {
		return Session{}, Person{}, false
	}
	ctx := r.Context()
	s, err := p.store.Session(ctx, hashOf(c.Value))
	if err != nil {
		if !errors.Is(err, ErrUnknown) {
			p.opt.Log.WarnContext(ctx, "read a session", "err", err)
		}
		return Session{}, Person{}, false
	}
	now := p.opt.Now()
	if !now.Before(s.Expires) || now.Sub(s.Seen) >= p.opt.SessionIdle {
		_ = p.store.EndSession(context.WithoutCancel(ctx), s.Hash)
		return Session{}, Person{}, false
	}
	who, err := p.store.Person(ctx, s.Tenant, s.Person)
	if err != nil {
		return Session{}, Person{}, false
	}
	if now.Sub(s.Seen) > time.Minute { // once a minute is enough to know that somebody is there
		_ = p.store.TouchSession(context.WithoutCancel(ctx), s.Hash, now)
	}
	return s, who, true
}

// enter signs somebody in: a new secret each time, so that one that was planted before is of no use (session fixation).
func (p *Server) enter(w http.ResponseWriter, r *http.Request, who Person, how string) error {
	secret, hash := newSecret()
	now := p.opt.Now()
	agent := r.UserAgent()
	if len(agent) > 200 {
		agent = agent[:200]
	}
	s := Session{Hash: hash, Tenant: who.Tenant, Person: who.ID, How: how, Agent: strings.ToValidUTF8(agent, "?"), Created: now, Seen: now, Expires: now.Add(p.opt.SessionMax)}
	ctx := context.WithoutCancel(r.Context())
	if err := p.store.AddSession(ctx, s); err != nil {
		return err
	}
	if err := p.store.SweepInvitations(ctx, now); err != nil {
		p.opt.Log.WarnContext(ctx, "sweep old invitations", "err", err)
	}
	http.SetCookie(w, p.cookie(secret, s.Expires))
	return nil
}

func (p *Server) cookie(secret string, expires time.Time) *http.Cookie {
	return &http.Cookie{Name: p.cookieName(), Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: p.origin.Scheme == "https", Expires: expires}
}

func (p *Server) signOut(w http.ResponseWriter, r *http.Request) {
	v := visiting(r)
	if err := p.store.EndSession(context.WithoutCancel(r.Context()), v.session.Hash); err != nil {
		p.fail(w, r, err)
		return
	}
	gone := p.cookie("", time.Unix(1, 0))
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

// askToSignIn answers a request without a session. A link from elsewhere arrives without the cookie, because that is
// SameSite=Strict: the page that is answered leads here once more, from our own site, and then the cookie comes along.
func (p *Server) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.message(w, r, http.StatusUnauthorized, "You are signed out", "Nothing was done. Sign in, look at it again, and then decide.")
		return
	}
	if r.URL.Path == "/events" {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if r.URL.Query().Get("again") == "" && (site == "cross-site" || site == "same-site" || site == "") {
		p.draw(w, r, http.StatusOK, "again", page{Title: "One moment", Next: r.URL.Path + "?again=1"})
		return
	}
	http.Redirect(w, r, "/signin?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
}

// ours keeps a redirect on this site: of what was asked for, the path and nothing else.
func ours(next string) string {
	u, err := url.Parse(next)
	if err != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(u.Path, "/signin") {
		return "/"
	}
	return u.EscapedPath() // as it was checked: decoded, /%5Chost would become another host
}
