package memory_test

import (
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/ledgertest"
	"github.com/wetink/wetink/ledger/memory"
)

func open(_ *testing.T, now func() time.Time) wetink.Ledger {
	return memory.New(&memory.Options{Now: now})
}

func TestLedger(t *testing.T) { ledgertest.Run(t, open) }

// Two handles on what lives in a process are one; the suite then asks the same of a single handle.
func TestSharedLedger(t *testing.T) {
	ledgertest.RunShared(t, func(t *testing.T) (a, b wetink.Ledger) {
		l := open(t, nil)
		return l, l
	})
}

func TestEngineAgainstTheModel(t *testing.T) { ledgertest.RunModel(t, open) }
