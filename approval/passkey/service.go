package passkey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/wetink/wetink"
)

// ErrRefused says that an answer of a browser does not prove what it should. The message says why.
var ErrRefused = errors.New("the passkey was not accepted")

// RP is the relying party: our site.
type RP struct {
	ID     string // a domain, or localhost
	Origin string // https://host, or http://localhost:port
	Name   string // as authenticators show it
}

// Options of a Service. nil is the production default.
type Options struct {
	Now func() time.Time // nil: time.Now
	Log *slog.Logger
}

// Service runs the ceremonies. All methods are safe for concurrent use.
type Service struct {
	records Records
	rp      RP
	opt     Options
	web     *webauthn.WebAuthn

	mu   sync.Mutex
	used map[string]time.Time // challenges of enrolment and sign-in, until they are too old anyway
}

// life of a ceremony: how long a person may take.
const life = 5 * time.Minute

// New returns the ceremonies of one site. An IP address cannot be an RP ID (WebAuthn, section 5.1.2): on one machine
// the page has to be opened as localhost.
func New(records Records, rp RP, o *Options) (*Service, error) {
	u, err := url.Parse(rp.Origin)
	switch {
	case err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("passkeys: %q is no origin; want https://HOST or http://localhost:PORT", rp.Origin)
	case net.ParseIP(rp.ID) != nil || net.ParseIP(u.Hostname()) != nil:
		return nil, fmt.Errorf("passkeys: %s is an address; browsers take a name, such as localhost", u.Hostname())
	case u.Scheme != "https" && !(u.Scheme == "http" && u.Hostname() == "localhost"):
		return nil, fmt.Errorf("passkeys: %s: browsers take https, and http for localhost only", rp.Origin)
	case rp.ID == "" || u.Hostname() != rp.ID && !strings.HasSuffix(u.Hostname(), "."+rp.ID):
		return nil, fmt.Errorf("passkeys: %s does not belong to %s", rp.Origin, rp.ID)
	}
	s := &Service{records: records, rp: rp, used: map[string]time.Time{}}
	if o != nil {
		s.opt = *o
	}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Log == nil {
		s.opt.Log = slog.New(slog.DiscardHandler)
	}
	s.web, err = webauthn.New(&webauthn.Config{RPID: rp.ID, RPDisplayName: rp.Name, RPOrigins: []string{rp.Origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		}})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return s, nil
}

// user implements webauthn.User.
type user struct {
	handle []byte
	name   string
	list   []webauthn.Credential
}

func (u user) WebAuthnID() []byte                         { return u.handle }
func (u user) WebAuthnName() string                       { return u.name }
func (u user) WebAuthnDisplayName() string                { return u.name }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.list }

// handle names a person to an authenticator without telling who it is (section 14.6.1).
func handle(tenant wetink.Tenant, person wetink.Person) []byte {
	h := sha256.New()
	h.Write([]byte("wetink/user-handle/v1\x00"))
	for _, part := range []string{string(tenant), string(person)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

func (s *Service) user(ctx context.Context, tenant wetink.Tenant, person wetink.Person, name string) (user, error) {
	list, err := s.of(ctx, tenant, person)
	u := user{handle: handle(tenant, person), name: name}
	for _, r := range list {
		u.list = append(u.list, r.credential())
	}
	return u, err
}

// Has reports whether the person has a passkey for this site.
func (s *Service) Has(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (bool, error) {
	list, err := s.of(ctx, tenant, person)
	return len(list) > 0, err
}

// Info tells a person of one of their passkeys.
type Info struct {
	ID      string // base64url
	Name    string
	Created time.Time
	Synced  bool // it can be on several devices
}

// List is what a person has, oldest first.
func (s *Service) List(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]Info, error) {
	list, err := s.of(ctx, tenant, person)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b record) int { return a.Created.Compare(b.Created) })
	out := make([]Info, 0, len(list))
	for _, r := range list {
		out = append(out, Info{base64.RawURLEncoding.EncodeToString(r.ID), r.Name, r.Created, r.CanSync})
	}
	return out, nil
}

// Remove takes a passkey away. What it approved and was not applied yet is void.
func (s *Service) Remove(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id string) error {
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return fmt.Errorf("remove a passkey: %q is no id of one", id)
	}
	return s.records.RemovePasskeyRecord(ctx, tenant, person, b)
}

// state is what the page keeps, sealed, while the browser is busy.
type state struct {
	Purpose string               `json:"purpose"`
	Ends    time.Time            `json:"ends"`
	Session webauthn.SessionData `json:"session"`
}

func (s *Service) keep(purpose string, session *webauthn.SessionData) ([]byte, error) {
	return json.Marshal(state{purpose, s.opt.Now().Add(life).UTC(), *session})
}

