package wetink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wetink/wetink/internal/crashpoint"
)

// This file is the only place that writes outside.

// writable refuses when the switch is off. It burns nothing.
func (e *Engine) writable(ctx context.Context) error {
	m, err := e.Mode(ctx)
	if err != nil {
		return err
	}
	if m != ModeGuarded {
		return fmt.Errorf("%w (mode %s): run `wetink mode guarded` to turn them on; nothing was used up", ErrOff, m)
	}
	return nil
}

// holds returns the target of t and the version of its mapping, if this process holds it for the same account
// and the ledger is the one that t names.
func (e *Engine) holds(ctx context.Context, t Terms) (target Target, version string, err error) {
	if t.Ledger != e.ledger.ID() {
		return nil, "", fmt.Errorf("%w: preview it again", ErrRestored)
	}
	target, ok := e.targets[t.Target]
	if !ok {
		return nil, "", fmt.Errorf("%s: %w", t.Target, ErrNoTarget)
	}
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	acct, version, err := target.Account(ctx)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("ask %s for the account: %w", t.Target, err)
	case acct != t.Account:
		return nil, "", fmt.Errorf("%w: it was previewed for %s", ErrAccount, t.Account)
	}
	return target, version, nil
}

// claim takes the exclusive right to send and executes.
//
// Order of effects: write mode, account and mapping, policy asked again, every stored approval verified
// again from its bytes, all before the claim, so that a refusal burns nothing → one Advance (what comes
// before, the approval, the claim; clock, cap and switch are decided in it; durable before anything is sent)
// → send. A context that ends after the claim ends nothing.
func (e *Engine) claim(ctx context.Context, c Change, ev *Evidence, list ...Move) (Change, Ticket, error) {
	refuse := func(err error) (Change, Ticket, error) {
		return c, Ticket{}, fmt.Errorf("claim %s: %w", c.ID, err)
	}
	t, err := c.Terms()
	if err != nil {
		return refuse(err)
	}
	if err := e.writable(ctx); err != nil {
		return refuse(err)
	}
	target, version, err := e.holds(ctx, t)
	if err != nil {
		return refuse(err)
	}
	if version != t.Version { // what was previewed is not what would be done today
		return refuse(fmt.Errorf("%w: preview it again", ErrVersion))
	}
	d, err := e.decide(ctx, target, t, c.Before)
	if err != nil {
		return refuse(fmt.Errorf("ask the policy: %w", err))
	}
	if d.Deny != "" {
		return refuse(fmt.Errorf("%w: %s", ErrDenied, d.Deny))
	}
	approvals := make([]Approval, 0, len(c.Approvals)+1)
	for _, a := range c.Approvals {
		again, err := e.verify(ctx, c, t, a.Evidence)
		if err != nil {
			return refuse(err)
		}
		approvals = append(approvals, again)
	}
	ordered := c.ordered()
	row := c // as it will be when the moves so far are done
	if c.Status == Pending {
		if ev == nil && t.Require.Level == Auto {
			ev = &Evidence{Kind: EvidencePolicy, Digest: c.Statement.Digest()}
		}
		if ev == nil {
			return refuse(ErrNotApproved)
		}
		m, err := e.approval(ctx, c, t, *ev)
		if err != nil {
			return refuse(err)
		}
		list, approvals = append(list, m), append(approvals, *m.Approval)
		row.Rev, row.Status = c.Rev+1, m.To
	}
	required := Stricter(t.Require, d.Require)
	if ordered {
		required, d.Cap = t.Require, nil // what was ordered was approved, and counted, with the parent
	}
	if row.Status == Approved && !required.Met(t, approvals) {
		return refuse(fmt.Errorf("%w: the policy asks for level %s and %d person(s) now; preview it again", ErrLevel, required.Level, max(required.People, 1)))
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return refuse(err)
	}
	if row.Status == Pending || t.NotBefore.After(now) { // one more person has to say yes, or it starts later
		if len(list) == 0 {
			return refuse(ErrEarly)
		}
		if _, err := e.ledger.Advance(ctx, list...); err != nil {
			return refuse(e.late(ctx, c, err))
		}
		c, err := e.ledger.Get(ctx, c.Tenant, c.ID)
		return c, Ticket{}, err
	}
	s := &sender{e: e, target: target, terms: t, before: c.Before, id: c.ID, tenant: c.Tenant,
		claim: Claim{ID: rand.Text(), Owner: e.opt.Owner, Lease: now.Add(e.opt.Lease)}}
	m := e.move(row, Applying, KindClaimed)
	m.After, m.Before, m.Due = t.NotBefore, t.StartBy, s.claim.Lease
	m.Claim, m.Cap, m.Day = &s.claim, d.Cap, d.Day
	if m.Day == "" {
		m.Day = now.Format(time.DateOnly)
	}
	m.Event.Facts = map[string]string{"claim": s.claim.ID}
	for _, a := range approvals {
		m.Event.Level = max(m.Event.Level, a.Level)
	}

	ctx = context.WithoutCancel(ctx)
	crashpoint.Here(crashpoint.BeforeClaim)
	s.renewed(time.Now())
	if _, err = e.ledger.Advance(ctx, append(list, m)...); err != nil {
		err = e.late(ctx, c, err)
		if refused(err) {
			return refuse(err)
		}
		// Nobody knows whether the claim was committed. Our own random id in the row tells.
		got, again := e.ledger.Get(ctx, c.Tenant, c.ID)
		if again != nil || got.Claim.ID != s.claim.ID {
			return refuse(errors.Join(err, again))
		}
	}
	crashpoint.Here(crashpoint.AfterClaim)
	return s.run(ctx)
}

