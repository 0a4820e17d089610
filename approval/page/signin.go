package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// ceremony is what a page hands to the browser's passkeys.
type ceremony struct {
	Options string // JSON
	State   string
}

func (p *Server) signInPage(w http.ResponseWriter, r *http.Request) {
	if _, _, ok := p.signedIn(r); ok {
		http.Redirect(w, r, ours(r.URL.Query().Get("next")), http.StatusSeeOther)
		return
	}
	p.drawSignIn(w, r, http.StatusOK, ours(r.URL.Query().Get("next")), "")
}

func (p *Server) drawSignIn(w http.ResponseWriter, r *http.Request, code int, next, problem string) {
	c, err := p.beginSignIn(r.Context())
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.draw(w, r, code, "signin", page{Title: "Sign in", Next: next, Problem: problem, Passkey: c, Passphrase: p.opt.Passphrases != nil, SignOn: p.signOnName(), Origin: p.origin.Host})
}

func (p *Server) signOnName() string {
	if p.opt.SignOn == nil {
		return ""
	}
	return p.opt.SignOn.Name
}

func (p *Server) beginSignIn(ctx context.Context) (*ceremony, error) {
	if p.opt.Passkeys == nil {
		return nil, nil
	}
	options, state, err := p.opt.Passkeys.BeginSignIn(ctx)
	if err != nil {
		return nil, err
	}
	return &ceremony{string(options), p.sealState("sign in", state)}, nil
}

