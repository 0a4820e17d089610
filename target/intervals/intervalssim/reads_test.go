package intervalssim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestAthleteHoldsWhatAClientMustDrop(t *testing.T) {
	cl := start(t, nil)
	a := do[object](cl, "GET", home, nil)
	if a["id"] != "i900001" || a["icu_api_key"] != cl.sim.APIKey() || a["email"] == nil || a["timezone"] != "Europe/Madrid" || len(a["sportSettings"].([]any)) != 3 {
		t.Errorf("%v", a)
	}
	if p := do[object](cl, "GET", home+"/profile", nil); p["athlete"].(object)["id"] != "i900001" {
		t.Errorf("%v", p)
	}
	if c := do[object](cl, "GET", home+"/connections", nil); c["garmin_training_connected"] != true || c["wahoo_connected"] != true || c["zwift_connected"] != false {
		t.Errorf("%v", c)
	}
}

func TestActivityReads(t *testing.T) {
	cl := start(t, nil)
	list := do[[]object](cl, "GET", home+"/activities?oldest=2026-10-01&fields=id,name,start_date_local", nil)
	if len(list) < 20 || len(list[0]) != 3 || !slices.IsSortedFunc(list, func(x, y object) int {
		return strings.Compare(y["start_date_local"].(string), x["start_date_local"].(string))
	}) {
		t.Fatalf("%v", list)
	}
	if l := do[[]object](cl, "GET", home+"/activities?oldest=2026-10-01&limit=3", nil); len(l) != 3 || l[0]["id"] != list[0]["id"] {
		t.Errorf("%v", l)
	}
	id := list[0]["id"].(string)
	if a := do[object](cl, "GET", "/api/v1/activity/"+id+"?intervals=true", nil); len(a["icu_intervals"].([]any)) == 0 || a["paired_event_id"] != 70010007.0 {
		t.Errorf("%v", a)
	}
	if v := do[object](cl, "GET", "/api/v1/activity/"+id+"/intervals", nil); v["id"] != id || len(v["icu_intervals"].([]any)) == 0 {
		t.Errorf("%v", v)
	}
	streams := do[[]object](cl, "GET", "/api/v1/activity/"+id+"/streams?types=watts,latlng", nil)
	if len(streams) != 2 || len(streams[0]["data"].([]any)) != 3641 || streams[1]["data2"] == nil {
		t.Errorf("%d streams", len(streams))
	}
	if a := cl.try("GET", "/api/v1/activity/i1", nil); a.status != 404 {
		t.Errorf("%d", a.status)
	}
	if l := do[[]object](cl, "GET", home+"/activities/"+id+",i1", nil); len(l) != 1 {
		t.Errorf("%v", l)
	}
}

func TestStravaActivityIsAStub(t *testing.T) {
	cl := start(t, nil)
	if a := do[object](cl, "GET", "/api/v1/activity/15550001?intervals=true", nil); len(a) != 5 || a["source"] != "STRAVA" || a["_note"] == nil {
		t.Errorf("%v", a)
	}
	for _, part := range []string{"streams", "intervals"} {
		if a := cl.try("GET", "/api/v1/activity/15550001/"+part, nil); a.status != 422 || !strings.Contains(string(a.body), "Cannot read Strava activities") {
			t.Errorf("%s: %d %s", part, a.status, a.body)
		}
	}
}

func TestWellness(t *testing.T) {
	cl := start(t, nil)
	list := do[[]object](cl, "GET", home+"/wellness?oldest=2026-11-30&newest=2026-12-14", nil)
	if len(list) != 15 || list[0]["restingHR"] == nil || list[14]["restingHR"] != nil || list[14]["ctl"] == nil || list[14]["sportInfo"] != nil {
		t.Errorf("%d days: %v", len(list), list)
	}
	if w := do[[]object](cl, "GET", home+"/wellness?oldest=2026-11-30&newest=2026-11-30&fields=ctl,atl", nil); len(w[0]) != 3 {
		t.Errorf("%v", w)
	}
	path := home + "/wellness/2026-11-30"
	do[object](cl, "PUT", path, object{"weight": 70, "locked": true})
	if w := do[object](cl, "PUT", path, object{"weight": nil, "locked": false, "ctl": 1}); w["weight"] != 70.0 || w["locked"] != true || w["ctl"] == 1.0 {
		t.Errorf("%v", w)
	}
	cl.wantKinds("wellness", "wellness")
}

func TestLibrarySettingsAndCurves(t *testing.T) {
	cl := start(t, nil)
	folders := do[[]object](cl, "GET", home+"/folders", nil)
	if len(folders) != 2 || len(folders[0]["children"].([]any)) != 3 {
		t.Errorf("%v", folders)
	}
	workouts := do[[]object](cl, "GET", home+"/workouts", nil)
	if len(workouts) != 4 || workouts[0]["workout_doc"] == nil || workouts[0]["icu_training_load"] == nil {
		t.Errorf("%v", workouts)
	}
	if w := do[object](cl, "GET", home+"/workouts/501", nil); w["folder_id"] != 41.0 {
		t.Errorf("%v", w)
	}
	for _, key := range []string{"Ride", "1"} {
		if v := do[object](cl, "GET", home+"/sport-settings/"+key, nil); v["ftp"] != 250.0 {
			t.Errorf("%v", v)
		}
	}
	do[object](cl, "PUT", home+"/sport-settings/Ride?recalcHrZones=false", object{"ftp": 260})
	if l := do[[]object](cl, "GET", home+"/sport-settings", nil); l[0]["ftp"] != 260.0 {
		t.Errorf("%v", l[0])
	}
	curves := do[object](cl, "GET", home+"/power-curves?type=Ride&curves=90d,s0", nil)
	if l := curves["list"].([]any); len(l) != 2 || l[0].(object)["id"] != "90d" {
		t.Errorf("%v", curves)
	}
	if tags := do[[]string](cl, "GET", home+"/event-tags", nil); !slices.Equal(tags, []string{"key"}) {
		t.Errorf("%v", tags)
	}
}

func TestDemoCalendarIsTheSameInEveryProcess(t *testing.T) {
	show := func() string {
		cl := start(t, nil)
		list := do[[]object](cl, "GET", home+"/events?oldest=2026-11-20&newest=2026-12-31", nil)
		for _, e := range list {
			delete(e, "uid")
		}
		raw, _ := json.Marshal(list)
		return string(raw)
	}
	if a, b := show(), show(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestKeysDiffer(t *testing.T) {
	if a, b := New(nil).APIKey(), New(nil).APIKey(); a == b || len(a) < 32 {
		t.Errorf("%s %s", a, b)
	}
}
