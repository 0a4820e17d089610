package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/policy/rules"
	"github.com/wetink/wetink/render"
)

// CheckCmd validates rules before they count.
type CheckCmd struct {
	Output
	File   string `arg:"" optional:"" help:"The file of rules; rules.yaml in the home without one."`
	Change string `help:"Tell which rules match a stored change, and what it would need."`
}

// Run implements the command.
func (c *CheckCmd) Run(ctx context.Context) error {
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	path := c.File
	if path == "" {
		path = s.cfg.rulesFile()
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return usage{fmt.Errorf("%w: %w", rules.ErrRules, err)}
	}
	floor, err := s.cfg.floor(s.people)(ctx)
	if err != nil {
		return err
	}
	r, err := rules.Parse(path, src, floor)
	if err != nil {
		return err
	}
	if c.Change != "" {
		return c.match(ctx, s, r)
	}
	if s.json {
		names := []string{}
		for _, rule := range r.Rules {
			names = append(names, rule.Name)
		}
		return s.printJSON(map[string]any{"file": path, "rules": names, "floor": floor})
	}
	s.say("%s is good. Each change needs at least %s, of %d.\n", path, floor.Level, floor.People)
	for _, rule := range r.Rules {
		s.say("%s\n", rule.Words())
	}
	return nil
}

func (c *CheckCmd) match(ctx context.Context, s *session, r *rules.Rules) error {
	found, err := s.find(ctx, c.Change)
	if err != nil {
		return err
	}
	t, err := found.Terms()
	if err != nil {
		return err
	}
	d, err := r.Decide(ctx, t, found.Before)
	if err != nil {
		return err
	}
	names := r.Matches(ctx, t, found.Before)
	if s.json {
		return s.printJSON(map[string]any{"change": found.ID, "rules": append([]string{}, names...), "require": d.Require, "deny": d.Deny})
	}
	for _, n := range names {
		s.say("matches: %s\n", n)
	}
	if d.Deny != "" {
		s.say("denied: %s\n", d.Deny)
		return nil
	}
	s.say("needs level %s, of %d\n", d.Require.Level, d.Require.People)
	return nil
}

// rulesFile is the file of rules of this home. It may be missing.
func (c Config) rulesFile() string { return filepath.Join(c.Home, "rules.yaml") }

// floor is what every change needs at least, whatever the rules say: what the configuration says, or else the page once
// anybody can sign in there, and until then somebody at a terminal, so that `wetink setup` counts from the next preview on,
// also for servers that run already.
func (c Config) floor(who *people) func(context.Context) (wetink.Require, error) {
	return func(ctx context.Context) (wetink.Require, error) {
		if level, ok := approvals[c.Approval]; ok {
			return wetink.Require{Level: level, People: c.People}, nil
		}
		enrolled, err := who.enrolled(ctx)
		if err != nil {
			return wetink.Require{}, err
		}
		if enrolled {
			return wetink.Require{Level: wetink.Session, People: c.People}, nil
		}
		return wetink.Require{Level: wetink.Host, People: c.People}, nil
	}
}

// readable denies what nobody would read: nothing is cut on the page, so a value has to fit.
type readable struct{ wetink.Policy }

// Decide implements wetink.Policy.
func (p readable) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	if field, long := render.TooLong(t, before); long {
		return wetink.Decision{Deny: fmt.Sprintf("%s has more than %d KiB, which nobody reads; shorten it", field, render.Limit>>10)}, nil
	}
	return p.Policy.Decide(ctx, t, before)
}