// signIn takes a passkey's answer, or a name and a passphrase. Whatever is wrong, the answer is the same.
func (p *Server) signIn(w http.ResponseWriter, r *http.Request) {
	next := ours(r.FormValue("next"))
	who, how, err := p.proven(r)
	if err != nil {
		p.opt.Log.InfoContext(r.Context(), "a sign-in was refused", "err", err)
		p.drawSignIn(w, r, http.StatusUnauthorized, next, "That did not work. Check the name and the passphrase, or try the passkey again; after several wrong tries it takes longer.")
		return
	}
	if err := p.enter(w, r, who, how); err != nil {
		p.fail(w, r, err)
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (p *Server) proven(r *http.Request) (who Person, how string, err error) {
	ctx := r.Context()
	if answer := r.FormValue("passkey"); answer != "" && p.opt.Passkeys != nil {
		state, err := p.unsealState("sign in", r.FormValue("state"))
		if err != nil {
			return who, "", err
		}
		tenant, id, err := p.opt.Passkeys.FinishSignIn(ctx, state, []byte(answer))
		if err != nil {
			return who, "", err
		}
		who, err = p.store.Person(ctx, tenant, id)
		return who, "passkey", err
	}
	if p.opt.Passphrases == nil {
		return who, "", errors.New("no passphrases are set up")
	}
	id := wetink.Person(r.FormValue("user"))
	wrong, err := p.opt.Passphrases.Check(ctx, "", id, secret.New([]byte(r.FormValue("pass"))))
	if err != nil {
		return who, "", err
	}
	if wrong {
		return who, "", errors.New("wrong passphrase, or nobody of that name")
	}
	who, err = p.store.Person(ctx, "", id)
	return who, "passphrase", err
}

// inviteLife is how long a one-time link is good.
const inviteLife = time.Hour

// Invite returns a one-time link with which somebody who is known by name sets up how they sign in.
func (p *Server) Invite(ctx context.Context, tenant wetink.Tenant, id wetink.Person) (string, error) {
	return Invite(ctx, p.store, p.origin.String(), tenant, id, p.opt.Now())
}

// Invite makes a one-time link for the page of an origin, also in a process that does not serve it. Those that nobody used
// in time go.
func Invite(ctx context.Context, s Store, origin string, tenant wetink.Tenant, id wetink.Person, now time.Time) (string, error) {
	if _, err := s.Person(ctx, tenant, id); err != nil {
		return "", fmt.Errorf("invite: %w", err)
	}
	if err := s.SweepInvitations(ctx, now); err != nil {
		return "", fmt.Errorf("invite: %w", err)
	}
	secret, hash := newSecret()
	if err := s.AddInvitation(ctx, Invitation{hash, tenant, id, now.Add(inviteLife)}); err != nil {
		return "", fmt.Errorf("invite: %w", err)
	}
	return origin + "/enrol/" + secret, nil
}

// invited is the person of an open invitation. Looking uses nothing up: mail scanners open links.
func (p *Server) invited(r *http.Request) (Invitation, Person, error) {
	i, err := p.store.Invitation(r.Context(), hashOf(r.PathValue("secret")))
	if err != nil {
		return i, Person{}, err
	}
	if !p.opt.Now().Before(i.Expires) {
		return i, Person{}, ErrUnknown
	}
	who, err := p.store.Person(r.Context(), i.Tenant, i.Person)
	return i, who, err
}

func (p *Server) enrolPage(w http.ResponseWriter, r *http.Request) {
	_, who, err := p.invited(r)
	if err != nil {
		p.message(w, r, http.StatusNotFound, "This link is used or too old", "Nothing was done. Ask for another one: wetink setup, or whoever runs this server.")
		return
	}
	p.drawEnrol(w, r, http.StatusOK, who, "")
}

func (p *Server) drawEnrol(w http.ResponseWriter, r *http.Request, code int, who Person, problem string) {
	c, err := p.beginEnrol(r.Context(), who)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.draw(w, r, code, "enrol", page{Title: "Welcome", Problem: problem, Passkey: c, Passphrase: p.opt.Passphrases != nil, Name: string(who.ID), Origin: p.origin.Host})
}

func (p *Server) beginEnrol(ctx context.Context, who Person) (*ceremony, error) {
	if p.opt.Passkeys == nil {
		return nil, nil
	}
	options, state, err := p.opt.Passkeys.BeginEnrol(ctx, who.Tenant, who.ID, string(who.ID))
	if err != nil {
		return nil, err
	}
	return &ceremony{string(options), p.sealState("enrol "+string(who.ID), state)}, nil
}

// enrol uses an invitation up.
//
// Order of effects: the invitation is open → it is taken: of two at once one goes on, and the other has stored nothing →
// the passphrase or passkey is stored; a mistake in it puts the invitation back, so that it can be mended with the same
// link → signed in. A crash in between costs the link.
func (p *Server) enrol(w http.ResponseWriter, r *http.Request) {
	i, who, err := p.invited(r)
	if err != nil {
		p.message(w, r, http.StatusNotFound, "This link is used or too old", "Nothing was done. Ask for another one: wetink setup, or whoever runs this server.")
		return
	}
	ctx := context.WithoutCancel(r.Context())
	if _, err := p.store.TakeInvitation(ctx, i.Hash); err != nil {
		p.message(w, r, http.StatusConflict, "This link was used meanwhile", "Sign in with what was set up, or ask for another link.")
		return
	}
	how, problem, err := p.addProof(r, who)
	if err != nil || problem != "" {
		if err := errors.Join(err, p.store.AddInvitation(ctx, i)); err != nil {
			p.fail(w, r, err)
			return
		}
		p.drawEnrol(w, r, http.StatusBadRequest, who, problem)
		return
	}
	if err := p.enter(w, r, who, how); err != nil {
		p.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// addProof stores a passkey or a passphrase for somebody. problem is for them to mend.
func (p *Server) addProof(r *http.Request, who Person) (how, problem string, err error) {
	ctx := context.WithoutCancel(r.Context())
	if answer := r.FormValue("passkey"); answer != "" && p.opt.Passkeys != nil {
		state, err := p.unsealState("enrol "+string(who.ID), r.FormValue("state"))
		if err != nil {
			return "", sentence(err), nil
		}
		if err := p.opt.Passkeys.FinishEnrol(ctx, who.Tenant, who.ID, r.FormValue("name"), state, []byte(answer)); err != nil {
			return "", "The passkey was not taken: " + err.Error(), nil
		}
		return "passkey", "", nil
	}
	if p.opt.Passphrases == nil {
		return "", "Nothing was given.", nil
	}
	pass := r.FormValue("pass")
	if pass != r.FormValue("pass2") {
		return "", "The two passphrases are not the same. Nothing was stored.", nil
	}
	why, err := p.opt.Passphrases.Set(ctx, who.Tenant, who.ID, secret.New([]byte(pass)))
	if why != "" {
		why = "Passphrase: " + why + ". Nothing was stored."
	}
	return "passphrase", why, err
}

// freshSignIn is how new a session has to be to change how its person signs in: who found an open browser must not turn
// that into a passphrase or a passkey of their own.
const freshSignIn = 10 * time.Minute

// fresh: a session that the issuer opened by itself, because the browser has one there, proves nobody's presence, however
// new it is.
func (p *Server) fresh(s Session) bool {
	return p.opt.Now().Sub(s.Created) < freshSignIn && s.How != howIssuer
}

// settings is the page of the one who is signed in.
func (p *Server) settings(w http.ResponseWriter, r *http.Request) {
	p.drawSettings(w, r, http.StatusOK, "")
}

func (p *Server) drawSettings(w http.ResponseWriter, r *http.Request, code int, problem string) {
	v, ctx := visiting(r), r.Context()
	d := page{Title: "Settings", Problem: problem, Passphrase: p.opt.Passphrases != nil}
	if strings.HasPrefix(v.session.How, howIssuer) && !p.fresh(v.session) {
		d.SignOn, d.ProveAgain = p.signOnName(), p.opt.SignOn != nil
	}
	var err error
	if p.opt.Passkeys != nil {
		if d.Passkeys, err = p.opt.Passkeys.List(ctx, v.person.Tenant, v.person.ID); err == nil {
			d.Passkey, err = p.beginEnrol(ctx, v.person)
		}
	}
	if err == nil {
		d.Sessions, err = p.store.ListSessions(ctx, v.person.Tenant, v.person.ID)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if p.opt.Push != nil {
		if d.PushKey, err = p.opt.Push.PublicKey(ctx); err != nil {
			p.fail(w, r, err)
			return
		}
	}
	d.Form = p.freshForm(r, "settings", wetink.Change{})
	p.draw(w, r, code, "settings", d)
}

// change stores a setting. What lets somebody in needs a session of the same person and a form that we drew for it.
func (p *Server) change(w http.ResponseWriter, r *http.Request) {
	v := visiting(r)
	ctx := context.WithoutCancel(r.Context())
	if _, err := p.unseal(r.FormValue("form"), "settings", v.session.Hash, wetink.Change{}, 0); err != nil {
		p.message(w, r, http.StatusConflict, "Nothing was changed", sentence(err))
		return
	}
	var err error
	problem, do := "", r.FormValue("do")
	if fresh := p.fresh(v.session); (do == "add" || do == "remove") && !fresh {
		p.drawSettings(w, r, http.StatusForbidden, "To change how you sign in, sign out and in again first. Nothing was changed.")
		return
	}
	switch do {
	case "keys":
		who := v.person
		who.NoKeys = r.FormValue("keys") != "on"
		err = p.store.UpdatePerson(ctx, who)
	case "end":
		err = p.endSession(ctx, v, r.FormValue("session"))
	case "remove":
		if p.opt.Passkeys != nil {
			problem, err = p.removePasskey(ctx, v, r.FormValue("id"))
		}
	case "add":
		_, problem, err = p.addProof(r, v.person)
	case "push":
		problem, err = p.subscribe(ctx, v.person, r.FormValue("subscription"))
	default:
		problem = "Nothing was chosen."
	}
	if err != nil {
		problem = sentence(err)
	}
	if problem != "" {
		p.drawSettings(w, r, http.StatusBadRequest, problem)
		return
	}
	http.Redirect(w, r, "/settings", http.StatusSeeOther)
}

// removePasskey takes one of the visitor's away, but not the last way in that they have: they would be locked out, and
// where nobody else can sign in, changes would need less than a person from then on.
func (p *Server) removePasskey(ctx context.Context, v visitor, id string) (problem string, err error) {
	list, err := p.opt.Passkeys.List(ctx, v.person.Tenant, v.person.ID)
	if err != nil {
		return "", err
	}
	if len(list) == 1 && list[0].ID == id && !strings.HasPrefix(v.session.How, howIssuer) {
		phrase := false
		if p.opt.Passphrases != nil {
			phrase, err = p.opt.Passphrases.Has(ctx, v.person.Tenant, v.person.ID)
		}
		if err != nil || !phrase {
			return "It is the only way in that you have. Add another passkey or a passphrase first. Nothing was changed.", err
		}
	}
	return "", p.opt.Passkeys.Remove(ctx, v.person.Tenant, v.person.ID, id)
}

// endSession ends one of the visitor's own.
func (p *Server) endSession(ctx context.Context, v visitor, hash string) error {
	var h wetink.Digest
	if err := h.UnmarshalText([]byte(hash)); err != nil {
		return err
	}
	s, err := p.store.Session(ctx, h)
	if err != nil || s.Tenant != v.person.Tenant || s.Person != v.person.ID {
		return ErrUnknown
	}
	return p.store.EndSession(ctx, h)
}
