package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

// RunModel drives an engine on a fresh ledger at random: previews, approvals, applies, undos, processes that
// die at any send or commit, answers that are lost, writes of others, a clock that jumps, writes turned off.
// After each step the oracles of oracles.go are asked. It waits for nothing: only the ledger's clock jumps.
//
// A failure prints how to run it again; -rapid.checks and -rapid.steps make it a campaign.
func RunModel(t *testing.T, open func(t *testing.T, now func() time.Time) wetink.Ledger) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, func(now func() time.Time) wetink.Ledger { return open(t, now) })
		rt.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"preview":   m.preview,
			"approve":   m.approve,
			"apply":     m.apply,
			"in one go": m.inOneGo, // deep lives are rare if each verb is drawn for itself
			"undo":      m.undo,
			"reconcile": m.reconcile,
			"withdraw":  func(rt *rapid.T) { rapid.SampledFrom([]func(*rapid.T){m.replace, m.reject}).Draw(rt, "how")(rt) },
			"world": func(rt *rapid.T) {
				rapid.SampledFrom([]func(*rapid.T){m.jump, m.land, m.mode, m.foreign}).Draw(rt, "what")(rt)
			},
		})
		m.rt = rt
		m.finish()
	})
}

// model is what we know of the world besides the ledger: what really happened outside.
type model struct {
	rt     *rapid.T
	ctx    context.Context
	l      wetink.Ledger // without faults
	kit    *wetinktest.Kit
	plan   *plan
	target *wetinktest.Target

	mu      sync.Mutex
	ahead   time.Duration  // of the ledger's clock
	effects map[string]int // by Op.Key
	held    []sent         // may land until their time of flight is over
	wrong   []string       // what the hooks saw

	tickets map[wetink.ChangeID]wetink.Evidence // of apply
	undoing map[wetink.ChangeID]wetink.Evidence // of undo
	serial  int                                 // makes every value that is ever written unlike all others
	seen    int64                               // events up to here are checked
	status  map[wetink.ChangeID]wetink.Status   // as the events tell
}

type sent struct {
	op    wetink.Op
	state string // the object as it was when it was sent: a conditional write
	do    func() error
}

var objects = []string{"a", "b"}

func newModel(rt *rapid.T, open func(func() time.Time) wetink.Ledger) *model {
	m := &model{rt: rt, ctx: context.Background(), target: wetinktest.NewTarget(), effects: map[string]int{},
		tickets: map[wetink.ChangeID]wetink.Evidence{}, undoing: map[wetink.ChangeID]wetink.Evidence{},
		status: map[wetink.ChangeID]wetink.Status{}}
	m.l = open(func() time.Time { m.mu.Lock(); defer m.mu.Unlock(); return time.Now().Add(m.ahead) })
	m.target.OnExecute = m.execute
	for _, o := range objects {
		m.put(o)
	}
	m.start()
	return m
}

// put writes an object behind everybody's back.
func (m *model) put(object string) {
	m.serial++
	m.target.Put(object, fmt.Sprintf(`{"n":%d,"x":"kept"}`, m.serial))
}

// start is a new process on the same ledger and the same outside.
func (m *model) start() {
	m.plan = &plan{}
	m.kit = wetinktest.On(&frail{m.l, m.plan}, m.target, &wetink.Options{Policy: byObject{}})
}

// byObject asks level agent for what touches only the first object, and two others for what touches the second.
type byObject struct{}

func (byObject) Decide(_ context.Context, t wetink.Terms, _ []wetink.Snapshot) (wetink.Decision, error) {
	switch {
	case len(t.Ops) > 1:
		return wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 1}}, nil
	case t.Ops[0].Object == objects[0]:
		return wetink.Decision{Require: wetink.Require{Level: wetink.Agent, People: 1}, Cap: &wetink.Cap{Name: "a", Max: 10}}, nil
	}
	return wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 2, Other: true}}, nil
}

// execute is what the outside makes of one send.
func (m *model) execute(_ int, op wetink.Op, do func() error) error {
	m.mayBeSent(op)
	effect := func() error {
		err := do()
		if err == nil {
			m.mu.Lock()
			m.effects[op.Key]++
			m.mu.Unlock()
		}
		return err
	}
	switch next(&m.plan.sendN, m.plan.send) {
	case refused:
		return fmt.Errorf("409: %w", wetink.ErrNotApplied)
	case lost:
		return errBroken
	case held:
		m.held = append(m.held, sent{op, m.target.Object(op.Object), effect})
		return errBroken
	case dieBefore:
		m.plan.end()
	case dieAfter:
		_ = effect()
		m.plan.end()
	case lostDone:
		_ = effect()
		return errBroken
	case turnedOff:
		if err := m.l.SetMode(m.ctx, wetink.ModeOff, "bo"); err != nil {
			m.say("turn writes off: %v", err)
		}
	}
	return effect()
}

