package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/upstream"
)

// Case is a call, what the server answers meanwhile, and what a person has to be shown of it.
type Case struct {
	Line     int
	Tool     string
	Args     json.RawMessage
	Answers  map[string]json.RawMessage // by tool: a whole CallToolResult
	Headline string
	Risk     []string // all warnings, in their order
	Ask      string   // the word
	Undo     string   // full, partial, none
	Refused  string   // part of the reason; then nothing else is said
}

func (r *Recipe) cases(n ast.Node) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.reader.Bad(n.GetToken(), "cases: want a list")
		return
	}
	for _, v := range seq.Values {
		m, ok := r.reader.Mapping(v, "case", "call", "answers", "headline", "risk", "ask", "undo", "refused")
		if !ok {
			continue
		}
		c := Case{Line: v.GetToken().Position.Line, Answers: map[string]json.RawMessage{}}
		text := func(key string) (s string) {
			if m[key] != nil {
				s, _ = r.reader.Text(m[key], key)
			}
			return s
		}
		c.Headline, c.Ask, c.Undo, c.Refused = text("headline"), text("ask"), text("undo"), text("refused")
		tool, args, ok := strings.Cut(text("call"), " ")
		if c.Tool, c.Args = tool, json.RawMessage(args); !ok || !json.Valid(c.Args) {
			r.reader.Bad(v.GetToken(), "call: want a tool and its arguments in JSON, as in get_x {\"id\":1}")
		}
		if m["risk"] != nil {
			c.Risk = r.reader.Texts(m["risk"], "risk")
		}
		if m["answers"] != nil {
			entries, _ := r.reader.Entries(m["answers"], "answers")
			for _, e := range entries {
				s, _ := r.reader.Text(e.Value, e.Key)
				if c.Answers[e.Key] = json.RawMessage(s); !json.Valid(c.Answers[e.Key]) {
					r.reader.Bad(e.At, "%s: want the result in JSON", e.Key)
				}
			}
		}
		r.Cases = append(r.Cases, c)
	}
}

// recorded is a server that gives recorded answers, and is never asked for anything else.
type recorded struct {
	answers map[string]json.RawMessage
	asked   []string
}

func (s *recorded) Tools(context.Context) (map[string]json.RawMessage, error) { return nil, nil }

func (s *recorded) Call(_ context.Context, tool string, _ json.RawMessage) (json.RawMessage, bool, error) {
	s.asked = append(s.asked, tool)
	raw, ok := s.answers[tool]
	if !ok {
		return nil, false, fmt.Errorf("the case has no answer of %s", tool)
	}
	return raw, true, nil
}

// Replay previews the case under rules, and returns what is not as the case says.
func (c Case) Replay(ctx context.Context, rules upstream.Rules, ask upstream.Ask) []string {
	s := &recorded{answers: c.Answers}
	target := upstream.New("server", s, rules, &upstream.Options{Default: ask})
	req, err := upstream.Call(wetink.Principal{}, c.Tool, c.Args)
	if err != nil {
		return []string{err.Error()}
	}
	p, err := target.Prepare(ctx, req)
	if c.Refused != "" || err != nil {
		if c.Refused == "" || err == nil || !strings.Contains(err.Error(), c.Refused) {
			return []string{fmt.Sprintf("refused with %v, want %q", err, c.Refused)}
		}
		return nil
	}
	t := wetink.Terms{V: 1, Change: "chg_00000000000000000000000000", Nonce: make([]byte, 32), OnFailure: wetink.StopOnFailure, Target: "server", Account: p.Account, Undo: p.Undo, Warnings: p.Warnings, Context: p.Context, Ops: p.Ops}
	for i := range t.Ops {
		t.Ops[i].Before = p.Before[i].Digest()
	}
	var wrong []string
	want := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", what, got, want))
		}
	}
	headline, err := Headline(target, t, p.Before)
	if err != nil {
		return []string{err.Error()}
	}
	want("headline", headline, c.Headline)
	want("undo", string(p.Undo.Extent), c.Undo)
	if !slices.Equal(p.Warnings, c.Risk) {
		wrong = append(wrong, fmt.Sprintf("risk is %q, want %q", p.Warnings, c.Risk))
	}
	d, err := target.Requires(t, p.Before)
	if err != nil {
		return append(wrong, err.Error())
	}
	word := "deny"
	if d.Deny == "" {
		word = d.Require.Level.String()
		if d.Require.People > 1 {
			word = "two"
		}
		if target.Typed(t, p.Before) != "" {
			word = "typed"
		}
	}
	want("ask", word, c.Ask)
	return wrong
}

// Headline is what stands above the preview.
func Headline(target *upstream.Target, t wetink.Terms, before []wetink.Snapshot) (string, error) {
	s, err := wetink.Encode(t)
	if err != nil {
		return "", err
	}
	return render.Headline(wetink.Change{ID: t.Change, Statement: s, Before: before, Target: t.Target, Account: t.Account},
		&render.Options{Explain: target.Explain, Diff: target.Diff})
}
