package recipes_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

// contrary gives the answers of a case while it is previewed, and then contradicts the recipe.
type contrary struct {
	answers map[string]json.RawMessage
	guarded string
	write   json.RawMessage // what the guarded tool answers; it does nothing
	read    json.RawMessage // what the others answer after that; nil: as before
	written bool
}

func (s *contrary) Tools(context.Context) (map[string]json.RawMessage, error) { return nil, nil }

func (s *contrary) Call(_ context.Context, tool string, _ json.RawMessage) (json.RawMessage, bool, error) {
	if tool == s.guarded && s.answers[tool] == nil || tool == s.guarded && s.written {
		s.written = true
		return s.write, true, nil
	}
	if s.written && s.read != nil {
		return s.read, true, nil
	}
	return s.answers[tool], true, nil
}

// A server that is not as its recipe says never gets a change to say that it was compared, and none that says it can be undone
// by what it did not answer. What nothing can read is recorded as the server's word, and says so.
func TestAServerThatContradictsItsRecipeIsInDoubtOrItsWord(t *testing.T) {
	writes := map[string]string{
		"no id":                `{"content":[{"type":"text","text":"done"}]}`,
		"an error as success":  `{"content":[{"type":"text","text":"Error: it failed"}],"isError":false}`,
		"other fields":         `{"content":[],"structuredContent":{"item":{"key":"k"},"ok":true}}`,
		"the id is a list":     `{"content":[],"structuredContent":{"id":[],"event":[],"entities":{},"relations":7,"url":{},"results":"x"}}`,
		"no JSON":              `<html>`,
		"nothing":              `{}`,
		"null":                 `null`,
		"asks for more":        `{"resultType":"input_required","content":[]}`,
		"a tool of another id": `{"content":[{"type":"text","text":"{\"id\":\"other\",\"event\":{\"id\":\"other\"},\"url\":\"x/1\"}"}]}`,
	}
	reads := map[string]string{"as before": "", "another shape": `{"content":[],"structuredContent":{"item":{}}}`, "a failure": `{"isError":true,"content":[{"type":"text","text":"boom"}]}`, "empty": `{}`, "no JSON": `<html>`}
	n := 0
	for _, r := range recipes.All() {
		rules, _ := r.Rules()
		for _, c := range r.Cases {
			if c.Refused != "" {
				continue
			}
			for write, answer := range writes {
				for read, after := range reads {
					n++
					synctest.Test(t, func(t *testing.T) {
						s := &contrary{answers: c.Answers, guarded: c.Tool, write: json.RawMessage(answer)}
						if after != "" {
							s.read = json.RawMessage(after)
						}
						target := upstream.New(r.Name, s, rules, nil)
						e := wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"x": target}, &wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeGuarded})
						req, err := upstream.Call(ctxBy, c.Tool, c.Args)
						if err != nil {
							t.Fatal(err)
						}
						draft, ticket, err := e.Preview(ctx, "x", req)
						if err != nil {
							t.Fatalf("%s.yaml:%d: %v", r.Name, c.Line, err)
						}
						s.written = c.Answers[c.Tool] != nil // from now on a dry run is over
						if s.written && s.read != nil {
							s.read = nil
						}
						got, _, err := e.Apply(ctx, ctxBy, draft.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket})
						if err != nil {
							return // refused
						}
						time.Sleep(10 * time.Minute)
						if got.Status == wetink.InDoubt {
							if got, _, err = e.Reconcile(ctx, ctxBy, got.ID); err != nil {
								return // it cannot be read: it stays in doubt
							}
						}
						if got.Status == wetink.Applied && got.Compared() {
							t.Errorf("%s.yaml:%d, %s, then reads %s: applied and compared: %+v", r.Name, c.Line, write, read, got.Steps)
						}
					})
				}
			}
		}
	}
	if n < 500 {
		t.Errorf("%d contradictions", n)
	}
}
