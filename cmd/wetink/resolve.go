package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wetink/wetink"
)

// ResolveCmd records what a person found out. It is a statement of fact, not an approval: nothing is sent.
type ResolveCmd struct {
	Output
	ID  string   `arg:"" help:"The change, or the unique beginning of its id."`
	Op  []string `required:"" placeholder:"N=OUTCOME" help:"What became of operation N, as wetink show numbers it: took_effect, no_effect or differs. Once for each that is unknown."`
	Why string   `short:"m" name:"why" required:"" help:"How you know; it is kept in the record."`
}

// Run implements the command.
func (r *ResolveCmd) Run(ctx context.Context) error {
	found, err := parseOutcomes(r.Op, r.Why)
	if err != nil {
		return usage{err}
	}
	s, err := open(r.Output, true)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.find(ctx, r.ID)
	if err != nil {
		return err
	}
	t, err := c.Terms()
	if err != nil {
		return err
	}
	if c.Status == wetink.InDoubt {
		if err := sameOps(found, wetink.OpenOps(c, t)); err != nil {
			return usage{fmt.Errorf("resolve %s: %w", c.ID, err)}
		}
	}
	if _, _, err := s.engine.Resolve(ctx, s.me, c.ID, found); err != nil {
		return err
	}
	v, err := s.view(ctx, c.ID)
	if err != nil {
		return err
	}
	return s.finish(v)
}

func parseOutcomes(list []string, why string) ([]wetink.Step, error) {
	var steps []wetink.Step
	for _, s := range list {
		n, outcome, ok := strings.Cut(s, "=")
		op, err := strconv.Atoi(n)
		known := slices.Contains([]wetink.Outcome{wetink.TookEffect, wetink.NoEffect, wetink.Differs}, wetink.Outcome(outcome))
		if !ok || err != nil || op < 1 || !known {
			return nil, fmt.Errorf("--op is %q: want N=took_effect, N=no_effect or N=differs, N from 1", s)
		}
		if slices.ContainsFunc(steps, func(s wetink.Step) bool { return s.Op == op-1 }) {
			return nil, fmt.Errorf("--op names operation %d twice", op)
		}
		steps = append(steps, wetink.Step{Op: op - 1, Outcome: wetink.Outcome(outcome), Why: why})
	}
	return steps, nil
}

// sameOps says in the numbers that a person sees which operations are open.
func sameOps(found []wetink.Step, open []int) error {
	var named []int
	for _, s := range found {
		named = append(named, s.Op)
	}
	slices.Sort(named)
	open = slices.Sorted(slices.Values(open))
	if slices.Equal(named, open) {
		return nil
	}
	var want []string
	for _, op := range open {
		want = append(want, strconv.Itoa(op+1))
	}
	return fmt.Errorf("--op has to name exactly the operations whose outcome is unknown: %s", strings.Join(want, ", "))
}
