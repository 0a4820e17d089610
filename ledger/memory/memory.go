// Package memory is a Ledger that lives as long as its process: for tests, examples and the demo.
//
// It keeps every promise of wetink.Ledger but durability over a restart, and it is what the other ledgers
// are compared with.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
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
	taken  map[key]capKey // by a claim, also while it is given back
	undos  map[key]int    // parent: how many live; a second one only by a late receipt
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
		rows: map[key]wetink.Change{}, caps: map[capKey]int{}, taken: map[key]capKey{}, undos: map[key]int{},
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

// tick is max(wall, last + monotonic since). What is less than a millisecond is kept, so that time passes
// however often it is asked for.
func (l *Ledger) tick() time.Time {
	wall, at := l.now().UTC().Round(0), time.Now()
	if !l.last.IsZero() {
		if floor := l.last.Add(max(at.Sub(l.lastAt), 0)); wall.Before(floor) {
			wall = floor
		}
	}
	l.last, l.lastAt = wall, at
	return wall.Truncate(time.Millisecond)
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
	out := slices.Clone(l.state.events[first:])
	for i := range out {
		out[i].Facts = maps.Clone(out[i].Facts)
	}
	return out, nil
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
		for _, u := range row.Undoes {
			if s.undos[key{m.Tenant, u.Change}] > 0 {
				return fmt.Errorf("%s is undone already: %w", u.Change, wetink.ErrConflict)
			}
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
	for _, u := range row.Undoes {
		parent := key{m.Tenant, u.Change}
		switch was, is := exists && m.From.Live(), m.To.Live(); {
		case is && !was:
			set(s, s.undos, parent, s.undos[parent]+1)
		case was && !is:
			set(s, s.undos, parent, s.undos[parent]-1)
		}
	}
	set(s, s.rows, k, own(grow(row, m, now))) // an Approval or a Step, too, may be the caller's

	e := m.Event
	e.At, e.Tenant, e.Change = now, m.Tenant, m.ID
	e.Rev, e.From, e.To = m.Rev+1, m.From, m.To
	return s.record(e)
}

// record adds an Event as it will be read from its bytes for ever: what is no UTF-8 is replaced now, and what
// could not be read again is refused now.
func (s *state) record(e wetink.Event) error {
	e.Seq = int64(len(s.events)) + 1
	read, err := wetink.ParseEvent(e.Bytes())
	if err != nil {
		return fmt.Errorf("event of %s: %w", e.Change, err)
	}
	s.events = append(s.events, read)
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

// own returns c without memory that somebody else holds, as a row that was stored and read is.
func own(c wetink.Change) wetink.Change {
	c.Statement, c.Request.Args = bytes.Clone(c.Statement), bytes.Clone(c.Request.Args)
	c.Request.By.Scopes = slices.Clone(c.Request.By.Scopes)
	c.Undoes = slices.Clone(c.Undoes)
	c.Before, c.Approvals = slices.Clone(c.Before), slices.Clone(c.Approvals)
	c.Steps, c.Tickets = slices.Clone(c.Steps), slices.Clone(c.Tickets)
	for i := range c.Before {
		c.Before[i].Body = bytes.Clone(c.Before[i].Body)
	}
	for i := range c.Approvals {
		c.Approvals[i].Evidence.Data = bytes.Clone(c.Approvals[i].Evidence.Data)
	}
	for i := range c.Steps {
		r := &c.Steps[i].Receipt
		r.Raw, r.After.Body = bytes.Clone(r.Raw), bytes.Clone(r.After.Body)
	}
	return c
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
	return own(c), nil
}

// List implements wetink.Ledger.
func (l *Ledger) List(ctx context.Context, f wetink.Filter) iter.Seq2[wetink.Change, error] {
	return func(yield func(wetink.Change, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(wetink.Change{}, err)
			return
		}
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
			if !yield(own(c), nil) {
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
		(f.Undoes == "" || slices.ContainsFunc(c.Undoes, func(u wetink.Undone) bool { return u.Change == f.Undoes })) &&
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
			if err := ctx.Err(); err != nil {
				yield(wetink.Event{}, err)
				return
			}
			l.mu.Lock()
			events, changed := l.state.events, l.changed
			l.mu.Unlock()
			for _, e := range events[min(int(after), len(events)):] {
				e.Facts = maps.Clone(e.Facts)
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
			}
		}
	}
}

// Head implements wetink.Ledger.
func (l *Ledger) Head(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.state.events)), nil
}

// Mode implements wetink.Switch.
func (l *Ledger) Mode(context.Context) (wetink.Mode, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.mode, nil
}

// SetMode implements wetink.Switch.
func (l *Ledger) SetMode(ctx context.Context, m wetink.Mode, by wetink.Person) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := wetink.Event{At: l.tick(), Kind: wetink.KindMode, By: by, Facts: map[string]string{"mode": string(m)}}
	if err := l.state.record(e); err != nil {
		return err
	}
	l.state.mode = m
	l.commit()
	return nil
}