// refused reports an error after which nothing was written.
func refused(err error) bool {
	for _, r := range []error{ErrConflict, ErrLate, ErrEarly, ErrCapped, ErrOff, ErrNotFound, ErrExpired} {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// late writes the expiry that a refusal by the clock found.
func (e *Engine) late(ctx context.Context, c Change, err error) error {
	if !errors.Is(err, ErrLate) {
		return err
	}
	e.expire(ctx, c)
	return fmt.Errorf("%w: make a fresh preview", ErrExpired)
}

// expire ends a Change whose time is over; losing a race is fine.
func (e *Engine) expire(ctx context.Context, c Change) {
	m := e.move(c, Expired, KindExpired)
	m.After, m.Why = c.Due, "nobody approved and started it in time"
	if _, err := e.ledger.Advance(ctx, m); err != nil && !refused(err) {
		e.opt.Log.WarnContext(ctx, "expire", "change", c.ID, "err", err)
	}
}

// sender holds a claim. What it knows of each Op it keeps in memory until it is durable.
type sender struct {
	e      *Engine
	target Target
	terms  Terms
	before []Snapshot
	tenant Tenant
	id     ChangeID
	claim  Claim
	until  time.Time // this process stops sending then, well before the lease is over
}

// renewed is called with the time before the commit that renewed the lease: what the commit took is not ours.
func (s *sender) renewed(from time.Time) { s.until = from.Add(s.e.opt.Lease * 2 / 3) }

// within bounds one call outside by the time that the claim is surely ours.
func (s *sender) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, s.until)
}

// run observes, sends, reads back and settles.
func (s *sender) run(ctx context.Context) (Change, Ticket, error) {
	stale, err := s.stale(ctx)
	if err != nil {
		return s.settle(ctx, nil, "nothing was sent: "+err.Error())
	}
	if stale != nil {
		return s.settle(ctx, stale, "nothing was sent: "+reasons(stale))
	}
	steps, why := s.send(ctx)
	steps = s.readBack(ctx, steps)
	return s.settle(ctx, steps, why)
}

// stale reads every object before the first send and returns a step for each that is not as it was seen.
func (s *sender) stale(ctx context.Context) ([]Step, error) {
	var out []Step
	for i, op := range s.terms.Ops {
		if i > 0 {
			s.keep(ctx)
		}
		now, err := s.observe(ctx, op)
		if err != nil {
			return nil, fmt.Errorf("read %s again: %w", op.Object, err)
		}
		if now.Digest() != op.Before {
			out = append(out, Step{Op: i, Outcome: NoEffect, How: HowStale,
				Why: "changed since the preview: " + moved(s.before[i], now), Receipt: Receipt{Object: op.Object, After: now}})
		}
	}
	return out, nil
}

