package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

// start is far from now, so that a ledger which asks another clock than the one it was given is found out.
var start = time.Date(2041, 2, 3, 4, 5, 6, 789e6, time.UTC)

// wall is a clock that can be set, also back.
type wall struct {
	mu  sync.Mutex
	now time.Time
}

func (w *wall) read() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now }

func (w *wall) set(t time.Time) { w.mu.Lock(); defer w.mu.Unlock(); w.now = t }

// forward moves it so far that the ledger's own time is behind, and its next look gives exactly this.
func (w *wall) forward() time.Time { w.set(w.read().Add(time.Hour)); return w.read() }

type fixture struct {
	t    *testing.T
	ctx  context.Context
	l    wetink.Ledger
	wall *wall
}

// row is a new Change without anything that a story does not care for.
func row(id string) wetink.Change {
	return wetink.Change{
		ID: wetink.ChangeID(id), Statement: wetink.Statement(`{"change":"` + id + `"}`), Target: "test", Account: "acct-1",
		Request: wetink.Request{Tool: "set", Args: []byte(`{}`)},
	}
}

func undo(id string, parents ...string) wetink.Change {
	c := row(id)
	for _, p := range parents {
		c.Undoes = append(c.Undoes, wetink.Undone{Change: wetink.ChangeID(p), Effects: 1})
	}
	return c
}

// born is the birth of c.
func born(c wetink.Change, to wetink.Status) wetink.Move {
	return wetink.Move{Tenant: c.Tenant, ID: c.ID, To: to, New: &c, Event: wetink.Event{Kind: wetink.KindPreviewed, Digest: c.Statement.Digest()}}
}

// move is the least Move that takes c on, as an engine that has just read c makes it.
func move(c wetink.Change, to wetink.Status) wetink.Move {
	m := wetink.Move{Tenant: c.Tenant, ID: c.ID, Rev: c.Rev, From: c.Status, To: to,
		Event: wetink.Event{Kind: kinds[to], Digest: c.Statement.Digest()}}
	if c.Status == wetink.Approved && to == wetink.Applying {
		m.Claim = &wetink.Claim{ID: "claim of " + string(c.ID), Owner: "ledgertest", Lease: start.Add(time.Minute)}
	}
	return m
}

// after is c as m leaves it, as far as the next Move of a list needs to know.
func after(c wetink.Change, m wetink.Move) wetink.Change {
	c.Rev, c.Status = m.Rev+1, m.To
	return c
}

var kinds = map[wetink.Status]string{
	wetink.Pending: wetink.KindApproval, wetink.Approved: wetink.KindApproved, wetink.Applying: wetink.KindClaimed,
	wetink.Applied: wetink.KindSettled, wetink.Failed: wetink.KindSettled, wetink.Partial: wetink.KindSettled,
	wetink.InDoubt: wetink.KindDoubted, wetink.Expired: wetink.KindExpired, wetink.Rejected: wetink.KindRejected,
	wetink.Superseded: wetink.KindSuperseded,
}

// ways lead to each status from nothing.
var ways = map[wetink.Status][]wetink.Status{
	wetink.Pending:    {wetink.Pending},
	wetink.Approved:   {wetink.Pending, wetink.Approved},
	wetink.Applying:   {wetink.Pending, wetink.Approved, wetink.Applying},
	wetink.Applied:    {wetink.Pending, wetink.Approved, wetink.Applying, wetink.Applied},
	wetink.Failed:     {wetink.Pending, wetink.Approved, wetink.Applying, wetink.Failed},
	wetink.Partial:    {wetink.Pending, wetink.Approved, wetink.Applying, wetink.Partial},
	wetink.InDoubt:    {wetink.Pending, wetink.Approved, wetink.Applying, wetink.InDoubt},
	wetink.Expired:    {wetink.Pending, wetink.Expired},
	wetink.Rejected:   {wetink.Pending, wetink.Rejected},
	wetink.Superseded: {wetink.Pending, wetink.Superseded},
}

// advance must be allowed.
func (f *fixture) advance(list ...wetink.Move) []wetink.Event {
	f.t.Helper()
	ev, err := f.l.Advance(f.ctx, list...)
	if err != nil {
		f.t.Fatalf("advance: %v", err)
	}
	if len(ev) != len(list) {
		f.t.Fatalf("%d moves made %d events", len(list), len(ev))
	}
	return ev
}

// refused must be refused with want (nil: any error), and must have written nothing.
func (f *fixture) refused(want error, list ...wetink.Move) {
	f.t.Helper()
	before := f.everything()
	ev, err := f.l.Advance(f.ctx, list...)
	if err == nil || want != nil && !errors.Is(err, want) {
		f.t.Errorf("refused with %v, want %v", err, want)
	}
	if len(ev) != 0 {
		f.t.Errorf("a refusal gave events: %v", ev)
	}
	f.unchanged(before)
}

func (f *fixture) unchanged(before string) {
	f.t.Helper()
	if now := f.everything(); now != before {
		f.t.Errorf("a refusal wrote something:\n%s", difference(before, now))
	}
}

func (f *fixture) get(c wetink.Change) wetink.Change {
	f.t.Helper()
	got, err := f.l.Get(f.ctx, c.Tenant, c.ID)
	if err != nil {
		f.t.Fatalf("get: %v", err)
	}
	return got
}

// step takes c on to a status and reads it again.
func (f *fixture) step(c wetink.Change, to wetink.Status) wetink.Change {
	f.t.Helper()
	f.advance(move(c, to))
	return f.get(c)
}

// bring makes c and leads it to a status.
func (f *fixture) bring(c wetink.Change, to wetink.Status) wetink.Change {
	f.t.Helper()
	way := ways[to]
	f.advance(born(c, way[0]))
	c = f.get(c)
	for _, s := range way[1:] {
		c = f.step(c, s)
	}
	return c
}

func (f *fixture) list(filter wetink.Filter) []wetink.Change {
	f.t.Helper()
	var out []wetink.Change
	for c, err := range f.l.List(f.ctx, filter) {
		if err != nil {
			f.t.Fatalf("list: %v", err)
		}
		out = append(out, c)
	}
	return out
}

func (f *fixture) events(after int64) []wetink.Event {
	f.t.Helper()
	out, err := history(f.ctx, f.l, after)
	if err != nil {
		f.t.Fatalf("events: %v", err)
	}
	return out
}

func history(ctx context.Context, l wetink.Ledger, after int64) (out []wetink.Event, err error) {
	for e, err := range l.Events(ctx, after, false) {
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (f *fixture) now() time.Time {
	f.t.Helper()
	now, err := f.l.Now(f.ctx)
	if err != nil {
		f.t.Fatalf("now: %v", err)
	}
	return now
}

func (f *fixture) setMode(m wetink.Mode) {
	f.t.Helper()
	if err := f.l.SetMode(f.ctx, m, "ana"); err != nil {
		f.t.Fatalf("set mode: %v", err)
	}
}

// everything that can be seen of the ledger, as text.
func (f *fixture) everything() string {
	f.t.Helper()
	var b strings.Builder
	mode, err := f.l.Mode(f.ctx)
	if err != nil {
		f.t.Fatalf("mode: %v", err)
	}
	fmt.Fprintf(&b, "mode %q\n", mode)
	for _, c := range f.list(wetink.Filter{AnyTenant: true, Limit: 1 << 20}) {
		b.WriteString(text(c))
	}
	for _, e := range f.events(0) {
		fmt.Fprintf(&b, "%s\n", e.Bytes())
	}
	return b.String()
}
