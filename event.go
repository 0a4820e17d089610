package wetink

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/wetink/wetink/internal/strictjson"
)

// Event is one line of history. Its bytes are fixed from the first release: they are the leaf of the audit
// log. It carries no content: only ids, digests, counts and codes.
type Event struct {
	Seq    int64     // set by the ledger; from 1, without gaps
	At     time.Time // set by the ledger; UTC milliseconds
	Tenant Tenant
	Change ChangeID // "" when it is about the ledger, such as its mode
	Rev    int64
	Kind   string
	From   Status
	To     Status
	Digest Digest // of the Statement
	By     Person
	Client string
	Level  Level
	Facts  map[string]string // no content
}

// Kinds of Event. A kind is never renamed: readers of old ledgers branch on it.
const (
	KindPreviewed  = "previewed"
	KindApproval   = "approval"    // one more person; not yet enough
	KindApproved   = "approved"    // the last one needed
	KindOrdered    = "ordered"     // born approved: the clean-up that the parent's Terms ordered
	KindRejected   = "rejected"    // Facts: reason_given
	KindExpired    = "expired"     //
	KindSuperseded = "superseded"  // Facts: by
	KindClaimed    = "claimed"     // Facts: claim
	KindRenewed    = "renewed"     // the lease, while objects are read
	KindStep       = "step"        // Facts: op, outcome, how
	KindSettled    = "settled"     // Facts: reason, and a count of each outcome
	KindDoubted    = "doubted"     // the lease of a claim was over and its outcome unknown
	KindTicket     = "ticket"      // a secret was minted. Facts: verb, delivered
	KindUndoing    = "undoing"     // on the parent: an undo was planned. Facts: undo
	KindUndoAsked  = "undo_asked"  // on the parent: somebody without the target wants one planned
	KindUndoUnable = "undo_unable" // on the parent: it could not be planned
	KindMode       = "mode"        // Facts: mode
)

// eventJSON fixes names and order of the members. Facts are a map: encoding/json sorts its keys.
type eventJSON struct {
	V      int               `json:"v"`
	Seq    int64             `json:"seq"`
	At     string            `json:"at"`
	Tenant Tenant            `json:"tenant"`
	Change ChangeID          `json:"change"`
	Rev    int64             `json:"rev"`
	Kind   string            `json:"kind"`
	From   Status            `json:"from"`
	To     Status            `json:"to"`
	Digest Digest            `json:"digest"`
	By     Person            `json:"by"`
	Client string            `json:"client"`
	Level  Level             `json:"level"`
	Facts  map[string]string `json:"facts"`
}

const eventTime = "2006-01-02T15:04:05.000Z"

// Bytes is the frozen encoding, version 1: compact JSON, members in this order, all of them always:
//
//	v seq at tenant change rev kind from to digest by client level facts
//
// at is UTC with three decimals; digest is 64 hex digits; level is its name; facts is an object with sorted
// keys and string values, {} when there are none. Nothing is HTML-escaped; what is not UTF-8 is U+FFFD.
func (e Event) Bytes() []byte {
	facts := make(map[string]string, len(e.Facts))
	for k, v := range e.Facts {
		facts[utf8(k)] = utf8(v)
	}
	b, err := encodeJSON(eventJSON{1, e.Seq, e.At.UTC().Format(eventTime), utf8(e.Tenant), utf8(e.Change), e.Rev, utf8(e.Kind),
		e.From, e.To, e.Digest, utf8(e.By), utf8(e.Client), e.Level, facts})
	if err != nil {
		panic(fmt.Sprintf("event: %v", err)) // strings and numbers only: it cannot happen
	}
	return b
}

// utf8 replaces what is not UTF-8 by U+FFFD itself: encoding/json writes an escape for it at first and the
// character once it was read back, and then the leaf would differ from its copy.
func utf8[T ~string](s T) T { return T(strings.ToValidUTF8(string(s), "\ufffd")) }

// ParseEvent reads what Bytes wrote.
func ParseEvent(b []byte) (Event, error) {
	var j eventJSON
	if err := strictjson.Decode(b, &j, strictjson.Default); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	if j.V != 1 {
		return Event{}, fmt.Errorf("event: version %d is not known to this build", j.V)
	}
	at, err := time.Parse(eventTime, j.At)
	if err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	e := Event{j.Seq, at, j.Tenant, j.Change, j.Rev, j.Kind, j.From, j.To, j.Digest, j.By, j.Client, j.Level, j.Facts}
	if len(e.Facts) == 0 {
		e.Facts = nil
	}
	return e, nil
}

// MarshalJSON is Bytes, so that --json output and the audit leaf are the same line.
func (e Event) MarshalJSON() ([]byte, error) { return json.RawMessage(e.Bytes()), nil }
