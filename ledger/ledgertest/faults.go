package ledgertest

import (
	"context"
	"errors"
	"runtime"

	"github.com/wetink/wetink"
)

// What one send, or one commit, may meet. Each is broken both ways: failed and not done, failed but done.
const (
	fine       = "fine"
	refused    = "refused"     // the outside system proves that it did nothing
	lost       = "lost"        // sent, not done, no answer
	lostDone   = "lost done"   // done, no answer
	held       = "held"        // no answer, and it may still land within the time of flight
	dieBefore  = "die before"  // the process ends, nothing was done
	dieAfter   = "die after"   // the process ends, it was done
	diskBefore = "disk before" // an error, not committed
	diskAfter  = "disk after"  // an error, and yet committed
	turnedOff  = "turned off"  // done, and meanwhile a person turned writes off
)

var (
	sendFaults   = []string{fine, fine, fine, refused, lost, lostDone, held, dieBefore, dieAfter, turnedOff}
	commitFaults = []string{fine, fine, fine, fine, fine, fine, fine, fine, dieBefore, dieAfter, diskBefore, diskAfter}
)

var errBroken = errors.New("connection reset")

// plan breaks one send and one commit of the call that comes; n counts down to it.
type plan struct {
	send, commit   string
	sendN, commitN int
	die            context.CancelFunc // ends the call of the process that dies
}

// end is the end of a process: the goroutine stops where it is, and its engine is never used again.
func (p *plan) end() { p.die(); runtime.Goexit() }

// next counts one call down and returns the fault that hits it.
func next(n *int, fault string) string {
	if *n--; *n != 0 {
		return fine
	}
	return fault
}

// frail is a ledger whose commits meet the plan's faults.
type frail struct {
	wetink.Ledger
	plan *plan
}

func (l *frail) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	fault := next(&l.plan.commitN, l.plan.commit)
	switch fault {
	case dieBefore:
		l.plan.end()
	case diskBefore:
		return nil, errBroken
	}
	ev, err := l.Ledger.Advance(ctx, moves...)
	if err != nil {
		return ev, err
	}
	switch fault {
	case dieAfter:
		l.plan.end()
	case diskAfter:
		return nil, errBroken
	}
	return ev, nil
}
