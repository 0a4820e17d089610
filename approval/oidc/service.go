package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// ErrConfig says what is wrong with a Config.
var ErrConfig = errors.New("sign-in of the company")

// Config is one issuer, and who we are to it.
type Config struct {
	Issuer      string       // exactly as the issuer writes it: https://…; http:// on loopback only
	ClientID    string       // as the issuer knows this page
	Secret      secret.Bytes // none: a public client, which PKCE alone protects
	Redirect    string       // exactly as it is registered at the issuer
	PersonClaim string       // "email" (needs email_verified) or "sub"; "": email
	GroupsClaim string       // a claim that is a list of texts; "": groups
}

// Options of a Service. The zero value is the production default.
type Options struct {
	Transport http.RoundTripper // nil: http.DefaultTransport
	Now       func() time.Time
}

// Identity is what an issuer said of somebody.
type Identity struct {
	Issuer   string
	Subject  string // never given to somebody else by the same issuer
	Person   wetink.Person
	Groups   []string
	AuthTime time.Time // when they last proved who they are; zero: the issuer did not say
}

// Service is one client of one issuer. All methods are safe for concurrent use.
type Service struct {
	cfg  Config
	http *http.Client
	now  func() time.Time

	mu    sync.Mutex
	found *issuer
	used  map[string]time.Time // states that were answered, until they would have run out
}

// issuer is what discovery found.
type issuer struct {
	verify *oidc.IDTokenVerifier
	oauth  oauth2.Config
	names  bool // it says in each answer who it is (RFC 9207)
}

// algorithms are those that a signature may have: asymmetric, and kept by everybody.
var algorithms = []string{oidc.RS256, oidc.ES256, oidc.PS256, oidc.EdDSA}

const (
	patience  = 10 * time.Second // of one request
	maxAnswer = 1 << 20          // bytes of one
)

// New checks the configuration. It asks the issuer for nothing.
func New(c Config, o *Options) (*Service, error) {
	if c.PersonClaim == "" {
		c.PersonClaim = "email"
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || !private(u) || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: the issuer is %q: want https://HOST/…; http:// on loopback only", ErrConfig, c.Issuer)
	case c.ClientID == "":
		return nil, fmt.Errorf("%w: it has no client id: want the one that the issuer gave this page", ErrConfig)
	case c.PersonClaim != "email" && c.PersonClaim != "sub":
		return nil, fmt.Errorf("%w: people are named by %q: want email or sub", ErrConfig, c.PersonClaim)
	}
	if u, err := url.Parse(c.Redirect); err != nil || !private(u) {
		return nil, fmt.Errorf("%w: the redirect is %q: want https://HOST/…; http:// on loopback only", ErrConfig, c.Redirect)
	}
	s := &Service{cfg: c, now: time.Now, used: map[string]time.Time{}}
	transport := http.DefaultTransport
	if o != nil && o.Transport != nil {
		transport = o.Transport
	}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	// A redirect could carry the code and the secret to another place than the one that was discovered.
	s.http = &http.Client{Transport: bounded{transport}, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s, nil
}

// private: nobody between here and there can read or change it.
func private(u *url.URL) bool {
	loopback := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && loopback)
}

// bounded cuts answers off that would fill the memory.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// discover asks the issuer what it has, once it answers; until then each sign-in asks again.
func (s *Service) discover(ctx context.Context) (*issuer, error) {
	s.mu.Lock()
	found := s.found
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, s.http), s.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%s does not say how to sign in there: %w; try again in a moment", s.cfg.Issuer, err)
	}
	var meta struct {
		Auth    string   `json:"authorization_endpoint"`
		Token   string   `json:"token_endpoint"`
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Names   bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := p.Claims(&meta); err != nil {
		return nil, fmt.Errorf("%s does not say how to sign in there: %w", s.cfg.Issuer, err)
	}
	for _, raw := range []string{meta.Auth, meta.Token, meta.Keys} {
		if u, err := url.Parse(raw); err != nil || !private(u) {
			return nil, fmt.Errorf("%s sends people or secrets to %q: want https", s.cfg.Issuer, raw)
		}
	}
	endpoint := p.Endpoint()
	// Not found out by trying: a first try that fails has used the code up.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if s.cfg.Secret.IsZero() || len(meta.Methods) > 0 && !slices.Contains(meta.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID}
	if s.cfg.PersonClaim == "email" {
		scopes = append(scopes, "email")
	}
	found = &issuer{
		verify: p.Verifier(&oidc.Config{ClientID: s.cfg.ClientID, SupportedSigningAlgs: algorithms, Now: s.now}),
		oauth: oauth2.Config{ClientID: s.cfg.ClientID, ClientSecret: string(s.cfg.Secret.Reveal()), Endpoint: endpoint,
			RedirectURL: s.cfg.Redirect, Scopes: scopes},
		names: meta.Names,
	}
	s.mu.Lock()
	s.found = found
	s.mu.Unlock()
	return found, nil
}
