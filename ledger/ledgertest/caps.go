package ledgertest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink"
)

const day = "2041-02-03"

// claim of c under a cap called publish.
func claim(c wetink.Change, limit int) wetink.Move {
	m := move(c, wetink.Applying)
	m.Cap, m.Day = &wetink.Cap{Name: "publish", Max: limit}, day
	return m
}

// approved returns n of them.
func (f *fixture) approved(n int) []wetink.Change {
	f.t.Helper()
	out := make([]wetink.Change, n)
	for i := range out {
		out[i] = f.bring(row(fmt.Sprintf("chg_%03d", i)), wetink.Approved)
	}
	return out
}

func caps(t *testing.T, open opener) {
	open.that(t, "as many claims as the cap allows, and then none", func(f *fixture) {
		c := f.approved(4)
		f.advance(claim(c[0], 2))
		f.advance(claim(c[1], 2))
		f.refused(wetink.ErrCapped, claim(c[2], 2))
		f.refused(wetink.ErrCapped, claim(c[2], 1)) // it was lowered meanwhile
		f.refused(wetink.ErrCapped, claim(c[2], 0))
		f.advance(claim(c[2], 3)) // it was raised
		f.advance(move(c[3], wetink.Applying))
	})
	open.that(t, "a cap of none lets none through", func(f *fixture) {
		f.refused(wetink.ErrCapped, claim(f.approved(1)[0], 0))
	})
	open.that(t, "claims of one list count one by one", func(f *fixture) {
		c := f.approved(2)
		f.refused(wetink.ErrCapped, claim(c[0], 1), claim(c[1], 1))
		f.advance(claim(c[0], 2), claim(c[1], 2))
	})
	open.that(t, "tenants, accounts, names and days are counted apart", func(f *fixture) {
		tenant, account := row("chg_tenant"), row("chg_account")
		tenant.Tenant, account.Account = "acme", "acct-2"
		c := f.approved(4)
		f.advance(claim(c[0], 1))
		f.refused(wetink.ErrCapped, claim(c[1], 1))
		f.advance(claim(f.bring(tenant, wetink.Approved), 1))
		f.advance(claim(f.bring(account, wetink.Approved), 1))
		name, nextDay := claim(c[1], 1), claim(c[2], 1)
		name.Cap.Name, nextDay.Day = "publish ", "2041-02-04"
		f.advance(name)
		f.advance(nextDay)
		f.refused(wetink.ErrCapped, claim(c[3], 1))
	})
	open.that(t, "only a proof that nothing took effect gives the place back", func(f *fixture) {
		for _, end := range []wetink.Status{wetink.Applied, wetink.Partial, wetink.InDoubt} {
			f.t.Run(string(end), func(t *testing.T) {
				f := &fixture{t: t, ctx: f.ctx, wall: &wall{now: start}}
				f.l = open(t, f.wall.read)
				c := f.approved(2)
				f.advance(claim(c[0], 1))
				f.step(f.step(f.get(c[0]), wetink.Applying), end)
				f.refused(wetink.ErrCapped, claim(c[1], 1))
			})
		}
		c := f.approved(3)
		f.advance(claim(c[0], 1))
		f.step(f.get(c[0]), wetink.Failed)
		f.advance(claim(c[1], 1))
		f.step(f.step(f.get(c[1]), wetink.InDoubt), wetink.Failed)
		f.advance(claim(c[2], 1))
	})
	open.that(t, "a late receipt takes the place again, and is never refused", func(f *fixture) {
		c := f.approved(4)
		f.advance(claim(c[0], 1))
		f.step(f.get(c[0]), wetink.Failed)
		f.advance(claim(c[1], 1))
		f.step(f.get(c[0]), wetink.InDoubt) // two of one now
		f.step(f.get(c[1]), wetink.Failed)
		f.refused(wetink.ErrCapped, claim(c[2], 1))
		f.step(f.get(c[0]), wetink.Failed)
		f.advance(claim(c[2], 1))
		f.refused(wetink.ErrCapped, claim(c[3], 1))
	})
	open.that(t, "a place is given back on the day on which it was taken", func(f *fixture) {
		c := f.approved(3)
		f.advance(claim(c[0], 1))
		tomorrow := claim(c[1], 1)
		tomorrow.Day = "2041-02-04"
		f.advance(tomorrow)
		failed := move(f.get(c[0]), wetink.Failed)
		failed.Day = "2041-02-04" // names another one; it does not count
		f.advance(failed)
		again := claim(c[2], 1)
		again.Day = "2041-02-04"
		f.refused(wetink.ErrCapped, again)
		f.advance(claim(c[2], 1))
	})
	open.that(t, "what was claimed without a cap gives nothing back", func(f *fixture) {
		c := f.approved(3)
		f.advance(claim(c[0], 1))
		f.step(f.step(c[1], wetink.Applying), wetink.Failed)
		f.refused(wetink.ErrCapped, claim(c[2], 1))
	})
	open.that(t, "sixty-four claims at once win exactly as many places as there are", func(f *fixture) {
		c := f.approved(64)
		var won, capped atomic.Int64
		var wg sync.WaitGroup
		for i := range c {
			wg.Go(func() {
				switch _, err := f.l.Advance(f.ctx, claim(c[i], 5)); {
				case err == nil:
					won.Add(1)
				default:
					f.is(err, wetink.ErrCapped)
					capped.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 5 || capped.Load() != 59 || len(f.list(wetink.Filter{Status: []wetink.Status{wetink.Applying}})) != 5 {
			f.t.Errorf("%d won, %d were refused", won.Load(), capped.Load())
		}
	})
}
