package wetink

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wetink/wetink/internal/crashpoint"
)

// settle records the end state, and the clean-up that the Terms order; it then runs that clean-up.
//
// Order of effects: the plan of the clean-up (reads only) → one Advance: steps as read back, the end state
// with the undo ticket, the born undo → the clean-up, as any Change → one look, if in doubt.
func (s *sender) settle(ctx context.Context, steps []Step, why string) (Change, Ticket, error) {
	var ticket Ticket
	var born ChangeID
	crashpoint.Here(crashpoint.BeforeSettle)
	err := s.persist(ctx, func(c Change) ([]Move, error) {
		ticket, born = Ticket{}, ""
		if c.Status != Applying && c.Status != InDoubt && !contradicts(c, steps...) {
			return nil, nil // it was settled meanwhile, and rightly
		}
		var list []Move
		if list, ticket, born = s.e.settling(ctx, s.target, c, s.terms, steps, why); c.Status != Applying {
			for i := range list {
				if list[i].Step != nil && list[i].Step.How == "answer" {
					list[i].Step.How, list[i].Event.Facts["how"] = "late answer", "late answer"
				}
			}
		}
		return list, nil
	})
	crashpoint.Here(crashpoint.AfterSettle)
	if born != "" {
		crashpoint.Here(crashpoint.AfterBornUndo)
	}
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("settle %s: the outcome could not be recorded, it will be found in doubt: %w", s.id, err)
	}
	if born != "" {
		u, err := s.e.ledger.Get(ctx, s.tenant, born)
		if err == nil {
			_, _, err = s.e.apply(ctx, u, nil)
		}
		if err != nil { // it stays approved: Run tries again until its StartBy
			s.e.opt.Log.WarnContext(ctx, "clean-up has not run yet", "change", s.id, "undo", born, "err", err)
		}
	}
	c, err := s.e.ledger.Get(ctx, s.tenant, s.id)
	if err != nil || c.Status != InDoubt {
		return c, ticket, err
	}
	// Seeing our effect proves it at once; not seeing it proves nothing yet.
	if again, fresh, err := s.e.reconcile(ctx, c); err == nil {
		return again, fresh, nil
	}
	return c, ticket, nil
}

// settling makes the Moves that bring c to its end state, given steps that are not durable yet: one for each
// step that the row lacks, the settling itself, and the birth of the ordered undo.
func (e *Engine) settling(ctx context.Context, target Target, c Change, t Terms, steps []Step, why string) (list []Move, ticket Ticket, born ChangeID) {
	row := c
	row.Steps = slices.Clone(c.Steps)
	for _, step := range steps {
		if old, ok := row.StepOf(step.Op); ok && (old.How == step.How && old.Outcome == step.Outcome || !step.replaces(old)) {
			continue
		}
		m := e.stepMove(row, step)
		if row.Status == Applying {
			m.To, m.Due = Applying, row.Claim.Lease
		}
		list = append(list, m)
		row.Steps = append(slices.DeleteFunc(row.Steps, func(s Step) bool { return s.Op == step.Op }), step)
		row.Rev, row.Status = row.Rev+1, m.To
	}
	slices.SortFunc(row.Steps, func(a, b Step) int { return a.Op - b.Op })
	end := Settle(len(t.Ops), row.Steps, true)
	if row.Status == InDoubt && end == InDoubt {
		return list, ticket, "" // the steps say it all
	}
	if _, judged := target.(Judge); row.Status == InDoubt && judged && slices.ContainsFunc(row.Steps, Step.unread) {
		return list, ticket, "" // no end on an answer that nobody looked after: Reconcile looks
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		e.opt.Log.ErrorContext(ctx, "settle without the clock", "change", c.ID, "err", err)
	}
	m := e.move(row, end, KindSettled)
	m.Why, m.Event.Facts = why, outcomes(len(t.Ops), row.Steps)
	if why == "" {
		m.Why = reasons(row.Steps)
	}
	switch end {
	case InDoubt:
		m.Due = now
	case Partial:
		undo, err := e.undoOf(ctx, c)
		if t.OnFailure == UndoOnFailure && e.writable(ctx) == nil && err == nil && (undo == nil || !undo.Status.Live()) {
			births, undo, err := e.cleanUp(ctx, target, row)
			list, born = append(list, births...), undo
			if err != nil {
				m.Why += "; the clean-up could not be prepared: " + err.Error()
			}
		}
	case Applied, Failed, Pending, Approved, Applying, Expired, Rejected, Superseded:
	}
	if (end == Applied || end == Partial) && born == "" && !c.ordered() && t.Undo.Extent != NoUndo {
		m.Due = now.Add(t.Undo.Until)
		if e.ticketed(c, t) {
			var sealed Sealed
			ticket, sealed = mint(VerbUndo, DeliveredResult, c.ID, c.Statement.Digest(), m.Due)
			m.Ticket = &sealed
		}
	}
	return append(list, m), ticket, born
}

// cleanUp plans the ordered undo. When it cannot be planned, the parent settles without it and says so.
func (e *Engine) cleanUp(ctx context.Context, target Target, c Change) ([]Move, ChangeID, error) {
	by := c.Request.By
	by.Scopes = nil // the engine acts here, on the signer's order
	crashpoint.Here(crashpoint.BeforeBornUndo)
	req, err := e.wayBack(ctx, target, []Change{c}, by)
	if err == nil {
		var u Change
		var list []Move
		ordered := Approval{Level: Auto, Evidence: Evidence{Kind: EvidenceOrdered, Digest: c.Statement.Digest()}}
		ordered.At, _ = e.ledger.Now(ctx)
		if u, _, list, err = e.draft(ctx, c.Target, req, origin{undoes: []Change{c}, approval: &ordered}); err == nil {
			_, err = e.wayBack(ctx, target, []Change{c}, by)
		}
		if err == nil {
			return list, u.ID, nil
		}
	}
	e.opt.Log.WarnContext(ctx, "no clean-up was possible", "change", c.ID, "err", err)
	return nil, "", err
}

func outcomes(ops int, steps []Step) map[string]string {
	n := map[Outcome]int{}
	for _, s := range steps {
		n[s.Outcome]++
	}
	facts := map[string]string{"ops": strconv.Itoa(ops)}
	for o, k := range n {
		facts[string(o)] = strconv.Itoa(k)
	}
	return facts
}

func reasons(steps []Step) string {
	var out []string
	for _, s := range steps {
		if s.Why != "" && !slices.Contains(out, s.Why) {
			out = append(out, s.Why)
		}
	}
	return strings.Join(out, "; ")
}
