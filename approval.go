package wetink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Level of assurance. It is computed from Evidence; no caller may claim one.
type Level int

const (
	Auto    Level = iota // A0: policy alone
	Agent                // A1: the agent presented the ticket
	Host                 // A2: the host, or someone at a terminal, reported an approval
	Session              // A3: a signed-in browser session
	Reauth               // A4: the person signed in again for this change
	Passkey              // A5: a registered key signed the digest, with user verification
)

var levelNames = [...]string{"auto", "agent", "host", "session", "reauth", "passkey"}

func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return fmt.Sprintf("level(%d)", int(l))
	}
	return levelNames[l]
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(b []byte) error {
	i := slices.Index(levelNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("level %q: want one of %v", b, levelNames)
	}
	*l = Level(i)
	return nil
}

// Sentence is all that a record may say about an approval of this level.
func (a Approval) Sentence() string {
	switch a.Level {
	case Auto:
		if a.Evidence.Kind == EvidenceOrdered {
			return "The approved change itself ordered this clean-up."
		}
		return "No person was asked. The policy allowed it."
	case Agent:
		return "The agent presented the token for this exact change."
	case Host:
		switch a.Evidence.Kind {
		case EvidenceTerminal:
			return fmt.Sprintf("Someone at a terminal of OS user %s approved this exact change.", a.Evidence.By)
		case EvidenceTicket:
			if a.Evidence.Via == DeliveredTerminal {
				return "The agent presented the token for this exact change; the token was handed out at a terminal."
			}
		}
		return "The host reported an approval for this exact change. A press cannot be told from a model call."
	case Session:
		return fmt.Sprintf("A browser session of %s sent the approval for this exact change after it was shown.", a.Evidence.By)
	case Reauth:
		var r Relogin
		if a.Evidence.Kind == EvidenceRelogin && json.Unmarshal(a.Evidence.Data, &r) == nil {
			return fmt.Sprintf("%s re-authenticated with %s at %s for this exact change.", a.Evidence.By, r.Issuer, r.At.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("%s re-authenticated at %s for this exact change.", a.Evidence.By, a.At.UTC().Format(time.RFC3339))
	case Passkey:
		return fmt.Sprintf("A passkey registered to %s signed this exact change. Anyone can check the signature.", a.Evidence.By)
	}
	return "Nothing is known about this approval."
}

// Require is part of the Statement.
type Require struct {
	Level  Level `json:"level"`
	People int   `json:"people"` // 1, or 2 for four eyes
	Other  bool  `json:"other"`  // the requester does not count
}

// Kinds of Evidence.
const (
	EvidenceTicket   = "ticket"   // Agent or Host, as the ticket was minted
	EvidenceTerminal = "terminal" // Host
	EvidenceReauth   = "reauth"   // Reauth
	EvidenceRelogin  = "oidc"     // Reauth, at an issuer: Data is a Relogin
	EvidenceOrdered  = "ordered"  // a compensation: the parent's Terms are the approval
	EvidencePolicy   = "policy"   // Auto: nobody was asked
)

// Relogin is what Evidence of a proof at an issuer (OpenID Connect) says in its Data, as JSON.
type Relogin struct {
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`  // when they proved who they are, as the issuer says (auth_time)
	MAC     []byte    `json:"mac"` // by the page that saw it, over this and the change
}

// Evidence is raw material: what reached us, over which channel. Data verifies offline where it can.
type Evidence struct {
	Kind   string    `json:"kind"`
	Digest Digest    `json:"digest"` // what was shown
	By     Person    `json:"by"`
	Client string    `json:"client"`
	Via    string    `json:"via,omitempty"` // of a ticket: how it was delivered
	Shown  time.Time `json:"shown,omitzero"`
	Data   []byte    `json:"data,omitempty"`
	Ticket Ticket    `json:"-"` // the secret as presented; never stored
}

// Approval is Evidence that was checked. The claim checks it again, from the stored bytes.
type Approval struct {
	Evidence Evidence  `json:"evidence"`
	Level    Level     `json:"level"`
	At       time.Time `json:"at"`
}

// Verifier turns one kind of Evidence into a Level, or an error. It decides from the stored bytes alone,
// because the claim asks again, maybe in another process.
type Verifier interface {
	Verify(ctx context.Context, c Change, t Terms, e Evidence) (Level, error)
	// Reach is the best level that this channel can give as it is set up now.
	Reach(ctx context.Context) Level
}

// Met is the only place that says "enough".
func (r Require) Met(t Terms, got []Approval) bool {
	people := map[Person]bool{}
	for _, a := range got {
		if a.Level < r.Level || r.Other && a.Evidence.By == t.Requester {
			continue
		}
		if a.Evidence.By == "" && r.People > 1 {
			continue
		}
		people[a.Evidence.By] = true
	}
	return len(people) >= max(r.People, 1)
}

// Stricter of two; deny is a Decision, not a level. At the claim: Stricter(statement, today).
func Stricter(a, b Require) Require {
	return Require{max(a.Level, b.Level), max(a.People, b.People), a.Other || b.Other}
}
