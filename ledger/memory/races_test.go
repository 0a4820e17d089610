package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/ledgertest"
	"github.com/wetink/wetink/ledger/memory"
)

func TestTenThousandRacesAreDecidedOnce(t *testing.T) {
	ledgertest.RunRaces(t, 10_000, func(*testing.T) wetink.Ledger { return memory.New(nil) })
}

// readFirst compares by a read of its own and then writes over whatever is there by then.
type readFirst struct{ wetink.Ledger }

func (l readFirst) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	for i, m := range moves {
		if m.Rev == 0 {
			continue
		}
		c, err := l.Get(ctx, m.Tenant, m.ID)
		if err != nil {
			return nil, err
		}
		if c.Rev != m.Rev || c.Status != m.From {
			return nil, wetink.ErrConflict
		}
		if c, err = l.Get(ctx, m.Tenant, m.ID); err != nil { // as late as a slow write comes
			return nil, err
		}
		if !wetink.CanMove(c.Status, m.To) {
			return nil, wetink.ErrConflict
		}
		moves[i].Rev, moves[i].From = c.Rev, c.Status
	}
	return l.Ledger.Advance(ctx, moves...)
}

// The control: the races must find what they are there for.
func TestALedgerThatReadsBeforeItWritesIsFound(t *testing.T) {
	if err := ledgertest.Races(t.Context(), readFirst{memory.New(nil)}, 10_000); !errors.Is(err, ledgertest.ErrNoOrder) {
		t.Errorf("10,000 races did not find a ledger that reads before it writes: %v", err)
	}
}