// call runs f as a call of a process that meets faults, and reports whether the process lived.
func (m *model) call(rt *rapid.T, f func(ctx context.Context)) bool {
	ctx, die := context.WithCancel(m.ctx)
	defer die()
	*m.plan = plan{
		send: rapid.SampledFrom(sendFaults).Draw(rt, "send"), sendN: rapid.IntRange(1, 3).Draw(rt, "at send"),
		commit: rapid.SampledFrom(commitFaults).Draw(rt, "commit"), commitN: rapid.IntRange(1, 6).Draw(rt, "at commit"),
		die: die,
	}
	m.mu.Lock()
	m.ahead += 2 * time.Millisecond // ids then order as they were made, so that a failure can be run again
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }() // of its own, as the end of a process ends it
	<-done
	if ctx.Err() != nil {
		m.start()
		return false
	}
	*m.plan = plan{}
	return true
}

// some draws a Change that fits, or ends the step.
func (m *model) some(rt *rapid.T, fits func(wetink.Change) bool) wetink.Change {
	rows := slices.DeleteFunc(m.rows(), func(c wetink.Change) bool { return !fits(c) })
	if len(rows) == 0 {
		rt.Skip("none fits")
	}
	return rows[rapid.IntRange(0, len(rows)-1).Draw(rt, "change")]
}

func (m *model) rows() (rows []wetink.Change) {
	for c, err := range m.l.List(m.ctx, wetink.Filter{Limit: 10000}) {
		if err != nil {
			m.rt.Fatalf("list: %v", err)
		}
		rows = append(rows, c)
	}
	return rows
}

func is(s ...wetink.Status) func(wetink.Change) bool {
	return func(c wetink.Change) bool { return slices.Contains(s, c.Status) }
}

func (m *model) args(rt *rapid.T) []byte {
	touched := rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}}).Draw(rt, "objects")
	args := ""
	for _, o := range touched {
		m.serial++
		args += fmt.Sprintf(`,{"action":"update","object":%q,"set":{"n":%d}}`, o, m.serial)
	}
	return []byte(`{"on_failure":"` + rapid.SampledFrom([]string{"undo", "stop"}).Draw(rt, "on failure") + `","ops":[` + args[1:] + `]}`)
}

func (m *model) preview(rt *rapid.T) {
	args := m.args(rt)
	m.call(rt, func(ctx context.Context) {
		c, ticket, err := m.kit.Preview(ctx, "test", wetink.Request{By: wetinktest.By, Tool: "set", Args: args})
		m.unexpected("preview", err, errBroken)
		m.keep(m.tickets, c, ticket)
	})
}

func (m *model) replace(rt *rapid.T) {
	old, args := m.some(rt, is(wetink.Pending, wetink.Approved)), m.args(rt)
	m.call(rt, func(ctx context.Context) {
		c, ticket, err := m.kit.Replace(ctx, wetinktest.By, old.ID, args)
		m.unexpected("replace", err, errBroken, wetink.ErrState)
		m.keep(m.tickets, c, ticket)
	})
}

func (m *model) approve(rt *rapid.T) {
	c := m.some(rt, is(wetink.Pending))
	m.sayYes(rt, c, rapid.SampledFrom([]wetink.Level{wetink.Agent, wetink.Session, wetink.Passkey}).Draw(rt, "level"),
		wetink.Person(rapid.SampledFrom([]string{"ana", "bo", "cy"}).Draw(rt, "person")))
}

func (m *model) sayYes(rt *rapid.T, c wetink.Change, level wetink.Level, by wetink.Person) {
	m.call(rt, func(ctx context.Context) {
		_, err := m.kit.Approve(ctx, wetinktest.By, c.ID, wetinktest.Vouch(c, level, by))
		m.unexpected("approve", err, errBroken, wetink.ErrLevel, wetink.ErrLate, wetink.ErrState)
	})
}

// inOneGo previews, or undoes, and goes as far with it as the faults allow.
func (m *model) inOneGo(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "new") {
		m.preview(rt)
	} else {
		m.undo(rt)
	}
	rows := m.rows()
	if len(rows) == 0 || !is(wetink.Pending)(rows[0]) {
		return
	}
	if _, ticketed := m.tickets[rows[0].ID]; !ticketed {
		m.sayYes(rt, rows[0], wetink.Session, "bo")
		if c, err := m.l.Get(m.ctx, rows[0].Tenant, rows[0].ID); err == nil && c.Status == wetink.Pending {
			m.sayYes(rt, c, wetink.Passkey, "cy")
		}
	}
	m.applyOne(rt, rows[0])
}

func (m *model) reject(rt *rapid.T) {
	c := m.some(rt, is(wetink.Pending, wetink.Approved))
	m.call(rt, func(ctx context.Context) {
		_, err := m.kit.Reject(ctx, wetinktest.By, c.ID, "no")
		m.unexpected("reject", err, errBroken)
	})
}

