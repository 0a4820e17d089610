package recipes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

// fake plays a published server: it has the recorded tools, and answers what a test says. Every call of a tool or with an argument
// that the real one does not have fails the test.
type fake struct {
	t     *testing.T
	tools map[string]tool
	on    map[string]func(args map[string]any) string // the text of the answer
	sent  []string
}

func (f *fake) Tools(context.Context) (map[string]json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	for name, one := range f.tools {
		b, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		defs[name] = b
	}
	return defs, nil
}

func (f *fake) Call(_ context.Context, name string, raw json.RawMessage) (json.RawMessage, bool, error) {
	f.sent = append(f.sent, name+" "+string(raw))
	of, ok := f.tools[name]
	if !ok {
		f.t.Errorf("the server has no tool %s", name)
	}
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil {
		f.t.Errorf("%s %s: %v", name, raw, err)
	}
	have := map[string]bool{}
	for _, a := range of.Arguments {
		have[a] = true
	}
	for a := range maps.Keys(args) {
		if !have[a] {
			f.t.Errorf("%s has no argument %s", name, a)
		}
	}
	answer, ok := f.on[name]
	if !ok {
		f.t.Errorf("nothing says what %s answers", name)
		return nil, true, fmt.Errorf("no answer")
	}
	return result(answer(args)), true, nil
}

// result makes a CallToolResult of a text. One that begins with a brace and has content is one already.
func result(text string) json.RawMessage {
	if strings.HasPrefix(text, `{"`) && strings.Contains(text, `"content":[`) {
		return json.RawMessage(text)
	}
	b, err := json.Marshal(map[string]any{"isError": strings.HasPrefix(text, "isError "), "content": []any{map[string]any{"type": "text", "text": strings.TrimPrefix(text, "isError ")}}})
	if err != nil {
		panic(err)
	}
	return b
}

func (f *fake) sends(call string) bool {
	for _, s := range f.sent {
		if s == call {
			return true
		}
	}
	return false
}

type kit struct {
	*testing.T
	*wetink.Engine
	*fake
}

var ctxBy = wetink.Principal{Person: "ana", Client: "test"}

// recipe runs a test against the recipe, on virtual time. Levels are not what it is about: all is approved by ticket.
func recipe(t *testing.T, name string, on map[string]func(map[string]any) string, run func(k *kit)) {
	t.Helper()
	var r *recipes.Recipe
	for _, one := range recipes.All() {
		if one.Name == name {
			r = one
		}
	}
	rules, problems := r.Rules()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tools, _ := recordedTools(t, name)
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: t, tools: tools, on: on}
		target := upstream.New(name, f, rules, nil)
		run(&kit{t, wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"x": target},
			&wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeGuarded}), f})
	})
}

func (k *kit) change(tool, args string) (wetink.Change, wetink.Ticket) {
	k.Helper()
	req, err := upstream.Call(ctxBy, tool, json.RawMessage(args))
	if err != nil {
		k.Fatal(err)
	}
	c, ticket, err := k.Preview(ctx, "x", req)
	if err != nil {
		k.Fatalf("preview %s: %v", tool, err)
	}
	c, ticket, err = k.Apply(ctx, ctxBy, c.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket})
	if err != nil {
		k.Fatalf("apply %s: %v", tool, err)
	}
	return c, ticket
}

func (k *kit) undo(c wetink.Change, ticket wetink.Ticket) wetink.Change {
	k.Helper()
	u, _, err := k.Undo(ctx, ctxBy, c.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket})
	if err != nil {
		k.Fatalf("undo: %v", err)
	}
	return u
}
