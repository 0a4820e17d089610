package main

import "context"

// RejectCmd declines a Change. It needs no terminal: a no does no harm.
type RejectCmd struct {
	Output
	ID  string `arg:"" help:"The change, or the unique beginning of its id."`
	Why string `short:"m" name:"why" help:"A reason, which the agent is told."`
}

// Run implements the command. Done means that it is declined.
func (r *RejectCmd) Run(ctx context.Context) error {
	s, err := open(r.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.find(ctx, r.ID)
	if err != nil {
		return err
	}
	if _, err := s.engine.Reject(ctx, s.me, c.ID, r.Why); err != nil {
		return err
	}
	v, err := s.view(ctx, c.ID)
	if err != nil {
		return err
	}
	if s.json {
		return s.printChange(v)
	}
	s.say("%s\n", sentence(v))
	return nil
}
