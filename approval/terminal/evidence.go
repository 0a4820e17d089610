package terminal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink"
)

// Approve makes the evidence that somebody at a terminal of an OS user (see User) said yes to c's stored Statement, which
// was shown at that time. It trusts its caller to have shown the change and asked the question; see Ask.
func Approve(c wetink.Change, user string, shown time.Time) (wetink.Evidence, error) {
	if user == "" || shown.IsZero() {
		return wetink.Evidence{}, fmt.Errorf("approve %s at a terminal: who saw it, and when, is not known", c.ID)
	}
	e := wetink.Evidence{
		Kind: wetink.EvidenceTerminal, Digest: c.Statement.Digest(),
		By: wetink.Person(user), Client: "terminal", Shown: shown.UTC().Round(0),
	}
	m := message(c.ID, e)
	e.Data = m[:]
	return e, nil
}

// message ties it together; see the package comment.
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

// Verifier checks the evidence again, from what is stored.
func Verifier() wetink.Verifier { return host{} }

// host implements wetink.Verifier.
type host struct{}

// Verify implements wetink.Verifier. It finds a stored column that was edited by itself, not a forger.
func (host) Verify(_ context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	switch m := message(c.ID, e); {
	case e.Kind != wetink.EvidenceTerminal:
		return wetink.Auto, fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != c.Statement.Digest():
		return wetink.Auto, errors.New("the statement is not the one that was shown")
	case e.By == "" || e.Shown.IsZero():
		return wetink.Auto, errors.New("it does not say who saw it, or when")
	case !bytes.Equal(e.Data, m[:]):
		return wetink.Auto, errors.New("the approval at the terminal was for something else")
	}
	return wetink.Host, nil
}

// Reach implements wetink.Verifier.
func (host) Reach(context.Context) wetink.Level { return wetink.Host }
