package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/render"
)

// UndoCmd plans the way back against the present state, shows it, asks, and has it carried out. Planning reads the
// outside system: a process without credentials asks a running server for it.
type UndoCmd struct {
	Output
	IDs []string `arg:"" name:"id" help:"The applied change, or the unique beginning of its id. Several are undone together, as one change."`
}

// Run implements the command.
func (u *UndoCmd) Run(ctx context.Context) error {
	s, err := open(u.Output, true)
	if err != nil {
		return err
	}
	defer s.close()
	var ids []wetink.ChangeID
	for _, id := range u.IDs {
		c, err := s.find(ctx, id)
		if err != nil {
			return err
		}
		ids = append(ids, c.ID)
	}
	tty, err := terminal.Open()
	if err != nil {
		return fmt.Errorf("undo %s: %w", ids[0], err)
	}
	defer tty.Close()
	// Only the ledger's own switch: what a server's environment says, this process cannot know.
	if mode, err := s.ledger.Mode(ctx); err != nil {
		return err
	} else if mode != wetink.ModeUnset && mode != wetink.ModeGuarded {
		return fmt.Errorf("undo %s: %w (mode %s)", ids[0], wetink.ErrOff, mode)
	}
	plan, _, err := s.engine.UndoAll(ctx, s.me, ids...)
	held := !errors.Is(err, wetink.ErrNoTarget)
	if !held {
		plan, err = s.askServer(ctx, ids)
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

// askServer has a running server plan the undo of ids, and waits for it. What stands in the way it says of the first.
func (s *session) askServer(ctx context.Context, ids []wetink.ChangeID) (wetink.Change, error) {
	planned := func(v render.View) bool {
		return v.Undo != nil && v.Undo.Status.Live() && !slices.ContainsFunc(ids, func(id wetink.ChangeID) bool {
			return len(ids) > 1 && !slices.ContainsFunc(v.Undo.Undoes, func(u wetink.Undone) bool { return u.Change == id })
		})
	}
	was, err := s.view(ctx, ids[0])
	if err != nil {
		return was.Change, err
	}
	if !planned(was) {
		if err := s.engine.AskUndo(ctx, s.me, ids...); err != nil {
			return was.Change, err
		}
	}
	for end := time.Now().Add(patience / 2); ; {
		v, err := s.view(ctx, ids[0])
		if err != nil {
			return v.Change, err
		}
		switch {
		case planned(v):
			return *v.Undo, nil
		case v.Change.Why != was.Change.Why:
			return v.Change, fmt.Errorf("undo %s: %s", ids[0], render.Line(v.Change.Why))
		case time.Now().After(end):
			return v.Change, fmt.Errorf("undo %s: %w (no server that reaches %s answered)", ids[0], wetink.ErrNoTarget, v.Change.Target)
		}
		select {
		case <-ctx.Done():
			return v.Change, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
