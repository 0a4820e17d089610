package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/upstream"
)

// TryCmd shows what a call of a guarded tool would ask. It asks nobody, stores nothing, and changes nothing: of the server
// it calls the tools that the rule reads with.
type TryCmd struct {
	Tool string `arg:"" help:"The tool; NAME__TOOL where several servers are guarded."`
	Args string `arg:"" help:"Its arguments, as JSON."`
	Guarding
	Output
}

// Run implements the command.
func (t *TryCmd) Run(ctx context.Context) error {
	cfg, err := LoadConfig()
	if err != nil {
		return err
	}
	gc, err := t.load(cfg)
	if err != nil {
		return err
	}
	server, tool := gc.Servers[0].Name, t.Tool
	if len(gc.Servers) > 1 {
		found := false
		for _, s := range gc.Servers {
			if rest, ok := strings.CutPrefix(t.Tool, s.Name+"__"); ok {
				server, tool, found = s.Name, rest, true
			}
		}
		if !found {
			return usage{fmt.Errorf("%q: several servers are guarded; name the tool as NAME__TOOL", t.Tool)}
		}
	}
	if err := strictjson.Check([]byte(t.Args), strictjson.Default); err != nil {
		return usage{fmt.Errorf("arguments: %w", err)}
	}
	who, err := cfg.OpenPeople()
	if err != nil {
		return err
	}
	defer who.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pins, err := os.MkdirTemp("", "wetink-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(pins)
	g, err := newGuarding(cfg, gc, pins, memory.New(nil), nil, log, func(o *wetink.Options) {
		o.Policy, o.Verifiers = cfg.Options(who).Policy, map[string]wetink.Verifier{"nobody": nobody{}}
	})
	if err != nil {
		return err
	}
	defer g.gateway.Close()
	tools, err := g.gateway.Upstream(server).Tools(ctx)
	if err != nil {
		return err
	}
	if _, err := g.guard.Tools(ctx, server, tools); err != nil {
		return err
	}
	if g.guard.Passes(server, tool) {
		fmt.Printf("%s passes: it is called as it is, and nobody is asked.\n", render.Line(t.Tool))
		return nil
	}
	req, err := upstream.Call(wetink.Principal{Client: "wetink try"}, tool, json.RawMessage(t.Args))
	if err != nil {
		return err
	}
	c, _, err := g.engine.Preview(ctx, server, req)
	if err != nil {
		return err
	}
	s := &session{cfg: cfg, ledger: g.ledger, people: who, engine: g.engine, out: os.Stdout, json: t.JSON}
	v, err := s.view(ctx, c.ID)
	if err != nil {
		return err
	}
	if s.json {
		return s.printChange(v)
	}
	if err := render.Text(s.out, v, s.options(c, s.out)); err != nil {
		return err
	}
	s.say("\nThis was a try: nothing was stored, nobody is asked, and nothing was changed.\n")
	return nil
}

// nobody lets a try show a change of any level, and approves none.
type nobody struct{}

// Verify implements wetink.Verifier.
func (nobody) Verify(context.Context, wetink.Change, wetink.Terms, wetink.Evidence) (wetink.Level, error) {
	return wetink.Auto, errors.New("a try is not approved")
}

// Reach implements wetink.Verifier.
func (nobody) Reach(context.Context) wetink.Level { return wetink.Passkey }
