package main

import (
	"context"
	"fmt"

	"github.com/wetink/wetink"
)

// ModeCmd is the kill switch of every process on this ledger, within a second. Turning writes off burns nothing.
type ModeCmd struct {
	Output
	Mode string `arg:"" optional:"" enum:",off,guarded,observe" default:"" help:"off, guarded or observe; without it, show."`
}

// Run implements the command.
func (m *ModeCmd) Run(ctx context.Context) error {
	s, err := open(m.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	if m.Mode != "" {
		if err := s.ledger.SetMode(ctx, wetink.Mode(m.Mode), s.me.Person); err != nil {
			return fmt.Errorf("set the write mode: %w", err)
		}
	}
	set, err := s.ledger.Mode(ctx)
	if err != nil {
		return fmt.Errorf("read the write mode: %w", err)
	}
	mode, from := set, "the ledger's switch, for every process"
	if set == wetink.ModeUnset {
		mode, from = s.cfg.WriteMode, s.cfg.WriteModeFrom+", for this process: nobody has set the ledger's switch"
	}
	if s.json {
		return s.printJSON(map[string]string{"mode": string(mode), "from": from})
	}
	s.say("%s (%s)\n", mode, from)
	return nil
}
