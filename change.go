package wetink

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"slices"
	"time"
)

type (
	// ChangeID is "chg_" + 48-bit milliseconds + 80 random bits. It orders by time and is never a secret.
	ChangeID string
	// Tenant is "" on a single-person server; it is part of every key.
	Tenant string
	// Person is a signed-in subject; "" when nobody is known.
	Person string
)

// Crockford's alphabet sorts like its values do, so ids sort like their times.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

func newChangeID(now time.Time) ChangeID {
	var b [16]byte
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:]) // never fails (crypto/rand, Go 1.24)
	return ChangeID("chg_" + idEncoding.EncodeToString(b[:]))
}

// Status is where a Change stands. An undo is a Change too, so there is one machine, not two.
type Status string

const (
	Pending    Status = "pending"    // in: Preview. out: below. A crash leaves it as it is.
	Approved   Status = "approved"   // in: the last approval needed. out: the claim, before StartBy. Nothing was sent.
	Applying   Status = "applying"   // in: the claim. out: settle by the same claim, or InDoubt once its lease is over.
	Applied    Status = "applied"    // every Op took effect as approved
	Failed     Status = "failed"     // proved: no Op took effect
	Partial    Status = "partial"    // every outcome is known, and not exactly what was approved
	InDoubt    Status = "in_doubt"   // at least one outcome is unknown
	Expired    Status = "expired"    // nobody said yes in time, or nobody could start it in time
	Rejected   Status = "rejected"   // a person said no, or the agent withdrew it
	Superseded Status = "superseded" // a newer Change replaces it: edited, rows left out, checked again
)

// Statuses lists all of them, in order of life.
func Statuses() []Status {
	return []Status{Pending, Approved, Applying, Applied, Failed, Partial, InDoubt, Expired, Rejected, Superseded}
}

// moves is the one table. Nothing returns to Pending or Approved.
// A move to the same status adds a fact: one more approval, one more step, a fresh undo ticket.
var moves = map[Status][]Status{
	"":       {Pending, Approved}, // Approved at birth: only the undo that its parent's Statement ordered on failure
	Pending:  {Pending, Approved, Expired, Rejected, Superseded},
	Approved: {Applying, Expired, Rejected, Superseded},
	Applying: {Applying, Applied, Failed, Partial, InDoubt},
	InDoubt:  {InDoubt, Applied, Failed, Partial},
	// An end state is left only by the claim that sent it, when its late receipt contradicts what a person or
	// the time of flight made us record: truth beats tidiness.
	Applied: {Applied, InDoubt},
	Partial: {Partial, InDoubt},
	Failed:  {InDoubt},
}

// CanMove reports whether the table allows it; from "" is birth. Every Ledger asks; the drawing in the docs
// and the Spin model are held against it.
func CanMove(from, to Status) bool { return slices.Contains(moves[from], to) }

// Live reports whether an undo in this status holds its parent's only place for one: it took effect, or it
// may have, or it still can.
func (s Status) Live() bool {
	return s != Expired && s != Rejected && s != Superseded && s != Failed
}

// Settled reports whether all that can be known without asking outside is known: nothing moves by itself
// any more. (InDoubt is settled by Reconcile or Resolve.)
func (s Status) Settled() bool {
	return s != Pending && s != Approved && s != Applying && s != InDoubt
}

// Change is the durable row. Statement, Before and Request never change; the rest grows by Moves.
type Change struct {
	ID     ChangeID
	Tenant Tenant
	Rev    int64 // +1 with every Move; the only compare-and-swap key, and the page's stale check
	Status Status

	Request   Request    // what was asked, so that it can be prepared again without the agent
	Statement Statement  // the exact bytes that are signed
	Before    []Snapshot // one an Op; their digests stand in the Statement

	// Copies from the Statement, so that lists and caps need not decode it. The Statement decides.
	Target   string
	Account  Account
	Undoes   []Undone // this Change is the undo of those
	Replaces ChangeID // this Change replaces that one

	Approvals []Approval
	Claim     Claim
	Steps     []Step // one an Op whose outcome was recorded; an Op without one was never sent, or is the one in flight
	Tickets   []Sealed
	Due       time.Time // when the present status ends by itself: Expires, StartBy, the lease, the next look at an in-doubt one
	Why       string    // for people: why it stands where it stands; may hold content

	Created, Updated time.Time // the ledger's clock
}

// Terms decodes the Statement and checks that this row is the one it speaks of: id, tenant, target, account,
// what it undoes, and the digest of each Snapshot. ErrTampered says that the row was edited behind our back.
func (c Change) Terms() (Terms, error) {
	t, err := c.Statement.Terms()
	if err != nil {
		return Terms{}, fmt.Errorf("%w: statement of %s: %v", ErrTampered, c.ID, err)
	}
	switch {
	case t.Change != c.ID, t.Tenant != c.Tenant, t.Target != c.Target, t.Account != c.Account,
		!slices.Equal(t.Undoes, c.Undoes), t.Replaces != c.Replaces:
		return Terms{}, fmt.Errorf("%w: row and statement of %s differ", ErrTampered, c.ID)
	case len(c.Before) != len(t.Ops):
		return Terms{}, fmt.Errorf("%w: %s has %d snapshots for %d operations", ErrTampered, c.ID, len(c.Before), len(t.Ops))
	}
	for i, op := range t.Ops {
		if c.Before[i].Digest() != op.Before {
			return Terms{}, fmt.Errorf("%w: snapshot %d of %s is not the one that was approved", ErrTampered, i, c.ID)
		}
	}
	return t, nil
}

