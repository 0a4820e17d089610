package terminal

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink"
)

// Approver is who said yes, and how.
type Approver struct {
	Home       string     // where the key file is; needed with a Passphrase
	User       string     // the OS user; see User
	Shown      time.Time  // when the change was shown
	Passphrase Passphrase // zero: level Host
}

// Approve makes the evidence that a person at a terminal said yes to c's stored Statement: of level Host, or
// with the right Passphrase of level Reauth. A wrong one is ErrPassphrase.
//
// It trusts its caller to have shown the change and asked the question; see Ask.
func Approve(c wetink.Change, a Approver) (wetink.Evidence, error) {
	if a.User == "" || a.Shown.IsZero() {
		return wetink.Evidence{}, fmt.Errorf("approve %s at a terminal: who saw it, and when, is not known", c.ID)
	}
	e := wetink.Evidence{
		Kind: wetink.EvidenceTerminal, Digest: c.Statement.Digest(),
		By: wetink.Person(a.User), Client: "terminal", Shown: a.Shown.UTC().Round(0),
	}
	if a.Passphrase.IsZero() {
		m := message(c.ID, e)
		e.Data = m[:]
		return e, nil
	}
	file, err := load(a.Home)
	if err != nil {
		return wetink.Evidence{}, fmt.Errorf("approve %s with a passphrase: %w", c.ID, err)
	}
	if file.User != e.By {
		return wetink.Evidence{}, fmt.Errorf("approve %s with a passphrase: it is the one of OS user %s", c.ID, file.User)
	}
	key, err := file.unlock(a.Passphrase)
	if err != nil {
		return wetink.Evidence{}, fmt.Errorf("approve %s: %w", c.ID, err)
	}
	e.Kind = wetink.EvidenceReauth
	m, fp := message(c.ID, e), file.fingerprint()
	e.Data = append(fp[:], ed25519.Sign(key, m[:])...)
	return e, nil
}

// message is what is signed; see the package comment.
func message(id wetink.ChangeID, e wetink.Evidence) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("wetink/terminal/v1\x00"))
	for _, part := range [][]byte{[]byte(e.Kind), []byte(id), e.Digest[:],
		[]byte(e.Shown.UTC().Format(time.RFC3339Nano)), []byte(e.By)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Verifiers are the two kinds of evidence that a terminal gives, for wetink.Options.
func Verifiers(home string) map[string]wetink.Verifier {
	return map[string]wetink.Verifier{
		wetink.EvidenceTerminal: host{},
		wetink.EvidenceReauth:   reauth{home},
	}
}

// host implements wetink.Verifier for a terminal without a passphrase.
type host struct{}

// Verify implements wetink.Verifier. It finds a stored column that was edited by itself, not a forger.
func (host) Verify(_ context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	if err := sound(c, e, wetink.EvidenceTerminal); err != nil {
		return wetink.Auto, err
	}
	if m := message(c.ID, e); !bytes.Equal(e.Data, m[:]) {
		return wetink.Auto, errors.New("the approval at the terminal was for something else")
	}
	return wetink.Host, nil
}

// Reach implements wetink.Verifier.
func (host) Reach(context.Context) wetink.Level { return wetink.Host }

// reauth implements wetink.Verifier for a terminal with a passphrase.
type reauth struct{ home string }

// Verify implements wetink.Verifier.
func (r reauth) Verify(_ context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	if err := sound(c, e, wetink.EvidenceReauth); err != nil {
		return wetink.Auto, err
	}
	a, err := load(r.home)
	if err != nil {
		return wetink.Auto, err
	}
	fp := a.fingerprint()
	switch m := message(c.ID, e); {
	case len(e.Data) != len(fp)+ed25519.SignatureSize:
		return wetink.Auto, errors.New("the signature is not complete")
	case !bytes.Equal(e.Data[:len(fp)], fp[:]):
		return wetink.Auto, errors.New("it was signed with a passphrase that is no longer set up; approve it again")
	case e.By != a.User:
		return wetink.Auto, fmt.Errorf("the passphrase is the one of OS user %s, not of %s", a.User, e.By)
	case !ed25519.Verify(a.PublicKey, m[:], e.Data[len(fp):]):
		return wetink.Auto, errors.New("the signature does not fit this change")
	}
	return wetink.Reauth, nil
}

// Reach implements wetink.Verifier.
func (r reauth) Reach(context.Context) wetink.Level {
	if ok, err := Enrolled(r.home); !ok || err != nil {
		return wetink.Auto // of this kind there is none; host says what the terminal alone gives
	}
	return wetink.Reauth
}

// sound checks what both kinds have in common. The engine has compared the digest; this package promises to
// refuse another one by itself.
func sound(c wetink.Change, e wetink.Evidence, kind string) error {
	switch {
	case e.Kind != kind:
		return fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != c.Statement.Digest():
		return errors.New("the statement is not the one that was shown")
	case e.By == "" || e.Shown.IsZero():
		return errors.New("it does not say who saw it, or when")
	}
	return nil
}
