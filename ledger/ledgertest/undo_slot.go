package ledgertest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink"
)

func undoSlot(t *testing.T, open opener) {
	second := born(undo("chg_second", "chg_parent"), wetink.Pending)
	for _, is := range wetink.Statuses() {
		if is.Live() {
			open.that(t, "an undo that is "+string(is)+" is the only one of its parent", func(f *fixture) {
				f.bring(undo("chg_first", "chg_parent"), is)
				f.refused(wetink.ErrConflict, second)
				f.refused(wetink.ErrConflict, born(undo("chg_second", "chg_parent"), wetink.Approved))
				f.bring(undo("chg_other", "chg_another_parent"), wetink.Pending)
				stranger := undo("chg_second", "chg_parent")
				stranger.Tenant = "acme"
				f.bring(stranger, wetink.Pending)
			})
		} else {
			open.that(t, "an undo that is "+string(is)+" makes room for another", func(f *fixture) {
				f.bring(undo("chg_first", "chg_parent"), is)
				f.advance(second)
				f.refused(wetink.ErrConflict, born(undo("chg_third", "chg_parent"), wetink.Pending))
			})
		}
	}
	open.that(t, "an undo of several takes the place of each", func(f *fixture) {
		c := f.bring(undo("chg_both", "chg_parent", "chg_other"), wetink.Pending)
		f.refused(wetink.ErrConflict, second)
		f.refused(wetink.ErrConflict, born(undo("chg_second", "chg_other"), wetink.Pending))
		f.refused(wetink.ErrConflict, born(undo("chg_second", "chg_third", "chg_other"), wetink.Pending))
		f.advance(born(undo("chg_free", "chg_third"), wetink.Pending))
		f.step(c, wetink.Rejected)
		f.advance(second)
		f.refused(wetink.ErrConflict, born(undo("chg_both_again", "chg_other", "chg_parent"), wetink.Pending))
		f.advance(born(undo("chg_other_alone", "chg_other"), wetink.Pending))
	})
	open.that(t, "two undos in one list are one too many", func(f *fixture) {
		f.refused(wetink.ErrConflict, born(undo("chg_first", "chg_parent"), wetink.Pending), second)
		f.advance(second)
	})
	open.that(t, "an undo that is superseded makes room in the same list", func(f *fixture) {
		c := f.bring(undo("chg_first", "chg_parent"), wetink.Pending)
		f.refused(wetink.ErrConflict, second, move(c, wetink.Superseded))
		f.advance(move(c, wetink.Superseded), second)
	})
	open.that(t, "an undo that was doubted and then failed makes room", func(f *fixture) {
		c := f.bring(undo("chg_first", "chg_parent"), wetink.InDoubt)
		f.step(c, wetink.Failed)
		f.advance(second)
	})
	// It happened, so it is recorded; and as it may have taken effect, it counts again.
	open.that(t, "a late receipt is never refused, though another undo lives, and takes part again", func(f *fixture) {
		first := f.bring(undo("chg_first", "chg_parent"), wetink.Failed)
		f.advance(second)
		first = f.step(first, wetink.InDoubt)
		third := born(undo("chg_third", "chg_parent"), wetink.Pending)
		f.refused(wetink.ErrConflict, third)
		f.step(f.get(*second.New), wetink.Rejected)
		f.refused(wetink.ErrConflict, third)
		first = f.step(first, wetink.Failed)
		first = f.step(first, wetink.InDoubt)
		f.refused(wetink.ErrConflict, third)
		f.step(first, wetink.Failed)
		f.advance(third)
	})
	open.that(t, "of many undos at once one is born", func(f *fixture) {
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				_, err := f.l.Advance(f.ctx, born(undo(fmt.Sprintf("chg_%d", i), "chg_parent"), wetink.Pending))
				if err == nil {
					won.Add(1)
				} else {
					f.is(err, wetink.ErrConflict)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || len(f.list(wetink.Filter{Undoes: "chg_parent"})) != 1 {
			f.t.Errorf("%d were born", won.Load())
		}
	})
}
