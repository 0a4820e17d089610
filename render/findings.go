package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wetink/wetink"
)

// Limit is how many bytes one value may have, and Total what all of a Change may have together: more than that nobody
// reads, and nothing is cut here.
const (
	Limit = 64 << 10
	Total = 4 << 20
)

// Excess is a value that is over its limit. Its zero value: there is none.
type Excess struct {
	Field      string // as "ops[0].description"; "" for all together
	Size, Most int    // in bytes
}

// String is what to tell who asked.
func (x Excess) String() string {
	return fmt.Sprintf("%s has %d bytes, and more than %d nobody reads; shorten it", cmp.Or(x.Field, "all of the change"), x.Size, x.Most)
}

// TooLong finds the first value over the Limit, or the whole over the Total. It looks at everything that would have to be read
// before a decision: what is written, what goes or is overwritten, the target's warnings and notes, what it explains the
// change with, and who asks. What stays as it is decides nothing: over the Limit its size and digest are shown.
//
// The agent's own words are no part of the Terms: see Reason.
func TooLong(t wetink.Terms, before []wetink.Snapshot) Excess {
	var s sizes
	s.add("client", len(t.Client))
	s.add("requester", len(t.Requester))
	s.add("account", len(t.Account))
	for i, w := range t.Warnings {
		s.add(fmt.Sprintf("warnings[%d]", i), len(w))
	}
	for i, n := range t.Undo.Notes {
		s.add(fmt.Sprintf("undo.notes[%d]", i), len(n))
	}
	s.add("context", len(t.Context))
	for i, op := range t.Ops {
		at := fmt.Sprintf("ops[%d]", i)
		s.add(at+".action", len(op.Action))
		s.add(at+".object", len(op.Object))
		for k, b := range op.Blobs {
			s.add(fmt.Sprintf("%s.blobs[%d]", at, k), len(b.Type))
		}
		var sent, was map[string]json.RawMessage
		if len(op.Payload) > 0 && json.Unmarshal(op.Payload, &sent) != nil {
			s.add(at, len(op.Payload))
		}
		if i < len(before) && json.Unmarshal(before[i].Body, &was) != nil {
			s.add(at, len(before[i].Body))
		}
		for _, f := range slices.Sorted(maps.Keys(sent)) {
			s.add(at+"."+field(f), len(f))
			s.add(at+"."+field(f), size(sent[f]))
			s.add(at+"."+field(f), size(was[f]))
		}
		if len(op.Payload) == 0 {
			for _, f := range slices.Sorted(maps.Keys(was)) {
				s.add(at+"."+field(f), len(f))
				s.add(at+"."+field(f), size(was[f]))
			}
		}
	}
	if s.long.Most == 0 && s.sum > Total {
		return Excess{"", s.sum, Total}
	}
	return s.long
}

// sizes adds up, and keeps the first that is too long.
type sizes struct {
	sum  int
	long Excess
}

func (s *sizes) add(field string, n int) {
	s.sum += n
	if n > Limit && s.long.Most == 0 {
		s.long = Excess{field, n, Limit}
	}
}

// field is fieldName of one that may be too long itself.
func field(f string) string {
	if len(f) > Limit {
		return "(a name)"
	}
	return fieldName(f)
}

// Reason is what the agent says in its own words, if it does: the member "reason" of its request. It is shown, so it has to
// fit; the Excess says whether it does.
func Reason(args json.RawMessage) (words string, x Excess) {
	var a struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(args, &a) != nil {
		return "", x
	}
	if len(a.Reason) > Limit {
		x = Excess{"reason", len(a.Reason), Limit}
	}
	return a.Reason, x
}

// staying shows a value that stays as it is.
func staying(raw json.RawMessage, m wetink.Meaning, zone string) []string {
	if n := size(raw); n > Limit {
		return []string{fmt.Sprintf("%d bytes, sha256 %x, which stay as they are", n, sha256.Sum256(raw))}
	}
	return meaning(raw, m, zone)
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
	named := map[string]bool{}
	badge := func(s string) {
		for _, b := range Badges(s) {
			if !named[b] {
				named[b] = true
				badges = append(badges, b)
			}
		}
	}
	look := func(s string) {
		hidden += tokens(s)
		badge(s)
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
	words, _ := Reason(c.Request.Args)
	badge(words) // the agent's own words are read, too
	if opaque > 0 {
		out = append(out, count(opaque, "field")+" that nobody here can explain: shown as it stands, and marked.")
	}
	if hidden > 0 {
		out = append(out, count(hidden, "hidden or unusual character")+" in what is written: marked below.")
	}
	if more := len(badges) - maxBadges; more > 0 { // so that no crowd of them hides what stands beside them
		badges = append(badges[:maxBadges:maxBadges], fmt.Sprintf("%d more words and hosts like these", more))
	}
	return append(out, badges...)
}

// maxBadges of a Change that are told one by one. The texts that they are about are shown in whole.
const maxBadges = 20

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
