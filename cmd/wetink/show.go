package main

import (
	"context"
	"fmt"
	"os"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// ShowCmd shows a Change decoded from the bytes that are signed.
type ShowCmd struct {
	Output
	ID    string `arg:"" help:"The change, or the unique beginning of its id."`
	All   bool   `help:"Show the fields that do not change, too." xor:"how"`
	Raw   bool   `help:"Print the exact bytes of the statement that is signed." xor:"how"`
	Token bool   `help:"Print the confirmation token: who hands it to the agent approves. Off unless terminal_token is configured." xor:"how"`
}

// Run implements the command.
func (c *ShowCmd) Run(ctx context.Context) error {
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	found, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	v, err := s.view(ctx, found.ID)
	if err != nil {
		return err
	}
	switch {
	case c.Token:
		return s.token(ctx, v)
	case c.Raw:
		return s.raw(v.Change)
	case s.json:
		return s.printChange(v)
	}
	o := s.options(v.Change, s.out)
	o.All = c.All
	if err := render.Text(s.out, v, o); err != nil {
		return err
	}
	for i, why := range s.cfg.why(s.people)(ctx, v.Change) {
		if i == 0 {
			s.say("\nWhy it needs that:\n")
		}
		s.say("  %s\n", render.Line(why))
	}
	return nil
}

// raw prints the bytes that the digest is over; a terminal gets them with hidden characters revealed.
func (s *session) raw(c wetink.Change) error {
	if _, err := c.Terms(); err != nil {
		return err
	}
	if isTerminal(s.out) {
		s.say("%s\n", render.Line(string(c.Statement)))
		return nil
	}
	_, err := s.out.Write(c.Statement)
	return err
}

// token hands out the confirmation token, after the change was shown: to a person, on a terminal. With --json
// its one line is the only place where this program prints a token.
func (s *session) token(ctx context.Context, v render.View) error {
	ticket, err := s.engine.HandOut(ctx, s.me, v.Change.ID)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(map[string]string{"id": string(v.Change.ID), "confirmation_token": ticket.Reveal()})
	}
	if err := render.Text(s.out, v, s.options(v.Change, s.out)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\nWho gives this token to the agent approves exactly this change, once. The record says that it was handed out here.\n")
	s.say("%s\n", ticket.Reveal())
	return nil
}
