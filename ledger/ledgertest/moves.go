package ledgertest

import (
	"fmt"
	"testing"

	"github.com/wetink/wetink"
)

// all statuses, and the one before birth.
func all() []wetink.Status { return append([]wetink.Status{""}, wetink.Statuses()...) }

func moves(t *testing.T, open opener) {
	open.that(t, "the table decides of every pair of statuses", func(f *fixture) {
		allowed := 0
		for i, from := range all() {
			for j, to := range wetink.Statuses() {
				c := row(fmt.Sprintf("chg_%02d_%02d", i, j))
				var m wetink.Move
				if from == "" {
					c.Undoes = []wetink.Undone{{Change: "chg_parent_" + c.ID}}
					m = born(c, to)
				} else {
					c = f.bring(c, from)
					m = move(c, to)
				}
				if !wetink.CanMove(from, to) {
					f.refused(nil, m)
					continue
				}
				allowed++
				ev := f.advance(m)[0]
				got := f.get(c)
				if got.Status != to || got.Rev != m.Rev+1 || ev.From != from || ev.To != to || ev.Rev != got.Rev {
					f.t.Errorf("%q to %s: row %s at rev %d, event from %q to %s at rev %d", from, to, got.Status, got.Rev, ev.From, ev.To, ev.Rev)
				}
			}
		}
		if allowed < 20 {
			f.t.Errorf("only %d pairs were allowed", allowed)
		}
	})
	open.that(t, "the status of the row decides, not the one that the move names", func(f *fixture) {
		for _, is := range wetink.Statuses() {
			c := f.bring(row("chg_"+string(is)), is)
			for _, from := range wetink.Statuses() {
				for _, to := range wetink.Statuses() {
					if from == is || !wetink.CanMove(from, to) {
						continue
					}
					lie := c
					lie.Status = from
					f.refused(wetink.ErrConflict, move(lie, to))
				}
			}
		}
	})
}

func compareAndSwap(t *testing.T, open opener) {
	open.that(t, "another rev is a conflict", func(f *fixture) {
		old := f.bring(row("chg_1"), wetink.Pending)
		c := f.step(old, wetink.Pending)
		f.refused(wetink.ErrConflict, move(old, wetink.Approved))
		ahead := c
		ahead.Rev++
		f.refused(wetink.ErrConflict, move(ahead, wetink.Approved))
		f.step(c, wetink.Approved)
		f.refused(wetink.ErrConflict, move(c, wetink.Approved))
	})
	open.that(t, "an id that never was is not found", func(f *fixture) {
		f.bring(row("chg_1"), wetink.Pending)
		unknown := row("chg_2")
		unknown.Rev, unknown.Status = 1, wetink.Pending
		f.refused(wetink.ErrNotFound, move(unknown, wetink.Approved))
		f.absent(unknown)
	})
	open.that(t, "another tenant finds nothing and moves nothing", func(f *fixture) {
		for _, tenants := range [][2]wetink.Tenant{{"a", "b"}, {"", "a"}, {"a", ""}, {"a", "A"}} {
			c := row("chg_" + string(tenants[0]) + "_" + string(tenants[1]))
			c.Tenant = tenants[0]
			stranger := f.bring(c, wetink.Pending)
			stranger.Tenant = tenants[1]
			f.absent(stranger)
			f.refused(wetink.ErrNotFound, move(stranger, wetink.Rejected))
		}
	})
	open.that(t, "an id is compared as bytes", func(f *fixture) {
		f.bring(row("chg_a"), wetink.Pending)
		for _, id := range []string{"chg_A", "chg_a ", " chg_a", "chg_%", "chg__", "chg_a\x00"} {
			f.absent(row(id))
		}
	})
}

func (f *fixture) absent(c wetink.Change) {
	f.t.Helper()
	got, err := f.l.Get(f.ctx, c.Tenant, c.ID)
	f.is(err, wetink.ErrNotFound)
	if got.ID != "" {
		f.t.Errorf("and yet it told: %s", text(got))
	}
}
