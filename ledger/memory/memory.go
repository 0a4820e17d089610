// Package memory is a Ledger that lives as long as its process: for tests, examples and the demo.
//
// It keeps every promise of wetink.Ledger but durability over a restart, and it is what the other ledgers
// are compared with.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/wetink/wetink"
)

// Options of a Ledger.
type Options struct {
	Now func() time.Time // the wall clock; nil: time.Now
}

// Ledger implements wetink.Ledger.
type Ledger struct {
	id  string
	now func() time.Time

	mu      sync.Mutex
	last    time.Time // ledger time as last told
	lastAt  time.Time // this process's monotonic clock then
	state   state
	changed chan struct{} // closed and replaced with every commit
}

// state is what one Advance changes as a whole or not at all.
type state struct {
	rows   map[key]wetink.Change
	caps   map[capKey]int
	taken  map[key]capKey          // by a claim, until it is given back
	slots  map[key]wetink.ChangeID // parent: its live undo, or ""
	events []wetink.Event
	mode   wetink.Mode
	back   []func() // how to take back what the Advance in progress did
}

type key struct {
	tenant wetink.Tenant
	id     wetink.ChangeID
}

type capKey struct {
	tenant    wetink.Tenant
	account   wetink.Account
	name, day string
}

// New returns an empty Ledger.
func New(o *Options) *Ledger {
	l := &Ledger{id: "memory-" + rand.Text() + "/1", now: time.Now, changed: make(chan struct{}), state: state{
		rows: map[key]wetink.Change{}, caps: map[capKey]int{}, taken: map[key]capKey{}, slots: map[key]wetink.ChangeID{},
	}}
	if o != nil && o.Now != nil {
		l.now = o.Now
	}
	return l
}

// ID implements wetink.Clock.
func (l *Ledger) ID() string { return l.id }

// Now implements wetink.Clock.
func (l *Ledger) Now(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tick(), nil
}

// tick is max(wall, last + monotonic since).
func (l *Ledger) tick() time.Time {
	wall, at := l.now().UTC().Truncate(time.Millisecond), time.Now()
	if !l.last.IsZero() {
		if floor := l.last.Add(max(at.Sub(l.lastAt), 0)).Truncate(time.Millisecond); wall.Before(floor) {
			wall = floor
		}
	}
	l.last, l.lastAt = wall, at
	return wall
}

// Advance implements wetink.Ledger: what earlier Moves did is taken back when a later one is refused.
func (l *Ledger) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, m := range moves {
		if err := m.Check(); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.tick()
	first := len(l.state.events)
	for _, m := range moves {
		if err := l.state.advance(m, now); err != nil {
			l.state.rollback(first)
			return nil, err
		}
	}
	l.commit()
	return slices.Clone(l.state.events[first:]), nil
}

// commit tells followers. Nobody reads the state without the lock but for events, which are only appended.
func (l *Ledger) commit() {
	l.state.back = nil
	close(l.changed)
	l.changed = make(chan struct{})
}

func (s *state) rollback(events int) {
	for _, f := range slices.Backward(s.back) {
		f()
	}
	s.back, s.events = nil, s.events[:events]
}

