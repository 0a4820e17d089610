package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/intervals"
)

// Output is the option that every command for people has.
type Output struct {
	JSON bool `name:"json" help:"Print JSON: one object, or one a line."`
}

func (o Output) json() bool { return o.JSON }

// session is what a command for people works with: the ledger, an engine on it, and the person.
type session struct {
	cfg    Config
	ledger wetink.Ledger
	people *people
	engine *wetink.Engine
	me     wetink.Principal
	out    io.Writer
	json   bool
	close  func()
}

// targets are the ones that this process has credentials for. A person's shell seldom has any, and needs none
// to show, approve and decline.
func (c Config) targets() (map[string]wetink.Target, error) {
	if c.Key == nil {
		return nil, nil
	}
	client, err := c.IntervalsClient()
	if err != nil {
		return nil, err
	}
	return map[string]wetink.Target{"intervals": intervals.New(client, &intervals.Options{UndoWindow: c.UndoWindow})}, nil
}

// open starts a session. held says whether the command needs an outside system, if there are credentials.
func open(o Output, held bool) (*session, error) {
	cfg, err := LoadConfig()
	if err != nil {
		return nil, err
	}
	user, err := terminal.User()
	if err != nil {
		return nil, err
	}
	var targets map[string]wetink.Target
	if held {
		if targets, err = cfg.targets(); err != nil {
			return nil, err
		}
	}
	ledger, err := cfg.OpenLedger()
	if err != nil {
		return nil, err
	}
	who, err := cfg.OpenPeople()
	if err != nil {
		return nil, errors.Join(err, ledger.Close())
	}
	return &session{
		cfg: cfg, ledger: ledger, people: who, engine: wetink.New(ledger, targets, cfg.Options(who)),
		me:  wetink.Principal{Person: wetink.Person(user), Client: "terminal"},
		out: os.Stdout, json: o.JSON, close: func() { _ = errors.Join(ledger.Close(), who.Close()) },
	}, nil
}

const (
	idPrefix  = "chg_"
	idLength  = len(idPrefix) + 26
	minPrefix = 8
)

