package wetink

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Ticket is a one-time secret for one verb on one Change. It prints as [redacted]; held in a field that is not
// exported, where fmt calls no methods, it prints as a number.
type Ticket struct{ reveal func() string }

// PresentedTicket is a secret that came back from outside.
func PresentedTicket(secret string) Ticket { return Ticket{func() string { return secret }} }

func (Ticket) String() string               { return "[redacted]" }
func (Ticket) GoString() string             { return "[redacted]" }
func (Ticket) Format(s fmt.State, _ rune)   { fmt.Fprint(s, "[redacted]") }
func (Ticket) LogValue() slog.Value         { return slog.StringValue("[redacted]") }
func (Ticket) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// IsZero reports that there is none.
func (t Ticket) IsZero() bool { return t.Reveal() == "" }

// Reveal is the only way out; grep for it.
func (t Ticket) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// Verbs of a Ticket.
const (
	VerbApply = "apply"
	VerbUndo  = "undo"
)

// Delivered says over which way a Ticket went out.
const (
	DeliveredResult   = "result"   // to the agent, in the tool's result: level Agent
	DeliveredCard     = "card"     // to the host's card, in _meta: level Host
	DeliveredTerminal = "terminal" // to a person at a terminal, who hands it to the agent: level Host
)

// Sealed is what is stored of a Ticket.
type Sealed struct {
	Verb      string    `json:"verb"`
	Delivered string    `json:"delivered"`
	Expires   time.Time `json:"expires"`
	Hash      Digest    `json:"hash"`
}

// mint makes a fresh Ticket. Its hash is bound by construction: a ticket of another verb, way, change or
// statement has another hash.
func mint(verb, delivered string, id ChangeID, d Digest, expires time.Time) (Ticket, Sealed) {
	var b [32]byte
	rand.Read(b[:])
	prefix := "confirm_"
	if verb == VerbUndo {
		prefix = "undo_"
	}
	t := PresentedTicket(prefix + base64.RawURLEncoding.EncodeToString(b[:]))
	s := Sealed{Verb: verb, Delivered: delivered, Expires: expires}
	s.Hash = s.seal(t, id, d)
	return t, s
}

// seal is SHA-256("wetink/ticket/v1\x00" ‖ verb ‖ 0 ‖ delivered ‖ 0 ‖ expires in ms ‖ 0 ‖ change ‖ 0 ‖ digest ‖
// secret): a stored row cannot be edited into a ticket of another verb, way or end.
func (s Sealed) seal(t Ticket, id ChangeID, d Digest) Digest {
	h := sha256.New()
	fmt.Fprintf(h, "wetink/ticket/v1\x00%s\x00%s\x00%d\x00%s\x00", s.Verb, s.Delivered, s.Expires.UnixMilli(), id)
	h.Write(d[:])
	h.Write([]byte(strings.TrimSpace(t.Reveal()))) // people paste line ends
	return Digest(h.Sum(nil))
}

// Opens reports whether t is the ticket that was sealed, in constant time.
func (s Sealed) Opens(t Ticket, id ChangeID, d Digest) bool {
	got := s.seal(t, id, d)
	return subtle.ConstantTimeCompare(got[:], s.Hash[:]) == 1
}

// level that a ticket earns by the way it was delivered.
func (s Sealed) level() Level {
	switch s.Delivered {
	case DeliveredCard, DeliveredTerminal:
		return Host
	}
	return Agent
}

// sealed returns the stored ticket of the verb.
func (c Change) sealed(verb string) (Sealed, bool) {
	for _, s := range c.Tickets {
		if s.Verb == verb {
			return s, true
		}
	}
	return Sealed{}, false
}
