package wetink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Undo plans the way back of an applied or partial Change as a new Change; of an undo it is a redo. Without evidence that Change
// waits for approval like any other (at level Agent with a ticket of its own, to Apply it); with the undo
// ticket it is approved and applied at once. It is refused after the time that the preview promised.
//
// Order of effects: mode, scopes, ticket → every object observed again; one that moved since refuses the
// whole, and nothing is overwritten → Invert → Prepare → Policy → one Advance: the parent's Rev and the
// ticket's end by the ledger's clock, the undo's birth, its approval and its claim → as Apply.
//
// BUG(wetink): an effect that lands after an undo took effect (see Shown: undo_partial) cannot be undone by a second
// one: a change has one undo at most. A person has to mend it in the outside system.
func (e *Engine) Undo(ctx context.Context, by Principal, id ChangeID, ev *Evidence) (Change, Ticket, error) {
	need := ScopePrepare
	if ev != nil {
		need = ScopeApply
	}
	if !by.May(need) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w: the connection lacks %s", id, ErrScope, need)
	}
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
	}
	run := func(ctx context.Context) (Change, Ticket, error) {
		u, ticket, err := e.undo(ctx, by, c, ev)
		for n := 0; n < 8 && ev != nil && (errors.Is(err, ErrConflict) || n == 0 && errors.Is(err, ErrStale)); n++ { // another process was first: its answer is ours
			if c, err = e.ledger.Get(ctx, by.Tenant, id); err == nil {
				u, ticket, err = e.undo(ctx, by, c, ev)
			}
		}
		if err != nil {
			return u, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
		}
		return u, ticket, nil
	}
	if ev == nil {
		return run(ctx)
	}
	s, ok := c.sealed(VerbUndo)
	if !ok || !s.Opens(ev.Ticket, c.ID, c.Statement.Digest()) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, ErrTicket)
	}
	return e.join(ctx, VerbUndo, id, run)
}

func (e *Engine) undo(ctx context.Context, by Principal, c Change, ev *Evidence) (Change, Ticket, error) {
	none := Ticket{}
	if ev == nil {
		top, _, err := e.inEffect(ctx, c)
		if err != nil {
			return Change{}, none, err
		}
		c = top // it was undone and redone: the way back begins there
	}
	live, err := e.undoOf(ctx, c)
	if err != nil {
		return Change{}, none, err
	}
	if ev != nil && live != nil && live.usedTicket(c) {
		return e.apply(ctx, *live, nil) // sent again: it tells what happened, also that it failed
	}
	var replaced *Change
	if live != nil && live.Status.Live() {
		switch {
		case live.Status == Pending: // planned before: the state may have moved, and a ticket decides at once
			replaced = live
		case live.Status == Approved && ev == nil:
			return *live, none, nil
		default: // another undo is on its way, or took effect: there is one at most
			return e.apply(ctx, *live, nil)
		}
	}
	t, err := c.Terms()
	if err != nil {
		return Change{}, none, err
	}
	switch {
	case c.Status != Applied && c.Status != Partial:
		return Change{}, none, stateError(c)
	case c.ordered():
		return Change{}, none, fmt.Errorf("%w: it is a clean-up; make a new change", ErrNoUndo)
	case t.Undo.Extent == NoUndo:
		return Change{}, none, fmt.Errorf("%w, as its preview said", ErrNoUndo)
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return Change{}, none, err
	}
	if !now.Before(c.Due) {
		return Change{}, none, fmt.Errorf("%w: the time to undo it was over at %s; make a new change", ErrExpired, c.Due.Format(time.RFC3339))
	}
	if ev != nil {
		if err := e.writable(ctx); err != nil {
			return Change{}, none, err
		}
	}
	target, _, err := e.holds(ctx, t)
	if err != nil {
		return Change{}, none, err
	}
	req, err := e.wayBack(ctx, target, c, t, by)
	if err != nil {
		return Change{}, none, err
	}
	from := origin{undoes: &c, replaces: replaced}
	if ev != nil {
		from.approval = &Approval{Evidence: *ev}
	}
	u, ticket, list, err := e.draft(ctx, c.Target, req, from)
	if err != nil {
		return Change{}, none, err
	}
	// Looked at again after Prepare read what the Statement binds: an edit before that read is seen here, one
	// after it makes the undo stale.
	if _, err := e.wayBack(ctx, target, c, t, by); err != nil {
		return Change{}, none, err
	}
	parent := e.move(c, c.Status, KindUndoing)
	parent.Before, parent.Due, parent.Why = c.Due, c.Due, c.Why
	parent.Event.By, parent.Event.Client = by.Person, by.Client
	parent.Event.Facts = map[string]string{"undo": string(u.ID)}
	if ev == nil {
		if _, err := e.ledger.Advance(ctx, append(list, parent)...); err != nil {
			return Change{}, none, err
		}
		u, err = e.ledger.Get(ctx, u.Tenant, u.ID)
		return u, ticket, err
	}
	s, _ := c.sealed(VerbUndo)
	parent.Before = s.Expires
	u.Rev, u.Status = 1, Pending // as its birth in list makes it
	return e.claim(ctx, u, ev, append(list, parent)...)
}

