package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wetink/wetink"
)

// Limit is how many bytes a value may have: more than that nobody reads, and nothing is cut here.
const Limit = 64 << 10

// TooLong names the first value that is over the Limit, as "ops[0].description"; ok is false if there is none. It looks at
// what would have to be read: what is written, and what goes or is overwritten.
func TooLong(t wetink.Terms, before []wetink.Snapshot) (field string, ok bool) {
	for i, op := range t.Ops {
		var sent, was map[string]json.RawMessage
		if len(op.Payload) > 0 && json.Unmarshal(op.Payload, &sent) != nil && len(op.Payload) > Limit {
			return fmt.Sprintf("ops[%d]", i), true
		}
		if i < len(before) && json.Unmarshal(before[i].Body, &was) != nil && len(before[i].Body) > Limit {
			return fmt.Sprintf("ops[%d]", i), true
		}
		var long []string
		for f, v := range sent {
			if size(v) > Limit || size(was[f]) > Limit {
				long = append(long, f)
			}
		}
		for f, v := range was {
			if len(op.Payload) == 0 && size(v) > Limit {
				long = append(long, f)
			}
		}
		if len(long) > 0 {
			return fmt.Sprintf("ops[%d].%s", i, fieldName(slices.Min(long))), true
		}
	}
	return "", false
}

// size of a value as it is read: a text without its escapes.
func size(v json.RawMessage) int {
	if s, ok := text(v); ok {
		return len(s)
	}
	return len(v)
}

// findings are what a person should know first, each on one line that Line made: what cannot be undone, the target's
// warnings, and what render itself sees.
func findings(c wetink.Change, t wetink.Terms, e wetink.Explanation, o Options) (out []string) {
	if t.Undo.Extent == wetink.NoUndo {
		out = append(out, "It cannot be undone.")
	}
	for _, w := range t.Warnings {
		out = append(out, Line(w))
	}
	opaque, hidden := 0, 0
	var badges []string
	look := func(s string) {
		hidden += tokens(s)
		for _, b := range Badges(s) {
			if !slices.Contains(badges, b) {
				badges = append(badges, b)
			}
		}
	}
	for i, op := range t.Ops {
		told := toldOf(e, i)
		for _, f := range o.Diff(op, c.Before[i]) {
			if _, known := told.Fields[f.Field]; o.Explain != nil && !known {
				opaque++
			}
			if op.Action != "delete" { // what hides in what goes is gone
				look(f.Field)
				texts(f.After, look)
			}
		}
		if p := told.Post; p != nil {
			for _, s := range p.Spans {
				look(s.URL)
			}
			if p.Card != nil {
				look(p.Card.URL)
			}
		}
	}
	if opaque > 0 {
		out = append(out, count(opaque, "field")+" that nobody here can explain: shown as it stands, and marked.")
	}
	if hidden > 0 {
		out = append(out, count(hidden, "hidden or unusual character")+" in what is written: marked below.")
	}
	return append(out, badges...)
}

// tokens counts what is shown by name in a text; its own line breaks are not.
func tokens(s string) (n int) {
	for l := range strings.SplitSeq(s, "\n") {
		if plain(l) {
			continue
		}
		for _, p := range pieces(l) {
			n += boolInt(p.token && p.code != '[')
		}
	}
	return n
}

// texts calls f for every text in a JSON value, names of members among them.
func texts(raw json.RawMessage, f func(string)) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			f(v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				f(k)
				walk(v[k])
			}
		}
	}
	walk(v)
}

// Summary is a Change in a row of a list, as plain text. It leads to a review and never takes its place.
type Summary struct {
	Title string // the Headline
	Risk  string // the first thing to know; "": nothing
	Where string // system, account, and who asks
}

// Summarize makes one.
func Summarize(v View, o *Options) (Summary, error) {
	t, err := v.Change.Terms()
	if err != nil {
		return Summary{}, err
	}
	d := o.orDefault()
	e := d.explain(t, v.Change.Before)
	s := Summary{Title: headline(v.Change, t, e, d), Where: Line(t.Target)}
	if found := findings(v.Change, t, e, d); len(found) > 0 {
		s.Risk = found[0]
	}
	if e.Owner != "" {
		s.Where += ", " + Line(e.Owner)
	}
	if t.Client != "" {
		s.Where += ", asked by " + Line(t.Client)
	}
	return s, nil
}
