package ledgertest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

// full has every field that a new row can have. What is hashed or shown again must keep its very bytes:
// spaces, escapes, order and doubled members included.
func full(id string) wetink.Change {
	c := row(id)
	c.Tenant = "acme"
	c.Request = wetink.Request{
		By:   wetink.Principal{Tenant: "acme", Person: "ana", Client: "a client", Scopes: []string{wetink.ScopePrepare, wetink.ScopeApply}},
		Tool: "update_event",
		Args: json.RawMessage("{ \"b\":1.0e0,\"a\" : \"<&>\\u0041\\n\",\t\"a\":12345678901234567890123 }\n"),
	}
	c.Statement = wetink.Statement("{\"v\":1, \"x\":\"<>&\u2028\",\"n\":1e400}\x00\xff not JSON")
	c.Before = []wetink.Snapshot{
		{Object: "o/1", Version: `W/"12"`, Body: json.RawMessage("{ \"z\" : 1,\n \"a\":\"\\u00e9<\" }"), At: start.Add(-time.Nanosecond)},
		{Object: "o/2", Absent: true, At: start.In(time.FixedZone("", 3600))},
		{},
	}
	c.Target, c.Account, c.Replaces = "calendar", "i317", "chg_older"
	c.Undoes = []wetink.Undone{{Change: "chg_parent", Effects: 2}, {Change: "chg_other", Effects: 1}}
	return c
}

func birth(t *testing.T, open opener) {
	open.that(t, "a new row comes back exactly as it was given", func(f *fixture) {
		want := full("chg_1")
		m := born(want, wetink.Pending)
		m.Due, m.Why = start.Add(15*time.Minute), "waits for a person"
		m.Ticket = &wetink.Sealed{Verb: wetink.VerbApply, Delivered: wetink.DeliveredCard, Expires: start.Add(time.Minute), Hash: wetink.Digest{1, 2, 255}}
		at := f.wall.forward()
		f.advance(m)

		want.Rev, want.Status, want.Due, want.Why = 1, wetink.Pending, m.Due, m.Why
		want.Tickets = []wetink.Sealed{*m.Ticket}
		want.Created, want.Updated = at, at
		got := f.get(want)
		f.same(got, want)
		for i := range want.Before {
			if got.Before[i].Digest() != want.Before[i].Digest() {
				f.t.Errorf("snapshot %d has another digest", i)
			}
		}
		if listed := f.list(wetink.Filter{Tenant: "acme"}); len(listed) != 1 {
			f.t.Errorf("listed %d times", len(listed))
		} else {
			f.same(listed[0], want)
		}
	})
	open.that(t, "no scopes at all stay another thing than an empty list of scopes", func(f *fixture) {
		all, none := row("chg_1"), row("chg_2")
		none.Request.By.Scopes = []string{}
		f.advance(born(all, wetink.Pending), born(none, wetink.Pending))
		if !f.get(all).Request.By.May(wetink.ScopeApply) || f.get(none).Request.By.May(wetink.ScopeApply) {
			f.t.Error("the ledger changed what a principal may do")
		}
	})
	open.that(t, "what is immutable stays as it was through a whole life", func(f *fixture) {
		first := f.bring(full("chg_1"), wetink.Pending)
		last := first
		for _, s := range []wetink.Status{wetink.Approved, wetink.Applying, wetink.InDoubt, wetink.Applied} {
			last = f.step(last, s)
		}
		last.Rev, last.Status, last.Updated, last.Claim = first.Rev, first.Status, first.Updated, first.Claim
		f.same(last, first)
	})
	open.that(t, "an id that exists is a conflict", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		f.refused(wetink.ErrConflict, born(row("chg_1"), wetink.Pending))
		f.step(c, wetink.Rejected)
		f.refused(wetink.ErrConflict, born(row("chg_1"), wetink.Pending))
		f.refused(wetink.ErrConflict, born(row("chg_2"), wetink.Pending), born(row("chg_2"), wetink.Pending))
	})
	open.that(t, "the same id in two tenants is two rows", func(f *fixture) {
		a, b := row("chg_1"), row("chg_1")
		a.Tenant, b.Tenant = "a", "b"
		f.advance(born(a, wetink.Pending))
		f.advance(born(b, wetink.Pending))
		f.step(f.get(a), wetink.Rejected)
		if got := f.get(b).Status; got != wetink.Pending {
			f.t.Errorf("the other tenant's row is %s", got)
		}
	})
	open.that(t, "only an ordered undo is born approved", func(f *fixture) {
		f.refused(nil, born(row("chg_1"), wetink.Approved))
		u := f.bring(undo("chg_2", "chg_parent"), wetink.Pending)
		f.step(u, wetink.Rejected)
		m := born(undo("chg_3", "chg_parent"), wetink.Approved)
		m.Approval = &wetink.Approval{Evidence: wetink.Evidence{Kind: wetink.EvidenceOrdered, Digest: wetink.Digest{7}}, At: start}
		f.advance(m)
		got := f.get(*m.New)
		if got.Status != wetink.Approved || got.Rev != 1 || len(got.Approvals) != 1 || got.Approvals[0].Evidence.Digest != (wetink.Digest{7}) {
			f.t.Errorf("born as %s", text(got))
		}
	})
	open.that(t, "a move that no engine should have made is refused", func(f *fixture) {
		pending := f.bring(row("chg_1"), wetink.Pending)
		approved := f.bring(row("chg_2"), wetink.Approved)
		for name, spoil := range map[string]func() wetink.Move{
			"without an id":                  func() wetink.Move { m := move(pending, wetink.Approved); m.ID = ""; return m },
			"without an event":               func() wetink.Move { m := move(pending, wetink.Approved); m.Event.Kind = ""; return m },
			"of rev 0 that is no birth":      func() wetink.Move { m := move(pending, wetink.Approved); m.Rev = 0; return m },
			"of a rev below zero":            func() wetink.Move { m := move(pending, wetink.Approved); m.Rev = -1; return m },
			"with a row that is no birth":    func() wetink.Move { m := move(pending, wetink.Approved); m.New = &pending; return m },
			"that is born without a row":     func() wetink.Move { m := born(row("chg_9"), wetink.Pending); m.New = nil; return m },
			"that is born as somebody else":  func() wetink.Move { m := born(row("chg_9"), wetink.Pending); m.ID = "chg_8"; return m },
			"that is born in another tenant": func() wetink.Move { m := born(row("chg_9"), wetink.Pending); m.Tenant = "b"; return m },
			"that is born without statement": func() wetink.Move { m := born(row("chg_9"), wetink.Pending); m.New.Statement = nil; return m },
			"that claims without a claim":    func() wetink.Move { m := move(approved, wetink.Applying); m.Claim = nil; return m },
			"that claims without a claim id": func() wetink.Move { m := move(approved, wetink.Applying); m.Claim = &wetink.Claim{}; return m },
			"with a claim but no claiming": func() wetink.Move {
				m := move(pending, wetink.Approved)
				m.Claim = &wetink.Claim{ID: "x"}
				return m
			},
			"with a cap but no claiming": func() wetink.Move {
				m := move(pending, wetink.Approved)
				m.Cap = &wetink.Cap{Name: "x", Max: 9}
				return m
			},
			"with a step before any claim": func() wetink.Move { m := move(approved, wetink.Rejected); m.Step = &wetink.Step{}; return m },
		} {
			f.t.Run(name, func(t *testing.T) {
				g := *f
				g.t = t
				g.refused(nil, spoil())
				g.refused(nil, born(row("chg_good"), wetink.Pending), spoil())
			})
		}
	})
}
