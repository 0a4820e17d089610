package wetink

import (
	"context"
	"fmt"
	"slices"
)

// reach is the best level that a person can give here.
func (e *Engine) reach(ctx context.Context) Level {
	best := Agent
	if e.opt.AllowTokenAtTerminal {
		best = Host
	}
	for _, v := range e.opt.Verifiers {
		best = max(best, v.Reach(ctx))
	}
	return best
}

// approval verifies ev and makes the Move that records it.
func (e *Engine) approval(ctx context.Context, c Change, t Terms, ev Evidence) (Move, error) {
	if ev.Kind == EvidenceTicket && ev.Ticket.IsZero() { // the stored hash must never do for the secret
		return Move{}, ErrTicket
	}
	a, err := e.verify(ctx, c, t, ev)
	if err != nil {
		return Move{}, err
	}
	if a.Level < t.Require.Level {
		return Move{}, fmt.Errorf("%w: it reaches %s and the change needs %s", ErrLevel, a.Level, t.Require.Level)
	}
	if a.At, err = e.ledger.Now(ctx); err != nil {
		return Move{}, err
	}
	to, kind, due := Approved, KindApproved, t.StartBy
	if !t.Require.Met(t, append(slices.Clone(c.Approvals), a)) {
		to, kind, due = Pending, KindApproval, t.Expires
	}
	m := e.move(c, to, kind)
	m.Before, m.Due, m.Approval = t.Expires, due, &a
	m.Event.By, m.Event.Client, m.Event.Level = a.Evidence.By, a.Evidence.Client, a.Level
	m.Event.Facts = map[string]string{"evidence": a.Evidence.Kind}
	return m, nil
}

// verify computes the level of ev. It accepts evidence as it was presented and as it was stored.
func (e *Engine) verify(ctx context.Context, c Change, t Terms, ev Evidence) (Approval, error) {
	digest := c.Statement.Digest()
	switch ev.Kind {
	case EvidenceTicket:
		return e.verifyTicket(ctx, c, ev)
	case EvidencePolicy:
		if ev.Digest != digest {
			return Approval{}, ErrEvidence
		}
		return Approval{Evidence: ev, Level: Auto}, nil
	case EvidenceOrdered:
		return e.verifyOrdered(ctx, c, t, ev)
	}
	v := e.opt.Verifiers[ev.Kind]
	if v == nil {
		return Approval{}, fmt.Errorf("%w: nothing here can check evidence of kind %q", ErrEvidence, ev.Kind)
	}
	if ev.Digest != digest {
		return Approval{}, fmt.Errorf("%w: what was shown is not what is stored; look at it again", ErrEvidence)
	}
	level, err := v.Verify(ctx, c, t, ev)
	if err != nil {
		return Approval{}, fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	return Approval{Evidence: ev, Level: level}, nil
}

// verifyTicket checks a presented secret against the row that holds its seal: the Change itself, or the
// parent of an undo. Of the secret only its hash is kept, so a stored one is found by that.
func (e *Engine) verifyTicket(ctx context.Context, c Change, ev Evidence) (Approval, error) {
	holder, verb := c, VerbApply
	if len(c.Undoes) == 1 && ev.Via != DeliveredTerminal {
		p, err := e.ledger.Get(ctx, c.Tenant, c.Undoes[0].Change)
		if err != nil {
			return Approval{}, err
		}
		if _, own := c.sealed(VerbApply); !own {
			holder, verb = p, VerbUndo
		}
	}
	s, ok := holder.sealed(verb)
	stored := ev.Ticket.IsZero() && len(ev.Data) > 0
	switch {
	case !ok:
		return Approval{}, fmt.Errorf("%w: none was issued for %s", ErrTicket, c.ID)
	case stored && string(ev.Data) != string(s.Hash[:]):
		return Approval{}, fmt.Errorf("%w: the stored evidence belongs to another token", ErrEvidence)
	case !stored && !s.Opens(ev.Ticket, holder.ID, holder.Statement.Digest()):
		return Approval{}, ErrTicket
	}
	return Approval{Level: s.level(), Evidence: Evidence{
		Kind: EvidenceTicket, Digest: c.Statement.Digest(), Client: ev.Client, Via: s.Delivered, Data: s.Hash[:],
	}}, nil
}

// verifyOrdered checks that the parent's own approved Terms order this clean-up.
func (e *Engine) verifyOrdered(ctx context.Context, c Change, t Terms, ev Evidence) (Approval, error) {
	if len(c.Undoes) != 1 {
		return Approval{}, fmt.Errorf("%w: %s is no clean-up", ErrEvidence, c.ID)
	}
	p, err := e.ledger.Get(ctx, c.Tenant, c.Undoes[0].Change)
	if err != nil {
		return Approval{}, fmt.Errorf("parent of %s: %w", c.ID, err)
	}
	pt, err := p.Terms()
	if err != nil {
		return Approval{}, err
	}
	if pt.OnFailure != UndoOnFailure || ev.Digest != p.Statement.Digest() || p.Claim.ID == "" {
		return Approval{}, fmt.Errorf("%w: %s did not order it", ErrEvidence, p.ID)
	}
	return Approval{Evidence: ev, Level: Auto}, nil
}
