package intervalssim

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink/target/intervals/workout"
)

func TestAnswerHoldsEveryFieldAndTheRightOnesUnset(t *testing.T) {
	cl := start(t, &Options{})
	e := cl.create(note("Travel"))
	if len(e) != 61 {
		t.Errorf("%d fields", len(e))
	}
	wants := object{
		"id": 70010001.0, "athlete_id": "i900001", "created_by_id": "i900001", "calendar_id": 1.0, "category": "NOTE", "type": nil,
		"start_date_local": "2026-12-09T00:00:00", "end_date_local": "2026-12-10T00:00:00", "description": nil, "workout_doc": nil,
		"moving_time": nil, "tags": nil, "indoor": nil, "target": nil, "show_as_note": false, "athlete_cannot_edit": false,
		"training_availability": "NORMAL", "push_errors": nil, "paired_activity_id": nil, "updated": "2026-12-01T09:30:00.000+00:00",
	}
	for name, want := range wants {
		if got, ok := e[name]; !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if uid, _ := e["uid"].(string); len(uid) != 36 {
		t.Errorf("uid %q", uid)
	}
}

func TestTextIsParsedAndCosted(t *testing.T) {
	for text, want := range map[string][5]float64{ // seconds, average, normalised, intensity, load
		threshold:  {3360, 183, 207, 82.8, 64},
		"- 1h 70%": {3600, 175, 175, 70, 49},
		"- 10m ramp 50-75%\n- 20m 88-94%\n- 5m 40%": {2100, 189, 204, 81.5, 39},
		"5x\n- 30s 120%\n- 30s 50%":                 {300, 213, 239, 95.6, 8},
		"8x\n- 400m 90%":                            {192000, 225, 225, 90, 4320},
	} {
		cl := start(t, &Options{})
		e := ride("Test", text)
		e["moving_time"], e["icu_training_load"], e["distance"], e["icu_ftp"], e["joules"] = 1, 999, 5.5, 300, 1
		e["workout_doc"] = object{"steps": []any{}}
		e = cl.create(e)
		doc, _ := e["workout_doc"].(object)
		got := [5]float64{num(e["moving_time"]), num(doc["average_watts"]), num(doc["normalized_power"]), math.Round(num(e["icu_intensity"])*10) / 10, num(e["icu_training_load"])}
		if got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if e["distance"] != 0.0 || e["icu_ftp"] != nil {
			t.Errorf("%q: distance %v, icu_ftp %v", text, e["distance"], e["icu_ftp"])
		}
		raw, _ := json.Marshal(doc)
		if summary, err := workout.ServerSummary(raw); err != nil || summary != workout.Parse(text).Summary() {
			t.Errorf("%q: %+v, want %+v", text, summary, workout.Parse(text).Summary())
		}
	}
}

func num(v any) float64 { f, _ := v.(float64); return f }

func TestIndoorResolvesAgainstTheIndoorThreshold(t *testing.T) {
	cl := start(t, &Options{})
	e := cl.create(ride("Test", "- 1h 70%"))
	e = cl.update(e["id"], object{"indoor": true})
	if doc := e["workout_doc"].(object); doc["average_watts"] != 168.0 || e["icu_training_load"] != 49.0 {
		t.Errorf("%v %v", doc["average_watts"], e["icu_training_load"])
	}
}

func TestUpdateMergesAndMovesUpdated(t *testing.T) {
	now := tuesday
	cl := start(t, &Options{Seed: "demo", Now: func() time.Time { return now }})
	before := cl.event(tempo)
	now = now.Add(time.Minute)
	after := cl.update(tempo, object{"start_date_local": "2026-12-11T08:00:00"})
	if after["updated"] != "2026-12-01T09:31:00.000+00:00" {
		t.Errorf("updated %v", after["updated"])
	}
	for name := range before {
		switch name {
		case "start_date_local", "end_date_local", "updated", "icu_atl", "icu_ctl":
			continue
		}
		if !reflect.DeepEqual(before[name], after[name]) {
			t.Errorf("%s moved from %v to %v", name, before[name], after[name])
		}
	}
	if after["end_date_local"] != "2026-12-12T00:00:00" {
		t.Errorf("end %v", after["end_date_local"])
	}
	want := []Effect{{Seq: 1, Time: now, Request: 2, Method: "PUT", Path: home + "/events/70010001", Kind: "update", EventID: tempo,
		Fields: []string{"end_date_local", "start_date_local"}, Client: "key:i900001", Answered: true, Status: 200}}
	if got := cl.sim.Journal(); !reflect.DeepEqual(got, want) {
		t.Errorf("journal %+v", got)
	}
}

func TestUpdateThatChangesNothingIsStillAWrite(t *testing.T) {
	now := tuesday
	cl := start(t, &Options{Seed: "demo", Now: func() time.Time { return now }})
	now = now.Add(time.Minute)
	cl.update(tempo, object{"name": "Tempo 3x10 min"})
	if j := cl.sim.Journal(); len(j) != 1 || !slices.Equal(j[0].Fields, []string{"updated"}) {
		t.Errorf("%+v", j)
	}
}

func TestEndFollowsOrStays(t *testing.T) {
	for shift, want := range map[string]string{"": "2026-12-12T00:00:00", "keep": "2026-12-11T00:00:00"} {
		cl := start(t, &Options{Seed: "demo", ShiftEnd: shift})
		if e := cl.update(tempo, object{"start_date_local": "2026-12-11T08:00:00"}); e["end_date_local"] != want {
			t.Errorf("%q: %v", shift, e["end_date_local"])
		}
		// Of a range, both ends are the client's.
		if e := cl.update(70010012, object{"start_date_local": "2026-11-28T00:00:00"}); e["end_date_local"] != "2026-12-09T00:00:00" {
			t.Errorf("%q: holiday ends %v", shift, e["end_date_local"])
		}
	}
}

func TestClearing(t *testing.T) {
	full := ride("Test", "Just ride.")
	for name, v := range (object{"color": "red", "tags": []string{"a"}, "load_target": 50, "distance_target": 10.5, "icu_training_load": 40, "external_id": "x", "indoor": true}) {
		full[name] = v
	}
	for name, empty := range (object{"color": "", "tags": []string{}, "load_target": -1, "distance_target": -1, "icu_training_load": -1, "external_id": "", "description": ""}) {
		cl := start(t, &Options{})
		id := cl.create(full)["id"]
		if e := cl.update(id, object{name: empty}); e[name] != nil {
			t.Errorf("%s: %v after %v", name, e[name], empty)
		}
	}
	for semantics, cleared := range map[string]bool{"": false, "ignore": false, "clear": true} {
		cl := start(t, &Options{NullSemantics: semantics})
		id := cl.create(full)["id"]
		for _, name := range []string{"color", "tags", "load_target", "indoor"} {
			if e := cl.update(id, object{name: nil}); (e[name] == nil) != cleared {
				t.Errorf("null %s with %q: %v", name, semantics, e[name])
			}
		}
	}
}

func TestWhatTheServerChanges(t *testing.T) {
	cl := start(t, &Options{})
	t.Run("a client's uid is ignored and its id too", func(t *testing.T) {
		e := note("x")
		e["uid"], e["id"] = "mine", 7
		first := do[object](cl, "POST", home+"/events?upsertOnUid=true", e)
		second := do[object](cl, "POST", home+"/events?upsertOnUid=true", e)
		if first["uid"] == "mine" || first["id"] == 7.0 || first["id"] == second["id"] {
			t.Errorf("%v %v", first["uid"], second["id"])
		}
	})
	t.Run("a note has no type", func(t *testing.T) {
		e := note("x")
		e["type"] = "Ride"
		if e = cl.create(e); e["type"] != nil {
			t.Errorf("%v", e["type"])
		}
	})
	t.Run("prose has no steps and no distance", func(t *testing.T) {
		e := ride("x", "Easy <b>does</b> it")
		e["moving_time"], e["distance"], e["icu_training_load"] = 3600, 30000, 45
		e = cl.create(e)
		if e["distance"] != 0.0 || e["moving_time"] != 3600.0 || e["icu_training_load"] != 45.0 || len(e["workout_doc"].(object)["steps"].([]any)) != 0 {
			t.Errorf("%v", e)
		}
		if e["description"] != "Easy &lt;b&gt;does&lt;/b&gt; it" {
			t.Errorf("%v", e["description"])
		}
		if again := cl.update(e["id"], object{"description": e["description"]}); again["description"] != e["description"] {
			t.Errorf("written back it became %v", again["description"])
		}
	})
	t.Run("prose over a structure takes it away", func(t *testing.T) {
		e := cl.create(ride("x", threshold))
		e = cl.update(e["id"], object{"description": "Rest."})
		if len(e["workout_doc"].(object)["steps"].([]any)) != 0 || e["icu_intensity"] != nil {
			t.Errorf("%v", e["workout_doc"])
		}
	})
	t.Run("a load that nothing computes is kept", func(t *testing.T) {
		e := cl.create(object{"category": "WORKOUT", "type": "Run", "start_date_local": "2026-12-09T08:00:00", "name": "x", "description": "- 40m Z2 HR"})
		if e["icu_training_load"] != nil {
			t.Errorf("load %v", e["icu_training_load"])
		}
		e = cl.update(e["id"], object{"icu_training_load": 33})
		if e["icu_training_load"] != 33.0 || e["moving_time"] != 2400.0 {
			t.Errorf("%v", e["icu_training_load"])
		}
	})
	t.Run("a computed load wins", func(t *testing.T) {
		e := cl.create(ride("x", "- 1h 70%"))
		if e = cl.update(e["id"], object{"icu_training_load": 99, "moving_time": 1}); e["icu_training_load"] != 49.0 || e["moving_time"] != 3600.0 {
			t.Errorf("%v %v", e["icu_training_load"], e["moving_time"])
		}
	})
	t.Run("pairing from the event is a silent no-op", func(t *testing.T) {
		e := cl.create(ride("x", ""))
		if e = cl.update(e["id"], object{"paired_activity_id": "i88001101"}); e["paired_activity_id"] != nil {
			t.Errorf("%v", e["paired_activity_id"])
		}
	})
}

func TestWorkoutDocOnWrite(t *testing.T) {
	doc := object{"steps": []any{object{"duration": 600, "power": object{"value": 75, "units": "%ftp"}}}}
	for option, want := range map[string]int{"": 0, "accept_without_description": 1} {
		cl := start(t, &Options{WorkoutDocWrite: option})
		e := ride("x", "")
		delete(e, "description")
		e["workout_doc"] = doc
		got, _ := cl.create(e)["workout_doc"].(object)
		if steps, _ := got["steps"].([]any); len(steps) != want {
			t.Errorf("%q: %v", option, got)
		}
		e["description"] = "prose"
		got, _ = cl.create(e)["workout_doc"].(object)
		if steps, _ := got["steps"].([]any); len(steps) != 0 {
			t.Errorf("%q: prose and a doc gave %v", option, got)
		}
	}
}

func TestListingShowsWhatOverlaps(t *testing.T) {
	cl := start(t, nil)
	names := func(query string) string {
		var l []string
		for _, e := range do[[]object](cl, "GET", home+"/events"+query, nil) {
			l = append(l, fmt.Sprint(e["name"]))
		}
		return strings.Join(l, ", ")
	}
	for query, want := range map[string]string{
		"":                                     "School holidays, Travel to Girona",
		"?oldest=2026-12-10&newest=2026-12-10": "Tempo 3x10 min",
		"?oldest=2026-12-09&newest=2026-12-09": "Swim: 8x100, Dentist",
		"?oldest=2026-12-08&newest=2026-12-08": "School holidays, Easy run",
		"?oldest=2026-12-07&newest=2026-12-13&category=NOTE,RACE_B": "Travel to Girona, Dentist",
		"?oldest=2026-12-07&newest=2026-12-13&limit=2":              "School holidays, Travel to Girona",
		"?oldest=2026-11-20&newest=2026-11-25":                      "",
		"?oldest=2026-12-12":                                        "Long ride, Plan: 4x5 min, Ramp test",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
}

func TestTodayIsTheAthletes(t *testing.T) {
	cl := start(t, &Options{Now: func() time.Time { return time.Date(2026, 12, 1, 23, 30, 0, 0, time.UTC) }})
	e := note("Wednesday in Madrid")
	e["start_date_local"] = "2026-12-02T00:00:00"
	cl.create(e)
	tuesdays := note("over")
	tuesdays["start_date_local"] = "2026-12-01T00:00:00"
	cl.create(tuesdays)
	if l := do[[]object](cl, "GET", home+"/events", nil); len(l) != 1 || l[0]["name"] != "Wednesday in Madrid" {
		t.Errorf("%v", l)
	}
}

func TestResolveAddsWatts(t *testing.T) {
	cl := start(t, &Options{})
	id := cl.create(ride("x", "- 10m 80%\n- 10m Z2"))["id"]
	e := do[object](cl, "GET", home+"/events/"+str(id)+"?resolve=true", nil)
	steps := e["workout_doc"].(object)["steps"].([]any)
	for i, want := range []float64{200, 163} {
		if got := steps[i].(object)["_power"].(object)["value"]; got != want {
			t.Errorf("step %d: %v W, want %v", i, got, want)
		}
	}
	if raw, _ := json.Marshal(cl.event(id)); strings.Contains(string(raw), `"_power"`) {
		t.Errorf("resolved without being asked: %s", raw)
	}
}
