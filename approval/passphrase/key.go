package passphrase

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/internal/strictjson"
)

// The second recommended option of RFC 9106, section 4. Other costs are refused, so that nobody makes guessing
// cheap, or reading the record dear, by editing it.
const (
	passes    = 3
	memoryKiB = 64 << 10
	lanes     = 4
	saltSize  = 16
)

// record is what is stored: what it takes to derive the key again, and to know that it is the right one.
type record struct {
	V         int           `json:"v"` // 1
	Tenant    wetink.Tenant `json:"tenant"`
	Person    wetink.Person `json:"person"`
	KDF       string        `json:"kdf"` // "argon2id"
	Passes    uint32        `json:"passes"`
	MemoryKiB uint32        `json:"memory_kib"`
	Lanes     uint8         `json:"lanes"`
	Salt      []byte        `json:"salt"`
	PublicKey []byte        `json:"public_key"`
}

func newRecord(tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) record {
	r := record{V: 1, Tenant: tenant, Person: person, KDF: "argon2id", Passes: passes, MemoryKiB: memoryKiB, Lanes: lanes, Salt: make([]byte, saltSize)}
	rand.Read(r.Salt)
	r.PublicKey = derive(phrase, r.Salt).Public().(ed25519.PublicKey)
	return r
}

// readRecord refuses what this package did not write for that person.
func readRecord(b []byte, tenant wetink.Tenant, person wetink.Person) (r record, err error) {
	untrusted := func(why string) (record, error) { return record{}, fmt.Errorf("%w: it %s", ErrUntrusted, why) }
	if err := strictjson.Decode(b, &r, strictjson.Default); err != nil {
		return untrusted("is not as `wetink setup` wrote it: " + err.Error())
	}
	switch {
	case r.V != 1 || r.KDF != "argon2id":
		return untrusted("is of a version that is not known to this build")
	case r.Passes != passes || r.MemoryKiB != memoryKiB || r.Lanes != lanes:
		return untrusted("names other costs of argon2id than this build uses")
	case len(r.Salt) != saltSize || len(r.PublicKey) != ed25519.PublicKeySize:
		return untrusted("is not complete")
	case r.Tenant != tenant || r.Person != person:
		return untrusted("belongs to somebody else")
	}
	return r, nil
}

func (r record) encode() ([]byte, error) { return json.Marshal(r) }

func (r record) fingerprint() [sha256.Size]byte { return sha256.Sum256(r.PublicKey) }

// unlock derives the private key; nil if the phrase is not the right one.
func (r record) unlock(phrase secret.Bytes) ed25519.PrivateKey {
	key := derive(phrase, r.Salt)
	if !bytes.Equal(key.Public().(ed25519.PublicKey), r.PublicKey) {
		return nil
	}
	return key
}

func derive(phrase secret.Bytes, salt []byte) ed25519.PrivateKey {
	b := norm.NFC.Bytes(phrase.Reveal()) // the same keys pressed on another system are the same passphrase
	return ed25519.NewKeyFromSeed(argon2.IDKey(b, salt, passes, memoryKiB, lanes, ed25519.SeedSize))
}

// message is what is signed; see the package comment.
func message(c wetink.Change, e wetink.Evidence) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("wetink/passphrase/v1\x00"))
	for _, part := range [][]byte{[]byte(e.Client), []byte(c.Tenant), []byte(c.ID), e.Digest[:],
		[]byte(e.Shown.UTC().Format(time.RFC3339Nano)), []byte(e.By)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
