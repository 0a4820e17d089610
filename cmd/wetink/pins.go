package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/wetink/wetink/gateway"
	"github.com/wetink/wetink/render"
)

// PinsCmd shows what changed in the tools of a guarded server since somebody looked at them. A tool that is not as it was
// is refused until its difference is accepted here.
type PinsCmd struct {
	Server string `arg:"" optional:"" help:"One of the file's servers; all of them without one."`
	Accept bool   `help:"Accept the tools as they are now."`
	Guarding
	Output
}

type pinJSON struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool"`
	Was    json.RawMessage `json:"was"`
	Is     json.RawMessage `json:"is"`
}

// Run implements the command.
func (p *PinsCmd) Run(ctx context.Context) error {
	cfg, err := LoadConfig()
	if err != nil {
		return err
	}
	if p.Server != "" && len(p.Command) == 0 {
		p.Only = append(p.Only, p.Server)
	}
	gc, err := p.load(cfg)
	if err != nil {
		return err
	}
	gw, err := gateway.New(upstreams(gc), nil, &gateway.Options{Stderr: os.Stderr, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer gw.Close()
	out := []pinJSON{}
	for _, s := range gc.Servers {
		list, err := gw.Upstream(s.Name).Tools(ctx)
		if err != nil {
			return fmt.Errorf("list the tools of %s: %w", s.Name, err)
		}
		pins := gateway.OpenPins(pinsFolder(cfg), s.Name)
		_, changed, first, err := pins.Check(list)
		if err != nil {
			return err
		}
		for _, c := range changed {
			out = append(out, pinJSON{s.Name, c.Tool, c.Was, c.Is})
		}
		if !p.JSON {
			p.say(s.Name, len(list), changed, first)
		}
		if p.Accept && len(changed) > 0 {
			if err := pins.Accept(list); err != nil {
				return err
			}
		}
	}
	if p.JSON {
		ses := &session{out: os.Stdout, json: true}
		return ses.printJSON(map[string]any{"changed": out, "accepted": p.Accept})
	}
	return nil
}

func (p *PinsCmd) say(server string, tools int, changed []gateway.PinChange, first bool) {
	switch {
	case first:
		fmt.Printf("%s: %d tools, pinned as they are now.\n", server, tools)
	case len(changed) == 0:
		fmt.Printf("%s: %d tools, all of them as they were.\n", server, tools)
	}
	for _, c := range changed {
		fmt.Printf("%s: %s\n", server, render.Line(c.Tool))
		// A description is text that wants to be believed: each line is shown with what hides in it.
		for line := range strings.Lines(udiff.Unified("was", "is", readableJSON(c.Was), readableJSON(c.Is))) {
			fmt.Println("  " + render.Line(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(changed) > 0 && p.Accept {
		fmt.Printf("%s: accepted.\n", server)
	} else if len(changed) > 0 {
		fmt.Printf("%s: these tools are refused until the difference is accepted, with --accept.\n", server)
	}
}

func readableJSON(b json.RawMessage) string {
	if b == nil {
		return ""
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return string(b)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(b)
	}
	return string(out) + "\n"
}