func (s *sender) observe(ctx context.Context, op Op) (Snapshot, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	return s.target.Observe(ctx, s.terms.Account, op)
}

// keep renews the lease when half of what we may use of it is over: many slow reads must not cost the claim.
func (s *sender) keep(ctx context.Context) {
	if time.Until(s.until) > s.e.opt.Lease/3 {
		return
	}
	err := s.persist(ctx, func(c Change) ([]Move, error) {
		if c.Status != Applying {
			return nil, nil // lost: looking harms nobody, and the fence lets nothing be sent
		}
		m := s.e.move(c, Applying, KindRenewed)
		m.Why = c.Why
		err := s.renew(ctx, &m)
		return []Move{m}, err
	})
	if err != nil {
		s.e.opt.Log.WarnContext(ctx, "the lease was not renewed", "change", s.id, "err", err)
	}
}

// send executes Op after Op, each recorded before the next is sent. It stops at the first that did not
// surely take effect, when the switch is off, and when the claim is no longer surely ours.
func (s *sender) send(ctx context.Context) (steps []Step, why string) {
	for i, op := range s.terms.Ops {
		if err := s.e.writable(ctx); err != nil {
			return steps, "writes were turned off after " + strconv.Itoa(i) + " of " + strconv.Itoa(len(s.terms.Ops))
		}
		// Both clocks: a machine that slept moves only the ledger's.
		now, err := s.e.ledger.Now(ctx)
		if err != nil || !now.Before(s.claim.Lease) || !time.Now().Before(s.until) {
			return steps, "this process was too slow and gave up its claim"
		}
		step := s.execute(ctx, i, op)
		steps = append(steps, step)
		crashpoint.Here(crashpoint.BeforeStep)
		held, err := s.record(ctx, step)
		if err != nil {
			s.e.opt.Log.ErrorContext(ctx, "a step could not be recorded; nothing more is sent", "change", s.id, "op", i, "err", err)
			return steps, "a step could not be recorded"
		}
		crashpoint.Here(crashpoint.AfterStep)
		if !held {
			return steps[i:], "this process was too slow and lost its claim" // what came before is judged already, and may be undone
		}
		if step.Outcome != TookEffect {
			return steps, step.Why
		}
	}
	return steps, ""
}

func (s *sender) execute(ctx context.Context, i int, op Op) Step {
	ctx, cancel := s.within(ctx)
	defer cancel()
	crashpoint.Here(crashpoint.BeforeSend)
	r, err := s.target.Execute(ctx, s.terms.Account, op, verifiedBlobs{s.e.opt.Blobs})
	crashpoint.Here(crashpoint.AfterSend)
	if r.Object == "" {
		r.Object = op.Object
	}
	step := Step{Op: i, Outcome: TookEffect, How: "answer", Receipt: r}
	switch {
	case errors.Is(err, ErrNotApplied):
		step.Outcome, step.Why = NoEffect, err.Error()
	case err != nil:
		step.Outcome, step.Why = Unknown, "the answer was lost: "+err.Error()
	}
	return step
}

// record makes a step durable and renews the lease, if the claim is still held: not if somebody called it in
// doubt meanwhile. It is never refused for good: what happened, happened.
func (s *sender) record(ctx context.Context, step Step) (held bool, err error) {
	err = s.persist(ctx, func(c Change) ([]Move, error) {
		m := s.e.stepMove(c, step)
		held = c.Status == Applying
		switch c.Status {
		case Applying:
			m.To = Applying
			if err := s.renew(ctx, &m); err != nil {
				return nil, err
			}
		case InDoubt, Failed, Applied, Partial: // the lease was lost meanwhile: a late answer of the same claim
			if !contradicts(c, step) {
				return nil, nil
			}
			m.To, m.Step.How, m.Event.Facts["how"] = InDoubt, "late answer", "late answer"
		case Pending, Approved, Expired, Rejected, Superseded: // never after a claim
			return nil, nil
		}
		return []Move{m}, nil
	})
	return held, err
}

