package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wetink/wetink"
)

// Headline says the outcome and not the call: "Move 1 event", "Delete 2 events, create 3 events". What goes
// comes first.
func Headline(c wetink.Change, o *Options) (string, error) {
	t, err := c.Terms()
	if err != nil {
		return "", err
	}
	return headline(c, t, o.orDefault()), nil
}

func headline(c wetink.Change, t wetink.Terms, o Options) string {
	type group struct {
		verb string
		n    int
	}
	var groups []group
	for i, op := range t.Ops {
		v := verb(op, o.Diff(op, c.Before[i]))
		at := slices.IndexFunc(groups, func(g group) bool { return g.verb == v })
		if at < 0 {
			groups, at = append(groups, group{verb: v}), len(groups)
		}
		groups[at].n++
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return boolInt(b.verb == "delete") - boolInt(a.verb == "delete")
	})
	parts := make([]string, len(groups))
	for i, g := range groups {
		noun := o.Noun
		if g.n != 1 {
			noun += "s"
		}
		parts[i] = fmt.Sprintf("%s %d %s", g.verb, g.n, noun)
	}
	s := strings.Join(parts, ", ")
	if t.Undoes != "" {
		return "Undo: " + s
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
