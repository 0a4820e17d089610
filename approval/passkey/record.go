package passkey

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Records keeps passkeys as the bytes that this package makes of them. store/sqlite implements it. What is not there is
// an error of PasskeyRecord. All methods are safe for concurrent use.
type Records interface {
	PasskeyRecords(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([][]byte, error)
	PasskeyRecord(ctx context.Context, id []byte) (tenant wetink.Tenant, person wetink.Person, record []byte, err error)
	// PutPasskeyRecord never takes an id away from another person.
	PutPasskeyRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id, record []byte) error
	RemovePasskeyRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id []byte) error
	AnyPasskey(ctx context.Context) (bool, error)
}

// record is one passkey. The attestation is kept as it came, for whoever wants to judge it later.
type record struct {
	V           int       `json:"v"` // 1
	ID          []byte    `json:"id"`
	Name        string    `json:"name"`
	RP          string    `json:"rp"`
	COSE        []byte    `json:"cose"`
	SPKI        []byte    `json:"spki"`
	Alg         int       `json:"alg"`
	AAGUID      []byte    `json:"aaguid"`
	Attestation []byte    `json:"attestation"` // the attestation object
	Format      string    `json:"format"`
	Transports  []string  `json:"transports,omitempty"`
	CanSync     bool      `json:"can_sync"` // backup eligible
	Synced      bool      `json:"synced"`   // backed up
	Count       uint32    `json:"count"`
	Created     time.Time `json:"created"`
}

func newRecord(c *webauthn.Credential, name, rp string, now time.Time) (record, error) {
	r := record{V: 1, ID: c.ID, Name: name, RP: rp, COSE: c.PublicKey, AAGUID: c.Authenticator.AAGUID,
		Attestation: c.Attestation.Object, Format: c.AttestationFormat, CanSync: c.Flags.BackupEligible, Synced: c.Flags.BackupState,
		Count: c.Authenticator.SignCount, Created: now.UTC()}
	for _, t := range c.Transport {
		r.Transports = append(r.Transports, string(t))
	}
	var err error
	r.SPKI, r.Alg, err = spki(c.PublicKey)
	return r, err
}

// spki turns a COSE key (RFC 9052, section 7) into a SubjectPublicKeyInfo.
func spki(cose []byte) (der []byte, alg int, err error) {
	parsed, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return nil, 0, fmt.Errorf("read the public key: %w", err)
	}
	var key any
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		if k.Algorithm != es256 || k.Curve != int64(webauthncose.P256) || len(k.XCoord) != 32 || len(k.YCoord) != 32 {
			return nil, 0, errors.New("only ES256 on P-256 is taken of elliptic curves")
		}
		pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, k.XCoord, k.YCoord)) // SEC 1, 2.3.3
		if err != nil {                                                                                             // not a point of the curve
			return nil, 0, fmt.Errorf("the public key: %w", err)
		}
		key, alg = pub, es256
	case webauthncose.OKPPublicKeyData:
		if k.Algorithm != edDSA || len(k.XCoord) != ed25519.PublicKeySize {
			return nil, 0, errors.New("only Ed25519 is taken of Edwards curves")
		}
		key, alg = ed25519.PublicKey(k.XCoord), edDSA
	case webauthncose.RSAPublicKeyData:
		n := new(big.Int).SetBytes(k.Modulus)
		e := new(big.Int).SetBytes(k.Exponent)
		if k.Algorithm != rs256 || n.BitLen() < 2048 || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil, 0, errors.New("only RS256 with 2048 bits or more is taken of RSA")
		}
		key, alg = &rsa.PublicKey{N: n, E: int(e.Int64())}, rs256
	default:
		return nil, 0, errors.New("a key of that kind is not taken")
	}
	der, err = x509.MarshalPKIXPublicKey(key)
	return der, alg, err
}

func (r record) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	return bytes.TrimSpace(b.Bytes()), err
}

func readRecord(b []byte) (r record, err error) {
	if err := strictjson.Decode(b, &r, strictjson.Default); err != nil {
		return r, fmt.Errorf("stored passkey: %w", err)
	}
	if r.V != 1 {
		return r, fmt.Errorf("stored passkey: version %d is not known to this build", r.V)
	}
	return r, nil
}

// credential is what the library wants to know of a stored passkey.
func (r record) credential() webauthn.Credential {
	c := webauthn.Credential{ID: r.ID, PublicKey: r.COSE, AttestationFormat: r.Format,
		Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: r.CanSync, BackupState: r.Synced},
		Authenticator: webauthn.Authenticator{AAGUID: r.AAGUID, SignCount: r.Count}}
	for _, t := range r.Transports {
		c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
	}
	return c
}

// of are the stored passkeys of a person for this site.
func (s *Service) of(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]record, error) {
	stored, err := s.records.PasskeyRecords(ctx, tenant, person)
	if err != nil {
		return nil, fmt.Errorf("read the passkeys of %s: %w", person, err)
	}
	list := make([]record, 0, len(stored))
	for _, b := range stored {
		r, err := readRecord(b)
		if err != nil {
			return nil, err
		}
		if r.RP == s.rp.ID {
			list = append(list, r)
		}
	}
	return list, nil
}
