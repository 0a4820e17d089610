package main

import (
	"context"
)

// ReconcileCmd reads the outside system, and writes nothing there.
type ReconcileCmd struct {
	Output
	ID string `arg:"" help:"The change, or the unique beginning of its id."`
}

// Run implements the command.
func (r *ReconcileCmd) Run(ctx context.Context) error {
	s, err := open(r.Output, true)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.find(ctx, r.ID)
	if err != nil {
		return err
	}
	// The undo ticket is the agent's; a person at this terminal has wetink undo.
	if _, _, err := s.engine.Reconcile(ctx, s.me, c.ID); err != nil {
		return err
	}
	v, err := s.view(ctx, c.ID)
	if err != nil {
		return err
	}
	return s.finish(v)
}
