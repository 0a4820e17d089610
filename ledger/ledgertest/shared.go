package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

// RunShared tests two handles on one store, as two processes would hold them. Each call of open returns two
// on a fresh and empty one, with real clocks.
func RunShared(t *testing.T, open func(t *testing.T) (a, b wetink.Ledger)) {
	that := func(sentence string, holds func(f *fixture, b wetink.Ledger)) {
		t.Run(sentence, func(t *testing.T) {
			a, b := open(t)
			holds(&fixture{t: t, ctx: t.Context(), l: a}, b)
		})
	}
	that("both have the same id", func(f *fixture, b wetink.Ledger) {
		if f.l.ID() == "" || f.l.ID() != b.ID() {
			f.t.Errorf("%q and %q", f.l.ID(), b.ID())
		}
	})
	that("what one wrote the other reads at once", func(f *fixture, b wetink.Ledger) {
		g := *f
		g.l = b
		c := f.bring(full("chg_1"), wetink.Applying)
		f.same(g.get(c), c)
		c = g.step(c, wetink.InDoubt)
		f.same(f.get(c), c)
		f.refused(wetink.ErrConflict, born(full("chg_1"), wetink.Pending))
		if one, other := f.everything(), g.everything(); one != other {
			f.t.Errorf("they tell different things:\n%s", difference(one, other))
		}
	})
	that("of claims over both exactly one wins", func(f *fixture, b wetink.Ledger) {
		for round := range 5 {
			c := f.bring(row(fmt.Sprintf("chg_%d", round)), wetink.Approved)
			winner := claimRace(f, c, f.l, b)
			if got := f.get(c); got.Claim.ID != winner {
				f.t.Errorf("%q won, and the row says %q", winner, got.Claim.ID)
			}
		}
	})
	that("lives over both leave events without gaps, in order", func(f *fixture, b wetink.Ledger) {
		g := *f
		g.l = b
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() { []*fixture{f, &g}[i%2].live(row(fmt.Sprintf("chg_%02d", i))) })
		}
		wg.Wait()
		revs := map[wetink.ChangeID]int64{}
		for i, e := range g.events(0) {
			if revs[e.Change]++; e.Seq != int64(i)+1 || e.Rev != revs[e.Change] {
				f.t.Fatalf("event %d: %s", i, e.Bytes())
			}
		}
		if len(revs) != 32 {
			f.t.Errorf("%d changes", len(revs))
		}
	})
	that("a cap and the place for an undo are shared", func(f *fixture, b wetink.Ledger) {
		c := f.approved(2)
		f.advance(claim(c[0], 1))
		_, err := b.Advance(f.ctx, claim(c[1], 1))
		f.is(err, wetink.ErrCapped)
		f.bring(undo("chg_u1", "chg_000"), wetink.Pending)
		_, err = b.Advance(f.ctx, born(undo("chg_u2", "chg_000"), wetink.Pending))
		f.is(err, wetink.ErrConflict)
	})
	that("a follower sees within a second what the other wrote", func(f *fixture, b wetink.Ledger) {
		for i := range 3 {
			ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
			events := b.Events(ctx, wetink.Newest, true)
			var written time.Time
			mu := sync.Mutex{} // held from before the commit, so that written is set when the event is seen
			mu.Lock()
			go func() {
				f.writeLater(fmt.Sprintf("chg_%d", i))
				written = time.Now()
				mu.Unlock()
			}()
			for e, err := range events {
				if err != nil || e.Change != wetink.ChangeID(fmt.Sprintf("chg_%d", i)) {
					f.t.Errorf("%s, %v", e.Bytes(), err)
				}
				break
			}
			seen := time.Now()
			mu.Lock()
			if d := seen.Sub(written); d > time.Second {
				f.t.Errorf("seen %v after it was written", d)
			}
			mu.Unlock()
			cancel()
		}
	})
	that("a mode that one sets the other sees within a second, and its next claim at once", func(f *fixture, b wetink.Ledger) {
		c := f.approved(1)[0]
		for _, want := range []wetink.Mode{wetink.ModeGuarded, wetink.ModeOff} {
			if _, err := b.Mode(f.ctx); err != nil { // so that a cache has something old
				f.t.Fatal(err)
			}
			f.setMode(want)
			deadline := time.After(time.Second)
			look := time.NewTicker(10 * time.Millisecond)
			for got := wetink.Mode("?"); got != want; {
				var err error
				if got, err = b.Mode(f.ctx); err != nil {
					f.t.Fatal(err)
				}
				select {
				case <-deadline:
					f.t.Fatalf("a second later it is %q", got)
				case <-look.C:
				}
			}
			look.Stop()
		}
		f.setMode(wetink.ModeGuarded)
		f.setMode(wetink.ModeOff)
		_, err := b.Advance(f.ctx, move(c, wetink.Applying)) // no cache may come between
		f.is(err, wetink.ErrOff)
	})
	that("the clock of one is not behind what the other wrote", func(f *fixture, b wetink.Ledger) {
		c := f.bring(row("chg_1"), wetink.Pending)
		handles := []wetink.Ledger{f.l, b}
		for i := range 50 {
			ev, err := handles[i%2].Advance(f.ctx, move(c, wetink.Pending))
			if err != nil {
				f.t.Fatal(err)
			}
			now, err := handles[(i+1)%2].Now(f.ctx)
			if err != nil || now.Before(ev[0].At) {
				f.t.Errorf("written at %v, and then it is %v (%v)", ev[0].At, now, err)
			}
			c = after(c, move(c, wetink.Pending))
		}
	})
}
