package passkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Assertion is Evidence.Data: one signature and all it takes to check it.
type Assertion struct {
	V                 int    `json:"v"` // 1
	Credential        []byte `json:"credential"`
	SPKI              []byte `json:"spki"`
	Alg               int    `json:"alg"` // COSE: -7 ES256, -8 EdDSA, -257 RS256
	RP                string `json:"rp"`
	Origin            string `json:"origin"`
	Nonce             []byte `json:"nonce"`
	ClientData        []byte `json:"client_data"`
	AuthenticatorData []byte `json:"authenticator_data"`
	Signature         []byte `json:"signature"`
}

// COSE algorithms (RFC 9053, RFC 8812).
const (
	es256 = -7
	edDSA = -8
	rs256 = -257
)

// ParseAssertion reads Evidence.Data.
func ParseAssertion(data []byte) (a Assertion, err error) {
	if err := strictjson.Decode(data, &a, strictjson.Default); err != nil {
		return a, fmt.Errorf("passkey evidence: %w", err)
	}
	if a.V != 1 {
		return a, fmt.Errorf("passkey evidence: version %d is not known to this build", a.V)
	}
	return a, nil
}

// Challenge is what the authenticator was asked to sign; see the package comment.
func Challenge(change wetink.ChangeID, digest wetink.Digest, tenant wetink.Tenant, person wetink.Person, rp, origin string, nonce []byte) []byte {
	h := sha256.New()
	h.Write([]byte("wetink/approve/passkey/v1\x00"))
	for _, part := range [][]byte{[]byte(change), digest[:], []byte(tenant), []byte(person), []byte(rp), []byte(origin), nonce} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

const (
	nonceSize = 32
	// Bits of the flags of authenticatorData (Level 3, section 6.1).
	userPresent  = 1 << 0
	userVerified = 1 << 2
)

// Check tells whether a is a signature of person under exactly this change, by the key that a names. It needs no
// server and no store. That the key belongs to that person is for the caller to know: see [Service.Verifier].
//
// It follows section 7.2 of WebAuthn Level 3: type, challenge, origin and cross-origin in clientDataJSON; the hash of
// the RP ID, user present and user verified in authenticatorData; the signature over both.
func Check(a Assertion, change wetink.ChangeID, digest wetink.Digest, tenant wetink.Tenant, person wetink.Person) error {
	if len(a.Nonce) != nonceSize {
		return errors.New("the nonce is not 32 bytes")
	}
	return a.signed(Challenge(change, digest, tenant, person, a.RP, a.Origin, a.Nonce))
}

func (a Assertion) signed(challenge []byte) error {
	if err := a.clientData(challenge); err != nil {
		return err
	}
	rp := sha256.Sum256([]byte(a.RP))
	switch d := a.AuthenticatorData; {
	case len(d) < 37:
		return errors.New("the authenticator's data is cut off")
	case !bytes.Equal(d[:32], rp[:]):
		return errors.New("it was signed for another site")
	case d[32]&userPresent == 0:
		return errors.New("nobody touched the authenticator")
	case d[32]&userVerified == 0:
		return errors.New("the authenticator did not verify its user")
	}
	hash := sha256.Sum256(a.ClientData)
	return a.signature(append(bytes.Clone(a.AuthenticatorData), hash[:]...))
}

// clientData is read once, by a parser that knows one reading of each member: two members of a name would be one to us
// and another one to somebody else.
func (a Assertion) clientData(challenge []byte) error {
	if err := strictjson.Check(a.ClientData, strictjson.Default); err != nil {
		return fmt.Errorf("the client's data: %w", err)
	}
	var c struct {
		Type        string  `json:"type"`
		Challenge   string  `json:"challenge"`
		Origin      string  `json:"origin"`
		CrossOrigin bool    `json:"crossOrigin"`
		TopOrigin   *string `json:"topOrigin"`
	}
	if err := json.Unmarshal(a.ClientData, &c); err != nil { // browsers add members that nobody else knows
		return fmt.Errorf("the client's data: %w", err)
	}
	signed, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(c.Challenge, "="))
	switch {
	case c.Type != "webauthn.get":
		return fmt.Errorf("it is a %q, and no signature", c.Type)
	case err != nil || !bytes.Equal(signed, challenge):
		return errors.New("it was signed for another change, or for this one as somebody else saw it")
	case c.Origin != a.Origin:
		return errors.New("it was signed on another page")
	case c.CrossOrigin || c.TopOrigin != nil:
		return errors.New("it was signed inside a page of somebody else")
	}
	return nil
}

func (a Assertion) signature(message []byte) error {
	key, err := x509.ParsePKIXPublicKey(a.SPKI)
	if err != nil {
		return fmt.Errorf("the public key: %w", err)
	}
	hash := sha256.Sum256(message)
	ok := false
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		ok = a.Alg == es256 && key.Curve == elliptic.P256() && ecdsa.VerifyASN1(key, hash[:], a.Signature)
	case ed25519.PublicKey:
		ok = a.Alg == edDSA && ed25519.Verify(key, message, a.Signature)
	case *rsa.PublicKey:
		ok = a.Alg == rs256 && rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], a.Signature) == nil
	}
	if !ok {
		return errors.New("the signature does not fit")
	}
	return nil
}
