package recipes

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/upstream"
)

type reader struct{ *strictyaml.Reader }

func (r reader) recipe(out *Recipe) {
	body := r.Document(maxRecipe)
	if body == nil {
		return
	}
	m, ok := r.Mapping(body, "the file", "version", "for", "server", "pass", "guard", "cases")
	if !ok {
		return
	}
	r.Version(body, m["version"])
	for _, key := range []string{"for", "server", "pass", "guard", "cases"} {
		if m[key] == nil {
			r.Bad(body.GetToken(), "%s is missing", key)
			return
		}
	}
	out.For, out.pass = r.Texts(m["for"], "for"), r.Texts(m["pass"], "pass")
	out.Server, _ = r.Text(m["server"], "server")
	for _, p := range out.pass {
		if _, err := path.Match(p, ""); err != nil {
			r.Bad(m["pass"].GetToken(), "pass: %q is no pattern: * stands for any letters", p)
		}
	}
	out.rules = upstream.ParseRules(r.Reader, m["guard"], out.pass)
	list, ok := m["cases"].(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.Bad(m["cases"].GetToken(), "cases: want a list with one at least: a recipe that nobody can try proves nothing")
		return
	}
	for _, n := range list.Values {
		out.Cases = append(out.Cases, r.oneCase(n))
	}
}

func (r reader) oneCase(n ast.Node) (c Case) {
	m, ok := r.Mapping(n, "a case", "says", "tool", "args", "answers", "expect", "then")
	if !ok {
		return c
	}
	at := strictyaml.First(n)
	c.Line = at.Position.Line
	for _, key := range []string{"says", "tool", "args", "expect"} {
		if m[key] == nil {
			r.Bad(at, "%s is missing", key)
			return c
		}
	}
	c.Says, _ = r.Text(m["says"], "says")
	c.Tool, _ = r.Text(m["tool"], "tool")
	c.Args = r.json(m["args"])
	if n := m["answers"]; n != nil {
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			r.Bad(n.GetToken(), "answers: want a list")
			return c
		}
		for _, one := range list.Values {
			if m, ok := r.Mapping(one, "an answer", append([]string{"tool", "args"}, kinds...)...); ok {
				a := Answer{Result: r.result(one, m)}
				if m["tool"] == nil {
					r.Bad(strictyaml.First(one), "tool is missing: say which one answers this")
				} else {
					a.Tool, _ = r.Text(m["tool"], "tool")
				}
				if m["args"] != nil {
					a.Args = r.json(m["args"])
				}
				c.Answers = append(c.Answers, a)
			}
		}
	}
	c.Expect = r.expectation(m["expect"])
	if n := m["then"]; n != nil {
		c.Then = r.then(n)
	}
	return c
}

func (r reader) expectation(n ast.Node) (e Expectation) {
	m, ok := r.Mapping(n, "expect", "verb", "warnings", "ask", "undo", "refused")
	if !ok {
		return e
	}
	text := func(key string, words ...string) (s string) {
		if v := m[key]; v != nil {
			if s, ok = r.Text(v, key); ok && len(words) > 0 && !slices.Contains(words, s) {
				r.Bad(v.GetToken(), "%s is %q: want one of %s", key, s, strings.Join(words, ", "))
			}
		}
		return s
	}
	e.Verb = text("verb", "create", "change", "delete", "call")
	e.Undo = text("undo", "full", "partial", "none")
	e.Refused, e.Ask = text("refused"), text("ask")
	if _, known := upstream.ParseAsk(e.Ask); e.Ask != "" && !known {
		r.Bad(m["ask"].GetToken(), "ask is %q: want a word that a rule can say", e.Ask)
	}
	if v := m["warnings"]; v != nil {
		e.Warnings = r.Texts(v, "warnings")
	}
	if e.Refused == "" && (e.Verb == "" || e.Undo == "") {
		r.Bad(strictyaml.First(n), "expect: want the verb and the undo, or refused")
	}
	return e
}

func (r reader) then(n ast.Node) *Then {
	m, ok := r.Mapping(n, "then", append([]string{"undo"}, kinds...)...)
	if !ok {
		return nil
	}
	t := &Then{Result: r.result(n, m)}
	u := m["undo"]
	if u == nil {
		r.Bad(strictyaml.First(n), "undo is missing: want {tool: {arguments}}, or none")
		return t
	}
	if s, text := u.(*ast.StringNode); text && s.Value == "none" {
		return t
	}
	entries, _ := r.Entries(u, "undo")
	if len(entries) != 1 {
		r.Bad(u.GetToken(), "undo: want one tool, as in {update_x: {id: 1}}")
		return t
	}
	t.Tool, t.Args = entries[0].Key, r.json(entries[0].Value)
	return t
}

// kinds of answers: published servers use all of these, and a text beside structured content.
var kinds = []string{"structured", "text", "json", "error", "resource"}

// result makes the CallToolResult of an answer: structuredContent, a text, JSON in a text, an embedded text resource, or a
// tool's error.
func (r reader) result(n ast.Node, m map[string]ast.Node) json.RawMessage {
	out, content := map[string]any{}, []any{}
	say := func(s string) { content = append(content, map[string]any{"type": "text", "text": s}) }
	given := 0
	for _, k := range kinds {
		if m[k] == nil {
			continue
		}
		given++
		s := ""
		if k == "text" || k == "error" || k == "resource" {
			s, _ = r.Text(m[k], k)
		}
		switch k {
		case "structured":
			v := r.json(m[k])
			if out["structuredContent"] = v; m["text"] == nil {
				say(string(v))
			}
		case "json":
			say(string(r.json(m[k])))
		case "text":
			say(s)
		case "error":
			out["isError"] = true
			say(s)
		case "resource":
			content = append(content, map[string]any{"type": "resource", "resource": map[string]any{"uri": "case://resource", "text": s}})
		}
	}
	if beside := m["text"] != nil && (m["structured"] != nil || m["resource"] != nil); given == 0 || given > 2 || given == 2 && !beside {
		r.Bad(strictyaml.First(n), "an answer is one of %s, or a text beside structured or resource", strings.Join(kinds, ", "))
	}
	out["content"] = content
	b, err := json.Marshal(out)
	if err != nil {
		r.Bad(strictyaml.First(n), "%v", err)
	}
	return b
}

func (r reader) json(n ast.Node) json.RawMessage {
	b, err := json.Marshal(r.value(n))
	if err != nil {
		r.Bad(n.GetToken(), "%v", err)
	}
	return b
}

// value is what a node means in JSON. Numbers keep their digits.
func (r reader) value(n ast.Node) any {
	switch n := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode, *ast.FloatNode:
		if s := n.GetToken().Value; json.Valid([]byte(s)) {
			return json.Number(s)
		}
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.SequenceNode:
		list := []any{}
		for _, v := range n.Values {
			list = append(list, r.value(v))
		}
		return list
	case *ast.MappingNode, *ast.MappingValueNode:
		out := map[string]any{}
		entries, _ := r.Entries(n, "a value")
		for _, e := range entries {
			out[e.Key] = r.value(e.Value)
		}
		return out
	}
	r.Bad(n.GetToken(), "%s: this is no value of JSON; anchors, aliases and tags are not read", n.GetToken().Value)
	return nil
}
