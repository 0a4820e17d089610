package wetink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// What a Ledger refuses. A refusal writes nothing.
var (
	ErrConflict = errors.New("moved meanwhile") // Rev or Status differs, or another undo lives: read again, decide again
	ErrLate     = errors.New("too late")        // the ledger's clock is past the deadline
	ErrEarly    = errors.New("too early")       // before NotBefore, or the lease is not over
	ErrCapped   = errors.New("cap reached")
	ErrOff      = errors.New("writes are off")
	ErrNotFound = errors.New("no such change")
)

// Ledger is the durable record. It knows one write: an atomic list of Moves.
//
// All of it is committed and durable when Advance returns nil; none of it when it returns one of the
// errors above; for any other error nobody knows until Get has been asked again.
// Everything else (tickets, digests, levels) was checked by the engine on the row at Move.Rev,
// so that comparing Rev is enough to make it atomic. Moves of one list are decided in order: a later one
// may name the Rev that an earlier one makes.
//
// All methods are safe for concurrent use, also by several processes where the store can be shared.
// ledger/ledgertest holds the conformance suite.
type Ledger interface {
	Advance(ctx context.Context, moves ...Move) ([]Event, error)
	// Get returns ErrNotFound also for the id of another tenant.
	Get(ctx context.Context, tenant Tenant, id ChangeID) (Change, error)
	// List yields the newest first.
	List(ctx context.Context, f Filter) iter.Seq2[Change, error]
	// Events yields what was committed after seq, in order and without gaps; with follow it waits for more
	// until ctx ends, and then yields ctx's error. after = Newest starts behind what is committed when Events
	// is called (not when the iterator starts), so that a reader can call it, look, and miss nothing. History, waiting calls, live pages, notifications,
	// metrics and the Merkle log are all readers of it.
	Events(ctx context.Context, after int64, follow bool) iter.Seq2[Event, error]
	// Head is the Seq of the newest committed Event, 0 before the first: what is read after it can be resumed from it.
	Head(ctx context.Context) (int64, error)

	Switch
	Clock
}

// Newest is the position behind the last Event.
const Newest int64 = -1

// Switch is the kill switch. The claim (Approved to Applying) asks it in the same transaction; the engine
// reads it again before each send. Recording what happened is never refused.
type Switch interface {
	// Mode returns ModeUnset until somebody set it; then each process's own default counts.
	Mode(ctx context.Context) (Mode, error)
	// SetMode is durable, and seen by every process on this ledger within a second. It leaves an Event.
	SetMode(ctx context.Context, m Mode, by Person) error
}

// Mode says whether approved changes may be executed.
type Mode string

const (
	ModeUnset   Mode = ""
	ModeOff     Mode = "off"     // previews work; apply and undo are refused before the claim and burn nothing
	ModeObserve Mode = "observe" // as off, for a trial run
	ModeGuarded Mode = "guarded"
)

// Clock is the ledger's own time. It never runs back, not even over a restart: max(wall, last + monotonic
// since), where last is what the newest Event says. Its precision is a millisecond, its zone UTC.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
	// ID is the ledger's id and epoch. A ledger that was restored from a copy must start a new epoch.
	ID() string
}

// Move is one step of one Change.
type Move struct {
	Tenant Tenant
	ID     ChangeID
	Rev    int64 // the row as the engine saw it; 0: it must not exist
	From   Status
	To     Status

	// Conditions, by the ledger's clock, in the same transaction: After ≤ now < Before; zero: no condition.
	// Before is Expires, StartBy or an undo ticket's end; After is NotBefore, the lease, or the end of flight.
	After, Before time.Time
	Cap           *Cap   // taken with To Applying; given back by To Failed without being named again
	Day           string // of the account's time zone; kept in the row, so that giving back finds it

	// What is added.
	New      *Change // with Rev 0
	Approval *Approval
	Claim    *Claim // with To Applying: the claim, or its renewed lease (same ID)
	Step     *Step
	Ticket   *Sealed   // replaces the one of the same verb
	Due      time.Time // zero: the present status does not end by itself
	Why      string

	Event Event // Kind, By, Client, Level, Facts; the ledger fills in the rest
}

// Check refuses a Move that no engine should have made, whatever the row says. Every Ledger calls it first:
// it is the last line against a programming mistake, not a refusal that callers branch on.
func (m Move) Check() error {
	switch {
	case m.ID == "":
		return errors.New("move: no change id")
	case !CanMove(m.From, m.To):
		return fmt.Errorf("move %s: %q to %q is not in the table", m.ID, m.From, m.To)
	case (m.Rev == 0) != (m.From == ""), (m.Rev == 0) != (m.New != nil), m.Rev < 0:
		return fmt.Errorf("move %s: birth needs rev 0, no From and a new row, and nothing else does", m.ID)
	case m.New != nil && (m.New.ID != m.ID || m.New.Tenant != m.Tenant || len(m.New.Statement) == 0):
		return fmt.Errorf("move %s: the new row is not complete", m.ID)
	case m.From == "" && m.To == Approved && len(m.New.Undoes) == 0:
		return fmt.Errorf("move %s: only an ordered undo is born approved", m.ID)
	case m.From == Approved && m.To == Applying && (m.Claim == nil || m.Claim.ID == ""):
		return fmt.Errorf("move %s: a claim needs an id", m.ID)
	case m.Claim != nil && m.To != Applying:
		return fmt.Errorf("move %s: only applying has a claim", m.ID)
	case m.Cap != nil && (m.From != Approved || m.To != Applying):
		return fmt.Errorf("move %s: only the claim takes a cap", m.ID)
	case m.Step != nil && (m.From == "" || m.From == Pending || m.From == Approved):
		return fmt.Errorf("move %s: a step belongs to a claim", m.ID)
	case m.Event.Kind == "":
		return fmt.Errorf("move %s: no event", m.ID)
	}
	return nil
}

// Filter of List. Zero members do not filter.
type Filter struct {
	Tenant    Tenant // always exact
	Account   Account
	Target    string
	Status    []Status
	Undoes    ChangeID  // those that undo it, alone or with others
	DueBefore time.Time // rows whose Due is set and earlier
	Before    ChangeID  // page backwards: ids lower than it
	Limit     int       // 0: 100
	AnyTenant bool      // for sweeps of the operator's own process, never on behalf of a caller
}
