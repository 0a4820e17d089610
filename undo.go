package wetink

import (
	"cmp"
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
	if ev == nil {
		return e.UndoAll(ctx, by, id)
	}
	if !by.May(ScopeApply) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w: the connection lacks %s", id, ErrScope, ScopeApply)
	}
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
	}
	s, ok := c.sealed(VerbUndo)
	if !ok || !s.Opens(ev.Ticket, c.ID, c.Statement.Digest()) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, ErrTicket)
	}
	return e.join(ctx, VerbUndo, id, func(ctx context.Context) (Change, Ticket, error) {
		u, ticket, err := e.undo(ctx, by, []Change{c}, ev)
		for n := 0; n < 8 && (errors.Is(err, ErrConflict) || n == 0 && errors.Is(err, ErrStale)); n++ { // another process was first: its answer is ours
			if c, err = e.ledger.Get(ctx, by.Tenant, id); err == nil {
				u, ticket, err = e.undo(ctx, by, []Change{c}, ev)
			}
		}
		if err != nil {
			return u, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
		}
		return u, ticket, nil
	})
}

// maxUndone Changes in one undo: a person has to look at all that they do.
const maxUndone = 50

// UndoAll plans the way back of several Changes of one target and account as one new Change, which waits for approval
// like any other. All of them are undone by it or, when one of them cannot be, none: each is refused for the reasons for
// which Undo would refuse it. Two that touched the same object cannot be undone together, for the way back of the older
// one begins where the younger one was taken back.
func (e *Engine) UndoAll(ctx context.Context, by Principal, ids ...ChangeID) (Change, Ticket, error) {
	refuse := func(err error) (Change, Ticket, error) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", list(ids), err)
	}
	switch {
	case !by.May(ScopePrepare):
		return refuse(fmt.Errorf("%w: the connection lacks %s", ErrScope, ScopePrepare))
	case len(ids) == 0:
		return refuse(&RequestError{Reason: "no change is named", Fix: "choose one at least"})
	case len(ids) > maxUndone:
		return refuse(&RequestError{Reason: fmt.Sprintf("%d changes are too many for one undo", len(ids)), Fix: fmt.Sprintf("choose %d at most", maxUndone)})
	}
	var parents []Change
	for _, id := range ids {
		c, err := e.ledger.Get(ctx, by.Tenant, id)
		if err != nil {
			return refuse(err)
		}
		top, _, err := e.inEffect(ctx, c) // if it was undone and redone, the way back begins there
		if err != nil {
			return refuse(err)
		}
		if !slices.ContainsFunc(parents, func(p Change) bool { return p.ID == top.ID }) {
			parents = append(parents, top)
		}
	}
	slices.SortFunc(parents, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) }) // ids order by time
	u, ticket, err := e.undo(ctx, by, parents, nil)
	if err != nil {
		return u, Ticket{}, fmt.Errorf("undo %s: %w", list(ids), err)
	}
	return u, ticket, nil
}

func list(ids []ChangeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}

