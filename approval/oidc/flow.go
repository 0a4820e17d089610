package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// ErrRefused is a sign-in that does not count. What went wrong is for the log; nothing of it is for the browser.
var ErrRefused = errors.New("the sign-in at the issuer does not count")

func refuse(why string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(why, args...))
}

const (
	// Life of a sign-in: how long somebody may take at the issuer.
	Life = 10 * time.Minute
	// skew is how far two clocks may be apart, and by how much a sign-in that was there before may pass for a fresh one.
	skew = 10 * time.Second
)

// flow is one sign-in that has begun. It is secret: its verifier is what an interceptor of the code lacks.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Begun    time.Time `json:"begun"`
	Fresh    bool      `json:"fresh"`
}

func random() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Start begins a sign-in: where the browser goes, and what the caller keeps, sealed, in that browser alone until the issuer
// sends it back. fresh asks that the person proves now who they are, whatever session they have at the issuer.
func (s *Service) Start(ctx context.Context, fresh bool) (redirect string, state []byte, err error) {
	is, err := s.discover(ctx)
	if err != nil {
		return "", nil, err
	}
	f := flow{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Begun: s.now().UTC().Round(0), Fresh: fresh}
	opts := []oauth2.AuthCodeOption{oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)}
	if fresh {
		opts = append(opts, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	state, err = json.Marshal(f)
	return is.oauth.AuthCodeURL(f.State, opts...), state, err
}

// Finish takes the issuer's answer, in the browser that state was kept in.
//
// Order: the answer belongs to this sign-in, not too old, for the first time, of this issuer → the code is exchanged → the
// id_token is checked. Nothing is sent to the issuer for an answer that this browser did not ask for.
func (s *Service) Finish(ctx context.Context, state []byte, answer url.Values) (Identity, error) {
	var f flow
	if err := strictjson.Decode(state, &f, strictjson.Default); err != nil || f.State == "" || f.Nonce == "" || f.Verifier == "" {
		return Identity{}, refuse("this browser did not begin it")
	}
	is, err := s.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	if err := s.fits(f, answer, is.names); err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, s.http)
	token, err := is.oauth.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Identity{}, refuse("the issuer did not take its code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	checked, err := is.verify.Verify(ctx, raw)
	if err != nil {
		return Identity{}, refuse("id_token: %w", err)
	}
	return s.identity(f, checked)
}

// fits says whether an answer belongs to what this browser began.
func (s *Service) fits(f flow, answer url.Values, names bool) error {
	now := s.now()
	switch {
	case subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(f.State)) != 1:
		return refuse("this browser did not begin it")
	case now.Sub(f.Begun) >= Life || now.Before(f.Begun.Add(-skew)):
		return refuse("it took longer than %s; begin again", Life)
	}
	s.mu.Lock()
	_, again := s.used[f.State]
	for state, ends := range s.used {
		if !now.Before(ends) {
			delete(s.used, state)
		}
	}
	s.used[f.State] = f.Begun.Add(Life)
	s.mu.Unlock()
	switch iss := answer.Get("iss"); {
	case again:
		return refuse("it was answered before")
	case iss != "" && iss != s.cfg.Issuer, iss == "" && names:
		return refuse("it was answered by %.200q", iss) // a mix-up of issuers: RFC 9207
	case answer.Get("error") != "":
		return refuse("the issuer says %.200q", answer.Get("error"))
	case answer.Get("code") == "":
		return refuse("the answer has no code")
	}
	return nil
}

// claims are those that go-oidc leaves to its caller.
type claims struct {
	AuthorizedParty *string  `json:"azp"`
	AuthTime        *float64 `json:"auth_time"`
	Email           string   `json:"email"`
	EmailVerified   any      `json:"email_verified"`
}

// identity checks of a signed id_token what is ours to check (OpenID Connect Core, section 3.1.3.7).
func (s *Service) identity(f flow, t *oidc.IDToken) (Identity, error) {
	id := Identity{Issuer: s.cfg.Issuer, Subject: t.Subject}
	var c claims
	if err := t.Claims(&c); err != nil {
		return Identity{}, refuse("id_token: %w", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(f.Nonce)) != 1:
		return Identity{}, refuse("the id_token is of another sign-in: its nonce is not ours")
	case slices.ContainsFunc(t.Audience, func(a string) bool { return a != s.cfg.ClientID }):
		return Identity{}, refuse("the id_token is also for others: %.200q", t.Audience)
	case c.AuthorizedParty != nil && *c.AuthorizedParty != s.cfg.ClientID:
		return Identity{}, refuse("the id_token was given to %.200q", *c.AuthorizedParty)
	case t.Subject == "" || len(t.Subject) > 255: // section 2: at most 255 characters
		return Identity{}, refuse("the id_token does not say of whom it is")
	}
	if c.AuthTime != nil {
		id.AuthTime = time.Unix(int64(*c.AuthTime), 0).UTC()
	}
	if f.Fresh {
		switch {
		case id.AuthTime.IsZero():
			return Identity{}, refuse("the issuer does not say when they signed in (auth_time)")
		case id.AuthTime.Before(f.Begun.Add(-skew)):
			return Identity{}, refuse("they signed in at %s, before it was asked for at %s; or the clocks differ by more than %s",
				id.AuthTime.Format(time.RFC3339), f.Begun.Format(time.RFC3339), skew)
		case id.AuthTime.After(s.now().Add(skew)):
			return Identity{}, refuse("the issuer says that they will sign in at %s: its clock or ours is wrong", id.AuthTime.Format(time.RFC3339))
		}
	}
	switch id.Person = wetink.Person(t.Subject); s.cfg.PersonClaim {
	case "email":
		// Some issuers write it as text. Whatever else stands there is not true.
		if c.Email == "" || c.EmailVerified != true && c.EmailVerified != "true" {
			return Identity{}, refuse("the issuer has not verified the address %.200q", c.Email)
		}
		id.Person = wetink.Person(strings.Map(lower, c.Email)) // two spellings of one address are not two people
	}
	var err error
	if id.Groups, err = s.groups(t); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// lower is of ASCII alone: Unicode makes the letter k of the sign for kelvin, and so one person of two.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// groups of the claim that the configuration names. One that is not there is nobody's group; one of another type is a
// mistake, and not taken for none: it decides who may approve.
func (s *Service) groups(t *oidc.IDToken) (list []string, err error) {
	var all map[string]json.RawMessage
	if err := t.Claims(&all); err != nil {
		return nil, refuse("id_token: %w", err)
	}
	raw, there := all[s.cfg.GroupsClaim]
	if !there {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, refuse("the claim %q is no list of texts", s.cfg.GroupsClaim)
	}
	return list, nil
}
