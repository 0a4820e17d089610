package ledgertest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

// mayBeSent is asked at each send: the claim is durable, writes are on, the object is as it was seen, and
// somebody approved exactly this.
func (m *model) mayBeSent(op wetink.Op) {
	mode, err := m.l.Mode(m.ctx)
	if err != nil || mode != wetink.ModeUnset && mode != wetink.ModeGuarded {
		m.say("sent while writes are %s (%v)", mode, err)
	}
	// The engine's key of an operation is the change's id, "-", and two digits.
	c, err := m.l.Get(m.ctx, wetinktest.By.Tenant, wetink.ChangeID(op.Key[:len(op.Key)-len("-00")]))
	if err != nil {
		m.say("sent without a row: %v", err)
		return
	}
	if c.Status != wetink.Applying || c.Claim.ID == "" {
		m.say("%s is sent while %s", c.ID, c.Status)
	}
	t, err := c.Terms()
	if err != nil {
		m.say("%v", err)
		return
	}
	for i, o := range t.Ops {
		if o.Key == op.Key && m.target.Object(op.Object) != string(c.Before[i].Body) {
			m.say("%s is sent over %s, and %s was approved", op.Key, m.target.Object(op.Object), c.Before[i].Body)
		}
	}
	if !t.Require.Met(t, c.Approvals) {
		m.say("%s is sent with %d approvals, and needs %+v", c.ID, len(c.Approvals), t.Require)
	}
	for _, a := range c.Approvals {
		signed := c.Statement
		if a.Evidence.Kind == wetink.EvidenceOrdered {
			p, err := m.l.Get(m.ctx, c.Tenant, c.Undoes[0].Change)
			if err != nil {
				m.say("parent of %s: %v", c.ID, err)
			}
			signed = p.Statement
		}
		if a.Evidence.Digest != signed.Digest() {
			m.say("%s is sent, and what was approved is another", c.ID)
		}
	}
}

// check is asked after each step.
func (m *model) check(rt *rapid.T) {
	for _, w := range m.wrong {
		rt.Error(w)
	}
	ev, err := history(m.ctx, m.l, m.seen)
	if err != nil {
		rt.Fatalf("events: %v", err)
	}
	for _, e := range ev {
		if m.seen++; e.Seq != m.seen {
			rt.Fatalf("seq %d, want %d", e.Seq, m.seen)
		}
		if e.Change == "" {
			continue
		}
		if was := m.status[e.Change]; e.From != was || !wetink.CanMove(was, e.To) {
			rt.Errorf("%s was %q, and then went from %q to %q", e.Change, was, e.From, e.To)
		}
		m.status[e.Change] = e.To
	}
	live := map[wetink.ChangeID]int{}
	for _, c := range m.rows() {
		if c.Status != m.status[c.ID] {
			rt.Errorf("%s is %s, its events say %s", c.ID, c.Status, m.status[c.ID])
		}
		for _, u := range c.Undoes {
			if !c.Status.Live() {
				break
			}
			if live[u.Change]++; live[u.Change] > 1 {
				rt.Errorf("%s has two live undos", u.Change)
			}
		}
		m.honest(rt, c)
	}
}

// honest: each operation took effect at most once, and the end state says what really happened.
func (m *model) honest(rt *rapid.T, c wetink.Change) {
	t, err := c.Terms()
	if err != nil {
		rt.Fatal(err)
	}
	if c.Status == wetink.Approved && !t.Require.Met(t, c.Approvals) {
		rt.Errorf("%s is approved with %d approvals, and needs %+v", c.ID, len(c.Approvals), t.Require)
	}
	yes := 0
	for _, op := range t.Ops {
		if m.effects[op.Key] > 1 {
			rt.Errorf("%s took effect %d times", op.Key, m.effects[op.Key])
		}
		yes += m.effects[op.Key]
	}
	ended := is(wetink.Failed, wetink.Pending, wetink.Approved, wetink.Expired, wetink.Rejected, wetink.Superseded)
	switch {
	case ended(c) && yes != 0:
		rt.Errorf("%s is %s (%s), and %d operations took effect", c.ID, c.Status, c.Why, yes)
	case c.Status == wetink.Applied && yes != len(t.Ops):
		rt.Errorf("%s is applied, and %d of %d operations took effect", c.ID, yes, len(t.Ops))
	case c.Status == wetink.Partial && yes == 0:
		rt.Errorf("%s is partial (%s), and nothing took effect", c.ID, c.Why)
	}
}

// restored: before the undo each object that c changed was as c left it, and now it is as it was before c.
func (m *model) restored(c wetink.Change, was map[string]string) {
	t, err := c.Terms()
	if err != nil {
		m.rt.Fatal(err)
	}
	for _, s := range c.Steps {
		if s.Outcome != wetink.TookEffect && s.Outcome != wetink.Differs {
			continue
		}
		if left := string(s.Receipt.After.Body); was[t.Ops[s.Op].Object] != left {
			m.rt.Errorf("the undo of %s overwrote %s, which others had made of %s", c.ID, was[t.Ops[s.Op].Object], left)
		}
		if got, want := m.target.Object(t.Ops[s.Op].Object), string(c.Before[s.Op].Body); got != want {
			m.rt.Errorf("%s is undone, and %s is %s, which was %s", c.ID, t.Ops[s.Op].Object, got, want)
		}
	}
}

// finish: once every request has landed or never will, everything settles, by asking the outside; what
// others overwrote is left to a person, who knows the truth.
func (m *model) finish() {
	for len(m.held) > 0 {
		m.land(m.rt)
	}
	m.mu.Lock()
	m.ahead += 100 * time.Hour
	m.mu.Unlock()
	m.start()
	for round := 0; ; round++ { // a clean-up is born while others settle
		open := slices.DeleteFunc(m.rows(), func(c wetink.Change) bool { return !is(wetink.Applying, wetink.InDoubt)(c) })
		if len(open) == 0 {
			break
		}
		if round > 10 {
			m.rt.Fatalf("%d changes do not settle", len(open))
		}
		for _, c := range open {
			got, _, err := m.kit.Reconcile(m.ctx, wetinktest.By, c.ID)
			if err != nil {
				m.rt.Fatalf("reconcile %s at the end: %v", c.ID, err)
			}
			if got.Status == wetink.InDoubt {
				m.resolve(got)
			}
		}
	}
	m.check(m.rt)
}

func (m *model) resolve(c wetink.Change) {
	t, err := c.Terms()
	if err != nil {
		m.rt.Fatal(err)
	}
	var found []wetink.Step
	hidden := false
	for _, op := range wetink.OpenOps(c, t) {
		o := t.Ops[op]
		now, err := m.target.Observe(m.ctx, t.Account, o)
		if err != nil {
			m.rt.Fatal(err)
		}
		verdict, _ := m.target.Judge(o, c.Before[op], now)
		hidden = hidden || verdict == wetink.Foreign
		outcome := wetink.NoEffect
		if m.effects[o.Key] > 0 {
			outcome = wetink.TookEffect
		}
		found = append(found, wetink.Step{Op: op, Outcome: outcome})
	}
	if !hidden {
		m.rt.Errorf("%s stays in doubt (%s), though the outside tells what happened", c.ID, c.Why)
	}
	if _, _, err := m.kit.Resolve(m.ctx, wetinktest.By, c.ID, found); err != nil {
		m.rt.Fatalf("resolve %s: %v", c.ID, err)
	}
}

func undoes(c wetink.Change, parent wetink.ChangeID) bool {
	return slices.ContainsFunc(c.Undoes, func(u wetink.Undone) bool { return u.Change == parent })
}
