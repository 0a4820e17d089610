package wetink

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/wetink/wetink/internal/strictjson"
)

// FieldChange is one field of one object, before and after. Values are JSON as it stands in the snapshot and
// the payload; null means that there is none. It is data: package render makes text of it.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

var jsonNull = json.RawMessage("null")

// Diff compares op's payload with what was observed: the payload's members that differ from the snapshot's;
// without a payload, every member of the snapshot goes. Targets whose payloads need explaining are Differs.
func Diff(op Op, before Snapshot) []FieldChange {
	was, after := before.Body, op.Payload
	if len(was) == 0 {
		was = jsonNull
	}
	if len(after) == 0 {
		after = jsonNull
	}
	whole := []FieldChange{{"", was, after}}
	var old []strictjson.Member
	if !before.Absent && len(before.Body) > 0 {
		var err error
		if old, err = strictjson.Members(before.Body); err != nil {
			return whole // no object, or none that has one reading: never shown as if nothing was there
		}
	}
	var out []FieldChange
	if len(op.Payload) == 0 {
		for _, m := range old {
			if !bytes.Equal(m.Value, jsonNull) {
				out = append(out, FieldChange{m.Name, m.Value, jsonNull})
			}
		}
		return out
	}
	set, err := strictjson.Members(op.Payload)
	if err != nil {
		return whole
	}
	values := make(map[string]json.RawMessage, len(old))
	for _, m := range old {
		values[m.Name] = m.Value
	}
	for _, m := range set {
		b, ok := values[m.Name]
		if !ok {
			b = jsonNull
		}
		if !bytes.Equal(b, m.Value) {
			out = append(out, FieldChange{m.Name, b, m.Value})
		}
	}
	return out
}

// moved names what differs between two observations of one object.
func moved(before, now Snapshot) string {
	switch {
	case before.Absent:
		return "it exists now"
	case now.Absent:
		return "it is gone"
	}
	was, err1 := strictjson.Members(before.Body)
	is, err2 := strictjson.Members(now.Body)
	if err1 != nil || err2 != nil {
		return "its content"
	}
	values := make(map[string]json.RawMessage, len(was))
	for _, m := range was {
		values[m.Name] = m.Value
	}
	var names []string
	for _, m := range is {
		if old, ok := values[m.Name]; !ok || !bytes.Equal(old, m.Value) {
			names = append(names, m.Name)
		}
		delete(values, m.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(values))...)
	return strings.Join(names, ", ")
}
