package ledgertest

import (
	"testing"

	"github.com/wetink/wetink"
)

func killSwitch(t *testing.T, open opener) {
	open.that(t, "it is unset until somebody sets it", func(f *fixture) {
		for _, want := range []wetink.Mode{wetink.ModeUnset, wetink.ModeGuarded, wetink.ModeOff, wetink.ModeObserve, wetink.ModeGuarded} {
			if want != wetink.ModeUnset {
				f.setMode(want)
			}
			if got, err := f.l.Mode(f.ctx); err != nil || got != want {
				f.t.Errorf("mode %q, %v, want %q", got, err, want)
			}
		}
	})
	open.that(t, "unset and guarded allow the claim", func(f *fixture) {
		c := f.approved(2)
		f.step(c[0], wetink.Applying)
		f.setMode(wetink.ModeGuarded)
		f.step(c[1], wetink.Applying)
	})
	for _, mode := range []wetink.Mode{wetink.ModeOff, wetink.ModeObserve} {
		open.that(t, string(mode)+" refuses the claim and burns nothing", func(f *fixture) {
			c := f.approved(2)
			pending := f.bring(row("chg_p"), wetink.Pending)
			f.setMode(mode)
			f.refused(wetink.ErrOff, claim(c[0], 1))
			yes := move(pending, wetink.Approved)
			f.refused(wetink.ErrOff, yes, move(after(pending, yes), wetink.Applying))
			f.setMode(wetink.ModeGuarded)
			f.advance(claim(c[0], 1))
			f.refused(wetink.ErrCapped, claim(c[1], 1))
		})
		open.that(t, string(mode)+" refuses nothing but the claim", func(f *fixture) {
			type pair struct{ from, to wetink.Status }
			rows := map[pair]wetink.Change{}
			for _, from := range wetink.Statuses() {
				for _, to := range wetink.Statuses() {
					if wetink.CanMove(from, to) && !(from == wetink.Approved && to == wetink.Applying) {
						rows[pair{from, to}] = f.bring(row("chg_"+string(from)+"_"+string(to)), from)
					}
				}
			}
			f.setMode(mode)
			for p, c := range rows {
				m := move(c, p.to)
				if c.Claim.ID != "" {
					m.Step = &wetink.Step{Outcome: wetink.TookEffect}
				}
				f.advance(m)
			}
			f.advance(born(row("chg_new"), wetink.Pending), born(undo("chg_undo", "chg_parent"), wetink.Approved))
		})
	}
	open.that(t, "a mode that it does not know never lets a claim through", func(f *fixture) {
		c := f.approved(1)
		f.setMode(wetink.ModeOff)
		_ = f.l.SetMode(f.ctx, "Guarded ", "ana") // refused or kept: both are safe
		f.refused(wetink.ErrOff, move(c[0], wetink.Applying))
	})
	open.that(t, "a change of mode is an event", func(f *fixture) {
		f.bring(row("chg_1"), wetink.Pending)
		at := f.wall.forward()
		if err := f.l.SetMode(f.ctx, wetink.ModeOff, "bo"); err != nil {
			f.t.Fatal(err)
		}
		ev := f.events(1)
		if len(ev) != 1 {
			f.t.Fatalf("%d events", len(ev))
		}
		want := wetink.Event{Seq: 2, At: at, Kind: wetink.KindMode, By: "bo", Facts: map[string]string{"mode": "off"}}
		if got := string(ev[0].Bytes()); got != string(want.Bytes()) {
			f.t.Errorf("got  %s\nwant %s", got, want.Bytes())
		}
	})
}
