package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/render"
)

// TestCmd replays the cases of recipes, for CI: it needs no configuration, starts no server and writes nothing.
type TestCmd struct {
	Files []string `arg:"" optional:"" help:"Recipes in files; the ones of this program are always replayed."`
}

var errCases = errors.New("some cases do not hold")

// Run implements the command.
func (t *TestCmd) Run(ctx context.Context, k *kong.Kong) error {
	list, err := recipes.All()
	if err != nil {
		return err
	}
	for _, name := range t.Files {
		src, err := os.ReadFile(name)
		if err != nil {
			return usage{err}
		}
		r, err := recipes.Read(name, src)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		list = append(list, r)
	}
	cases, failed := 0, 0
	for _, r := range list {
		for _, c := range r.Cases {
			cases++
			problems := recipes.Replay(ctx, r, c)
			if len(problems) > 0 {
				failed++
			}
			for _, p := range problems {
				fmt.Fprintf(k.Stdout, "%s:%d: %s: %s\n", render.Line(r.Name), c.Line, render.Line(c.Says), render.Line(p))
			}
		}
	}
	fmt.Fprintf(k.Stdout, "%d recipes, %d cases, %d failed\n", len(list), cases, failed)
	if failed > 0 {
		return errCases
	}
	return nil
}
