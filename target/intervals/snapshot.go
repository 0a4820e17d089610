package intervals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/workout"
)

// Ignored lists the fields of an event that no approval is bound to, each with its reason. Everything else
// that the service sends, now or in a later version of its API, makes a preview stale when it changes.
var Ignored = map[string]string{
	"updated":             "set by device pushes and re-analysis without any change; kept as the snapshot's version",
	"icu_ctl":             "forecast of the day: moves when any other event or activity does",
	"icu_atl":             "forecast of the day: moves when any other event or activity does",
	"push_errors":         "set when a device refuses a copy",
	"workout_doc":         "bound by the digest of its steps instead: it carries resolved watts and zone times that move with settings",
	"icu_intensity":       "computed from steps and load, which are bound",
	"joules":              "computed from steps, which are bound",
	"joules_above_ftp":    "computed from steps, which are bound",
	"strain_score":        "computed from steps, which are bound",
	"ss_cp":               "computed from steps, which are bound",
	"ss_w_prime":          "computed from steps, which are bound",
	"ss_p_max":            "computed from steps, which are bound",
	"carbs_used":          "computed from steps, which are bound",
	"workout_filename":    "only in reads that ask for a file",
	"workout_file_base64": "only in reads that ask for a file",
}

// recomputed are fields that the service computes by itself when the workout has steps. They are bound for a
// change, because a person saw them; they never block an undo of a structured workout.
var recomputed = []string{"moving_time", "distance", "icu_training_load", "icu_ftp", "w_prime", "p_max"}

// stepsField stands in a snapshot for workout_doc.
const stepsField = "workout_steps"

// event is what the service sent of one event, member by member, each value as it came.
type event map[string]json.RawMessage

func (e event) id() int64 {
	n, _ := strconv.ParseInt(string(e["id"]), 10, 64)
	return n
}

// text of a string member; "" when absent or null.
func (e event) text(field string) string {
	var s string
	_ = json.Unmarshal(e[field], &s) // null and absence leave ""
	return s
}

func (e event) flag(field string) bool { return string(e[field]) == "true" }

func (e event) set(field string) bool { return len(e[field]) > 0 && string(e[field]) != "null" }

func (e event) day() string {
	if s := e.text("start_date_local"); len(s) >= 10 {
		return s[:10]
	}
	return ""
}

// label names an event for people and in errors.
func (e event) label() string {
	return fmt.Sprintf("%q on %s (event %d)", clean(e.text("name")), e.day(), e.id())
}

// snapshot binds e: the members that are not ignored, in sorted order, values as they came.
func (e event) snapshot() (wetink.Snapshot, error) {
	keep := event{}
	for k, v := range e {
		if _, ignored := Ignored[k]; !ignored {
			keep[k] = v
		}
	}
	// Links to attachments are signed and expire. What is of another shape is bound as it is.
	var list []map[string]json.RawMessage
	if e.set("attachments") && json.Unmarshal(e["attachments"], &list) == nil {
		for _, a := range list {
			delete(a, "url")
		}
		keep["attachments"], _ = marshal(list) // RawMessages that were decoded
	}
	sum, err := workout.ServerSummary(e["workout_doc"])
	if err != nil {
		return wetink.Snapshot{}, fmt.Errorf("workout of %s: %w", e.label(), err)
	}
	keep[stepsField] = json.RawMessage("null")
	if sum.Steps > 0 {
		keep[stepsField] = json.RawMessage(strconv.Quote(sum.Digest))
	}
	body, err := encode(keep)
	if err != nil {
		return wetink.Snapshot{}, err
	}
	return wetink.Snapshot{Object: strconv.FormatInt(e.id(), 10), Version: e.text("updated"), Body: body}, nil
}

// fields of a snapshot's body.
func fields(s wetink.Snapshot) event {
	e := event{}
	_ = json.Unmarshal(s.Body, &e) // we wrote it; absent: none
	return e
}

// encode writes members in sorted order, without HTML escaping, so that equal events are equal bytes.
func encode(e event) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range slices.Sorted(maps.Keys(e)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(k))
		b.WriteByte(':')
		if err := json.Compact(&b, e[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// same compares two values as the service stores them: numbers by value, text after its HTML escaping, tags in
// any order; nothing is null, "", [], a false flag, NONE or AUTO, and the -1 that is sent to empty a number.
func same(field string, sent, got json.RawMessage) bool {
	if bytes.Equal(sent, got) {
		return true
	}
	if empty(field, sent) && empty(field, got) {
		return true
	}
	var a, b any
	if json.Unmarshal(sent, &a) != nil || json.Unmarshal(got, &b) != nil {
		return false
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && html.UnescapeString(x) == html.UnescapeString(y)
	case float64:
		y, ok := b.(float64)
		return ok && x == y
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		return slices.Equal(sortedText(x), sortedText(y))
	}
	return reflect.DeepEqual(a, b)
}

func empty(field string, v json.RawMessage) bool {
	switch string(v) {
	case "", "null", `""`, "[]":
		return true
	case "-1":
		return numeric[field]
	case "false":
		return flags[field]
	}
	return neutral[field] != "" && string(v) == `"`+neutral[field]+`"`
}

func sortedText(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprint(v)
	}
	slices.Sort(out)
	return out
}