// AskUndo asks the processes that hold the target to plan the undo of an applied or partial Change: for a person at
// a terminal that has no credentials. One of them that has Run plans it as Undo without evidence does, and it then
// waits for approval like any Change. What stands in the way is said in the Change's Why.
func (e *Engine) AskUndo(ctx context.Context, by Principal, id ChangeID) error {
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return fmt.Errorf("undo %s: %w", id, err)
	}
	if c.Status != Applied && c.Status != Partial {
		return fmt.Errorf("undo %s: %w", id, stateError(c))
	}
	m := e.move(c, c.Status, KindUndoAsked)
	m.Due, m.Why = c.Due, c.Why
	m.Event.By, m.Event.Client = by.Person, by.Client
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return fmt.Errorf("undo %s: %w", id, err)
	}
	return nil
}

// undoAsked answers AskUndo, in a process that holds the target.
func (e *Engine) undoAsked(ctx context.Context, ev Event) {
	c, err := e.ledger.Get(ctx, ev.Tenant, ev.Change)
	if err != nil {
		e.opt.Log.WarnContext(ctx, "an undo was asked for", "change", ev.Change, "err", err)
		return
	}
	if _, ok := e.targets[c.Target]; !ok {
		return
	}
	if _, u, err := e.inEffect(ctx, c); err != nil || u != nil && u.Status.Live() {
		return // another process was first
	}
	_, _, err = e.undo(ctx, Principal{Tenant: ev.Tenant, Person: ev.By, Client: ev.Client}, c, nil)
	if err == nil || errors.Is(err, ErrConflict) {
		return
	}
	m := e.move(c, c.Status, KindUndoUnable)
	m.Due, m.Why = c.Due, "it could not be undone: "+err.Error()
	if _, err := e.ledger.Advance(ctx, m); err != nil && !refused(err) {
		e.opt.Log.WarnContext(ctx, "an undo was asked for", "change", ev.Change, "err", err)
	}
}

// usedTicket reports whether c, an undo, was approved by the undo ticket that its parent holds now.
func (c Change) usedTicket(parent Change) bool {
	s, ok := parent.sealed(VerbUndo)
	return ok && slices.ContainsFunc(c.Approvals, func(a Approval) bool {
		return a.Evidence.Kind == EvidenceTicket && string(a.Evidence.Data) == string(s.Hash[:])
	})
}

