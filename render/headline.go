package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wetink/wetink"
)

// Headline says the outcome and not the call: "Move 1 session", "Delete 3 races, create 2 sessions". What goes
// comes first.
func Headline(c wetink.Change, o *Options) (string, error) {
	t, err := c.Terms()
	if err != nil {
		return "", err
	}
	d := o.orDefault()
	return headline(c, t, d.explain(t, c.Before), d), nil
}

func headline(c wetink.Change, t wetink.Terms, e wetink.Explanation, o Options) string {
	type group struct {
		verb, noun string
		gone       bool
		n          int
	}
	var groups []group
	for i, op := range t.Ops {
		told := toldOf(e, i)
		v, noun := verbOf(told, op, o.Diff(op, c.Before[i])), nounOf(e, told, o)
		at := slices.IndexFunc(groups, func(g group) bool { return g.verb == v && g.noun == noun })
		if at < 0 {
			groups, at = append(groups, group{verb: v, noun: noun, gone: op.Action == "delete"}), len(groups)
		}
		groups[at].n++
	}
	var order []string
	for _, g := range groups {
		order = append(order, g.verb)
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(boolInt(b.gone)-boolInt(a.gone), slices.Index(order, a.verb)-slices.Index(order, b.verb))
	})
	var parts []string
	for len(groups) > 0 { // what has the verb of the one before does not say it again
		verb := groups[0].verb
		n := 1
		for n < len(groups) && groups[n].verb == verb {
			n++
		}
		objects := make([]string, n)
		for i, g := range groups[:n] {
			objects[i] = count(g.n, g.noun)
		}
		last := objects[n-1]
		if n > 1 {
			last = strings.Join(objects[:n-1], ", ") + " and " + last
		}
		parts, groups = append(parts, verb+" "+last), groups[n:]
	}
	s := strings.Join(parts, ", ")
	if len(t.Undoes) > 0 {
		return "Undo: " + s
	}
	return capital(s)
}

// toldOf is what the target tells of Ops[i]; nothing if it tells nothing.
func toldOf(e wetink.Explanation, i int) wetink.OpExplanation {
	if i < len(e.Ops) {
		return e.Ops[i]
	}
	return wetink.OpExplanation{}
}

func nounOf(e wetink.Explanation, told wetink.OpExplanation, o Options) string {
	return Line(cmp.Or(told.Noun, e.Noun, o.Noun))
}

func verbOf(told wetink.OpExplanation, op wetink.Op, d []wetink.FieldChange) string {
	if told.Verb != "" {
		return Line(told.Verb)
	}
	return verb(op, d)
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Verb is the first word of a Headline, in lower case: what the question asks.
func Verb(headline string) string {
	headline = strings.ToLower(strings.TrimPrefix(headline, "Undo: "))
	v, _, _ := strings.Cut(headline, " ")
	return v
}

func verb(op wetink.Op, diff []wetink.FieldChange) string {
	switch op.Action {
	case "create", "delete":
		return op.Action
	case "update":
		if len(diff) > 0 && !slices.ContainsFunc(diff, func(f wetink.FieldChange) bool { return !isTime(f.Before) || !isTime(f.After) }) {
			return "move"
		}
		return "change"
	}
	return "call " + quote(op.Action) + " on" // a gateway's tool
}

func isTime(raw json.RawMessage) bool {
	s, ok := text(raw)
	if !ok {
		return false
	}
	_, ok = localTime(s)
	return ok
}

// name is what people call the object: its name as it was, or as it will be where there was none.
func name(op wetink.Op, before wetink.Snapshot) string {
	for _, b := range []json.RawMessage{before.Body, op.Payload} {
		var o struct {
			Name json.RawMessage `json:"name"`
		}
		if json.Unmarshal(b, &o) != nil {
			continue
		}
		if s, ok := text(o.Name); ok && s != "" {
			return s
		}
	}
	return ""
}

// quote puts a name that somebody else chose in quotes, on one line.
func quote(s string) string { return `"` + Line(s) + `"` }

// Names are the quoted names of what a Change touches, the first three, and how many more: for one line of a list,
// never in the place of a review.
func Names(c wetink.Change) (string, error) {
	t, err := c.Terms()
	if err != nil {
		return "", err
	}
	var out []string
	for i, op := range t.Ops {
		if len(out) == 3 {
			out = append(out, fmt.Sprintf("and %d more", len(t.Ops)-3))
			break
		}
		if n := name(op, c.Before[i]); n != "" {
			out = append(out, quote(n))
		}
	}
	return strings.Join(out, ", "), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
