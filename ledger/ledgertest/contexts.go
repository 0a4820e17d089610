package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

func contexts(t *testing.T, open opener) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	for _, ctx := range []context.Context{over, late} {
		open.that(t, ctx.Err().Error()+" before it began writes nothing", func(f *fixture) {
			c := f.bring(row("chg_1"), wetink.Pending)
			before := f.everything()
			_, err := f.l.Advance(ctx, move(c, wetink.Approved))
			f.is(err, ctx.Err())
			_, err = f.l.Advance(ctx, born(row("chg_2"), wetink.Pending))
			f.is(err, ctx.Err())
			f.is(f.l.SetMode(ctx, wetink.ModeOff, "ana"), ctx.Err())
			f.unchanged(before)
			f.step(c, wetink.Approved)
		})
		open.that(t, ctx.Err().Error()+" before it began reads nothing", func(f *fixture) {
			c := f.bring(row("chg_1"), wetink.Pending)
			got, err := f.l.Get(ctx, c.Tenant, c.ID)
			if f.is(err, ctx.Err()); got.ID != "" {
				f.t.Errorf("got %s", got.ID)
			}
			for _, filter := range []wetink.Filter{{}, {Target: "nothing"}} {
				n := 0
				for c, err := range f.l.List(ctx, filter) {
					n++
					if f.is(err, ctx.Err()); c.ID != "" {
						f.t.Errorf("listed %s", c.ID)
					}
				}
				if n != 1 {
					f.t.Errorf("the list of %q ended without an error", filter.Target)
				}
			}
			for _, after := range []int64{0, 1, wetink.Newest} {
				for _, follow := range []bool{false, true} {
					n := 0
					for e, err := range f.l.Events(ctx, after, follow) {
						n++
						if f.is(err, ctx.Err()); e.Seq != 0 {
							f.t.Errorf("event %d", e.Seq)
						}
					}
					if n != 1 {
						f.t.Errorf("events after %d (follow %t) ended without an error", after, follow)
					}
				}
			}
		})
	}
}
