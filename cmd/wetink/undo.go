package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/render"
)

// UndoCmd plans the way back against the present state, shows it, asks, and has it carried out. Planning reads the
// outside system: a process without credentials asks a running server for it.
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
	// Only the ledger's own switch: what a server's environment says, this process cannot know.
	if mode, err := s.ledger.Mode(ctx); err != nil {
		return err
	} else if mode != wetink.ModeUnset && mode != wetink.ModeGuarded {
		return fmt.Errorf("undo %s: %w (mode %s)", c.ID, wetink.ErrOff, mode)
	}
	plan, _, err := s.engine.Undo(ctx, s.me, c.ID, nil)
	held := !errors.Is(err, wetink.ErrNoTarget)
	if !held {
		plan, err = s.askServer(ctx, c)
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
	if held {
		if _, _, err := s.engine.Apply(ctx, s.me, plan.ID, nil); err != nil && !errors.Is(err, wetink.ErrOff) {
			return err // off in this process: a server may be on
		}
	}
	v, err := s.await(ctx, plan.ID, patience)
	if err != nil {
		return err
	}
	return s.finish(v)
}

// askServer has a running server plan the undo of c, and waits for it.
func (s *session) askServer(ctx context.Context, c wetink.Change) (wetink.Change, error) {
	v, err := s.view(ctx, c.ID)
	if err != nil {
		return c, err
	}
	if v.Undo == nil || !v.Undo.Status.Live() {
		if err := s.engine.AskUndo(ctx, s.me, c.ID); err != nil {
			return c, err
		}
	}
	for end := time.Now().Add(patience / 2); ; {
		if v, err = s.view(ctx, c.ID); err != nil {
			return c, err
		}
		switch {
		case v.Undo != nil && v.Undo.Status.Live():
			return *v.Undo, nil
		case v.Change.Why != c.Why: // the server said what stands in the way
			return c, fmt.Errorf("undo %s: %s", c.ID, render.Line(v.Change.Why))
		case time.Now().After(end):
			return c, fmt.Errorf("undo %s: %w (no server that reaches %s answered)", c.ID, wetink.ErrNoTarget, c.Target)
		}
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
