package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/render"
)

// ApproveCmd shows exactly what the Statement says, on the terminal, and asks.
type ApproveCmd struct {
	Output
	ID string `arg:"" help:"The change, or the unique beginning of its id."`
}

// patience is how long a command waits for another process to carry out what was approved.
const patience = 30 * time.Second

// Run implements the command.
func (a *ApproveCmd) Run(ctx context.Context) error {
	s, err := open(a.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.find(ctx, a.ID)
	if err != nil {
		return err
	}
	tty, err := terminal.Open()
	if err != nil {
		return fmt.Errorf("approve %s: %w", c.ID, err)
	}
	defer tty.Close()
	v, err := s.ask(ctx, tty, c.ID)
	if err != nil {
		return err
	}
	if v.Change.Status == wetink.Pending {
		fmt.Fprintf(tty, "Recorded. One more person has to approve it.\n")
		return s.finish(v)
	}
	// Only the ledger's own switch counts here: what a server's environment says, this process cannot know.
	mode, err := s.ledger.Mode(ctx)
	if err != nil {
		return err
	}
	if mode != wetink.ModeUnset && mode != wetink.ModeGuarded {
		fmt.Fprintf(tty, "Approved. Writes are off (mode %s): it starts when they are on, with wetink mode guarded, until %s.\n",
			mode, v.Change.Due.Local().Format("15:04 MST"))
		return s.finish(v)
	}
	fmt.Fprintf(tty, "Approved. Waiting for the server to carry it out…\n")
	if v, err = s.await(ctx, c.ID, patience); err != nil {
		return err
	}
	return s.finish(v)
}

// ask shows a Change on the terminal and asks for a yes. A no rejects it, with an optional reason.
//
// Order of effects: shown → answer → passphrase → evidence → Engine.Approve. The time of showing goes into the
// evidence; the digest is that of the bytes that were rendered, so a row that changed meanwhile is refused.
func (s *session) ask(ctx context.Context, tty *terminal.TTY, id wetink.ChangeID) (render.View, error) {
	v, err := s.view(ctx, id)
	if err != nil {
		return v, err
	}
	if v.Change.Status != wetink.Pending {
		return v, fmt.Errorf("approve %s: %w", id, standing(v))
	}
	t, err := v.Change.Terms()
	if err != nil {
		return v, err
	}
	if !v.Now.Before(t.Expires) {
		return v, fmt.Errorf("approve %s: %w: its time was over at %s", id, wetink.ErrExpired, t.Expires.Local().Format("15:04 MST"))
	}
	enrolled, err := s.people.passphrases.Has(ctx, s.me.Tenant, s.me.Person)
	if err != nil {
		return v, err
	}
	reach := wetink.Host
	if enrolled {
		reach = wetink.Reauth
	}
	o := s.options(v.Change, tty)
	if err := render.Text(tty, v, o); err != nil {
		return v, err
	}
	shown := v.Now
	if t.Require.Level > reach {
		return v, fmt.Errorf("approve %s: %w: it needs level %s, and this terminal gives %s", id, wetink.ErrLevel, t.Require.Level, reach)
	}
	if !enrolled {
		fmt.Fprintf(tty, "\n  No passphrase is set up: this proves no more than that someone at a terminal of OS user %s said yes (level host).\n", s.me.Person)
	}
	head, err := render.Headline(v.Change, o)
	if err != nil {
		return v, err
	}
	yes, why, err := question(ctx, tty, head)
	if err != nil {
		return v, fmt.Errorf("approve %s: %w", id, err)
	}
	if !yes {
		return v, s.decline(ctx, tty, v, why)
	}
	e, err := s.sign(ctx, tty, v.Change, t, shown, enrolled)
	if err != nil {
		return v, err
	}
	if v.Change, err = s.engine.Approve(ctx, s.me, id, e); err != nil {
		return v, err
	}
	return v, nil
}

// question asks with the verb and the count, so that who reads nothing else reads that.
func question(ctx context.Context, tty *terminal.TTY, headline string) (yes bool, why string, err error) {
	for {
		answer, err := terminal.Ask(ctx, tty, fmt.Sprintf("\n%s? [y/N/d(ecline)] ", headline))
		if err != nil {
			return false, "", err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, "", nil
		case "", "n", "no":
			return false, "", errNotApproved
		case "d", "decline":
			why, err = terminal.Ask(ctx, tty, "Why? It is told to the agent: ")
			return false, why, err
		}
		fmt.Fprintf(tty, "y to %s, n to leave it as it is, d to decline it with a reason.\n", render.Verb(headline))
	}
}

// decline rejects the Change and ends the command.
func (s *session) decline(ctx context.Context, tty *terminal.TTY, v render.View, why string) error {
	c, err := s.engine.Reject(ctx, s.me, v.Change.ID, why)
	if err != nil {
		return err
	}
	v.Change = c
	fmt.Fprintf(tty, "Declined.\n")
	return s.finish(v)
}

// sign makes the evidence. Where a passphrase is set up and the change would do without, an empty one leaves it
// at level host.
func (s *session) sign(ctx context.Context, tty *terminal.TTY, c wetink.Change, t wetink.Terms, shown time.Time, enrolled bool) (wetink.Evidence, error) {
	if !enrolled {
		return terminal.Approve(c, string(s.me.Person), shown)
	}
	prompt := "Passphrase: "
	if t.Require.Level <= wetink.Host {
		prompt = "Passphrase (empty: level host, without one): "
	}
	for try := 1; ; try++ {
		p, err := terminal.AskPassphrase(ctx, tty, prompt)
		if err != nil {
			return wetink.Evidence{}, err
		}
		if p.IsZero() {
			if t.Require.Level > wetink.Host {
				return wetink.Evidence{}, fmt.Errorf("approve %s: %w: none was given", c.ID, errPassphrase)
			}
			return terminal.Approve(c, string(s.me.Person), shown)
		}
		e, wrong, err := s.people.passphrases.Approve(ctx, c, s.me.Person, "terminal", shown, p)
		if err != nil || !wrong {
			return e, err
		}
		if try == 3 {
			return wetink.Evidence{}, fmt.Errorf("approve %s: %w", c.ID, errPassphrase)
		}
		fmt.Fprintf(tty, "That is not the passphrase.\n")
	}
}

// standing says why a Change cannot be approved any more, as an error of the table.
func standing(v render.View) error {
	if v.Change.Status == wetink.Expired {
		return wetink.ErrExpired
	}
	return fmt.Errorf("%w: it is %s", wetink.ErrState, wetink.Shown(v.Change, v.Undo))
}
