// Package ledgertest holds what every wetink.Ledger must keep: [Run] for one handle, [RunShared] for two
// handles on one store, and [RunModel], which drives an engine at random and asks whether its promises held.
//
// All of it judges through the public interface only, so it also fits ledgers of other people.
package ledgertest

import (
	"testing"
	"time"

	"github.com/wetink/wetink"
)

// Run tests a Ledger. Each call of open returns a fresh and empty one whose wall clock is now (nil: the real
// one); what has to be closed is open's to register with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) wetink.Ledger) {
	for _, story := range []struct {
		name string
		tell func(*testing.T, opener)
	}{
		{"birth", birth},
		{"moves", moves},
		{"compare and swap", compareAndSwap},
		{"lists", lists},
		{"facts", facts},
		{"clock", clock},
		{"caps", caps},
		{"switch", killSwitch},
		{"undo slot", undoSlot},
		{"events", events},
		{"follow", follow},
		{"list", list},
		{"hostile", hostile},
		{"contexts", contexts},
		{"concurrent", concurrent},
	} {
		t.Run(story.name, func(t *testing.T) { story.tell(t, open) })
	}
}

type opener func(t *testing.T, now func() time.Time) wetink.Ledger

// that tells one requirement, on a ledger of its own.
func (open opener) that(t *testing.T, sentence string, holds func(*fixture)) {
	t.Run(sentence, func(t *testing.T) {
		f := &fixture{t: t, ctx: t.Context(), wall: &wall{now: start}}
		f.l = open(t, f.wall.read)
		holds(f)
	})
}