// take reads a state back. Each is good once in this process, for one purpose and a few minutes.
func (s *Service) take(purpose string, b []byte) (webauthn.SessionData, error) {
	var st state
	if err := json.Unmarshal(b, &st); err != nil || st.Purpose != purpose || st.Session.Challenge == "" {
		return webauthn.SessionData{}, fmt.Errorf("%w: it answers another question; start again", ErrRefused)
	}
	now := s.opt.Now()
	if !now.Before(st.Ends) {
		return webauthn.SessionData{}, fmt.Errorf("%w: it took too long; start again", ErrRefused)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, ends := range s.used {
		if !now.Before(ends) {
			delete(s.used, c)
		}
	}
	if _, again := s.used[st.Session.Challenge]; again {
		return webauthn.SessionData{}, fmt.Errorf("%w: it was used already; start again", ErrRefused)
	}
	s.used[st.Session.Challenge] = st.Ends
	st.Session.Expires = time.Time{} // ours counts: the library asks another clock
	return st.Session, nil
}

// maxPasskeys of one person.
const maxPasskeys = 20

// BeginEnrol makes the options of navigator.credentials.create.
func (s *Service) BeginEnrol(ctx context.Context, tenant wetink.Tenant, person wetink.Person, name string) (options, kept []byte, err error) {
	u, err := s.user(ctx, tenant, person, name)
	if err != nil {
		return nil, nil, err
	}
	if len(u.list) >= maxPasskeys {
		return nil, nil, fmt.Errorf("%w: %s has %d already; remove one first", ErrRefused, person, len(u.list))
	}
	creation, session, err := s.web.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.list).CredentialDescriptors()),
		webauthn.WithCredentialParameters([]protocol.CredentialParameter{
			{Type: protocol.PublicKeyCredentialType, Algorithm: edDSA},
			{Type: protocol.PublicKeyCredentialType, Algorithm: es256},
			{Type: protocol.PublicKeyCredentialType, Algorithm: rs256},
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("begin to enrol a passkey: %w", err)
	}
	return s.begun("enrol", creation.Response, session)
}

func (s *Service) begun(purpose string, options any, session *webauthn.SessionData) (b, kept []byte, err error) {
	if b, err = json.Marshal(options); err != nil {
		return nil, nil, err
	}
	kept, err = s.keep(purpose, session)
	return b, kept, err
}

// FinishEnrol checks the browser's answer and stores the passkey under the name that its owner gave it.
func (s *Service) FinishEnrol(ctx context.Context, tenant wetink.Tenant, person wetink.Person, name string, kept, response []byte) error {
	session, err := s.take("enrol", kept)
	if err != nil {
		return err
	}
	u, err := s.user(ctx, tenant, person, name)
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return refused(err)
	}
	c, err := s.web.CreateCredential(u, session, parsed)
	if err != nil {
		return refused(err)
	}
	if _, _, _, err := s.records.PasskeyRecord(ctx, c.ID); err == nil {
		return fmt.Errorf("%w: it is enrolled already", ErrRefused)
	}
	if name = strings.TrimSpace(name); name == "" || len(name) > 100 {
		name = "passkey"
	}
	r, err := newRecord(c, name, s.rp.ID, s.opt.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	b, err := r.encode()
	if err != nil {
		return err
	}
	return s.records.PutPasskeyRecord(context.WithoutCancel(ctx), tenant, person, r.ID, b)
}

// BeginSignIn makes the options of navigator.credentials.get for whoever is there.
func (s *Service) BeginSignIn(context.Context) (options, kept []byte, err error) {
	assertion, session, err := s.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, nil, fmt.Errorf("begin to sign in with a passkey: %w", err)
	}
	return s.begun("sign in", assertion.Response, session)
}

// FinishSignIn tells who it is.
func (s *Service) FinishSignIn(ctx context.Context, kept, response []byte) (tenant wetink.Tenant, person wetink.Person, err error) {
	session, err := s.take("sign in", kept)
	if err != nil {
		return "", "", err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return "", "", refused(err)
	}
	var r record
	who := func(id, userHandle []byte) (webauthn.User, error) {
		var b []byte
		if tenant, person, b, err = s.records.PasskeyRecord(ctx, id); err != nil {
			return nil, err
		}
		if r, err = readRecord(b); err != nil {
			return nil, err
		}
		if !bytes.Equal(userHandle, handle(tenant, person)) || r.RP != s.rp.ID {
			return nil, errors.New("it belongs to somebody else")
		}
		return user{handle: userHandle, name: string(person), list: []webauthn.Credential{r.credential()}}, nil
	}
	c, err := s.web.ValidateDiscoverableLogin(who, session, parsed)
	if err != nil {
		return "", "", refused(err)
	}
	s.counted(ctx, tenant, person, r, c.Authenticator.SignCount, c.Flags.BackupState)
	return tenant, person, nil
}

// counted keeps the counter. One that went back is a sign of a copied key, and no more: synced passkeys do not count.
func (s *Service) counted(ctx context.Context, tenant wetink.Tenant, person wetink.Person, r record, count uint32, synced bool) {
	if count <= r.Count && (count != 0 || r.Count != 0) {
		s.opt.Log.WarnContext(ctx, "a passkey's counter did not grow: it may have been copied", "person", person, "passkey", r.Name)
	}
	if count == r.Count && synced == r.Synced {
		return
	}
	r.Count, r.Synced = max(count, r.Count), synced
	b, err := r.encode()
	if err == nil {
		err = s.records.PutPasskeyRecord(context.WithoutCancel(ctx), tenant, person, r.ID, b)
	}
	if err != nil {
		s.opt.Log.WarnContext(ctx, "a passkey's counter could not be kept", "err", err)
	}
}

// refused keeps the library's reason, which is in its details.
func refused(err error) error {
	var p *protocol.Error
	if errors.As(err, &p) && p.DevInfo != "" {
		return fmt.Errorf("%w: %s: %s", ErrRefused, p.Details, p.DevInfo)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
