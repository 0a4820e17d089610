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

// Diff implements wetink.Differ: the arguments, beside what is read under the same name. An argument that says which
// object is meant is no change of it.
func (t *Target) Diff(o wetink.Op, before wetink.Snapshot) []wetink.FieldChange {
	none := json.RawMessage("null")
	own, err := t.open(o.Payload)
	members, err2 := strictjson.Members(own.Arguments)
	if err != nil || err2 != nil {
		return []wetink.FieldChange{{Before: none, After: o.Payload}}
	}
	was := fields(before)
	identity := own.rule.identity()
	var out []wetink.FieldChange
	for _, m := range members {
		if slices.Contains(identity, m.Name) {
			continue
		}
		f := wetink.FieldChange{Field: m.Name, Before: none, After: m.Value}
		if old, ok := was[m.Name]; ok {
			if equal(old, own.args[m.Name]) {
				continue
			}
			if f.Before, err = canonical(old); err != nil {
				f.Before = none
			}
		}
		out = append(out, f)
	}
	if len(out) == 0 && !before.Absent && removing.MatchString(own.Name) {
		body, err := strictjson.Members(before.Body)
		if err != nil {
			return []wetink.FieldChange{{Before: before.Body, After: none}}
		}
		for _, m := range body {
			out = append(out, wetink.FieldChange{Field: m.Name, Before: m.Value, After: none})
		}
	}
	if own.DryRun != "" {
		text, err := canonical(own.DryRun)
		if err == nil {
			out = append(out, wetink.FieldChange{Field: dryRun, Before: none, After: text})
		}
	}
	return out
}

const dryRun = "what the server says it would do"

// Explain implements wetink.Explainer.
func (t *Target) Explain(terms wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	e := wetink.Explanation{Owner: fmt.Sprintf("the MCP server %q", t.name)}
	for i, o := range terms.Ops {
		own, err := t.open(o.Payload)
		if err != nil || i >= len(before) {
			e.Ops = append(e.Ops, wetink.OpExplanation{})
			continue
		}
		noun := "object"
		if own.rule.Show != "" && own.rule.Show != "fields" {
			noun = map[string]string{"sql": "statement", "markdown": "page"}[own.rule.Show]
			if noun == "" {
				noun = own.rule.Show
			}
		}
		x := wetink.OpExplanation{Noun: noun, Name: name(own, before[i]), Fields: map[string]wetink.Meaning{}, Call: own.Name + " " + string(own.Arguments)}
		switch {
		case before[i].Absent:
			x.Verb = "create"
		case own.rule.Read == nil: // its name is all that is known: "call ... on"
		case removing.MatchString(own.Name):
			x.Verb = "delete"
		default:
			x.Verb = "change"
		}
		for _, f := range t.Diff(o, before[i]) {
			x.Fields[f.Field] = meaning(own.rule, f)
		}
		e.Ops = append(e.Ops, x)
	}
	return e
}

// name is what people know the object by.
func name(own op, before wetink.Snapshot) string {
	was := fields(before)
	for _, key := range []string{"path", "title", "summary", "name", "source", "subject", "file", "url", "id"} {
		for _, from := range []map[string]any{own.args, was} {
			if s, ok := from[key].(string); ok && s != "" {
				return s
			}
		}
	}
	return ""
}

// meaning tells how a field is read. Nothing that an outside server sends or gets has a meaning that we could know, so
// each is shown as it stands; a text of several lines is shown line by line.
func meaning(rule *Rule, f wetink.FieldChange) wetink.Meaning {
	m := wetink.Meaning{}
	for _, raw := range []json.RawMessage{f.Before, f.After} {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		if strings.Contains(s, "\n") || f.Field == dryRun {
			if m.Kind = wetink.Prose; rule.Show == "markdown" {
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

// Typed is what a person has to type before they approve, "" if nothing has to be.
func (t *Target) Typed(terms wetink.Terms, before []wetink.Snapshot) string {
	for i, o := range terms.Ops {
		own, err := t.open(o.Payload)
		if err == nil && i < len(before) && len(terms.Undoes) == 0 && t.typed(own, before[i]) {
			return own.Name
		}
	}
	return ""
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
