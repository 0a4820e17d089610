package wetink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink/internal/strictjson"
)

// Digest is a SHA-256. Its text form, everywhere outside the process, is 64 hex digits.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports the digest of what is absent.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes 64 hex digits (a bare [32]byte would print as a list of numbers).
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads exactly 64 hex digits.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return errors.New("digest: want 64 hex digits")
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Statement is the exact bytes that a person signs: encoded once, stored, and from then on only decoded.
type Statement []byte

// Digest is SHA-256("wetink/statement/v1\x00" ‖ bytes).
func (s Statement) Digest() Digest {
	return sha256.Sum256(append([]byte("wetink/statement/v1\x00"), s...))
}

// Encode is called once a Change, at preview. Payloads must be compact already: encoding/json compacts a
// RawMessage, and json.Marshal would also turn < > & into \u003c…; so what comes back is compared.
func Encode(t Terms) (Statement, error) {
	b, err := encodeJSON(t)
	if err != nil {
		return nil, err
	}
	s := Statement(b)
	back, err := s.Terms()
	if err != nil {
		return nil, err
	}
	for i, op := range t.Ops {
		if !bytes.Equal(op.Payload, back.Ops[i].Payload) {
			return nil, errors.New("statement: payload is not compact JSON")
		}
	}
	if !bytes.Equal(t.Context, back.Context) {
		return nil, errors.New("statement: context is not compact JSON")
	}
	return s, nil
}

// Terms decodes. Unknown members, doubled members and another version are refused.
func (s Statement) Terms() (t Terms, err error) {
	if err := strictjson.Decode(s, &t, strictjson.Default); err != nil {
		return Terms{}, err
	}
	if t.V != 1 {
		return Terms{}, fmt.Errorf("statement: version %d is not known to this build", t.V)
	}
	if len(t.Nonce) != 32 {
		return Terms{}, errors.New("statement: a nonce has 32 bytes")
	}
	return t, nil
}

// encodeJSON is the one encoder of what is stored and hashed: without HTML escaping, without a newline.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Terms is what a Statement says: all that a person agrees to.
type Terms struct {
	V      int      `json:"v"` // 1
	Change ChangeID `json:"change"`
	Nonce  []byte   `json:"nonce"`  // 32 random bytes: the Digest hides the content, so content can be erased and proofs stay
	Ledger string   `json:"ledger"` // id and epoch: a restored ledger starts a new epoch, and old Statements die
	Tenant Tenant   `json:"tenant"`

	Requester Person  `json:"requester"` // four eyes needs it
	Client    string  `json:"client"`    // as claimed or as OAuth knows it; says which
	Target    string  `json:"target"`
	Version   string  `json:"version"` // of the target's mapping; a gateway: digest of the pinned tools
	Account   Account `json:"account"`

	Policy    string    `json:"policy"` // version, for the record: the decision is asked again at the claim
	Require   Require   `json:"require"`
	Expires   time.Time `json:"expires"`    // approve before
	NotBefore time.Time `json:"not_before"` // start after: scheduled publishing; zero: at once
	StartBy   time.Time `json:"start_by"`   // start before, else Expired
	OnFailure OnFailure `json:"on_failure"`
	Undo      Promise   `json:"undo"`

	Undoes   []Undone `json:"undoes,omitempty"` // the oldest first
	Replaces ChangeID `json:"replaces,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Context is what the target needs to explain the change to a person, such as what else stands on that day. It is
	// signed, because it is shown; nothing of it is executed.
	Context json.RawMessage `json:"context,omitempty"`
	Ops     []Op            `json:"ops"`
}

// Undone is a Change that another one undoes, and how many of its effects the plan knew of: a late receipt may add one.
type Undone struct {
	Change  ChangeID `json:"change"`
	Effects int      `json:"effects"`
}

// OnFailure is what happens to Ops that took effect when a later one did not.
type OnFailure string

const (
	StopOnFailure OnFailure = "stop" // what took effect stays
	UndoOnFailure OnFailure = "undo" // the signer orders the clean-up, too: it is born approved
)

// Op is one effect on one object. Payload is sent as it stands here; nothing is rendered again at apply.
type Op struct {
	Action  string          `json:"action"` // create, update, delete, or a gateway's tool name
	Object  string          `json:"object,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Blobs   []Blob          `json:"blobs,omitempty"`    // images and files: by digest, never inline
	Before  Digest          `json:"before,omitzero"`    // Snapshot.Digest; zero: the object was absent
	IfMatch string          `json:"if_match,omitempty"` // sent with the write where the system can compare and swap
	Key     string          `json:"key"`                // idempotency key, or the id we choose
}

// Blob names bytes that are kept apart.
type Blob struct {
	Digest Digest `json:"sha256"`
	Size   int64  `json:"size"`
	Type   string `json:"type"`
}

// Promise says before approval how far an undo can go.
type Promise struct {
	Extent Extent        `json:"extent"`
	Notes  []string      `json:"notes,omitempty"`
	Until  time.Duration `json:"for"` // nanoseconds after the change was applied
}

// Extent of an undo.
type Extent string

const (
	FullUndo    Extent = "full"
	PartialUndo Extent = "partial"
	NoUndo      Extent = "none"
)
