package upstream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// removing tools are drawn as what goes. It is a matter of looks only: nothing is decided by a name.
var removing = regexp.MustCompile(`(?i)(^|[^a-z])(delete|remove|trash|destroy|archive)([^a-z]|$)`)

// Diff implements wetink.Differ.
func (t *Target) Diff(o wetink.Op, before wetink.Snapshot) []wetink.FieldChange {
	return Diff(o, before)
}

// Explain implements wetink.Explainer.
func (t *Target) Explain(terms wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	return Explain(terms, before)
}

// shownCall is a stored call, without the rules.
func shownCall(raw json.RawMessage) (p payload, args []strictjson.Member, ok bool) {
	if strictjson.Decode(raw, &p, strictjson.Default) != nil || p.Draw == nil {
		return p, nil, false
	}
	args, err := strictjson.Members(p.Arguments)
	return p, args, err == nil
}

// Diff shows the arguments, beside what is read under the same name. An argument that says which object is meant is no
// change of it. It needs no rules: what they say of it stands in the payload. An Op of another Target is shown as wetink.Diff
// does.
func Diff(o wetink.Op, before wetink.Snapshot) []wetink.FieldChange {
	none := json.RawMessage("null")
	p, members, ok := shownCall(o.Payload)
	if !ok {
		return wetink.Diff(o, before)
	}
	was := fields(before)
	var out []wetink.FieldChange
	for _, m := range members {
		if slices.Contains(p.Draw.Identity, m.Name) {
			continue
		}
		f := wetink.FieldChange{Field: m.Name, Before: none, After: m.Value}
		if old, there := was[m.Name]; there {
			is, err := decode(m.Value)
			if err == nil && equal(old, is) {
				continue
			}
			if f.Before, err = canonical(old); err != nil {
				f.Before = none
			}
		}
		out = append(out, f)
	}
	if len(out) == 0 && p.Draw.Verb == "delete" {
		body, err := strictjson.Members(before.Body)
		if err != nil {
			return []wetink.FieldChange{{Before: before.Body, After: none}}
		}
		for _, m := range body {
			out = append(out, wetink.FieldChange{Field: m.Name, Before: m.Value, After: none})
		}
	}
	if text, err := canonical(p.DryRun); err == nil && p.DryRun != "" {
		out = append(out, wetink.FieldChange{Field: dryRun, Before: none, After: text})
	}
	return out
}

const dryRun = "what the server says it would do"

// Explain tells how a Change of some server's tools is shown. It needs no rules, as Diff. An Op of another Target has
// generic fields.
func Explain(terms wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	e := wetink.Explanation{}
	for i, o := range terms.Ops {
		p, _, ok := shownCall(o.Payload)
		if i >= len(before) {
			break
		}
		if !ok {
			x := wetink.OpExplanation{Fields: map[string]wetink.Meaning{}}
			for _, f := range wetink.Diff(o, before[i]) {
				x.Fields[f.Field] = wetink.Meaning{}
			}
			e.Ops = append(e.Ops, x)
			continue
		}
		e.Owner = fmt.Sprintf("the MCP server %q", terms.Target)
		noun := map[string]string{"": "object", "fields": "object", "sql": "statement", "markdown": "page"}[p.Draw.Show]
		if noun == "" {
			noun = p.Draw.Show
		}
		x := wetink.OpExplanation{Noun: noun, Verb: p.Draw.Verb, Name: name(p, before[i]), Fields: map[string]wetink.Meaning{},
			Call: p.Name + " " + string(p.Arguments), Type: p.Draw.Type}
		for _, f := range Diff(o, before[i]) {
			x.Fields[f.Field] = meaning(p.Draw.Show, f)
		}
		e.Ops = append(e.Ops, x)
	}
	return e
}

// name is what people know the object by: as it was, for an argument may be what it is to become.
func name(p payload, before wetink.Snapshot) string {
	was := fields(before)
	v, _ := decode(p.Arguments)
	args, _ := v.(map[string]any)
	for _, from := range []map[string]any{was, args} {
		for _, key := range []string{"path", "title", "summary", "name", "source", "subject", "file", "url", "id"} {
			if s, ok := from[key].(string); ok && s != "" {
				return s
			}
		}
	}
	return ""
}

// meaning tells how a field is read. Nothing that an outside server sends or gets has a meaning that we could know, so
// each is shown as it stands; a text of several lines is shown line by line.
func meaning(show string, f wetink.FieldChange) wetink.Meaning {
	m := wetink.Meaning{}
	for _, raw := range []json.RawMessage{f.Before, f.After} {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		if strings.Contains(s, "\n") || f.Field == dryRun {
			if m.Kind = wetink.Prose; show == "markdown" {
				m.Kind = wetink.Markdown
			}
		}
	}
	return m
}

// Requires is what the Rules demand of an approval of these Terms: the strictest of the tools that are called. Undos ask
// what the default asks, for what they do was looked at when it was approved; the conflict check stands before them.
func (t *Target) Requires(terms wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	d := wetink.Decision{Version: "upstream/" + t.opt.Version}
	if len(before) != len(terms.Ops) {
		return d, fmt.Errorf("%d operations with %d snapshots", len(terms.Ops), len(before))
	}
	for i, o := range terms.Ops {
		own, err := t.open(o.Payload)
		if err != nil {
			return d, err
		}
		ask := own.rule.Ask
		if ask.Word == "" || len(terms.Undoes) > 0 {
			ask = t.opt.Default
		}
		if ask.Deny {
			d.Deny = fmt.Sprintf("%s is not allowed on %s", own.Name, t.name)
			return d, nil
		}
		d.Require = wetink.Stricter(d.Require, ask.Require)
		if own.rule.Limit > 0 && len(terms.Undoes) == 0 {
			d.Cap = &wetink.Cap{Name: own.Name, Max: own.rule.Limit}
		}
		if len(terms.Undoes) == 0 && t.typed(own, before[i]) { // which only a person on the page can do
			d.Require = wetink.Stricter(d.Require, wetink.Require{Level: wetink.Session, People: 1})
			d.Why = append(d.Why, "what is done has to be typed")
		}
	}
	return d, nil
}

func (t *Target) typed(own op, before wetink.Snapshot) bool {
	if own.rule.Ask.Type {
		return true
	}
	if own.rule.Typed == nil {
		return false
	}
	holds, err := own.rule.Typed.holds(known{args: own.args, before: fields(before)})
	return holds || err != nil
}
