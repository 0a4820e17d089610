package sqlite_test

import (
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/ledgertest"
)

func TestTenThousandRacesAreDecidedOnce(t *testing.T) {
	ledgertest.RunRaces(t, 10_000, func(t *testing.T) wetink.Ledger { return open(t, newPath(t), nil) })
}
