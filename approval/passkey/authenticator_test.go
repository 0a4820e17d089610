package passkey_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/wetink/wetink"
)

var b64 = base64.RawURLEncoding

// authenticator is one in software, and the browser around it. Its hooks spoil what is signed before it is signed, so
// that the signature fits all the same.
type authenticator struct {
	t      *testing.T
	id     []byte
	key    crypto.Signer
	alg    int64
	owner  []byte // user handle
	origin string
	rp     string
	count  uint32
	flags  byte // UP, UV, AT…

	spoilClient func(map[string]any)
	clientBytes func([]byte) []byte
	spoilData   func([]byte) []byte
}

func newAuthenticator(t *testing.T, alg int64) *authenticator {
	t.Helper()
	a := &authenticator{t: t, id: make([]byte, 32), alg: alg, origin: origin, rp: "localhost", flags: 0x05}
	rand.Read(a.id)
	var err error
	switch alg {
	case -7:
		a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case -8:
		_, a.key, err = ed25519.GenerateKey(rand.Reader)
	case -257:
		a.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// cbor writes the little of RFC 8949 that is needed: integers, byte strings, text, and maps in the order given.
func cborHead(major byte, n uint64) []byte {
	switch {
	case n < 24:
		return []byte{major<<5 | byte(n)}
	case n < 1<<8:
		return []byte{major<<5 | 24, byte(n)}
	case n < 1<<16:
		return binary.BigEndian.AppendUint16([]byte{major<<5 | 25}, uint16(n))
	}
	return binary.BigEndian.AppendUint32([]byte{major<<5 | 26}, uint32(n))
}

func cbor(v any) []byte {
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return cborHead(1, uint64(-1-v))
		}
		return cborHead(0, uint64(v))
	case []byte:
		return append(cborHead(2, uint64(len(v))), v...)
	case string:
		return append(cborHead(3, uint64(len(v))), v...)
	case [][2]any:
		b := cborHead(5, uint64(len(v)))
		for _, kv := range v {
			b = append(append(b, cbor(kv[0])...), cbor(kv[1])...)
		}
		return b
	}
	panic("cbor")
}

func (a *authenticator) cose() []byte {
	switch k := a.key.Public().(type) {
	case *ecdsa.PublicKey:
		raw, err := k.Bytes()
		if err != nil {
			a.t.Fatal(err)
		}
		return cbor([][2]any{{int64(1), int64(2)}, {int64(3), int64(-7)}, {int64(-1), int64(1)}, {int64(-2), raw[1:33]}, {int64(-3), raw[33:]}})
	case ed25519.PublicKey:
		return cbor([][2]any{{int64(1), int64(1)}, {int64(3), int64(-8)}, {int64(-1), int64(6)}, {int64(-2), []byte(k)}})
	case *rsa.PublicKey:
		return cbor([][2]any{{int64(1), int64(3)}, {int64(3), int64(-257)}, {int64(-1), k.N.Bytes()}, {int64(-2), []byte{1, 0, 1}}})
	}
	panic("key")
}

func (a *authenticator) data(flags byte, attested []byte) []byte {
	rp := sha256.Sum256([]byte(a.rp))
	d := append(rp[:], flags)
	d = binary.BigEndian.AppendUint32(d, a.count)
	d = append(d, attested...)
	if a.spoilData != nil {
		d = a.spoilData(d)
	}
	return d
}

func (a *authenticator) client(kind, challenge string) []byte {
	c := map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false, "other_keys_can_be_added_here": "do not compare"}
	if a.spoilClient != nil {
		a.spoilClient(c)
	}
	b, err := json.Marshal(c)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.clientBytes != nil {
		b = a.clientBytes(b)
	}
	return b
}

// create answers navigator.credentials.create.
func (a *authenticator) create(options []byte) []byte {
	a.t.Helper()
	var o struct {
		Challenge string
		User      struct{ ID string }
	}
	if err := json.Unmarshal(options, &o); err != nil {
		a.t.Fatal(err)
	}
	var err error
	if a.owner, err = b64.DecodeString(o.User.ID); err != nil {
		a.t.Fatal(err)
	}
	attested := make([]byte, 16)
	attested = binary.BigEndian.AppendUint16(attested, uint16(len(a.id)))
	attested = append(append(attested, a.id...), a.cose()...)
	object := cbor([][2]any{{"fmt", "none"}, {"attStmt", [][2]any{}}, {"authData", a.data(a.flags|0x40, attested)}})
	return a.answer(map[string]string{"clientDataJSON": b64.EncodeToString(a.client("webauthn.create", o.Challenge)), "attestationObject": b64.EncodeToString(object)})
}

// get answers navigator.credentials.get.
func (a *authenticator) get(options []byte) []byte {
	a.t.Helper()
	var o struct{ Challenge string }
	if err := json.Unmarshal(options, &o); err != nil {
		a.t.Fatal(err)
	}
	a.count++
	client, data := a.client("webauthn.get", o.Challenge), a.data(a.flags, nil)
	return a.answer(map[string]string{"clientDataJSON": b64.EncodeToString(client), "authenticatorData": b64.EncodeToString(data),
		"signature": b64.EncodeToString(a.sign(data, client)), "userHandle": b64.EncodeToString(a.owner)})
}

func (a *authenticator) sign(data, client []byte) []byte {
	hash := sha256.Sum256(client)
	message := append(slices.Clone(data), hash[:]...)
	digest, opts := message, crypto.SignerOpts(crypto.Hash(0))
	if a.alg != -8 {
		h := sha256.Sum256(message)
		digest, opts = h[:], crypto.SHA256
	}
	sig, err := a.key.Sign(rand.Reader, digest, opts)
	if err != nil {
		a.t.Fatal(err)
	}
	return sig
}

func (a *authenticator) answer(response map[string]string) []byte {
	b, err := json.Marshal(map[string]any{"id": b64.EncodeToString(a.id), "rawId": b64.EncodeToString(a.id), "type": "public-key",
		"response": response, "clientExtensionResults": map[string]any{}})
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// shelf keeps records in memory.
type shelf struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	tenant wetink.Tenant
	person wetink.Person
	record []byte
}

func newShelf() *shelf { return &shelf{rows: map[string]row{}} }

func (s *shelf) PasskeyRecords(_ context.Context, tenant wetink.Tenant, person wetink.Person) (out [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		if r := s.rows[id]; r.tenant == tenant && r.person == person {
			out = append(out, r.record)
		}
	}
	return out, nil
}

func (s *shelf) PasskeyRecord(_ context.Context, id []byte) (wetink.Tenant, wetink.Person, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[string(id)]
	if !ok {
		return "", "", nil, errors.New("no such passkey")
	}
	return r.tenant, r.person, r.record, nil
}

func (s *shelf) PutPasskeyRecord(_ context.Context, tenant wetink.Tenant, person wetink.Person, id, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.rows[string(id)]; ok && (old.tenant != tenant || old.person != person) {
		return errors.New("it is somebody else's")
	}
	s.rows[string(id)] = row{tenant, person, record}
	return nil
}

func (s *shelf) RemovePasskeyRecord(_ context.Context, tenant wetink.Tenant, person wetink.Person, id []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.rows[string(id)]; ok && r.tenant == tenant && r.person == person {
		delete(s.rows, string(id))
	}
	return nil
}

func (s *shelf) AnyPasskey(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows) > 0, nil
}
