package sqlite_test

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/ledgertest"
	"github.com/wetink/wetink/ledger/sqlite"
)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "wetink.db") }

func open(t testing.TB, path string, now func() time.Time) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(path, &sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T, now func() time.Time) wetink.Ledger { return open(t, newPath(t), now) })
}

func TestTwoHandlesOnOneFile(t *testing.T) {
	ledgertest.RunShared(t, func(t *testing.T) (a, b wetink.Ledger) {
		path := newPath(t)
		return open(t, path, nil), open(t, path, nil)
	})
}

// A file for each check is slow, so there are fewer of them than for a ledger in memory; -rapid.checks says another
// number.
func TestModel(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		checks := flag.Lookup("rapid.checks")
		old := checks.Value.String()
		if err := checks.Value.Set("30"); err != nil {
			t.Fatal(err)
		}
		defer checks.Value.Set(old)
	}
	ledgertest.RunModel(t, func(t *testing.T, now func() time.Time) wetink.Ledger { return open(t, newPath(t), now) })
}