// renew makes a Move renew the lease.
func (s *sender) renew(ctx context.Context, m *Move) error {
	now, err := s.e.ledger.Now(ctx)
	if err != nil {
		return err
	}
	lease := s.claim
	lease.Lease = now.Add(s.e.opt.Lease)
	m.Claim, m.Due = &lease, lease.Lease
	return nil
}

// contradicts reports whether what happened is not what c has recorded.
func contradicts(c Change, steps ...Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		old, ok := c.StepOf(s.Op)
		return ok && old.Outcome != s.Outcome && s.replaces(old) || !ok && s.Outcome != NoEffect
	})
}

// stepMove starts the Move that adds a step.
func (e *Engine) stepMove(c Change, step Step) Move {
	m := e.move(c, InDoubt, KindStep)
	m.Step, m.Due, m.Why = &step, c.Claim.Lease, c.Why // in doubt: due at once, or nobody looks again
	m.Event.Facts = map[string]string{"op": strconv.Itoa(step.Op), "outcome": string(step.Outcome), "how": step.How}
	return m
}

var recordDelays = []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second}

// persist advances the row by what decide makes of it, until it is durable or decide wants nothing.
// Deciding afresh on each try makes it safe after a lost commit: what is there is not added again.
func (s *sender) persist(ctx context.Context, decide func(Change) ([]Move, error)) error {
	var err error
	for _, d := range recordDelays {
		if d > 0 {
			time.Sleep(d)
		}
		var c Change
		if c, err = s.e.ledger.Get(ctx, s.tenant, s.id); err != nil {
			continue
		}
		if c.Claim.ID != s.claim.ID {
			return fmt.Errorf("%w: %s carries another claim", ErrTampered, s.id)
		}
		var list []Move
		if list, err = decide(c); err != nil {
			continue
		}
		if len(list) == 0 {
			return nil
		}
		from := time.Now()
		if _, err = s.e.ledger.Advance(ctx, list...); err == nil {
			if list[0].Claim != nil {
				s.renewed(from)
				s.claim = *list[0].Claim
			}
			return nil
		}
	}
	return err
}

var readBackDelays = []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond, 1500 * time.Millisecond}

// readBack judges what is there now. It reads again for a while when the old state is seen, because the
// outside system may answer reads from an older copy.
func (s *sender) readBack(ctx context.Context, steps []Step) []Step {
	judge, ok := s.target.(Judge)
	if !ok {
		return steps
	}
	for i, step := range steps {
		if step.Outcome == TookEffect {
			s.keep(ctx) // held or not: an answer that comes late is no better than another
			steps[i] = s.readBackOne(ctx, judge, step)
		}
	}
	return steps
}

func (s *sender) readBackOne(ctx context.Context, judge Judge, step Step) Step {
	op := afterOp(s.terms.Ops[step.Op], step)
	ctx, cancel := s.e.bounded(ctx)
	defer cancel()
	var verdict Verdict
	var why string
	var now Snapshot
	var err error
	for _, d := range readBackDelays {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		if now, err = s.target.Observe(ctx, s.terms.Account, op); err != nil {
			continue
		}
		if verdict, why = judge.Judge(op, s.before[step.Op], now); verdict != Untouched {
			break
		}
	}
	step.How = "read back"
	switch {
	case err != nil:
		step.Outcome, step.Why = Unknown, "it was answered, but could not be read back: "+err.Error()
		return step
	case verdict == Otherwise:
		step.Outcome, step.Why = Differs, "read back otherwise: "+why
	case verdict == Foreign:
		step.Outcome, step.Why = Differs, "somebody else changed it at the same time: "+why
		return step // without After: what is there is not what we left, and no undo may write over it
	case verdict == Untouched:
		step.Outcome, step.Why = Unknown, "it was answered as done, but the old state is read back"
		return step
	case verdict == Opaque:
		step.How, step.Why = HowAnswered, why
	}
	step.Receipt.After = now
	if now.Object != "" {
		step.Receipt.Object = now.Object // an answer may name the wrong one; what was read back is ours
	}
	return step
}
