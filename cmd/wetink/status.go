package main

import (
	"context"
	"time"

	"github.com/wetink/wetink"
)

// StatusCmd says where a Change stands, also by its exit code.
type StatusCmd struct {
	Output
	ID   string        `arg:"" help:"The change, or the unique beginning of its id."`
	Wait time.Duration `help:"Wait up to this long for its outcome." default:"0s"`
}

// Run implements the command.
func (c *StatusCmd) Run(ctx context.Context) error {
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	found, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	v, err := s.await(ctx, found.ID, c.Wait)
	if err != nil {
		return err
	}
	if s.json {
		j, err := s.toJSON(v)
		if err != nil {
			return err
		}
		j.SHA256 = nil // where it stands, and nothing that could be taken for a secret
		if err := s.printJSON(j); err != nil {
			return err
		}
	} else {
		s.say("%s\n", wetink.Shown(v.Change, v.Undo))
		s.say("%s\n", sentence(v))
	}
	if code := outcome(v.Change); code != codeDone {
		return code
	}
	return nil
}