// StepOf returns the recorded outcome of Ops[op].
func (c Change) StepOf(op int) (Step, bool) {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Op == op })
	if i < 0 {
		return Step{}, false
	}
	return c.Steps[i], true
}

// Compared reports whether every effect was read back and compared with what was approved. Of an applied Change that was
// not, no more can be said than that the system answered so.
func (c Change) Compared() bool {
	return !slices.ContainsFunc(c.Steps, func(s Step) bool { return s.How == HowAnswered })
}

// Claim is the exclusive right to send. Whoever settles must hold the same ID.
type Claim struct {
	ID    string    `json:"id"`    // random
	Owner string    `json:"owner"` // process, for people
	Lease time.Time `json:"lease"` // the owner stops sending before it (its context ends earlier); after it anyone may say InDoubt
}

// Outcome of one Op that was, or may have been, sent.
type Outcome string

const (
	TookEffect Outcome = "took_effect" // as approved
	Differs    Outcome = "differs"     // took effect, but what was read back is not what was approved
	NoEffect   Outcome = "no_effect"   // proved
	Unknown    Outcome = "unknown"
)

// Step is the recorded outcome of Ops[Op]. A later Step of the same Op replaces the earlier one.
type Step struct {
	Op      int     `json:"op"`
	Outcome Outcome `json:"outcome"`
	Receipt Receipt `json:"receipt"`
	Why     string  `json:"why,omitempty"` // for people
	How     string  `json:"how"`           // "answer", "read back", "reconciled", "late answer", "resolved by PERSON", HowStale, HowAnswered
}

// HowStale is the How of a Step of an object that had moved before anything was sent. Its Receipt.After is what was found.
const HowStale = "observed before sending"

// HowAnswered is the How of a Step that the system answered as done, and of which nothing that can be read tells more.
const HowAnswered = "answered, and cannot be compared"

// seen reports whether the outcome was read back, and is not only what an answer said.
func (s Step) seen() bool {
	return s.Outcome == Differs || s.Receipt.After.Absent || s.Receipt.After.Body != nil
}

// unread reports an effect that is only what an answer said.
func (s Step) unread() bool {
	return s.Outcome == TookEffect && !s.seen() && (s.How == "answer" || s.How == "late answer")
}

// missed reports an operation that was answered as done and whose old state was read back.
func (s Step) missed() bool { return s.Outcome == Unknown && s.How == "read back" }

// replaces reports whether s may take the place of what is recorded of the same Op. Not knowing is no receipt: it
// never takes the place of an effect that was seen. Neither does an answer that nobody looked after, of what was
// looked after already.
func (s Step) replaces(old Step) bool {
	switch {
	case s.Outcome == Unknown:
		return !old.seen() || old.Outcome == NoEffect
	case s.Outcome == TookEffect && !s.seen():
		return !old.missed() && !(old.seen() && old.Outcome != NoEffect)
	}
	return true
}

// Settle is the whole meaning of the four end states: a pure function of what is known of each Op.
// stopped says that the Ops after the last Step were certainly never sent.
func Settle(ops int, steps []Step, stopped bool) Status {
	var yes, no, unknown int
	for _, s := range steps {
		switch s.Outcome {
		case TookEffect:
			yes++
		case NoEffect:
			no++
		case Differs:
			yes, no = yes+1, no+1
		case Unknown:
			unknown++
		}
	}
	if rest := ops - len(steps); stopped {
		no += rest
	} else {
		unknown += min(rest, 1) // sent one at a time: at most one is in flight
		no += max(rest-1, 0)
	}
	switch {
	case unknown > 0:
		return InDoubt
	case no == 0:
		return Applied
	case yes == 0:
		return Failed
	}
	return Partial
}

// Shown is the word people and agents read; it keeps the words of the article that the calendar tools grew
// from. undo is the latest Change that undoes c, or nil.
func Shown(c Change, undo *Change) string {
	if undo != nil && undo.ordered() {
		// The clean-up that the Terms ordered: until it is read back, part of the change is out there.
		if undo.Status == Applied && c.undoneBy(*undo) {
			return "apply_failed"
		}
		return "apply_partial"
	}
	if undo != nil {
		switch undo.Status {
		case Applying:
			return "undoing"
		case Applied:
			if c.undoneBy(*undo) {
				return "undone"
			}
			return "undo_partial"
		case Failed, Partial, InDoubt:
			return "undo_" + string(undo.Status)
		case Pending, Approved, Expired, Rejected, Superseded: // nothing was undone
		}
	}
	switch c.Status {
	case Failed, Partial, InDoubt:
		return "apply_" + string(c.Status)
	case Pending, Approved, Applying, Applied, Expired, Rejected, Superseded:
	}
	return string(c.Status)
}

// undoneBy reports whether undo was planned with all effects of c that are known now. Where c was undone and redone before,
// undo names what brought it back.
func (c Change) undoneBy(undo Change) bool {
	all := 0
	for _, u := range undo.Undoes {
		if u.Change == c.ID {
			return c.effects() <= u.Effects
		}
		all += u.Effects
	}
	return c.effects() <= all
}

// effects counts the Ops that took effect: a late receipt may add one that no undo knew of.
func (c Change) effects() (n int) {
	for _, s := range c.Steps {
		if s.Outcome == TookEffect || s.Outcome == Differs {
			n++
		}
	}
	return n
}

// ordered reports whether c is a compensation: approved by its parent's Terms, not by a person.
func (c Change) ordered() bool {
	return slices.ContainsFunc(c.Approvals, func(a Approval) bool { return a.Evidence.Kind == EvidenceOrdered })
}
