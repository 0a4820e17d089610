package ledgertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wetink/wetink"
)

func (f *fixture) is(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Errorf("error %v, want %v", err, want)
	}
}

func lists(t *testing.T, open opener) {
	open.that(t, "a later move may name the rev that an earlier one makes", func(f *fixture) {
		c := row("chg_1")
		list := []wetink.Move{born(c, wetink.Pending)}
		c = after(c, list[0])
		for _, s := range []wetink.Status{wetink.Approved, wetink.Applying, wetink.Applying, wetink.Failed, wetink.InDoubt, wetink.Applied} {
			m := move(c, s)
			list, c = append(list, m), after(c, m)
		}
		ev := f.advance(list...)
		if got := f.get(c); got.Status != wetink.Applied || got.Rev != 7 || got.Claim.ID == "" {
			f.t.Errorf("it is %s at rev %d", got.Status, got.Rev)
		}
		for i, e := range ev {
			if e.Seq != int64(i)+1 || e.Rev != int64(i)+1 {
				f.t.Errorf("event %d has seq %d, rev %d", i, e.Seq, e.Rev)
			}
		}
	})
	open.that(t, "an approval and the claim commit together", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		yes := move(c, wetink.Approved)
		yes.Approval = &wetink.Approval{Level: wetink.Agent, Evidence: wetink.Evidence{Kind: wetink.EvidenceTicket}, At: start}
		f.advance(yes, move(after(c, yes), wetink.Applying))
		if got := f.get(c); got.Status != wetink.Applying || got.Rev != 3 || len(got.Approvals) != 1 {
			f.t.Errorf("it is %s", text(got))
		}
	})
	open.that(t, "superseding and the birth of the new one commit together", func(f *fixture) {
		old := f.bring(row("chg_1"), wetink.Pending)
		f.refused(wetink.ErrConflict, move(old, wetink.Superseded), born(row("chg_1"), wetink.Pending))
		fresh := row("chg_2")
		fresh.Replaces = old.ID
		f.advance(move(old, wetink.Superseded), born(fresh, wetink.Pending))
		if a, b := f.get(old), f.get(fresh); a.Status != wetink.Superseded || b.Status != wetink.Pending || b.Replaces != old.ID {
			f.t.Errorf("the old one is %s, the new one %s", a.Status, b.Status)
		}
	})
	open.that(t, "settling and the ordered undo commit together, in either order", func(f *fixture) {
		for i, birthFirst := range []bool{true, false} {
			c := f.bring(row(fmt.Sprintf("chg_%d", i)), wetink.Applying)
			u := undo(fmt.Sprintf("chg_%d_undo", i), string(c.ID))
			list := []wetink.Move{move(c, wetink.Partial), born(u, wetink.Approved)}
			if birthFirst {
				list[0], list[1] = list[1], list[0]
			}
			f.advance(list...)
			if a, b := f.get(c), f.get(u); a.Status != wetink.Partial || b.Status != wetink.Approved {
				f.t.Errorf("settled as %s with an undo that is %s", a.Status, b.Status)
			}
		}
	})
	open.that(t, "a refused move takes everything before it along", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		other := f.bring(row("chg_2"), wetink.Pending)
		parent := f.bring(row("chg_3"), wetink.Applied)

		yes := move(c, wetink.Approved)
		yes.Approval = &wetink.Approval{Level: wetink.Passkey, At: start}
		yes.Ticket = &wetink.Sealed{Verb: wetink.VerbApply, Hash: wetink.Digest{1}}
		c2 := after(c, yes)
		claim := move(c2, wetink.Applying)
		claim.Cap, claim.Day = &wetink.Cap{Name: "publish", Max: 1}, "2041-02-03"
		c3 := after(c2, claim)
		step := move(c3, wetink.Applying)
		step.Step = &wetink.Step{Op: 0, Outcome: wetink.TookEffect}
		u := undo("chg_4", string(parent.ID))
		list := []wetink.Move{yes, claim, step, born(u, wetink.Pending), move(parent, wetink.Applied)}

		wrongRev, unknown := move(other, wetink.Rejected), move(other, wetink.Rejected)
		wrongRev.Rev, unknown.ID = 7, "chg_nobody"
		late, early := born(row("chg_5"), wetink.Pending), born(row("chg_5"), wetink.Pending)
		late.Before, early.After = start, start.AddDate(1, 0, 0)
		capped := f.bring(row("chg_6"), wetink.Approved)
		tooMuch := move(capped, wetink.Applying)
		tooMuch.Cap, tooMuch.Day = claim.Cap, claim.Day
		for want, last := range map[error]wetink.Move{
			wetink.ErrLate: late, wetink.ErrEarly: early, wetink.ErrNotFound: unknown, wetink.ErrCapped: tooMuch,
		} {
			f.refused(want, append(list[:len(list):len(list)], last)...)
		}
		f.refused(wetink.ErrConflict, append(list[:len(list):len(list)], wrongRev)...)
		f.refused(wetink.ErrConflict, append(list[:len(list):len(list)], born(undo("chg_5", string(parent.ID)), wetink.Pending))...)
		f.refused(nil, append(list[:len(list):len(list)], move(other, wetink.Applied))...)

		// The place for an undo and the one under the cap were given back, or this could not pass.
		ev := f.advance(list...)
		if ev[0].Seq != int64(len(f.events(0))-len(list)+1) {
			f.t.Errorf("the refusals left a gap: %d", ev[0].Seq)
		}
		f.refused(wetink.ErrCapped, tooMuch)
	})
	open.that(t, "no moves are no event", func(f *fixture) {
		before := f.everything()
		f.advance()
		f.unchanged(before)
	})
}
