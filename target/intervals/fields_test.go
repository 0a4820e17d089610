package intervals_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
)

// raw is the event as the service sends it, all of its fields.
func (c *calendar) raw(id int) map[string]json.RawMessage {
	c.t.Helper()
	got, err := c.client().Event(ctx, intervals.EventID(id), true)
	if err != nil {
		c.t.Fatal(err)
	}
	var e map[string]json.RawMessage
	if err := json.Unmarshal(got.(json.RawMessage), &e); err != nil {
		c.t.Fatal(err)
	}
	delete(e, "weekday") // ours
	return e
}

func (c *calendar) client() *intervals.Client {
	return intervals.NewClient(c.url, intervals.NewKey(c.sim.APIKey()), "0")
}

// edits are values of every kind and enumeration of the schema; one of them fits each field.
var edits = []any{"changed", 7, 7.5, true, []string{"changed"}, "RACE_C", "VirtualRide", "HR", "WARMUP", "LIMITED", []string{"Run"},
	"2026-12-12T09:00:00", []map[string]any{{"changed": true}}, map[string]any{"changed": true}}

// victim is the event whose field is changed. A device that takes an event within a week also clears its push_errors.
func victim(field string) int {
	if field == "push_errors" {
		return plan
	}
	return tempo
}

// change lets the web app change one field of the victim, to whatever the service takes for it, and reports whether it
// did.
func (c *calendar) change(field string) bool {
	id := victim(field)
	before := c.raw(id)
	switch field {
	case "workout_doc": // the same steps, computed otherwise
		var doc map[string]any
		if err := json.Unmarshal(before[field], &doc); err != nil {
			c.t.Fatal(err)
		}
		doc["average_watts"], doc["zoneTimes"] = 1, []int{1, 2, 3}
		c.act("edit", map[string]any{"event_id": id, "set": map[string]any{field: doc}})
	case "icu_ctl", "icu_atl": // the forecast moves with other events
		c.act("create", map[string]any{"set": map[string]any{"category": "WORKOUT", "type": "Ride", "name": "Another",
			"start_date_local": "2026-12-07T18:00:00", "icu_training_load": 300, "moving_time": 3600}})
	default:
		for _, v := range edits {
			if _, err := c.sim.Act("edit", map[string]any{"event_id": id, "set": map[string]any{field: v}}); err == nil && !bytes.Equal(before[field], c.raw(id)[field]) {
				break
			}
		}
		c.mark()
	}
	return !bytes.Equal(before[field], c.raw(id)[field])
}

// What the person did not see must not be overwritten: every field that the service sends is bound, but those that
// intervals.Ignored names. The id is the address of the event; it cannot change.
func TestEveryFieldThatSomebodyElseChangesMakesThePreviewStaleUnlessIgnoredForAReason(t *testing.T) {
	schema := slices.Sorted(maps.Keys(open(t, nil).raw(tempo)))
	if len(schema) < 60 {
		t.Fatalf("only %d fields: %v", len(schema), schema)
	}
	tested := 0
	for _, field := range schema {
		if field == "id" {
			continue
		}
		tested++
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"start_date_local":"2026-12-17"}}`, victim(field)))
			if !c.change(field) {
				t.Fatal("nothing that the web app may write changes it")
			}
			got, _ := c.apply(ch, ev)
			if _, ignored := intervals.Ignored[field]; ignored {
				if got.Status != wetink.Applied {
					t.Errorf("%s (%s): it is ignored because it is %s", got.Status, got.Why, intervals.Ignored[field])
				}
				c.wantEffects(fmt.Sprint("update ", victim(field)))
				return
			}
			if got.Status != wetink.Failed || !strings.Contains(got.Why, "changed since the preview") {
				t.Errorf("%s: %s", got.Status, got.Why)
			}
			c.wantEffects()
		})
	}
	if tested != len(schema)-1 {
		t.Errorf("%d of %d fields tested", tested, len(schema))
	}
}

// The API grows: fields that nobody here has heard of are bound, too.
func TestAFieldThatTheSchemaLacksIsBound(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"brand_new_field": 1}})
	if got, _ := c.apply(ch, ev); got.Status != wetink.Failed {
		t.Errorf("%s: %s", got.Status, got.Why)
	}
	c.wantEffects()
}

func TestStepsAreBoundThoughTheDocumentAroundThemIsNot(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	var doc map[string]any
	if err := json.Unmarshal(c.raw(tempo)["workout_doc"], &doc); err != nil {
		t.Fatal(err)
	}
	doc["steps"] = doc["steps"].([]any)[1:]
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"workout_doc": doc}})
	if got, _ := c.apply(ch, ev); got.Status != wetink.Failed {
		t.Errorf("%s: %s", got.Status, got.Why)
	}
	c.wantEffects()
}

// An undo looks at the same fields, but those that the service computes from the steps by itself.
func TestEveryFieldThatSomebodyElseChangesRefusesTheUndoUnlessTheServiceComputesIt(t *testing.T) {
	computed := map[string]bool{"moving_time": true, "distance": true, "icu_training_load": true, "icu_ftp": true, "w_prime": true, "p_max": true}
	for _, field := range slices.Sorted(maps.Keys(open(t, nil).raw(tempo))) {
		if field == "id" {
			continue
		}
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"name":"Renamed"}}`, victim(field)))
			_, undo := c.apply(ch, ev)
			if !c.change(field) {
				t.Fatal("nothing that the web app may write changes it")
			}
			_, ignored := intervals.Ignored[field]
			u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo)
			if ignored || computed[field] {
				if err != nil || u.Status != wetink.Applied {
					t.Errorf("%v %s: %s", err, u.Status, u.Why)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), field) && field != "workout_doc" {
				t.Errorf("undo: %v %s; want a refusal that names %s", err, u.Status, field)
			}
			c.wantEffects()
		})
	}
}

