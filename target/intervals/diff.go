package intervals

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/workout"
)

// Diff implements wetink.Differ: what a person reads of an Op. What is emptied is shown as null, and of a
// deleted event the fields that it had.
func (t *Target) Diff(op wetink.Op, before wetink.Snapshot) []wetink.FieldChange {
	return Diff(op, before)
}

// Diff needs no Target, so that a process without credentials can show a change.
func Diff(op wetink.Op, before wetink.Snapshot) []wetink.FieldChange {
	null := json.RawMessage("null")
	was := fields(before)
	var out []wetink.FieldChange
	if op.Action == Delete {
		for _, f := range writable {
			if was.set(f) && !(flags[f] && !was.flag(f)) {
				out = append(out, wetink.FieldChange{Field: f, Before: was[f], After: null})
			}
		}
		return out
	}
	var sent event
	if err := json.Unmarshal(op.Payload, &sent); err != nil {
		return wetink.Diff(op, before)
	}
	for _, f := range sortedKeys(sent) {
		if f == "external_id" && before.Absent {
			continue // ours, and it tells nobody anything
		}
		c := wetink.FieldChange{Field: f, Before: was[f], After: sent[f]}
		if c.Before == nil {
			c.Before = null
		}
		if !before.Absent && empty(f, c.After) {
			c.After = null
		}
		out = append(out, c)
	}
	if _, ok := sent["description"]; ok {
		if c := (wetink.FieldChange{Field: "workout", Before: total(was), After: total(sent)}); string(c.Before) != string(c.After) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b wetink.FieldChange) int { return cmp.Compare(order(a.Field), order(b.Field)) })
	return out
}

// total is what a description adds up to, by our own reading of it: steps as they are written, and the time with
// repetitions.
func total(e event) json.RawMessage {
	sum := workout.Parse(e.text("description")).Summary()
	if sum.Steps == 0 {
		return json.RawMessage("null")
	}
	steps := "steps"
	if sum.Steps == 1 {
		steps = "step"
	}
	return quote(fmt.Sprintf("%d %s, %s", sum.Steps, steps, spell(time.Duration(sum.Seconds*float64(time.Second)).Round(time.Second))))
}

// order puts fields as a person reads an event.
func order(field string) int {
	if i := slices.Index(writable, field); i >= 0 {
		return i
	}
	return len(writable)
}

func sortedKeys(e event) []string { return slices.Sorted(maps.Keys(e)) }

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func join(list []string) string { return strings.Join(list, "; ") }

func shorten(v json.RawMessage) string {
	if v == nil {
		return "empty"
	}
	return clean(string(v))
}

// marshal encodes without HTML escaping: < in a description stays <.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func quote(s string) json.RawMessage {
	b, _ := marshal(s) // a string always encodes
	return b
}
