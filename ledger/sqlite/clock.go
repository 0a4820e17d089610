package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// clock never tells less than it told, nor less than the newest event in the file says.
type clock struct {
	wall func() time.Time

	mu   sync.Mutex
	last time.Time // as told, before it was cut to milliseconds: cut each time, time would stop when asked often
	at   time.Time // this process's monotonic clock then
}

func (c *clock) tell(newest time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, at := c.wall().Round(0).UTC(), time.Now()
	if !c.last.IsZero() {
		if floor := c.last.Add(max(at.Sub(c.at), 0)); now.Before(floor) {
			now = floor
		}
	}
	if now.Before(newest) {
		now = newest
	}
	c.last, c.at = now, at
	return now.Truncate(time.Millisecond)
}

// head is what a transaction has to know of the ledger: all that another process may have changed.
type head struct {
	mode wetink.Mode
	seq  int64
	at   time.Time // of the newest event; zero: there is none
}

const selectHead = `SELECT m.mode, e.seq, e.at FROM meta m LEFT JOIN events e ON e.seq = (SELECT max(seq) FROM events)`

func readHead(tx *sqlite.Tx) (h head, err error) {
	found := false
	for row, err := range tx.Query(selectHead) {
		if err != nil {
			return h, err
		}
		found = true
		h.mode, h.seq = wetink.Mode(row.Text(0)), row.Int64(1)
		if !row.Null(2) {
			h.at = time.UnixMilli(row.Int64(2)).UTC()
		}
	}
	if !found { // without its row nobody knows that writes were turned off
		return h, fmt.Errorf("%w: the ledger's own row is gone", wetink.ErrTampered)
	}
	return h, nil
}

func (l *Ledger) head(ctx context.Context) (h head, err error) {
	err = l.db.Read(ctx, func(tx *sqlite.Tx) error {
		h, err = readHead(tx)
		return err
	})
	return h, err
}

// ID implements wetink.Clock: "sqlite-" and 128 random bits, "/", the epoch.
func (l *Ledger) ID() string { return l.id }

// Now implements wetink.Clock.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	h, err := l.head(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return l.clock.tell(h.at), nil
}

// Mode implements wetink.Switch. It is read from the file each time, so it is never old.
func (l *Ledger) Mode(ctx context.Context) (wetink.Mode, error) {
	h, err := l.head(ctx)
	if err != nil {
		return wetink.ModeOff, fmt.Errorf("read the mode: %w", err)
	}
	return h.mode, nil
}

// SetMode implements wetink.Switch.
func (l *Ledger) SetMode(ctx context.Context, m wetink.Mode, by wetink.Person) error {
	switch m {
	case wetink.ModeOff, wetink.ModeObserve, wetink.ModeGuarded:
	case wetink.ModeUnset:
		return fmt.Errorf("set mode: it cannot be unset again; say off, observe or guarded")
	default:
		return fmt.Errorf("set mode %q: say off, observe or guarded", m)
	}
	err := l.db.Write(ctx, func(tx *sqlite.Tx) error {
		h, err := readHead(tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE meta SET mode = ?`, string(m)); err != nil {
			return err
		}
		e := wetink.Event{Seq: h.seq + 1, At: l.clock.tell(h.at), Kind: wetink.KindMode, By: utf8Only(by),
			Facts: map[string]string{"mode": string(m)}}
		return insertEvent(tx, e.Seq, e.At, e.Bytes())
	})
	if err != nil {
		return fmt.Errorf("set mode %s: %w", m, err)
	}
	return nil
}

// millis rounds up: a deadline must not come before the one that was promised. The zero time is NULL.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}

func millisAt(row *sqlite.Row, column int) time.Time {
	if row.Null(column) {
		return time.Time{}
	}
	return time.UnixMilli(row.Int64(column)).UTC()
}
