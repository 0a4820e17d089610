package ledgertest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

func facts(t *testing.T, open opener) {
	open.that(t, "approvals add up in order, exactly as given", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		want := c
		for i, by := range []wetink.Person{"bo", "cy", "bo"} {
			a := wetink.Approval{Level: wetink.Level(i + 2), At: start.Add(time.Duration(i) * time.Second), Evidence: wetink.Evidence{
				Kind: "page", Digest: c.Statement.Digest(), By: by, Client: "browser", Via: "card", Shown: start.Add(-time.Minute),
				Data: []byte{0, 255, '"', byte(i)}}}
			to := []wetink.Status{wetink.Pending, wetink.Pending, wetink.Approved}[i]
			m := move(f.get(c), to)
			m.Approval = &a
			at := f.wall.forward()
			f.advance(m)
			want.Approvals, want.Status, want.Updated = append(want.Approvals, a), to, at
			want.Rev++
			f.same(f.get(c), want)
		}
	})
	open.that(t, "a later step of the same operation replaces the earlier one, and steps stand in order of operations", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Applying)
		late := func(op int, o wetink.Outcome) wetink.Step {
			return wetink.Step{Op: op, Outcome: o, How: "answer", Why: "because <of>", Receipt: wetink.Receipt{
				Object: "o", Raw: json.RawMessage("[ 1 ,\"\\u0041\" ]"),
				After: wetink.Snapshot{Object: "o", Version: "7", Body: json.RawMessage("{\"b\" :1, \"a\": [] }"), At: start.Add(3)}}}
		}
		for _, s := range []wetink.Step{late(2, wetink.Unknown), late(0, wetink.TookEffect), late(11, wetink.NoEffect), late(1, wetink.Unknown), late(2, wetink.TookEffect)} {
			m := move(f.get(c), wetink.Applying)
			m.Step = &s
			f.advance(m)
		}
		m := move(f.get(c), wetink.InDoubt)
		again := late(1, wetink.Differs)
		m.Step = &again
		f.advance(m)
		want := f.get(c)
		want.Steps = []wetink.Step{late(0, wetink.TookEffect), late(1, wetink.Differs), late(2, wetink.TookEffect), late(11, wetink.NoEffect)}
		f.same(f.get(c), want)
	})
	open.that(t, "a later ticket of the same verb replaces the earlier one", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		sealed := func(verb string, n byte) wetink.Sealed {
			return wetink.Sealed{Verb: verb, Delivered: wetink.DeliveredResult, Expires: start.Add(time.Duration(n) * time.Second), Hash: wetink.Digest{n}}
		}
		for _, s := range []wetink.Sealed{sealed("apply", 1), sealed("undo", 2), sealed("apply", 3), sealed("undo", 4)} {
			m := move(f.get(c), wetink.Pending)
			m.Ticket = &s
			f.advance(m)
		}
		got := map[wetink.Sealed]bool{}
		for _, s := range f.get(c).Tickets {
			got[s] = true
		}
		if len(got) != 2 || len(f.get(c).Tickets) != 2 || !got[sealed("apply", 3)] || !got[sealed("undo", 4)] {
			f.t.Errorf("tickets: %v", f.get(c).Tickets)
		}
	})
	open.that(t, "the claim is kept, and only its holder renews it", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Approved)
		m := move(c, wetink.Applying)
		m.Claim = &wetink.Claim{ID: "mine", Owner: "host/12", Lease: start.Add(time.Minute)}
		f.advance(m)
		if got := f.get(c).Claim; got.ID != "mine" || got.Owner != "host/12" || !got.Lease.Equal(m.Claim.Lease) {
			f.t.Errorf("claim %+v", got)
		}
		renew := move(f.get(c), wetink.Applying)
		renew.Claim = &wetink.Claim{ID: "another's", Lease: start.Add(time.Hour)}
		f.refused(wetink.ErrConflict, renew)
		renew.Claim = &wetink.Claim{ID: "", Lease: start.Add(time.Hour)}
		f.refused(wetink.ErrConflict, renew)
		renew.Claim = &wetink.Claim{ID: "mine", Owner: "host/12", Lease: start.Add(time.Hour)}
		f.advance(renew)
		f.step(f.get(c), wetink.Applying) // a move without a claim keeps it
		for _, s := range []wetink.Status{wetink.Failed, wetink.InDoubt} {
			if got := f.step(f.get(c), s).Claim; got.ID != "mine" || !got.Lease.Equal(start.Add(time.Hour)) {
				f.t.Errorf("%s: claim %+v", s, got)
			}
		}
	})
	open.that(t, "due and why are those of the last move, also when it names none", func(f *fixture) {
		m := born(row("chg_1"), wetink.Pending)
		m.Due, m.Why = start.Add(time.Hour), "new"
		f.advance(m)
		m = move(f.get(*m.New), wetink.Approved)
		m.Due, m.Why = start.Add(1234*time.Millisecond), "somebody said yes"
		f.advance(m)
		got := f.get(row("chg_1"))
		if !got.Due.Equal(m.Due) || got.Why != m.Why {
			f.t.Errorf("due %v, why %q", got.Due, got.Why)
		}
		if got = f.step(got, wetink.Applying); !got.Due.IsZero() || got.Why != "" {
			f.t.Errorf("after a move that names none: due %v, why %q", got.Due, got.Why)
		}
	})
	open.that(t, "nothing that a caller holds is the ledger's own memory", func(f *fixture) {
		c := full("chg_1")
		m := born(c, wetink.Pending)
		m.Approval = &wetink.Approval{Evidence: wetink.Evidence{Data: []byte("data")}}
		m.Event.Facts = map[string]string{"op": "1"}
		ev := f.advance(m)
		want := f.everything()
		scribble := func(c wetink.Change) {
			for _, b := range [][]byte{c.Statement, c.Request.Args, c.Before[0].Body} {
				b[0] ^= 1
			}
			c.Before[1].Object, c.Request.By.Scopes[0] = "another", "another"
			for _, a := range c.Approvals {
				a.Evidence.Data[0] ^= 1
			}
		}
		scribble(c)
		m.Approval.Evidence.Data[0] ^= 1
		m.Event.Facts["op"], ev[0].Facts["op"] = "2", "3"
		scribble(f.get(c))
		scribble(f.list(wetink.Filter{AnyTenant: true})[0])
		f.events(0)[0].Facts["op"] = "4"
		f.unchanged(want)
	})
}
