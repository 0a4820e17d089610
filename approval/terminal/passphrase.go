package terminal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Passphrase prints as [redacted], also as an unexported field, of which fmt would print a string: it does not
// call the methods there.
type Passphrase struct{ reveal func() string }

// NewPassphrase wraps what a person typed.
func NewPassphrase(s string) Passphrase { return Passphrase{func() string { return s }} }

func (Passphrase) String() string               { return "[redacted]" }
func (Passphrase) GoString() string             { return "[redacted]" }
func (Passphrase) Format(s fmt.State, _ rune)   { fmt.Fprint(s, "[redacted]") }
func (Passphrase) LogValue() slog.Value         { return slog.StringValue("[redacted]") }
func (Passphrase) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// IsZero reports that nothing was typed.
func (p Passphrase) IsZero() bool { return p.secret() == "" }

// Same reports whether the same was typed twice.
func (p Passphrase) Same(q Passphrase) bool { return p.secret() == q.secret() }

func (p Passphrase) secret() string {
	if p.reveal == nil {
		return ""
	}
	return p.reveal()
}

// MinPassphrase is the least number of characters. Length is all that is asked for, as NIST SP 800-63B advises.
const MinPassphrase = 12

// Errors of this package.
var (
	ErrPassphrase = errors.New("wrong passphrase")
	ErrNoSetup    = errors.New("no passphrase is set up") // run `wetink setup`
	ErrSetup      = errors.New("a passphrase is set up already")
	ErrWeak       = errors.New("passphrase too short")
	ErrUntrusted  = errors.New("the key file cannot be trusted")
)

// The second recommended option of RFC 9106, section 4. Other costs are refused, so that nobody makes guessing
// cheap, or reading the file dear, by editing it.
const (
	passes    = 3
	memoryKiB = 64 << 10
	lanes     = 4
	saltSize  = 16
)

// approver is the file: what it takes to derive the key again, and to know that it is the right one.
type approver struct {
	V         int           `json:"v"` // 1
	User      wetink.Person `json:"user"`
	KDF       string        `json:"kdf"` // "argon2id"
	Passes    uint32        `json:"passes"`
	MemoryKiB uint32        `json:"memory_kib"`
	Lanes     uint8         `json:"lanes"`
	Salt      []byte        `json:"salt"`
	PublicKey []byte        `json:"public_key"`
}

func keyFile(home string) string { return filepath.Join(home, "approver.json") }

func (a approver) fingerprint() [sha256.Size]byte { return sha256.Sum256(a.PublicKey) }

func derive(p Passphrase, salt []byte) ed25519.PrivateKey {
	secret := norm.NFC.Bytes([]byte(p.secret())) // the same keys pressed on another system are the same passphrase
	return ed25519.NewKeyFromSeed(argon2.IDKey(secret, salt, passes, memoryKiB, lanes, ed25519.SeedSize))
}

// unlock derives the private key. ErrPassphrase: it is not the one whose public key is stored.
func (a approver) unlock(p Passphrase) (ed25519.PrivateKey, error) {
	key := derive(p, a.Salt)
	if !bytes.Equal(key.Public().(ed25519.PublicKey), a.PublicKey) {
		return nil, ErrPassphrase
	}
	return key, nil
}

// Setup stores the public key of a passphrase for an OS user. It refuses with ErrSetup while there is one: who
// forgot it removes the file, and approvals that were given with it and not used yet are void.
//
// Two Setups at once: one wins, whole.
func Setup(home, user string, p Passphrase) error {
	if n := utf8.RuneCountInString(p.secret()); n < MinPassphrase {
		return fmt.Errorf("%w: it has %d characters; use %d or more, such as five words", ErrWeak, n, MinPassphrase)
	}
	if user == "" {
		return errors.New("set up a passphrase: no OS user is known")
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("set up a passphrase: %w", err)
	}
	a := approver{V: 1, User: wetink.Person(user), KDF: "argon2id", Passes: passes, MemoryKiB: memoryKiB, Lanes: lanes, Salt: make([]byte, saltSize)}
	rand.Read(a.Salt)
	a.PublicKey = derive(p, a.Salt).Public().(ed25519.PublicKey)
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("set up a passphrase: %w", err)
	}
	if err := create(keyFile(home), append(b, '\n')); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: to choose another one, remove %s first", ErrSetup, keyFile(home))
	} else if err != nil {
		return fmt.Errorf("set up a passphrase: %w", err)
	}
	return nil
}

// create writes a new file that is there whole or not at all, and is private from its first byte.
func create(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".approver-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), name) // unlike a rename it never replaces
}

// Enrolled reports whether a passphrase is set up in home. A key file that cannot be trusted is an error, not
// "no": whoever spoiled it would have lowered the level.
func Enrolled(home string) (bool, error) {
	_, err := load(home)
	if errors.Is(err, ErrNoSetup) {
		return false, nil
	}
	return err == nil, err
}

// load reads the key file and refuses what somebody else could have written or read.
func load(home string) (a approver, err error) {
	name := keyFile(home)
	untrusted := func(why string) (approver, error) {
		return approver{}, fmt.Errorf("%w: %s %s", ErrUntrusted, name, why)
	}
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return approver{}, ErrNoSetup
	}
	if err != nil {
		return approver{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if !info.Mode().IsRegular() { // a FIFO would block here, a link points where others may write
		return untrusted("is a link or no plain file")
	}
	f, err := os.Open(name)
	if err != nil {
		return approver{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return approver{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if why := notPrivate(info); why != "" {
		return untrusted(why)
	}
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return approver{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if err := strictjson.Decode(b, &a, strictjson.Default); err != nil {
		return untrusted("is not as `wetink setup` wrote it: " + err.Error())
	}
	switch {
	case a.V != 1 || a.KDF != "argon2id":
		return untrusted("is of a version that is not known to this build")
	case a.Passes != passes || a.MemoryKiB != memoryKiB || a.Lanes != lanes:
		return untrusted("names other costs of argon2id than this build uses")
	case len(a.Salt) != saltSize || len(a.PublicKey) != ed25519.PublicKeySize || a.User == "":
		return untrusted("is not complete")
	}
	return a, nil
}
