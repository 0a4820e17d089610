package page

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink"
)

// EvidenceSession is the Kind of what a signed-in browser sends. Its Data is the session's hash (32 bytes) and a MAC over
// change, digest, time shown, person and session, by a key of the store: an edited row is found by whoever can read the
// store, and it proves nothing to anybody else.
const EvidenceSession = "session"

func (p *Server) sessionEvidence(c wetink.Change, who Person, s Session, shown time.Time) wetink.Evidence {
	e := wetink.Evidence{Kind: EvidenceSession, Digest: c.Statement.Digest(), By: who.ID, Client: "page", Shown: shown.UTC().Round(0)}
	e.Data = append(s.Hash[:], sessionMAC(p.keys, c, e, s.Hash)...)
	return e
}

func sessionMAC(k keys, c wetink.Change, e wetink.Evidence, session wetink.Digest) []byte {
	return mac(k.session, []byte(e.Kind), []byte(c.Tenant), []byte(c.ID), e.Digest[:], []byte(e.Shown.UTC().Format(time.RFC3339Nano)),
		[]byte(e.By), []byte(e.Client), session[:])
}

// Entitled is v for evidence of people: what it proves counts as long as whoever it names is among the people of the store
// and may decide about the change, because they asked for it or are an approver. The claim asks, so that an approval is
// void once that ends, however it was given. v says of what was proved nothing of who may.
func Entitled(s Store, v wetink.Verifier) wetink.Verifier { return entitled{s, v} }

type entitled struct {
	store Store
	wetink.Verifier
}

// Verify implements wetink.Verifier.
func (v entitled) Verify(ctx context.Context, c wetink.Change, t wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	level, err := v.Verifier.Verify(ctx, c, t, e)
	if err != nil {
		return wetink.Auto, err
	}
	who, err := v.store.Person(ctx, c.Tenant, e.By)
	if err != nil {
		return wetink.Auto, fmt.Errorf("%s: %w; somebody else has to approve it", e.By, err)
	}
	if !may(who, c) {
		return wetink.Auto, fmt.Errorf("%s may not decide about it any more; somebody else has to approve it", e.By)
	}
	return level, nil
}

// Verifier turns the evidence of a browser session into level Session. The claim asks it, maybe in another process on the
// same store: it decides from the stored bytes, and from whether that person is still there.
func Verifier(s Store) wetink.Verifier { return Entitled(s, verifier{s}) }

type verifier struct{ store Store }

// Verify implements wetink.Verifier.
func (v verifier) Verify(ctx context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	const size = len(wetink.Digest{})
	switch {
	case e.Kind != EvidenceSession:
		return wetink.Auto, fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != c.Statement.Digest():
		return wetink.Auto, errors.New("the statement is not the one that was shown")
	case e.By == "" || e.Shown.IsZero() || len(e.Data) <= size:
		return wetink.Auto, errors.New("it does not say who saw it, when, and where")
	}
	secret, err := v.store.Secret(ctx)
	if err != nil {
		return wetink.Auto, err
	}
	if !hmac.Equal(e.Data[size:], sessionMAC(derive(secret), c, e, wetink.Digest(e.Data[:size]))) {
		return wetink.Auto, errors.New("it was not sent by a session of this page for exactly this")
	}
	return wetink.Session, nil
}

// Reach implements wetink.Verifier.
func (v verifier) Reach(ctx context.Context) wetink.Level {
	if any, err := v.store.AnyPerson(ctx); err != nil || !any {
		return wetink.Auto // nobody can sign in
	}
	return wetink.Session
}
