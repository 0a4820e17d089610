// Package oidctest is an issuer of OpenID Connect for tests, strict where issuers should be, and wrong where a test says so.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// What the client is called at the issuer.
const (
	ClientID = "wetink-page"
	Secret   = "secret of the client"
)

// Issuer is one issuer with one person in front of it. Set its fields before the step that they are for.
type Issuer struct {
	URL      string
	Redirect string         // the only one that is registered
	Claims   map[string]any // over those that are right; a nil value takes one away
	Header   map[string]any // likewise, of the id_token
	Key      *ecdsa.PrivateKey
	Names    bool             // it says that it names itself in each answer
	Reuse    bool             // a code works again
	Down     bool             // it does not answer
	Meta     map[string]any   // over what discovery says
	Now      func() time.Time // its clock
	SignedIn time.Time        // when the person proved who they are; a client that asks for max_age=0 makes it now
	Stubborn bool             // prompt and max_age are ignored
	Asked    url.Values       // what the client asked for last
	Given    http.Header      // what came with the last code
	codes    map[string]url.Values
	mu       sync.Mutex
	public   *ecdsa.PrivateKey
}

// New starts an issuer that ends with the test.
func New(t testing.TB, redirect string) *Issuer {
	t.Helper()
	key := NewKey(t)
	i := &Issuer{Redirect: redirect, Claims: map[string]any{}, Header: map[string]any{}, Key: key, public: key, Names: true, Meta: map[string]any{},
		Now: time.Now, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	i.URL = s.URL
	return i
}

// NewKey returns a key to sign with.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func over(base, with map[string]any) map[string]any {
	maps.Copy(base, with)
	maps.DeleteFunc(base, func(_ string, v any) bool { return v == nil })
	return base
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, over(map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}, "authorization_response_iss_parameter_supported": i.Names}, i.Meta))
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := i.public.PublicKey.Bytes() // 4 ‖ x ‖ y
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "1", "x": b64(point[1:33]), "y": b64(point[33:])}}})
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// SignIn is the person at the issuer: where the browser was sent goes in, what it comes back with goes out.
func (i *Issuer) SignIn(t testing.TB, redirect string) url.Values {
	t.Helper()
	u, err := url.Parse(redirect)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	got, err := i.allow(u.Query())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (i *Issuer) allow(q url.Values) (url.Values, error) {
	switch {
	case q.Get("client_id") != ClientID, q.Get("response_type") != "code", q.Get("redirect_uri") != i.Redirect:
		return nil, fmt.Errorf("the issuer does not know this client: %v", q)
	case q.Get("code_challenge_method") != "S256", q.Get("code_challenge") == "", q.Get("state") == "", q.Get("nonce") == "":
		return nil, fmt.Errorf("the client is careless: %v", q)
	}
	if i.Asked = q; !i.Stubborn && (q.Get("max_age") == "0" || i.SignedIn.IsZero()) {
		i.SignedIn = i.Now()
	}
	code := fmt.Sprint("code ", len(i.codes))
	i.codes[code] = q
	return url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}, nil
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q, err := i.allow(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, i.Redirect+"?"+q.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.Given = r.Header
	q, code := i.codes[r.FormValue("code")], r.FormValue("code")
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	user, pass, basic := r.BasicAuth()
	switch {
	case q == nil, q.Get("code_challenge") != b64(challenge[:]), r.FormValue("redirect_uri") != i.Redirect, r.FormValue("grant_type") != "authorization_code",
		!basic, user != ClientID, pass != url.QueryEscape(Secret):
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": "invalid_grant"})
		return
	}
	if !i.Reuse {
		delete(i.codes, code)
		i.codes[code+" is used"] = nil
	}
	answer(w, map[string]any{"access_token": "not used", "token_type": "Bearer", "expires_in": 60, "id_token": i.idToken(q)})
}

// idToken is a JWT (RFC 7519), signed by ES256 or, where the header says so, not at all.
func (i *Issuer) idToken(q url.Values) string {
	claims := over(map[string]any{"iss": i.URL, "sub": "1234", "aud": ClientID, "exp": i.Now().Add(time.Minute).Unix(), "iat": i.Now().Unix(), "nonce": q.Get("nonce"),
		"auth_time": i.SignedIn.Unix(), "email": "ana@firm.example", "email_verified": true, "groups": []string{"staff", "approvers"}}, i.Claims)
	header := over(map[string]any{"alg": "ES256", "kid": "1", "typ": "JWT"}, i.Header)
	h, _ := json.Marshal(header)
	c, _ := json.Marshal(claims)
	signed := b64(h) + "." + b64(c)
	if header["alg"] == "none" {
		return signed + "."
	}
	hash := sha256.Sum256([]byte(signed))
	r, s, _ := ecdsa.Sign(rand.Reader, i.Key, hash[:])
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + b64(sig[:])
}
