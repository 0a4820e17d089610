package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
)

// UndoCmd plans the way back against the present state, shows it, asks, and carries it out. Planning reads the
// outside system, so this process needs its credentials.
type UndoCmd struct {
	Output
	ID string `arg:"" help:"The applied change, or the unique beginning of its id."`
}

// Run implements the command.
func (u *UndoCmd) Run(ctx context.Context) error {
	s, err := open(u.Output, true)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.find(ctx, u.ID)
	if err != nil {
		return err
	}
	tty, err := terminal.Open()
	if err != nil {
		return fmt.Errorf("undo %s: %w", c.ID, err)
	}
	defer tty.Close()
	if mode, err := s.engine.Mode(ctx); err != nil {
		return err
	} else if mode != wetink.ModeGuarded {
		return fmt.Errorf("undo %s: %w (mode %s)", c.ID, wetink.ErrOff, mode)
	}
	plan, _, err := s.engine.Undo(ctx, s.me, c.ID, nil)
	if errors.Is(err, wetink.ErrNoTarget) {
		return fmt.Errorf("%w (an undo is planned against the present state of %s; the agent can ask the running server for it, too)", err, c.Target)
	}
	if err != nil {
		return err
	}
	if plan.Status == wetink.Pending {
		v, err := s.ask(ctx, tty, plan.ID)
		if errors.Is(err, errNotApproved) { // a plan that nobody wants would keep the place of another one
			if _, err := s.engine.Reject(ctx, s.me, plan.ID, "not approved"); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if v.Change.Status == wetink.Pending {
			fmt.Fprintf(tty, "Recorded. One more person has to approve it.\n")
			return s.finish(v)
		}
	}
	if _, _, err := s.engine.Apply(ctx, s.me, plan.ID, nil); err != nil {
		return err
	}
	v, err := s.await(ctx, plan.ID, patience)
	if err != nil {
		return err
	}
	return s.finish(v)
}
