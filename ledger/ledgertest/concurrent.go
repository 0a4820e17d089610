package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink"
)

func concurrent(t *testing.T, open opener) {
	open.that(t, "of sixty-four claims of one change exactly one wins", func(f *fixture) {
		for round := range 5 {
			c := f.bring(row(fmt.Sprintf("chg_%d", round)), wetink.Approved)
			winner := claimRace(f, c, f.l)
			if got := f.get(c); got.Claim.ID != winner || got.Rev != c.Rev+1 {
				f.t.Errorf("%q won, and the row says %q at rev %d", winner, got.Claim.ID, got.Rev)
			}
		}
	})
	open.that(t, "sixty-four changes live at once while readers see each row as some event left it", func(f *fixture) {
		ctx, stop := context.WithCancel(f.ctx)
		var readers, writers sync.WaitGroup
		reading := make(chan struct{})
		var began sync.Once
		id := func(i int) wetink.ChangeID { return wetink.ChangeID(fmt.Sprintf("chg_%02d", i)) }
		for r := range 4 {
			readers.Go(func() {
				for i := r; ctx.Err() == nil; i = (i + 1) % 64 {
					f.consistent(id(i))
					began.Do(func() { close(reading) })
				}
			})
		}
		<-reading
		for i := range 64 {
			writers.Go(func() { f.live(row(string(id(i)))) })
		}
		writers.Wait()
		stop()
		readers.Wait()

		revs := map[wetink.ChangeID]int64{}
		last := map[wetink.ChangeID]wetink.Status{}
		ev := f.events(0)
		for i, e := range ev {
			if e.Seq != int64(i)+1 || e.Rev != revs[e.Change]+1 || e.From != last[e.Change] {
				f.t.Fatalf("event %d: %s, after rev %d", i, e.Bytes(), revs[e.Change])
			}
			if i > 0 && e.At.Before(ev[i-1].At) {
				f.t.Fatalf("event %d is earlier than the one before it", i)
			}
			revs[e.Change], last[e.Change] = e.Rev, e.To
		}
		if len(ev) != 64*len(life) {
			f.t.Errorf("%d events, want %d", len(ev), 64*len(life))
		}
		for _, c := range f.list(wetink.Filter{}) {
			if c.Rev != revs[c.ID] || c.Status != last[c.ID] {
				f.t.Errorf("%s is %s at rev %d, its last event says %s at rev %d", c.ID, c.Status, c.Rev, last[c.ID], revs[c.ID])
			}
		}
	})
}

// life of a Change, one Move each; a step is added with each that is not the first three.
var life = []wetink.Status{wetink.Pending, wetink.Approved, wetink.Applying, wetink.Applying, wetink.Applying, wetink.InDoubt, wetink.Applied}

// live is for other goroutines than the test's: it never ends the test.
func (f *fixture) live(c wetink.Change) {
	for i, to := range life {
		m := move(c, to)
		if i == 0 {
			m = born(c, to)
		}
		if i > 2 {
			m.Step = &wetink.Step{Op: i, Outcome: wetink.TookEffect}
		}
		if _, err := f.l.Advance(f.ctx, m); err != nil {
			f.t.Errorf("%s to %s: %v", c.ID, to, err)
			return
		}
		c = after(c, m)
	}
}

// consistent looks at a row between two looks at history: it must be as one event of those left it, never
// older than the first look, never newer than the second, and with as many steps as its rev has.
func (f *fixture) consistent(id wetink.ChangeID) {
	earlier, err := history(f.ctx, f.l, 0)
	if err != nil {
		f.t.Error(err)
		return
	}
	c, err := f.l.Get(f.ctx, "", id)
	if err != nil {
		f.is(err, wetink.ErrNotFound)
	}
	later, err := history(f.ctx, f.l, 0)
	if err != nil {
		f.t.Error(err)
		return
	}
	count := func(ev []wetink.Event) (n int64) {
		for _, e := range ev {
			if e.Change == id {
				n++
			}
		}
		return n
	}
	if lo, hi := count(earlier), count(later); c.Rev < lo || c.Rev > hi {
		f.t.Errorf("%s is at rev %d; it had %d events before and %d after", id, c.Rev, lo, hi)
	}
	for _, e := range later {
		if e.Change == id && e.Rev == c.Rev && e.To != c.Status {
			f.t.Errorf("%s is %s at rev %d, but its event says %s", id, c.Status, c.Rev, e.To)
		}
	}
	if want := max(int(c.Rev)-3, 0); len(c.Steps) != want {
		f.t.Errorf("%s at rev %d has %d steps", id, c.Rev, len(c.Steps))
	}
}

// claimRace claims c from sixty-four goroutines over the handles in turn, and returns the claim that won.
func claimRace(f *fixture, c wetink.Change, handles ...wetink.Ledger) (winner string) {
	f.t.Helper()
	var won atomic.Int64
	var wg sync.WaitGroup
	ids := make(chan string, 64)
	for i := range 64 {
		wg.Go(func() {
			m := move(c, wetink.Applying)
			m.Claim.ID = fmt.Sprintf("claim %d", i)
			if _, err := handles[i%len(handles)].Advance(f.ctx, m); err == nil {
				won.Add(1)
				ids <- m.Claim.ID
			} else {
				f.is(err, wetink.ErrConflict)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		f.t.Errorf("%d claims won", won.Load())
		return ""
	}
	return <-ids
}