// find returns the one Change whose id begins with prefix.
func (s *session) find(ctx context.Context, prefix string) (wetink.Change, error) {
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	switch {
	case !strings.HasPrefix(prefix, idPrefix):
		return wetink.Change{}, usage{fmt.Errorf("%q is no id: ids begin with %s", prefix, idPrefix)}
	case len(prefix) < minPrefix:
		return wetink.Change{}, fmt.Errorf("%q: %w", prefix, errShortID)
	case len(prefix) >= idLength:
		return s.ledger.Get(ctx, s.me.Tenant, wetink.ChangeID(prefix))
	}
	// Ids are in the order of their bytes, and z is the last letter of their alphabet: { comes after all of them.
	var found []wetink.Change
	for c, err := range s.ledger.List(ctx, wetink.Filter{Tenant: s.me.Tenant, Before: wetink.ChangeID(prefix + "{"), Limit: 2}) {
		if err != nil {
			return wetink.Change{}, err
		}
		if strings.HasPrefix(string(c.ID), prefix) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return wetink.Change{}, fmt.Errorf("%s: %w", prefix, wetink.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return wetink.Change{}, fmt.Errorf("%s: %w: %s and %s", prefix, errAmbiguous, found[1].ID, found[0].ID)
}

// view is c as it stands now, with the latest Change that undoes it.
func (s *session) view(ctx context.Context, id wetink.ChangeID) (render.View, error) {
	c, undo, err := s.engine.Status(ctx, s.me, id, 0)
	if err != nil {
		return render.View{}, err
	}
	now, err := s.ledger.Now(ctx)
	return render.View{Change: c, Undo: undo, Now: now.Local()}, err
}

// options of rendering for the target's kind of object, in colour if w is a terminal and nobody said no.
func (s *session) options(c wetink.Change, w io.Writer) *render.Options {
	o := drawn(c.Target)
	o.Level = called
	o.Colour = isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return o
}

func isTerminal(w io.Writer) bool {
	if _, ok := w.(*terminal.TTY); ok {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// await waits until c is settled or in doubt, and at most d. While nobody starts an approved Change it goes on
// waiting: another process does that.
func (s *session) await(ctx context.Context, id wetink.ChangeID, d time.Duration) (render.View, error) {
	end := time.Now().Add(d)
	for {
		v, err := s.view(ctx, id)
		left := time.Until(end)
		if err != nil || left <= 0 || v.Change.Status.Settled() || v.Change.Status == wetink.InDoubt {
			return v, err
		}
		if _, _, err := s.engine.Status(ctx, s.me, id, left); err != nil {
			return v, err
		}
	}
}

// outcome is the exit code of a Change as it stands.
func outcome(c wetink.Change) exit {
	switch c.Status {
	case wetink.Applied:
		return codeDone
	case wetink.Rejected, wetink.Superseded:
		return codeDeclined
	case wetink.Expired:
		return codeExpired
	case wetink.Failed:
		if stale(c) {
			return codeStale
		}
		return codeOther
	case wetink.Partial:
		return codeOther
	case wetink.Pending, wetink.Approved, wetink.Applying, wetink.InDoubt:
	}
	return codeUnclear
}

func stale(c wetink.Change) bool {
	for _, s := range c.Steps {
		if s.How == wetink.HowStale {
			return true
		}
	}
	return false
}

// finish reports how the Change stands and gives the exit code for it.
func (s *session) finish(v render.View) error {
	code := outcome(v.Change)
	if s.json {
		if err := s.printChange(v); err != nil {
			return err
		}
	} else {
		s.say("%s\n", sentence(v))
	}
	if code == codeDone {
		return nil
	}
	return code
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// sentence says in words how a Change stands, and what to do next.
func sentence(v render.View) string {
	c, why := v.Change, ""
	if c.Why != "" {
		why = " " + strings.TrimRight(render.Line(c.Why), ".") + "."
	}
	switch c.Status {
	case wetink.Pending:
		return "Pending: it waits for a person. Next: wetink approve " + string(c.ID)
	case wetink.Approved:
		return fmt.Sprintf("Approved, and not started yet: no process that reaches %q has taken it up. It can be started until %s; start the server, or look with wetink status %s.",
			render.Line(c.Target), v.Now.Add(c.Due.Sub(v.Now)).Format("15:04 MST"), c.ID)
	case wetink.Applying:
		return "It is being applied. Look again: wetink status --wait 30s " + string(c.ID)
	case wetink.Applied:
		switch {
		case len(c.Undoes) > 0:
			return "Undone, and read back."
		case v.Undo != nil && v.Undo.Status == wetink.Applied:
			return fmt.Sprintf("Undone by %s.", v.Undo.ID)
		}
		if !c.Compared() {
			return "Sent once, and answered as done; what it left could not be compared with what was approved." + wayBack(v)
		}
		return "Applied, and read back." + wayBack(v)
	case wetink.Failed:
		if stale(c) {
			return "Stale: it changed since it was seen. Nothing was sent." + why + " Ask the agent for a fresh preview."
		}
		return "Failed: nothing took effect." + why
	case wetink.Partial:
		return fmt.Sprintf("Not exactly what was approved took effect (%s).%s Look: wetink show %s", wetink.Shown(c, v.Undo), why, c.ID) + wayBack(v)
	case wetink.InDoubt:
		return fmt.Sprintf("In doubt: nobody knows yet whether it took effect.%s It is never sent again. Next: wetink reconcile %s, or look there and run wetink resolve.", why, c.ID)
	case wetink.Expired:
		return "Expired: nothing was sent. Ask the agent for a fresh preview."
	case wetink.Rejected:
		return "Declined: nothing was sent." + why
	case wetink.Superseded:
		return "Replaced by a newer proposal: nothing was sent." + why
	}
	return string(c.Status)
}

func wayBack(v render.View) string {
	c := v.Change
	t, err := c.Terms()
	if err != nil || len(c.Undoes) > 0 || t.Undo.Extent == wetink.NoUndo || !v.Now.Before(c.Due) {
		return ""
	}
	if v.Undo != nil && v.Undo.Status.Live() {
		return ""
	}
	return fmt.Sprintf(" Undo: wetink undo %s (until %s)", c.ID, c.Due.In(v.Now.Location()).Format("Mon 2 Jan 15:04 MST"))
}
