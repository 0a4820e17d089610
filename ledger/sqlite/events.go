package sqlite

import (
	"context"
	"fmt"
	"iter"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// eventPage is how many events are read in one transaction; none is open while they are yielded.
const eventPage = 256

// Events implements wetink.Ledger. An event that is missing or cannot be read ends it with an error: a reader
// that went on would believe that its history is whole.
func (l *Ledger) Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error] {
	var failed error
	if after == wetink.Newest {
		h, err := l.head(ctx)
		after, failed = h.seq, err
	}
	return func(yield func(wetink.Event, error) bool) {
		if failed != nil {
			yield(wetink.Event{}, failed)
			return
		}
		after := max(after, 0) // each use of the iterator starts again
		for {
			changed := l.db.Changed() // before the look, so that nothing is missed between
			events, err := l.eventsAfter(ctx, after)
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			switch {
			case err != nil:
				yield(wetink.Event{}, err)
				return
			case len(events) == eventPage:
				continue
			case !follow:
				return
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done(): // the next look says so
			}
		}
	}
}

// Head implements wetink.Ledger.
func (l *Ledger) Head(ctx context.Context) (int64, error) {
	h, err := l.head(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the newest event: %w", err)
	}
	return h.seq, nil
}

// eventsAfter returns a page, and those before the first that is wrong.
func (l *Ledger) eventsAfter(ctx context.Context, after int64) (events []wetink.Event, err error) {
	var lines [][]byte
	var seqs []int64
	err = l.db.Read(ctx, func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(`SELECT seq, bytes FROM events WHERE seq > ? ORDER BY seq LIMIT ?`, after, eventPage) {
			if err != nil {
				return err
			}
			seqs, lines = append(seqs, row.Int64(0)), append(lines, row.Blob(1))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		want := after + int64(i) + 1
		e, err := wetink.ParseEvent(line)
		switch {
		case seqs[i] != want:
			return events, fmt.Errorf("event %d: %w: it is missing", want, wetink.ErrTampered)
		case err != nil:
			return events, fmt.Errorf("event %d: %w: %w", want, wetink.ErrTampered, err)
		case e.Seq != want:
			return events, fmt.Errorf("event %d: %w: it says that it is %d", want, wetink.ErrTampered, e.Seq)
		}
		events = append(events, e)
	}
	return events, nil
}