// undo plans the way back of all parents, the oldest first; with evidence there is one.
func (e *Engine) undo(ctx context.Context, by Principal, parents []Change, ev *Evidence) (Change, Ticket, error) {
	none := Ticket{}
	var replaced *Change
	for _, c := range parents {
		live, err := e.undoOf(ctx, c)
		if err != nil {
			return Change{}, none, err
		}
		if ev != nil && live != nil && live.usedTicket(c) {
			return e.apply(ctx, *live, nil) // sent again: it tells what happened, also that it failed
		}
		switch {
		case live == nil || !live.Status.Live():
		case live.Status == Pending && (replaced == nil || replaced.ID == live.ID): // planned before: the state may have moved, and a ticket decides at once
			replaced = live
		case live.Status == Pending:
			return Change{}, none, fmt.Errorf("%w: %s and %s wait already to undo some of them; decline one first", ErrState, replaced.ID, live.ID)
		case len(parents) > 1:
			return Change{}, none, fmt.Errorf("%w: %s is undone by %s already, which is %s; leave it out", ErrState, c.ID, live.ID, live.Status)
		case live.Status == Approved && ev == nil:
			return *live, none, nil
		default: // another undo is on its way, or took effect: there is one at most
			return e.apply(ctx, *live, nil)
		}
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return Change{}, none, err
	}
	var terms []Terms
	for _, c := range parents {
		t, err := c.Terms()
		switch {
		case err != nil:
			return Change{}, none, err
		case c.Target != parents[0].Target || c.Account != parents[0].Account:
			return Change{}, none, fmt.Errorf("%w: %s and %s changed different accounts; undo them one after the other", ErrState, parents[0].ID, c.ID)
		case c.Status != Applied && c.Status != Partial:
			return Change{}, none, fmt.Errorf("%s: %w", c.ID, stateError(c))
		case c.ordered():
			return Change{}, none, fmt.Errorf("%w: it is a clean-up; make a new change", ErrNoUndo)
		case t.Undo.Extent == NoUndo:
			return Change{}, none, fmt.Errorf("%w, as the preview of %s said", ErrNoUndo, c.ID)
		case !now.Before(c.Due):
			return Change{}, none, fmt.Errorf("%w: the time to undo %s was over at %s; make a new change", ErrExpired, c.ID, c.Due.Format(time.RFC3339))
		}
		terms = append(terms, t)
	}
	for _, t := range terms {
		if _, _, err := e.holds(ctx, t); err != nil {
			return Change{}, none, err
		}
	}
	if ev != nil {
		if err := e.writable(ctx); err != nil {
			return Change{}, none, err
		}
	}
	target := e.targets[parents[0].Target]
	req, err := e.wayBack(ctx, target, parents, by)
	if err != nil {
		return Change{}, none, err
	}
	from := origin{undoes: parents, replaces: replaced}
	if ev != nil {
		from.approval = &Approval{Evidence: *ev}
	}
	u, ticket, moves, err := e.draft(ctx, parents[0].Target, req, from)
	if err != nil {
		return Change{}, none, err
	}
	// Looked at again after Prepare read what the Statement binds: an edit before that read is seen here, one
	// after it makes the undo stale.
	if _, err := e.wayBack(ctx, target, parents, by); err != nil {
		return Change{}, none, err
	}
	for _, c := range parents {
		m := e.move(c, c.Status, KindUndoing)
		m.Before, m.Due, m.Why = c.Due, c.Due, c.Why
		m.Event.By, m.Event.Client = by.Person, by.Client
		m.Event.Facts = map[string]string{"undo": string(u.ID)}
		if ev != nil {
			s, _ := c.sealed(VerbUndo)
			m.Before = s.Expires
		}
		moves = append(moves, m)
	}
	if ev != nil {
		u.Rev, u.Status = 1, Pending // as its birth in moves makes it
		return e.claim(ctx, u, ev, moves...)
	}
	if _, err := e.ledger.Advance(ctx, moves...); err != nil {
		return Change{}, none, err
	}
	u, err = e.ledger.Get(ctx, u.Tenant, u.ID)
	return u, ticket, err
}

