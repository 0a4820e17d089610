package wetink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Reconcile asks the Target about an in-doubt Change. It never writes outside.
//
// Seeing our effect proves it at once. Seeing the old state proves nothing until the Target's Flight after
// the lease is over; a Target that declares none leaves it to Resolve. So does an Op that was answered as done
// and whose old state is there: it was ignored, or somebody took it back. The Ticket is a fresh undo ticket if
// it came out as applied.
func (e *Engine) Reconcile(ctx context.Context, by Principal, id ChangeID) (Change, Ticket, error) {
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("reconcile %s: %w", id, err)
	}
	if c.Status == Applying {
		if err := e.doubt(ctx, c); err != nil {
			return c, Ticket{}, fmt.Errorf("reconcile %s: it is still being applied: %w", id, err)
		}
		if c, err = e.ledger.Get(ctx, by.Tenant, id); err != nil {
			return c, Ticket{}, err
		}
	}
	if c.Status != InDoubt {
		return c, Ticket{}, nil
	}
	c, ticket, err := e.reconcile(ctx, c)
	if err != nil {
		return c, ticket, fmt.Errorf("reconcile %s: %w", id, err)
	}
	return c, ticket, nil
}

// doubt says of a claim whose lease is over that its outcome is unknown. The ledger's clock decides.
func (e *Engine) doubt(ctx context.Context, c Change) error {
	m := e.move(c, InDoubt, KindDoubted)
	m.After, m.Due = c.Claim.Lease, c.Claim.Lease
	m.Why = "the process that applied it stopped; whether it took effect is not known yet"
	_, err := e.ledger.Advance(ctx, m)
	return err
}

// inFlight returns the one Op that may have been sent without a record: the claim was lost while every
// earlier one had taken effect. Whoever stops for another reason records a step first, or settles.
func inFlight(ops int, steps []Step) (op int, ok bool) {
	for _, s := range steps {
		if s.Outcome == NoEffect || s.Outcome == Unknown {
			return 0, false
		}
	}
	return len(steps), len(steps) < ops
}

func (e *Engine) reconcile(ctx context.Context, c Change) (Change, Ticket, error) {
	t, err := c.Terms()
	if err != nil {
		return c, Ticket{}, err
	}
	target, _, err := e.holds(ctx, t) // of any version: it is only looked at
	if err != nil {
		return c, Ticket{}, err
	}
	judge, ok := target.(Judge)
	if !ok {
		return c, Ticket{}, fmt.Errorf("%w: %s cannot tell; look there and run `wetink resolve %s`", ErrState, t.Target, c.ID)
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return c, Ticket{}, err
	}
	// Beyond this a request of ours can no longer land, and what is not there never took effect.
	landed := c.Claim.Lease.Add(judge.Flight())
	final := judge.Flight() > 0 && !now.Before(landed)

	var ask []Step
	for _, s := range c.Steps {
		if s.Outcome == Unknown || s.Outcome == TookEffect && !s.seen() {
			ask = append(ask, s)
		}
	}
	if op, ok := inFlight(len(t.Ops), c.Steps); ok {
		ask = append(ask, Step{Op: op, Outcome: Unknown, Receipt: Receipt{Object: t.Ops[op].Object}})
	}
	var learned []Step
	look, cancel := e.bounded(ctx)
	defer cancel()
	for _, s := range ask {
		op := afterOp(t.Ops[s.Op], s)
		seen, err := target.Observe(look, t.Account, op)
		if err != nil {
			return c, Ticket{}, fmt.Errorf("read %s: %w", op.Object, err)
		}
		verdict, why := judge.Judge(op, c.Before[s.Op], seen)
		answered := s.Outcome == TookEffect || s.missed()
		s.How, s.Why = "reconciled", ""
		switch {
		case verdict == AsApproved:
			s.Outcome = TookEffect
		case verdict == Otherwise:
			s.Outcome, s.Why = Differs, "read back otherwise: "+why
			t.OnFailure = StopOnFailure // it may be a person's edit by now: only a person undoes it
		case verdict == Opaque && answered:
			s.Outcome, s.How, s.Why = TookEffect, HowAnswered, why
		case verdict == Foreign && answered:
			s.Outcome, s.Why = Differs, "somebody else changed it since: "+why
			t.OnFailure, seen = StopOnFailure, Snapshot{Object: seen.Object}
		case verdict == Untouched && answered: // ignored, or taken back by somebody: who was there knows
			s.Outcome, s.How = Unknown, "read back"
			s.Why, seen = "it was answered as done, but the old state is there; look, and run `wetink resolve`", Snapshot{}
		case verdict == Untouched && final:
			s.Outcome, s.Why = NoEffect, "it never took effect"
		default: // unknown still: Untouched too early, or somebody else wrote and hides what we did
			if _, recorded := c.StepOf(s.Op); recorded {
				continue
			}
			// That it may be in flight is read from all before it having taken effect, and one of those may be
			// doubted next. So it is said.
			s.Why, seen = "it may have been sent, and no effect of it is seen", Snapshot{}
		}
		if s.Receipt.Object == "" {
			s.Receipt.Object = seen.Object
		}
		s.Receipt.After = seen
		learned = append(learned, s)
	}
	if len(learned) == 0 && (len(ask) > 0 || Settle(len(t.Ops), c.Steps, true) == InDoubt) {
		return c, Ticket{}, nil
	}
	list, ticket, born := e.settling(ctx, target, c, t, learned, "")
	if len(list) == 0 {
		return c, Ticket{}, nil
	}
	if final { // decided by our reading of the clock; the ledger's own has to agree
		list[len(list)-1].After = landed
	}
	if _, err := e.ledger.Advance(ctx, list...); err != nil {
		return c, Ticket{}, err
	}
	if born != "" {
		if u, err := e.ledger.Get(ctx, c.Tenant, born); err == nil {
			_, _, err = e.apply(context.WithoutCancel(ctx), u, nil)
			if err != nil {
				e.opt.Log.WarnContext(ctx, "clean-up has not run yet", "change", c.ID, "undo", born, "err", err)
			}
		}
	}
	c, err = e.ledger.Get(ctx, c.Tenant, c.ID)
	return c, ticket, err
}