// apply also sends again what was sent before, with the right ticket. A claim that a dead process left would
// be waited for; reconcile takes it on.
func (m *model) apply(rt *rapid.T) {
	m.applyOne(rt, m.some(rt, func(c wetink.Change) bool { return c.Status != wetink.Applying }))
}

func (m *model) applyOne(rt *rapid.T, c wetink.Change) {
	var ev *wetink.Evidence
	if known, ok := m.tickets[c.ID]; ok {
		ev = &known
	}
	before := len(m.target.Journal())
	var err error
	lived := m.call(rt, func(ctx context.Context) {
		var got wetink.Change
		var ticket wetink.Ticket
		got, ticket, err = m.kit.Apply(ctx, wetinktest.By, c.ID, ev)
		m.unexpected("apply", err, errBroken, wetink.ErrState, wetink.ErrExpired, wetink.ErrNotApproved, wetink.ErrOff,
			wetink.ErrCapped, wetink.ErrTicket, wetink.ErrLevel, context.Canceled)
		m.keep(m.undoing, got, ticket)
	})
	if n := len(m.target.Journal()); lived && err != nil && n != before {
		rt.Fatalf("apply of %s says %q after %d effects", c.ID, err, n-before)
	}
}

// undo restores what was there before, or refuses and touches nothing.
func (m *model) undo(rt *rapid.T) {
	c := m.some(rt, func(c wetink.Change) bool {
		return len(c.Undoes) == 0 && is(wetink.Applied, wetink.Partial)(c) && !slices.ContainsFunc(m.rows(), func(u wetink.Change) bool {
			return undoes(u, c.ID) && u.Status == wetink.Applying
		})
	})
	var ev *wetink.Evidence
	if known, ok := m.undoing[c.ID]; ok {
		ev = &known
	}
	before, was := len(m.target.Journal()), map[string]string{}
	for _, o := range objects {
		was[o] = m.target.Object(o)
	}
	var u wetink.Change
	var err error
	lived := m.call(rt, func(ctx context.Context) {
		var ticket wetink.Ticket
		u, ticket, err = m.kit.Undo(ctx, wetinktest.By, c.ID, ev)
		m.unexpected("undo", err, errBroken, wetink.ErrState, wetink.ErrStale, wetink.ErrTicket, wetink.ErrExpired, wetink.ErrOff,
			wetink.ErrNotApproved, wetink.ErrConflict, wetink.ErrCapped, wetink.ErrLate, context.Canceled)
		if err == nil && undoes(u, c.ID) {
			m.keep(m.tickets, u, ticket)
		}
	})
	n := len(m.target.Journal()) - before
	switch {
	case !lived:
	case err != nil && n != 0:
		rt.Fatalf("undo of %s says %q after %d effects", c.ID, err, n)
	case err == nil && u.Status == wetink.Applied && n > 0:
		m.restored(c, was)
	}
}

func (m *model) reconcile(rt *rapid.T) {
	c := m.some(rt, is(wetink.Applying, wetink.InDoubt))
	m.call(rt, func(ctx context.Context) {
		got, ticket, err := m.kit.Reconcile(ctx, wetinktest.By, c.ID)
		m.unexpected("reconcile", err, errBroken, wetink.ErrEarly)
		m.keep(m.undoing, got, ticket)
	})
}

// jump moves the ledger's clock. What is still on its way has landed or not before its flight is over.
func (m *model) jump(rt *rapid.T) {
	for len(m.held) > 0 {
		m.land(rt)
	}
	d := rapid.SampledFrom([]time.Duration{time.Second, 61 * time.Second, 5 * time.Minute, 16 * time.Minute, 25 * time.Hour}).Draw(rt, "jump")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += d
}

func (m *model) land(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("nothing is on its way")
	}
	s := m.held[0]
	m.held = m.held[1:]
	if rapid.Bool().Draw(rt, "lands") && m.target.Object(s.op.Object) == s.state {
		_ = s.do()
	}
}

func (m *model) mode(rt *rapid.T) {
	if err := m.l.SetMode(m.ctx, rapid.SampledFrom([]wetink.Mode{wetink.ModeGuarded, wetink.ModeGuarded, wetink.ModeGuarded, wetink.ModeOff, wetink.ModeObserve}).Draw(rt, "mode"), "bo"); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) foreign(rt *rapid.T) { m.put(rapid.SampledFrom(objects).Draw(rt, "object")) }

func (m *model) keep(where map[wetink.ChangeID]wetink.Evidence, c wetink.Change, t wetink.Ticket) {
	if !t.IsZero() {
		where[c.ID] = wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: t}
	}
}

// unexpected notes an error that the verb may not give here. It runs where a test must not be ended.
func (m *model) unexpected(verb string, err error, allowed ...error) {
	if err != nil && !slices.ContainsFunc(allowed, func(a error) bool { return errors.Is(err, a) }) {
		m.say("%s: unexpected error: %v", verb, err)
	}
}

func (m *model) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}