func TestAnUndoWritesOnlyTheTouchedFields(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(`{"action":"update","event_id":70010008,"set":{"name":"Strength B","color":"red"}}`)
	_, undo := c.apply(ch, ev)
	c.mark()
	if u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil || u.Status != wetink.Applied {
		t.Fatal(err, u.Status, u.Why)
	}
	journal := c.sim.Journal()[c.seen:]
	if len(journal) != 1 || !slices.Equal(journal[0].Fields, []string{"color", "name"}) {
		t.Errorf("the undo changed %+v", journal)
	}
}

// How a field is emptied is said on the service's forum: -1 for a number, "" for a text, [] for a list. null is ignored
// by the service, and "" is no value of an enumeration (https://forum.intervals.icu/t/intervals-icu-api-integration-cookbook/80090).
func TestClearingEmptiesTheFieldAndItsUndoFillsItAgain(t *testing.T) {
	for field, sent := range map[string]string{
		"moving_time": "-1", "icu_training_load": "-1", "load_target": "-1", "time_target": "-1", "distance_target": "-1",
		"max_training_time": "-1", "carbs_per_hour": "-1",
		"description": `""`, "color": `""`, "sub_type": `"NONE"`, "target": `"AUTO"`,
		"tags": "[]", "can_train_sports": "[]",
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			full := map[string]any{"moving_time": 2700, "icu_training_load": 20, "load_target": 5, "time_target": 60, "distance_target": 10.5,
				"max_training_time": 600, "carbs_per_hour": 60, "description": "Prose.", "color": "red", "sub_type": "WARMUP", "target": "HR",
				"tags": []string{"b", "a"}, "can_train_sports": []string{"Run"}}
			c.act("edit", map[string]any{"event_id": 70010008, "set": map[string]any{field: full[field]}})
			before := c.raw(70010008)[field]
			if string(before) == "null" {
				t.Fatal("it is empty before")
			}
			ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"update","event_id":70010008,"clear":[%q]}`, field))
			terms, err := ch.Terms()
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`{%q:%s}`, field, sent); string(terms.Ops[0].Payload) != want {
				t.Errorf("sends %s, want %s", terms.Ops[0].Payload, want)
			}
			got, undo := c.apply(ch, ev)
			if got.Status != wetink.Applied {
				t.Fatalf("%s: %s", got.Status, got.Why)
			}
			if now := string(c.raw(70010008)[field]); now != "null" && now != sent {
				t.Errorf("afterwards it is %s", now)
			}
			if u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil || u.Status != wetink.Applied {
				t.Fatalf("undo: %v %s: %s", err, u.Status, u.Why)
			}
			if now := c.raw(70010008)[field]; !bytes.Equal(now, before) {
				t.Errorf("after the undo it is %s, and was %s", now, before)
			}
		})
	}
}