// Resolve records what a person found out, Op by Op: found must name every Op that is unknown, and no other.
// It is refused before the lease is over, and while the status is not in doubt.
//
// BUG(wetink): in a process that does not hold the target, an operation that was answered as done and never read
// back counts as done: nothing there can look.
func (e *Engine) Resolve(ctx context.Context, by Principal, id ChangeID, found []Step) (Change, Ticket, error) {
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("resolve %s: %w", id, err)
	}
	t, err := c.Terms()
	if err != nil {
		return c, Ticket{}, err
	}
	if c.Status != InDoubt {
		return c, Ticket{}, fmt.Errorf("resolve %s: %w", id, stateError(c))
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return c, Ticket{}, err
	}
	if now.Before(c.Claim.Lease) {
		return c, Ticket{}, fmt.Errorf("resolve %s: %w: until %s whoever applied it may still answer", id, ErrEarly, c.Claim.Lease.Format(time.RFC3339))
	}
	open := map[int]bool{}
	for _, op := range OpenOps(c, t) {
		open[op] = true
	}
	steps := make([]Step, 0, len(found))
	for _, s := range found {
		if !open[s.Op] {
			return c, Ticket{}, fmt.Errorf("resolve %s: %w: the outcome of operation %d is known", id, ErrState, s.Op)
		}
		if s.Outcome != TookEffect && s.Outcome != NoEffect && s.Outcome != Differs {
			return c, Ticket{}, fmt.Errorf("resolve %s: %w", id, &RequestError{Field: "outcome",
				Reason: fmt.Sprintf("%q", s.Outcome), Fix: "use took_effect, no_effect or differs"})
		}
		delete(open, s.Op)
		s.How = "resolved by " + string(by.Person)
		if s.Receipt.Object == "" {
			s.Receipt.Object = t.Ops[s.Op].Object
		}
		steps = append(steps, s)
	}
	if len(open) > 0 {
		return c, Ticket{}, fmt.Errorf("resolve %s: %w", id, &RequestError{Field: "operations",
			Reason: fmt.Sprintf("%d unknown ones are not named", len(open)), Fix: "say of each what you found"})
	}
	target := e.targets[t.Target] // nil in a process that only records; then no clean-up is planned
	if obs := target; obs != nil {
		for i, s := range steps { // what it left, so that an undo can tell whether it moved since
			if s.Outcome == NoEffect {
				continue
			}
			if seen, err := obs.Observe(ctx, t.Account, afterOp(t.Ops[s.Op], s)); err == nil {
				steps[i].Receipt.After = seen
			}
		}
	} else {
		t.OnFailure = StopOnFailure
	}
	list, ticket, _ := e.settling(ctx, target, c, t, steps, "")
	for i := range list {
		list[i].Event.By = by.Person
	}
	if len(list) > 0 {
		if _, err := e.ledger.Advance(ctx, list...); err != nil {
			return c, Ticket{}, fmt.Errorf("resolve %s: %w", id, err)
		}
	}
	if c, err = e.ledger.Get(ctx, by.Tenant, id); err != nil || c.Status != InDoubt || target == nil {
		return c, ticket, err
	}
	// What was answered as done is looked after before it ends.
	if again, fresh, err := e.reconcile(ctx, c); err == nil {
		return again, fresh, nil
	}
	return c, ticket, err
}