// AskUndo asks the processes that hold the target to plan the undo of applied or partial Changes: for a person at
// a terminal that has no credentials. One of them that has Run plans it as UndoAll does, and it then
// waits for approval like any Change. What stands in the way is said in the first one's Why.
func (e *Engine) AskUndo(ctx context.Context, by Principal, ids ...ChangeID) error {
	var first Change
	for i, id := range ids {
		c, err := e.ledger.Get(ctx, by.Tenant, id)
		if err != nil {
			return fmt.Errorf("undo %s: %w", id, err)
		}
		if c.Status != Applied && c.Status != Partial {
			return fmt.Errorf("undo %s: %w", id, stateError(c))
		}
		if i == 0 {
			first = c
		}
	}
	m := e.move(first, first.Status, KindUndoAsked)
	m.Due, m.Why = first.Due, first.Why
	m.Event.By, m.Event.Client = by.Person, by.Client
	if len(ids) > 1 {
		m.Event.Facts = map[string]string{"with": list(ids[1:])}
	}
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return fmt.Errorf("undo %s: %w", list(ids), err)
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
	ids := []ChangeID{c.ID}
	for id := range strings.SplitSeq(ev.Facts["with"], ", ") {
		if id != "" {
			ids = append(ids, ChangeID(id))
		}
	}
	_, _, err = e.UndoAll(ctx, Principal{Tenant: ev.Tenant, Person: ev.By, Client: ev.Client}, ids...)
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

// wayBack refuses when an object moved since its parent left it, and plans the undo of all parents from what was really
// done.
func (e *Engine) wayBack(ctx context.Context, target Target, parents []Change, by Principal) (Request, error) {
	un, ok := target.(Undoer)
	if !ok {
		return Request{}, ErrNoUndo
	}
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	var (
		ops     []Op
		before  []Snapshot
		steps   []Step
		moved   []string
		touched = map[string]ChangeID{}
	)
	for _, c := range parents {
		t, err := c.Terms()
		if err != nil {
			return Request{}, err
		}
		for _, s := range c.Steps {
			op := t.Ops[s.Op]
			if s.Outcome == TookEffect || s.Outcome == Differs {
				now, fields, err := e.unmoved(ctx, target, un, c, op, s)
				if err != nil {
					return Request{}, err
				}
				if s.Receipt.Object == "" {
					s.Receipt.Object = now.Object
				}
				if older, twice := touched[now.Object]; twice && older != c.ID && now.Object != "" {
					return Request{}, fmt.Errorf("%w: %s and then %s changed %s; undo %s first, and then the others", ErrState, older, c.ID, now.Object, c.ID)
				}
				touched[now.Object] = c.ID
				if fields != nil {
					moved = append(moved, fmt.Sprintf("%s (%s)", now.Object, strings.Join(fields, ", ")))
				}
			}
			s.Op += len(ops)
			steps = append(steps, s)
		}
		ops, before = append(ops, t.Ops...), append(before, c.Before...)
	}
	if moved != nil {
		return Request{}, fmt.Errorf("%w: %s; nothing was overwritten", ErrStale, strings.Join(moved, "; "))
	}
	req, _, err := un.Invert(ops, before, steps)
	if err != nil {
		return Request{}, err
	}
	req.By, req.Tool = by, ToolUndo
	return req, nil
}

// unmoved observes what s left. fields is nil if nobody has touched it since.
func (e *Engine) unmoved(ctx context.Context, target Target, un Undoer, c Change, op Op, s Step) (now Snapshot, fields []string, err error) {
	now, err = target.Observe(ctx, c.Account, afterOp(op, s))
	if err != nil {
		return now, nil, fmt.Errorf("read %s again: %w", s.Receipt.Object, err)
	}
	if !s.Receipt.After.Absent && s.Receipt.After.Body == nil { // nobody saw what it left
		judge, ok := target.(Judge)
		if !ok {
			return now, nil, fmt.Errorf("%w: what it left was never read back; the target needs a Judge, or a Receipt with After", ErrNoUndo)
		}
		if v, _ := judge.Judge(op, c.Before[s.Op], now); v == AsApproved {
			return now, nil, nil
		}
	}
	same, fields := un.Unmoved(s.Receipt.After, now)
	if same {
		return now, nil, nil
	}
	if fields == nil {
		fields = []string{"moved"}
	}
	return now, fields, nil
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
	return t.Require.Level <= Agent && t.Require.People <= 1 && t.Undo.Extent != NoUndo && len(c.Undoes) == 0
}
