package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/wetink/wetink"
)

// Issuer is where the people of a company sign in (OpenID Connect Core 1.0). approval/oidc implements it. State is kept by
// the page, sealed in the browser's cookie, until the issuer sends the browser back.
type Issuer interface {
	// Start begins a sign-in. fresh asks that the person proves now who they are, and Finish then holds the issuer to it.
	Start(ctx context.Context, fresh bool) (redirect string, state []byte, err error)
	Finish(ctx context.Context, state []byte, answer url.Values) (Identity, error)
}

// Identity is what an issuer said of somebody.
type Identity struct {
	Issuer   string
	Subject  string        // never given to somebody else by the same issuer
	Person   wetink.Person // as the page would call them: an address that the issuer has verified, or the subject
	Groups   []string
	AuthTime time.Time // when they last proved who they are; zero: the issuer did not say
}

// SignOn is sign-in at an Issuer, and what its groups may.
type SignOn struct {
	Issuer Issuer
	Name   string // on the button: "Sign in with NAME"
	// Approvers are the groups whose members may decide about what others asked for. They are asked at each sign-in: who
	// left them is no approver any more. None: groups say nothing, and only who is known already signs in.
	Approvers []string
}

// How a session began, at the issuer: with whatever session the browser has there, or with a proof made for it.
const (
	howIssuer      = "oidc"
	howIssuerFresh = "oidc, fresh"
)

// trip is a browser's way to the issuer and back.
type trip struct {
	State []byte    `json:"state"`
	Next  string    `json:"next"`
	Fresh bool      `json:"fresh"`
	Asked *asked    `json:"asked,omitempty"` // the change that it is for; nil: to sign in
	Ends  time.Time `json:"ends"`
}

const tripLife = 10 * time.Minute

// tripCookie travels with the answer, which comes from another site: Lax, not Strict as the session is. What is in it is
// sealed: cookies of localhost are shown to every port.
func (p *Server) tripCookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: p.cookieName() + "-oidc", Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: p.origin.Scheme == "https", MaxAge: int(life.Seconds())}
}

// startSignOn sends a browser to the issuer.
func (p *Server) startSignOn(w http.ResponseWriter, r *http.Request) {
	p.depart(w, r, trip{Next: ours(r.FormValue("next")), Fresh: r.FormValue("fresh") != ""})
}

// depart begins a trip. The answer is a page that leads on, and no redirect: browsers hold the redirect of a form to the
// policy of the page (form-action), and that names no other site.
func (p *Server) depart(w http.ResponseWriter, r *http.Request, t trip) {
	if p.opt.SignOn == nil {
		p.nowhere(w, r)
		return
	}
	to, state, err := p.opt.SignOn.Issuer.Start(r.Context(), t.Fresh)
	if err != nil {
		p.opt.Log.WarnContext(r.Context(), "begin a sign-in at the issuer", "err", err)
		p.message(w, r, http.StatusBadGateway, p.opt.SignOn.Name+" cannot be reached", "Nothing was done. Try again in a moment, or sign in another way.")
		return
	}
	t.State, t.Ends = state, p.opt.Now().Add(tripLife)
	b, err := json.Marshal(t)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	http.SetCookie(w, p.tripCookie(p.conceal("trip", b), tripLife))
	p.draw(w, r, http.StatusOK, "again", page{Title: "One moment", Next: to})
}