// OpenOps lists the Ops of an in-doubt Change whose outcome is unknown.
func OpenOps(c Change, t Terms) (open []int) {
	for _, s := range c.Steps {
		if s.Outcome == Unknown {
			open = append(open, s.Op)
		}
	}
	if op, ok := inFlight(len(t.Ops), c.Steps); ok {
		open = append(open, op)
	}
	return open
}

// Run keeps the promises until ctx ends: it starts approved Changes whose target this process holds, expires
// what nobody approved or started, calls lost claims in doubt, and reconciles. Any number of processes may
// run it on one ledger. It returns ctx's error.
func (e *Engine) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	events := e.ledger.Events(ctx, Newest, true)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for ev, err := range events {
			if err != nil {
				return // ctx ended, or the ledger did: the sweep's own reads will say so
			}
			if ev.Kind == KindUndoAsked {
				e.undoAsked(ctx, ev)
			}
			if ev.To != Approved && ev.To != InDoubt {
				continue // nothing to start or to look up
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	later := &backoff{until: map[ChangeID]time.Time{}, wait: map[ChangeID]time.Duration{}}
	tick := time.NewTicker(e.opt.Sweep)
	defer tick.Stop()
	for {
		e.sweep(ctx, later, &wg)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case <-tick.C:
		}
	}
}

func (e *Engine) sweep(ctx context.Context, later *backoff, wg *sync.WaitGroup) {
	now, err := e.ledger.Now(ctx)
	if err != nil {
		e.opt.Log.ErrorContext(ctx, "sweep", "err", err)
		return
	}
	due := Filter{AnyTenant: true, DueBefore: now, Status: []Status{Pending, Approved, Applying, InDoubt}, Limit: 500}
	for c, err := range e.ledger.List(ctx, due) {
		if err != nil {
			e.opt.Log.ErrorContext(ctx, "sweep", "err", err)
			return
		}
		switch c.Status {
		case Pending, Approved:
			e.expire(ctx, c)
		case Applying:
			if err := e.doubt(ctx, c); err != nil && !refused(err) {
				e.opt.Log.WarnContext(ctx, "sweep", "change", c.ID, "err", err)
			}
		case InDoubt:
			e.later(later, c, wg, func() error {
				got, _, err := e.reconcile(ctx, c)
				if err == nil && got.Status == InDoubt {
					err = errStillOpen
				}
				return err
			})
		case Applied, Failed, Partial, Expired, Rejected, Superseded:
		}
	}
	for c, err := range e.ledger.List(ctx, Filter{AnyTenant: true, Status: []Status{Approved}, Limit: 500}) {
		if err != nil {
			e.opt.Log.ErrorContext(ctx, "sweep", "err", err)
			return
		}
		if _, ok := e.targets[c.Target]; !ok {
			continue
		}
		e.later(later, c, wg, func() error {
			_, _, err := e.apply(context.WithoutCancel(ctx), c, nil)
			return err
		})
	}
}

var errStillOpen = errors.New("its outcome is still unknown")

// backoff keeps Run from asking about the same Change again and again: 1 s, doubling to a minute for one that
// waits to start, and to an hour for one in doubt that only a person may settle.
type backoff struct {
	mu    sync.Mutex
	busy  map[ChangeID]bool
	until map[ChangeID]time.Time
	wait  map[ChangeID]time.Duration
}

// later runs f for c in its own goroutine, unless it runs already or failed a moment ago.
func (e *Engine) later(b *backoff, c Change, wg *sync.WaitGroup, f func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[c.ID] || time.Now().Before(b.until[c.ID]) || len(b.busy) >= 8 {
		return
	}
	if b.busy == nil {
		b.busy = map[ChangeID]bool{}
	}
	b.busy[c.ID] = true
	wg.Go(func() {
		err := f()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, c.ID)
		if err == nil {
			delete(b.until, c.ID)
			delete(b.wait, c.ID)
			return
		}
		longest := time.Minute
		if c.Status == InDoubt {
			longest = time.Hour
		}
		if len(b.wait) > 10_000 { // of Changes that ended elsewhere
			clear(b.wait)
			clear(b.until)
		}
		w := min(max(2*b.wait[c.ID], time.Second), longest)
		b.wait[c.ID], b.until[c.ID] = w, time.Now().Add(w)
		e.opt.Log.WarnContext(context.Background(), "not yet", "change", c.ID, "status", c.Status, "again_in", w, "err", err)
	})
}