// set changes a map so that it can be taken back.
func set[K comparable, V any](s *state, m map[K]V, k K, v V) {
	old, had := m[k]
	s.back = append(s.back, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
	m[k] = v
}

func (s *state) advance(m wetink.Move, now time.Time) error {
	k := key{m.Tenant, m.ID}
	row, exists := s.rows[k]
	switch {
	case m.Rev == 0 && exists:
		return fmt.Errorf("%s exists: %w", m.ID, wetink.ErrConflict)
	case m.Rev > 0 && !exists:
		return fmt.Errorf("%s: %w", m.ID, wetink.ErrNotFound)
	case exists && (row.Rev != m.Rev || row.Status != m.From):
		return fmt.Errorf("%s is %s at rev %d: %w", m.ID, row.Status, row.Rev, wetink.ErrConflict)
	case m.From == wetink.Applying && m.Claim != nil && m.Claim.ID != row.Claim.ID:
		return fmt.Errorf("%s has another claim: %w", m.ID, wetink.ErrConflict)
	case !m.Before.IsZero() && !now.Before(m.Before):
		return fmt.Errorf("%s: %w", m.ID, wetink.ErrLate)
	case !m.After.IsZero() && now.Before(m.After):
		return fmt.Errorf("%s: %w", m.ID, wetink.ErrEarly)
	}
	if m.New != nil {
		row = *m.New
		row.Created = now
		if parent := (key{m.Tenant, row.Undoes}); row.Undoes != "" {
			if live := s.slots[parent]; live != "" {
				return fmt.Errorf("%s is undone by %s already: %w", row.Undoes, live, wetink.ErrConflict)
			}
			set(s, s.slots, parent, m.ID)
		}
	}
	if m.From == wetink.Approved && m.To == wetink.Applying {
		if s.mode != wetink.ModeUnset && s.mode != wetink.ModeGuarded {
			return fmt.Errorf("%s: %w", m.ID, wetink.ErrOff)
		}
		if m.Cap != nil {
			c := capKey{m.Tenant, row.Account, m.Cap.Name, m.Day}
			if s.caps[c] >= m.Cap.Max {
				return fmt.Errorf("%s: %d %s on %s: %w", m.ID, m.Cap.Max, c.name, c.day, wetink.ErrCapped)
			}
			set(s, s.caps, c, s.caps[c]+1)
			set(s, s.taken, k, c)
		}
	}
	if c, ok := s.taken[k]; ok && m.To == wetink.Failed {
		set(s, s.caps, c, s.caps[c]-1)
	} else if ok && m.From == wetink.Failed {
		set(s, s.caps, c, s.caps[c]+1) // it took effect after all: counted, and never refused
	}
	if parent := (key{m.Tenant, row.Undoes}); row.Undoes != "" && !m.To.Live() && s.slots[parent] == m.ID {
		set(s, s.slots, parent, "")
	}
	set(s, s.rows, k, grow(row, m, now))

	e := m.Event
	e.Seq, e.At, e.Tenant, e.Change = int64(len(s.events))+1, now, m.Tenant, m.ID
	e.Rev, e.From, e.To = m.Rev+1, m.From, m.To
	s.events = append(s.events, e)
	return nil
}

// grow returns the row after the move.
func grow(row wetink.Change, m wetink.Move, now time.Time) wetink.Change {
	row.Rev, row.Status, row.Updated, row.Due, row.Why = m.Rev+1, m.To, now, m.Due, m.Why
	if m.Approval != nil {
		row.Approvals = append(slices.Clone(row.Approvals), *m.Approval)
	}
	if m.Claim != nil {
		row.Claim = *m.Claim
	}
	if m.Step != nil {
		steps := slices.DeleteFunc(slices.Clone(row.Steps), func(s wetink.Step) bool { return s.Op == m.Step.Op })
		row.Steps = append(steps, *m.Step)
		slices.SortFunc(row.Steps, func(a, b wetink.Step) int { return cmp.Compare(a.Op, b.Op) })
	}
	if m.Ticket != nil {
		tickets := slices.DeleteFunc(slices.Clone(row.Tickets), func(s wetink.Sealed) bool { return s.Verb == m.Ticket.Verb })
		row.Tickets = append(tickets, *m.Ticket)
	}
	return row
}

// Get implements wetink.Ledger.
func (l *Ledger) Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (wetink.Change, error) {
	if err := ctx.Err(); err != nil {
		return wetink.Change{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.state.rows[key{tenant, id}]
	if !ok {
		return wetink.Change{}, fmt.Errorf("%s: %w", id, wetink.ErrNotFound)
	}
	return c, nil
}

// List implements wetink.Ledger.
func (l *Ledger) List(ctx context.Context, f wetink.Filter) iter.Seq2[wetink.Change, error] {
	return func(yield func(wetink.Change, error) bool) {
		var found []wetink.Change
		l.mu.Lock()
		for _, c := range l.state.rows {
			if matches(f, c) {
				found = append(found, c)
			}
		}
		l.mu.Unlock()
		slices.SortFunc(found, func(a, b wetink.Change) int { return cmp.Compare(b.ID, a.ID) })
		limit := f.Limit
		if limit == 0 {
			limit = 100
		}
		for _, c := range found[:min(limit, len(found))] {
			if err := ctx.Err(); err != nil {
				yield(wetink.Change{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func matches(f wetink.Filter, c wetink.Change) bool {
	return (f.AnyTenant || f.Tenant == c.Tenant) &&
		(f.Account == "" || f.Account == c.Account) &&
		(f.Target == "" || f.Target == c.Target) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, c.Status)) &&
		(f.Undoes == "" || f.Undoes == c.Undoes) &&
		(f.DueBefore.IsZero() || !c.Due.IsZero() && c.Due.Before(f.DueBefore)) &&
		(f.Before == "" || c.ID < f.Before)
}

// Events implements wetink.Ledger.
func (l *Ledger) Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error] {
	if after == wetink.Newest {
		l.mu.Lock()
		after = int64(len(l.state.events))
		l.mu.Unlock()
	}
	return func(yield func(wetink.Event, error) bool) {
		for {
			l.mu.Lock()
			events, changed := l.state.events, l.changed
			l.mu.Unlock()
			for _, e := range events[min(int(after), len(events)):] {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if !follow {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(wetink.Event{}, ctx.Err())
				return
			}
		}
	}
}

// Mode implements wetink.Switch.
func (l *Ledger) Mode(context.Context) (wetink.Mode, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.mode, nil
}

// SetMode implements wetink.Switch.
func (l *Ledger) SetMode(_ context.Context, m wetink.Mode, by wetink.Person) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.mode = m
	l.state.events = append(l.state.events, wetink.Event{
		Seq: int64(len(l.state.events)) + 1, At: l.tick(), Kind: wetink.KindMode, By: by, Facts: map[string]string{"mode": string(m)},
	})
	l.commit()
	return nil
}
