// Package sqlite is the Ledger of a process that keeps its record on its own disk: one SQLite file, also for
// several processes at once.
//
// # Guarantees
//
// Those of wetink.Ledger, on top of those of internal/sqlite: what Advance acknowledged is synced, the file is
// its owner's alone, and many callers share one sync without one caller's refusal touching another.
//
//   - A refusal writes nothing: a lone Move is one UPDATE that holds its conditions, and a list is decided as a
//     whole before its first write.
//   - A Change is claimed once: the claim asks for a row that carries none, so a row that somebody set back to
//     approved is refused.
//   - Statement, request and snapshots, and the bytes inside a receipt, come back as they were given.
//   - Bytes that cannot be read are an error that names the Change and wraps wetink.ErrTampered. A List gives
//     every row that it can read before that error, so that one broken row hides no other.
//
// # Not guaranteed
//
// Who can write the file can write its rows. The Statement and the evidence bind what is executed, but not the
// counters of caps, the mode, or the clock: schema.go says so of each column.
// Names that are no UTF-8 are refused, as JSON cannot hold them; in a Step, which is never refused, such bytes
// become U+FFFD. Due and a claim's lease are whole milliseconds, rounded up, as the clock knows no less.
//
// BUG(wetink): erasing content while its digest stays is not possible yet; nothing is ever deleted.
package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// Options of a Ledger. The zero value is the production default.
type Options struct {
	Now func() time.Time // the wall clock; nil: time.Now
}

// Ledger implements wetink.Ledger. Its methods are safe for concurrent use.
type Ledger struct {
	db    *sqlite.DB
	id    string
	clock clock
}

var _ wetink.Ledger = (*Ledger)(nil)

// Open opens the ledger at path, or creates it, with the directories missing on the way. Its errors wrap those of
// internal/sqlite and say what to do: others could read or write the file, a log without its file, a newer
// release has written it.
func Open(path string, o *Options) (*Ledger, error) {
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: migrations})
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{db: db, clock: clock{wall: time.Now}}
	if o != nil && o.Now != nil {
		l.clock.wall = o.Now
	}
	err = db.Read(context.Background(), func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(`SELECT ledger, epoch FROM meta`) {
			if err != nil {
				return err
			}
			l.id = fmt.Sprintf("%s/%d", row.Text(0), row.Int64(1))
		}
		if l.id == "" {
			return fmt.Errorf("%w: it has lost its id", wetink.ErrTampered)
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("ledger: open %s: %w", path, err)
	}
	return l, nil
}

// Close finishes every call that has begun and closes the file. Followers end with an error.
func (l *Ledger) Close() error { return l.db.Close() }