// wayBack refuses when an object moved since c left it, and plans the undo from what was really done.
func (e *Engine) wayBack(ctx context.Context, target Target, c Change, t Terms, by Principal) (Request, error) {
	un, ok := target.(Undoer)
	if !ok {
		return Request{}, ErrNoUndo
	}
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	judge, _ := target.(Judge)
	steps := slices.Clone(c.Steps)
	var moved []string
	for i, s := range steps {
		if s.Outcome != TookEffect && s.Outcome != Differs {
			continue
		}
		now, err := target.Observe(ctx, c.Account, afterOp(t.Ops[s.Op], s))
		if err != nil {
			return Request{}, fmt.Errorf("read %s again: %w", s.Receipt.Object, err)
		}
		if s.Receipt.Object == "" {
			steps[i].Receipt.Object = now.Object
		}
		if !s.Receipt.After.Absent && s.Receipt.After.Body == nil { // nobody saw what it left
			if judge == nil {
				return Request{}, fmt.Errorf("%w: what it left was never read back; the target needs a Judge, or a Receipt with After", ErrNoUndo)
			}
			if v, _ := judge.Judge(t.Ops[s.Op], c.Before[s.Op], now); v == AsApproved {
				continue
			}
		}
		if same, fields := un.Unmoved(s.Receipt.After, now); !same {
			moved = append(moved, fmt.Sprintf("%s (%s)", now.Object, strings.Join(fields, ", ")))
		}
	}
	if moved != nil {
		return Request{}, fmt.Errorf("%w: %s; nothing was overwritten", ErrStale, strings.Join(moved, "; "))
	}
	req, _, err := un.Invert(t.Ops, c.Before, steps)
	if err != nil {
		return Request{}, err
	}
	req.By, req.Tool = by, ToolUndo
	return req, nil
}

// afterOp is op as it stands after it was executed: a create now has the id that the system gave.
func afterOp(op Op, s Step) Op {
	if op.Object == "" {
		op.Object = s.Receipt.Object
	}
	return op
}

// inEffect follows undos that were undone: top is what brought the effect of c back last (c itself, if nothing did),
// undo the latest Change that undoes it, or nil.
func (e *Engine) inEffect(ctx context.Context, c Change) (top Change, undo *Change, err error) {
	for top = c; ; {
		undo, err = e.undoOf(ctx, top)
		if err != nil || undo == nil || undo.Status != Applied {
			return top, undo, err
		}
		redo, err := e.undoOf(ctx, *undo)
		if err != nil || redo == nil || redo.Status != Applied {
			return top, undo, err
		}
		top = *redo
	}
}

// undoOf returns the latest Change that undoes c, or nil.
func (e *Engine) undoOf(ctx context.Context, c Change) (*Change, error) {
	for u, err := range e.ledger.List(ctx, Filter{Tenant: c.Tenant, Undoes: c.ID, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		return &u, nil
	}
	return nil, nil
}

// freshUndo mints the undo ticket of an applied Change again; the older one dies. Its end stays.
func (e *Engine) freshUndo(ctx context.Context, c Change) (Ticket, error) {
	t, err := c.Terms()
	if err != nil {
		return Ticket{}, err
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if !e.ticketed(c, t) || !now.Before(c.Due) {
		return Ticket{}, nil
	}
	if u, err := e.undoOf(ctx, c); err != nil || u != nil && u.Status.Live() {
		return Ticket{}, err
	}
	ticket, sealed := mint(VerbUndo, DeliveredResult, c.ID, c.Statement.Digest(), c.Due)
	m := e.move(c, c.Status, KindTicket)
	m.Ticket, m.Due, m.Why = &sealed, c.Due, c.Why
	m.Event.Facts = map[string]string{"verb": VerbUndo, "delivered": DeliveredResult}
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return Ticket{}, fmt.Errorf("mint an undo ticket: %w", err)
	}
	return ticket, nil
}

// ticketed reports whether an undo of c may be approved by a ticket that the agent holds.
func (e *Engine) ticketed(c Change, t Terms) bool {
	return t.Require.Level <= Agent && t.Require.People <= 1 && t.Undo.Extent != NoUndo && c.Undoes == ""
}
