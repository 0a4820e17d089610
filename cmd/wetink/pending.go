package main

import (
	"context"
	"errors"
	"slices"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// PendingCmd lists what waits: for an approval, for a process that starts it, or for somebody who finds out what
// became of it.
type PendingCmd struct {
	Output
	Watch bool `help:"Go on, and print each change as it begins to wait and as it stops."`
}

var waiting = []wetink.Status{wetink.Pending, wetink.Approved, wetink.InDoubt}

// Run implements the command.
func (p *PendingCmd) Run(ctx context.Context) error {
	s, err := open(p.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	events := s.ledger.Events(ctx, wetink.Newest, true) // before the look, so that nothing is missed between
	n, err := s.list(ctx)
	if err != nil {
		return err
	}
	if !p.Watch {
		if n == 0 && !s.json {
			s.say("Nothing waits for you.\n")
		}
		return nil
	}
	if n == 0 && !s.json {
		s.say("Nothing waits for you yet. Stop with Ctrl-C.\n")
	}
	for e, err := range events {
		switch {
		case ctx.Err() != nil || errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		case e.Change == "" || e.From == e.To || e.Tenant != s.me.Tenant:
			continue
		case !slices.Contains(waiting, e.From) && !slices.Contains(waiting, e.To):
			continue
		}
		if err := s.entry(ctx, e.Change); err != nil {
			return err
		}
	}
	return nil
}

// list prints what waits, the oldest first: it ends first.
func (s *session) list(ctx context.Context) (int, error) {
	var ids []wetink.ChangeID
	for c, err := range s.ledger.List(ctx, wetink.Filter{Tenant: s.me.Tenant, Status: waiting, Limit: 1000}) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := s.entry(ctx, id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// entry prints a Change on one line. A row that was edited behind our back is named and not shown.
func (s *session) entry(ctx context.Context, id wetink.ChangeID) error {
	v, err := s.view(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.printChange(v)
	}
	t, err := v.Change.Terms()
	if err != nil {
		s.say("%s  %v\n", id, render.Line(err.Error()))
		return nil
	}
	head, err := render.Headline(v.Change, s.options(v.Change, s.out))
	if err != nil {
		return err
	}
	if names, err := render.Names(v.Change); err == nil && names != "" {
		head += ": " + names
	}
	status := wetink.Shown(v.Change, v.Undo)
	if v.Change.Status == wetink.Pending {
		if left := t.Expires.Sub(v.Now); left > 0 {
			status += ", valid " + render.Duration(left)
		} else {
			status += ", its time is over"
		}
	}
	s.say("%s  %s  (%s; through \"%s\")\n", id, head, status, render.Line(t.Client))
	return nil
}
