package wetink

import (
	"bytes"
	"encoding/json"

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
	var out []FieldChange
	old, _ := strictjson.Members(before.Body) // not an object, or absent: nothing to compare with
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
		was := before.Body
		if len(was) == 0 {
			was = jsonNull
		}
		return []FieldChange{{"", was, op.Payload}}
	}
	was := make(map[string]json.RawMessage, len(old))
	for _, m := range old {
		was[m.Name] = m.Value
	}
	for _, m := range set {
		b, ok := was[m.Name]
		if !ok {
			b = jsonNull
		}
		if !bytes.Equal(b, m.Value) {
			out = append(out, FieldChange{m.Name, b, m.Value})
		}
	}
	return out
}
