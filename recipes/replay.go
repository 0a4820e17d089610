package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/upstream"
)

// Replay holds the case against the recipe and returns what is not as expected, in words; none is good. It starts no
// server: reading tools answer what the case says, and a call that the case has no answer for is a mistake of the case or
// of the recipe. It never sends the guarded call.
func Replay(ctx context.Context, r Recipe, c Case) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	server := script{c.Answers}
	standing := upstream.Ask{Word: standingWord} // what the operator says of all tools: an empty demand, so that the rule's shows
	t := upstream.New(r.Name, server, r.rules, &upstream.Options{Version: r.Server, Default: standing})
	if upstream.Passes(r.pass, c.Tool) {
		bad("%s stands in `pass`: it is no case", c.Tool)
		return problems
	}
	req, err := upstream.Call(wetink.Principal{}, c.Tool, c.Args)
	if err != nil {
		bad("%v", err)
		return problems
	}
	p, err := t.Prepare(ctx, req)
	if err != nil {
		switch {
		case c.Expect.Refused == "":
			bad("it is refused: %v", err)
		case !strings.Contains(err.Error(), c.Expect.Refused):
			bad("it is refused, but not because of %q: %v", c.Expect.Refused, err)
		}
		return problems
	}
	if c.Expect.Refused != "" {
		bad("it is prepared, and should be refused because of %q", c.Expect.Refused)
		return problems
	}
	terms := wetink.Terms{Target: r.Name, Ops: p.Ops}
	x := upstream.Explain(terms, p.Before)
	verb := "call"
	if len(x.Ops) > 0 && x.Ops[0].Verb != "" {
		verb = x.Ops[0].Verb
	}
	if want := c.Expect.Verb; want != verb {
		bad("verb: got %s, want %s", verb, want)
	}
	if !slices.Equal(p.Warnings, c.Expect.Warnings) {
		bad("warnings: got %q, want %q", p.Warnings, c.Expect.Warnings)
	}
	if want := wetink.Extent(c.Expect.Undo); p.Undo.Extent != want {
		bad("undo: got %s, want %s %q", p.Undo.Extent, want, p.Undo.Notes)
	}
	if err := asks(t, terms, p.Before, len(x.Ops) > 0 && x.Ops[0].Type != "", c.Expect.Ask); err != nil {
		bad("ask: %v", err)
	}
	if c.Then != nil {
		if err := wayBack(t, p, *c.Then); err != nil {
			bad("undo: %v", err)
		}
	}
	return problems
}

const standingWord = "auto"

// asks compares what is demanded with a word.
func asks(t *upstream.Target, terms wetink.Terms, before []wetink.Snapshot, typed bool, word string) error {
	d, err := t.Requires(terms, before)
	if err != nil {
		return err
	}
	want, _ := upstream.ParseAsk(word)
	if (d.Deny != "") != want.Deny {
		return fmt.Errorf("denied: %q, want %q", d.Deny, word)
	}
	if want.Deny {
		return nil
	}
	if d.Require != want.Require || typed != want.Type {
		return fmt.Errorf("got %+v (typed: %t), want %q: %+v (typed: %t)", d.Require, typed, word, want.Require, want.Type)
	}
	return nil
}

// wayBack compares the call that takes back with the one that is expected, once the server answered.
func wayBack(t *upstream.Target, p wetink.Prepared, then Then) error {
	steps := []wetink.Step{{Outcome: wetink.TookEffect, Receipt: wetink.Receipt{Raw: then.Result}}}
	ops := slices.Clone(p.Ops)
	ops[0].Key = "chg_case-0"
	req, _, err := t.Invert(ops, p.Before, steps)
	if errors.Is(err, wetink.ErrNoUndo) {
		if then.Tool == "" {
			return nil
		}
		return fmt.Errorf("there is none: %w; want %s %s", err, then.Tool, then.Args)
	}
	if err != nil {
		return err
	}
	var got struct {
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(req.Args, &got); err != nil || len(got.Calls) != 1 {
		return fmt.Errorf("the plan cannot be read: %s (%w)", req.Args, err)
	}
	if then.Tool == "" {
		return fmt.Errorf("it sends %s %s, and there should be none", got.Calls[0].Name, got.Calls[0].Arguments)
	}
	if got.Calls[0].Name != then.Tool || !same(got.Calls[0].Arguments, then.Args) {
		return fmt.Errorf("it sends %s %s, want %s %s", got.Calls[0].Name, got.Calls[0].Arguments, then.Tool, then.Args)
	}
	return nil
}

// same compares two values without regard to the order of members.
func same(a, b json.RawMessage) bool {
	sorted := func(raw json.RawMessage) []byte {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return nil
		}
		out, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return out
	}
	x := sorted(a)
	return x != nil && bytes.Equal(x, sorted(b))
}

// script is the upstream.Server of a case.
type script struct{ answers []Answer }

// Call implements upstream.Server.
func (s script) Call(_ context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	for _, a := range s.answers {
		if a.Tool == tool && (a.Args == nil || same(a.Args, args)) {
			return a.Result, true, nil
		}
	}
	return nil, false, fmt.Errorf("the case has no answer of %s to %s", tool, args)
}

// Tools implements upstream.Server.
func (script) Tools(context.Context) (map[string]json.RawMessage, error) { return nil, nil }
