package page

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// asked is the change for which somebody goes to the issuer, as it was drawn in one session.
type asked struct {
	Session wetink.Digest   `json:"session"`
	Tenant  wetink.Tenant   `json:"tenant"`
	Person  wetink.Person   `json:"person"`
	Change  wetink.ChangeID `json:"change"`
	Digest  wetink.Digest   `json:"digest"`
}

func (v visitor) asks(c wetink.Change) asked {
	return asked{v.session.Hash, c.Tenant, v.person.ID, c.ID, c.Statement.Digest()}
}

// proof is that somebody went there and came back. It decides nothing: with it they can press the button.
type proof struct {
	Asked   asked     `json:"asked"`
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`
	Ends    time.Time `json:"ends"`
}

// proofCookie waits in the browser for the press, which comes from our own page.
func (p *Server) proofCookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: p.cookieName() + "-proof", Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: p.origin.Scheme == "https", MaxAge: int(life.Seconds())}
}

// byIssuer: who signed in at the issuer proves there again who they are; everybody else gives their passphrase.
func (p *Server) byIssuer(s Session) bool {
	return p.opt.SignOn != nil && strings.HasPrefix(s.How, howIssuer)
}

// prove sends somebody to the issuer for one change.
func (p *Server) prove(w http.ResponseWriter, r *http.Request) {
	c, _, ok := p.decision(w, r, p.opt.Arm)
	if !ok {
		return
	}
	v := visiting(r)
	if !p.byIssuer(v.session) {
		p.drawDetail(w, r, http.StatusBadRequest, c.ID, "You did not sign in at an issuer. Nothing was decided.")
		return
	}
	a := v.asks(c)
	p.depart(w, r, trip{Next: p.path(c), Fresh: true, Asked: &a})
}

// proved ends a trip that was for a change. The session's cookie does not come along from the issuer (it is Strict), so what
// is left in the browser is bound to the session that asked.
func (p *Server) proved(w http.ResponseWriter, r *http.Request, t trip, id Identity) {
	who, err := p.store.Identity(r.Context(), t.Asked.Tenant, id.Issuer, id.Subject)
	if err != nil || who != t.Asked.Person || id.AuthTime.IsZero() {
		p.opt.Log.WarnContext(r.Context(), "somebody else proved who they are", "asked", t.Asked.Person, "person", who, "subject", id.Subject, "err", err)
		p.message(w, r, http.StatusForbidden, "That was somebody else", "Nothing was decided. Prove who you are with the account that you signed in with here.")
		return
	}
	now := p.opt.Now()
	b, err := json.Marshal(proof{*t.Asked, id.Issuer, id.Subject, id.AuthTime.UTC(), now.Add(tripLife)})
	if err != nil {
		p.fail(w, r, err)
		return
	}
	http.SetCookie(w, p.proofCookie(p.conceal("proof", b), tripLife))
	http.Redirect(w, r, t.Next, http.StatusSeeOther)
}

// proofOf is what the visitor's browser has for c as it stands now.
func (p *Server) proofOf(r *http.Request, c wetink.Change) (f proof, ok bool) {
	cookie, err := r.Cookie(p.cookieName() + "-proof")
	if err != nil {
		return f, false
	}
	b, err := p.reveal("proof", cookie.Value)
	if err != nil || json.Unmarshal(b, &f) != nil {
		return f, false
	}
	return f, f.Asked == visiting(r).asks(c) && p.opt.Now().Before(f.Ends)
}

// reloginEvidence is of level Reauth.
func (p *Server) reloginEvidence(c wetink.Change, f proof, shown time.Time) (wetink.Evidence, error) {
	e := wetink.Evidence{Kind: wetink.EvidenceRelogin, Digest: c.Statement.Digest(), By: f.Asked.Person, Client: "page", Shown: shown.UTC().Round(0)}
	r := wetink.Relogin{Issuer: f.Issuer, Subject: f.Subject, At: f.At}
	r.MAC = reloginMAC(p.keys, c, e, r)
	var err error
	e.Data, err = json.Marshal(r)
	return e, err
}

func reloginMAC(k keys, c wetink.Change, e wetink.Evidence, r wetink.Relogin) []byte {
	return mac(k.relogin, []byte(e.Kind), []byte(c.Tenant), []byte(c.ID), e.Digest[:], []byte(e.Shown.UTC().Format(time.RFC3339Nano)),
		[]byte(e.By), []byte(e.Client), []byte(r.Issuer), []byte(r.Subject), []byte(r.At.UTC().Format(time.RFC3339Nano)))
}

// ReloginVerifier turns what this page recorded of a proof at an issuer into level Reauth, while the same issuer is trusted,
// and while its subject is that person and may decide. The MAC proves to who has the store's secret that the page saw the
// proof; to nobody else it proves anything, because the issuer signed no word of the change.
func ReloginVerifier(s Store, issuer string) wetink.Verifier {
	return Entitled(s, reloginVerifier{s, issuer})
}

type reloginVerifier struct {
	store  Store
	issuer string
}

// Verify implements wetink.Verifier.
func (v reloginVerifier) Verify(ctx context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	var r wetink.Relogin
	switch {
	case e.Kind != wetink.EvidenceRelogin:
		return wetink.Auto, fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != c.Statement.Digest():
		return wetink.Auto, errors.New("the statement is not the one that was shown")
	case strictjson.Decode(e.Data, &r, strictjson.Default) != nil || e.By == "" || e.Shown.IsZero() || r.At.IsZero():
		return wetink.Auto, errors.New("it does not say who proved it, when, and where")
	case r.Issuer != v.issuer:
		return wetink.Auto, fmt.Errorf("%s is not the issuer that is trusted here", r.Issuer)
	}
	secret, err := v.store.Secret(ctx)
	if err != nil {
		return wetink.Auto, err
	}
	if !hmac.Equal(r.MAC, reloginMAC(derive(secret), c, e, r)) {
		return wetink.Auto, errors.New("this page did not see a proof for exactly this")
	}
	who, err := v.store.Identity(ctx, c.Tenant, r.Issuer, r.Subject)
	if err != nil || who != e.By {
		return wetink.Auto, fmt.Errorf("the account that proved it is not that of %s (any more)", e.By)
	}
	return wetink.Reauth, nil
}

// Reach implements wetink.Verifier.
func (v reloginVerifier) Reach(ctx context.Context) wetink.Level {
	if any, err := v.store.AnyIdentity(ctx, v.issuer); err != nil || !any {
		return wetink.Auto
	}
	return wetink.Reauth
}

// offerIssuer is what a page shows to whoever proves at the issuer who they are.
func (p *Server) offerIssuer(r *http.Request, d *detail, c wetink.Change) {
	if f, ok := p.proofOf(r, c); ok {
		d.Proved = fmt.Sprintf("You proved who you are with %s at %s, for this change.", p.opt.SignOn.Name, f.At.In(p.opt.Zone).Format("15:04:05"))
		return
	}
	d.Prove = p.opt.SignOn.Name
}