// finishSignOn takes the issuer's answer.
//
// It is the one GET that changes something: it ends in a session. It may, because the answer of an issuer is a redirect, and
// what somebody else's page could do with it is barred otherwise: it counts together with the sealed cookie of the browser
// that asked (login CSRF), with a state and a code that are good once, and only as a page that a browser goes to. It decides
// about no change: each decision is a POST.
func (p *Server) finishSignOn(w http.ResponseWriter, r *http.Request) {
	if dest := r.Header.Get("Sec-Fetch-Dest"); p.opt.SignOn == nil || r.Method != http.MethodGet || dest != "" && dest != "document" {
		p.nowhere(w, r)
		return
	}
	t, err := p.arrive(w, r)
	level := slog.LevelInfo // anybody can send this
	var id Identity
	if err == nil {
		level = slog.LevelWarn // somebody who began here: it may be the configuration, or a clock
		id, err = p.opt.SignOn.Issuer.Finish(r.Context(), t.State, r.URL.Query())
	}
	if err != nil {
		p.opt.Log.Log(r.Context(), level, "a sign-in at the issuer was refused", "err", err)
		if t.Asked != nil {
			p.message(w, r, http.StatusUnauthorized, "That did not prove who you are", "Nothing was decided. Look at the change again, and begin again.")
			return
		}
		p.drawSignIn(w, r, http.StatusUnauthorized, "/", "The sign-in with "+p.opt.SignOn.Name+" did not work. Nothing was done. Begin again, in this browser.")
		return
	}
	if t.Asked != nil {
		p.proved(w, r, t, id)
		return
	}
	who, err := p.member(context.WithoutCancel(r.Context()), id)
	switch {
	case errors.Is(err, ErrUnknown), errors.Is(err, ErrTaken):
		p.opt.Log.WarnContext(r.Context(), "somebody whom the issuer knows is not let in", "person", id.Person, "subject", id.Subject, "err", err)
		p.drawSignIn(w, r, http.StatusForbidden, "/", p.opt.SignOn.Name+" knows you, but you are not let in here: you are in none of the groups that are, you were removed, or your name is somebody else's here. Ask whoever runs this server.")
		return
	case err != nil:
		p.fail(w, r, err)
		return
	}
	how := howIssuer
	if t.Fresh {
		how = howIssuerFresh
	}
	if err := p.enter(w, r, who, how); err != nil {
		p.fail(w, r, err)
		return
	}
	http.Redirect(w, r, t.Next, http.StatusSeeOther)
}

// arrive ends a trip: its cookie is good once.
func (p *Server) arrive(w http.ResponseWriter, r *http.Request) (t trip, err error) {
	http.SetCookie(w, p.tripCookie("", -time.Second))
	c, err := r.Cookie(p.cookieName() + "-oidc")
	if err != nil {
		return t, fmt.Errorf("this browser did not begin it: %w", err)
	}
	b, err := p.reveal("trip", c.Value)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err == nil && !p.opt.Now().Before(t.Ends) {
		err = errOld
	}
	return t, err
}

// member is who an identity is here.
//
// Order: the subject is somebody's already → that is who it is, whatever it is called by now: an address may be given to
// somebody else, a subject never is → otherwise whoever has that name, or somebody new whom a group lets in; a name of
// somebody who was removed is taken for good → the subject is bound: a second one for the same name is refused → the groups
// decide about the role.
func (p *Server) member(ctx context.Context, id Identity) (Person, error) {
	var tenant wetink.Tenant
	bound, err := p.store.Identity(ctx, tenant, id.Issuer, id.Subject)
	switch {
	case err == nil:
		id.Person = bound
	case !errors.Is(err, ErrUnknown):
		return Person{}, err
	}
	groups := p.opt.SignOn.Approvers
	listed := slices.ContainsFunc(id.Groups, func(g string) bool { return slices.Contains(groups, g) })
	who, err := p.store.Person(ctx, tenant, id.Person)
	if errors.Is(err, ErrUnknown) && listed {
		who = Person{Tenant: tenant, ID: id.Person, Name: string(id.Person), Approver: true, Created: p.opt.Now()}
		err = p.store.AddPerson(ctx, who)
	}
	if err != nil {
		return Person{}, err
	}
	if err := p.store.BindIdentity(ctx, tenant, who.ID, id.Issuer, id.Subject); err != nil {
		return Person{}, err
	}
	if len(groups) > 0 && who.Approver != listed {
		who.Approver = listed
		err = p.store.UpdatePerson(ctx, who)
	}
	return who, err
}
