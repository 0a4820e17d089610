package intervalssim

import (
	"bytes"
	"encoding/json"
	"html"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink/target/intervals/workout"
)

// event is one entry of a calendar. It is never changed once it is on one: a write puts a changed copy in its place, so an
// older one can be shown to a stale read.
type event struct {
	values map[string]any // by field; absent is unset
	extra  map[string]any // members that the published schema lacks
	steps  []workout.Step // what workout_doc holds
	client string         // who created it
	batch  int            // the request that created it
}

func (e *event) copy() *event {
	c := *e
	c.values, c.extra = maps.Clone(e.values), maps.Clone(e.extra)
	return &c
}

func (e *event) id() int64 {
	id, _ := e.values["id"].(int64)
	return id
}

func (e *event) text(name string) string {
	s, _ := e.values[name].(string)
	return s
}

func (e *event) is(name string) bool {
	b, _ := e.values[name].(bool)
	return b
}

func (e *event) integer(name string) int {
	n, _ := e.values[name].(int64)
	return int(n)
}

// set keeps v, or takes the field away for nil.
func (e *event) set(name string, v any) {
	if v == nil {
		delete(e.values, name)
		return
	}
	e.values[name] = v
}

// day is the local date it starts on.
func (e *event) day() string { return strings.SplitN(e.text("start_date_local"), "T", 2)[0] }

// overlaps tells whether any of it lies in the days from oldest to newest, both included. Its end is exclusive.
func (e *event) overlaps(oldest, newest string) bool {
	end := e.text("end_date_local")
	return e.day() <= newest && (e.day() >= oldest || end > oldest+"T00:00:00")
}

// MarshalJSON writes every field of the schema, in its order, unset ones as null.
func (e *event) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	write := func(name string, v any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		b.Write(append(key, ':'))
		b.Write(value)
		return nil
	}
	for _, f := range eventFields {
		v, ok := e.values[f.name]
		if !ok {
			v = f.unset
		}
		if err := write(f.name, v); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.extra)) {
		if err := write(name, e.extra[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// differences names the fields that a write changed. `updated` counts only when it is alone.
func differences(before, after *event) []string {
	var names []string
	for _, f := range eventFields {
		if f.name != "updated" && !reflect.DeepEqual(before.values[f.name], after.values[f.name]) {
			names = append(names, f.name)
		}
	}
	for name := range mergedKeys(before.extra, after.extra) {
		if !reflect.DeepEqual(before.extra[name], after.extra[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 && before.text("updated") != after.text("updated") {
		return []string{"updated"}
	}
	return names
}

func mergedKeys(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]any{}
	}
	maps.Copy(m, b)
	return m
}

// stored is how a description is kept: a tag in it is no tag any more.
func stored(description string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(html.UnescapeString(description))
}

const instant = "2006-01-02T15:04:05.000-07:00"

func stamp(t time.Time) string { return t.UTC().Format(instant) }

// nextMidnight is where an all-day event ends.
func nextMidnight(start string) string {
	t, err := time.Parse("2006-01-02T15:04:05", start)
	if err != nil {
		return ""
	}
	return t.AddDate(0, 0, 1).Format("2006-01-02") + "T00:00:00"
}

func day(t time.Time) string { return t.Format(time.DateOnly) }
