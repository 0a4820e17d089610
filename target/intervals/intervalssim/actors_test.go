package intervalssim

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve asks without a network.
func serve(t *testing.T, sim *Sim, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.SetBasicAuth("API_KEY", sim.APIKey())
	r.Header.Set("User-Agent", "test")
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, r)
	return w
}

func TestActors(t *testing.T) {
	for act, c := range map[string]struct {
		args   object
		id     int
		want   object
		client string
		kind   string
	}{
		"edit":              {object{"set": object{"name": "Other", "tags": nil, "moving_time": 60, "plan_folder_id": 9}}, tempo, object{"name": "Other", "tags": nil, "moving_time": 60.0, "plan_folder_id": 9.0}, "web_app", "update"},
		"swap_for_easy_run": {nil, tempo, object{"name": "Easy run", "type": "Run", "target": nil}, "web_app", "update"},
		"pair":              {nil, tempo, object{"paired_activity_id": "i88001130"}, "watch", "pair"},
		"unpair":            {nil, 70010007, object{"paired_activity_id": nil}, "web_app", "unpair"},
		"lock":              {nil, tempo, object{"athlete_cannot_edit": true}, "coach", "update"},
		"unlock":            {nil, 70010011, object{"athlete_cannot_edit": false}, "coach", "update"},
		"plan_reapply":      {nil, tempo, object{"name": "Plan: 4x5 min"}, "coach", "update"},
	} {
		t.Run(act, func(t *testing.T) {
			cl := start(t, nil)
			args := object{"event_id": c.id}
			for k, v := range c.args {
				args[k] = v
			}
			cl.act(act, args)
			e := cl.event(c.id)
			for name, want := range c.want {
				if name == "paired_activity_id" && want != nil {
					if id, _ := e[name].(string); !strings.HasPrefix(id, "i8800") {
						t.Errorf("%s: %v", name, e[name])
					}
					continue
				}
				if e[name] != want {
					t.Errorf("%s: %v, want %v", name, e[name], want)
				}
			}
			if j := cl.sim.Journal(); len(j) != 1 || j[0].Client != c.client || j[0].Kind != c.kind || j[0].Method != "ACT" || !j[0].Answered {
				t.Errorf("%+v", j)
			}
		})
	}
}

// Whatever may change under a client's hands, edit can change.
func TestEditChangesEveryField(t *testing.T) {
	values := map[kind]any{integer: 7, decimal: 7.5, text: "other", flag: true, moment: "2026-12-12T10:00:00", texts: []string{"x"},
		choices: []string{"Run"}, anything: []any{object{"id": "a"}}}
	for _, f := range eventFields {
		if f.name == "id" || f.name == "updated" || f.name == "workout_doc" {
			continue
		}
		cl := start(t, nil)
		before := cl.event(tempo)
		v := values[f.kind]
		if f.kind == choice {
			v = f.values[len(f.values)-1]
		}
		cl.act("edit", object{"event_id": tempo, "set": object{f.name: v}})
		if after := cl.event(tempo); str(after[f.name]) == str(before[f.name]) {
			t.Errorf("%s stayed %v", f.name, before[f.name])
		}
		if j := cl.sim.Journal(); len(j) != 1 || !slices.Contains(j[0].Fields, f.name) {
			t.Errorf("%s: %+v", f.name, j)
		}
	}
	cl := start(t, nil)
	cl.act("edit", object{"event_id": tempo, "set": object{"brand_new": 1}})
	if e := cl.event(tempo); e["brand_new"] != 1.0 {
		t.Errorf("a member that the schema lacks: %v", e["brand_new"])
	}
}

func TestActErrors(t *testing.T) {
	sim := New(nil)
	if _, err := sim.Act("edit", object{"event_id": 1}); !errors.Is(err, ErrNoEvent) {
		t.Errorf("%v", err)
	}
	for _, act := range []string{"", "sing", "ftp"} {
		if _, err := sim.Act(act, nil); err == nil {
			t.Errorf("%q was acted", act)
		}
	}
	if len(sim.Journal()) != 0 {
		t.Errorf("%+v", sim.Journal())
	}
}

func TestFTPCostsComingWorkoutsAgain(t *testing.T) {
	for moves, updated := range map[bool]string{false: "2026-12-01T09:30:00.000+00:00", true: "2026-12-01T09:31:00.000+00:00"} {
		now := tuesday
		cl := start(t, &Options{Seed: "demo", UpdatedMovesByItself: moves, Now: func() time.Time { return now }})
		e := cl.create(ride("Watts", "- 1h 200w"))
		now = now.Add(time.Minute)
		cl.act("ftp", object{"ftp": 200})
		after := cl.event(e["id"])
		if e["icu_training_load"] != 64.0 || after["icu_training_load"] != 100.0 || after["updated"] != updated {
			t.Errorf("load %v then %v, updated %v", e["icu_training_load"], after["icu_training_load"], after["updated"])
		}
	}
}

func TestRecomputeMovesWhatMovesByItselfAndNothingElse(t *testing.T) {
	cl := start(t, nil)
	before := cl.event(tempo)
	cl.act("recompute", nil)
	after := cl.event(tempo)
	var moved []string
	for name := range before {
		if str(before[name]) != str(after[name]) {
			moved = append(moved, name)
		}
	}
	slices.Sort(moved)
	if !slices.Equal(moved, []string{"carbs_used", "icu_atl", "icu_ctl", "joules_above_ftp", "ss_cp", "ss_p_max", "ss_w_prime", "strain_score"}) {
		t.Errorf("%v", moved)
	}
}

func TestCalendarRefreshGivesImportedEventsOtherIDs(t *testing.T) {
	cl := start(t, nil)
	cl.act("calendar_refresh", nil)
	cl.wantKinds("delete", "create")
	if a := cl.try("GET", home+"/events/70010010", nil); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

func TestPairingIsDoneFromTheActivity(t *testing.T) {
	cl := start(t, nil)
	act := do[object](cl, "POST", home+"/activities/manual", object{"type": "Ride", "start_date_local": "2026-12-01T18:00:00", "moving_time": 3600, "icu_training_load": 50})
	cl.wantKinds("activity") // no plan on that day
	got := do[object](cl, "PUT", "/api/v1/activity/"+act["id"].(string), object{"paired_event_id": tempo, "distance": 5})
	if got["paired_event_id"] != float64(tempo) || got["distance"] != nil {
		t.Errorf("%v", got)
	}
	if e := cl.event(tempo); e["paired_activity_id"] != act["id"] {
		t.Errorf("%v", e["paired_activity_id"])
	}
	do[object](cl, "PUT", "/api/v1/activity/"+act["id"].(string), object{"paired_event_id": 0})
	if e := cl.event(tempo); e["paired_activity_id"] != nil {
		t.Errorf("%v", e["paired_activity_id"])
	}
	// An activity of the day and kind pairs itself.
	auto := do[object](cl, "POST", home+"/activities/manual", object{"type": "VirtualRide", "start_date_local": "2026-12-10T06:00:00"})
	if e := cl.event(tempo); e["paired_activity_id"] != auto["id"] {
		t.Errorf("%v", e["paired_activity_id"])
	}
	cl.wantKinds("activity", "pair", "unpair", "activity", "pair")
}

func TestMarkDoneMakesAnActivity(t *testing.T) {
	cl := start(t, nil)
	act := do[object](cl, "POST", home+"/events/70010001/mark-done", nil)
	if act["source"] != "MANUAL" || act["paired_event_id"] != float64(tempo) || cl.event(tempo)["paired_activity_id"] != act["id"] {
		t.Errorf("%v", act)
	}
}

func TestForecast(t *testing.T) {
	cl := start(t, &Options{})
	cl.sim.first.form = form{from: "2026-12-08", ctl: 50, atl: 60}
	e := ride("x", "")
	e["icu_training_load"] = 80
	cl.create(e)
	for date, want := range map[string][2]float64{"2026-12-09": {50.7058, 62.6624}, "2026-12-10": {49.5128, 54.3207}} {
		w := do[object](cl, "GET", home+"/wellness/"+date, nil)
		if math.Abs(num(w["ctl"])-want[0]) > 1e-4 || math.Abs(num(w["atl"])-want[1]) > 1e-4 {
			t.Errorf("%s: %v %v, want %v", date, w["ctl"], w["atl"], want)
		}
	}
}

func TestForecastLags(t *testing.T) {
	now := tuesday
	cl := start(t, &Options{Seed: "demo", RecalcDelay: time.Minute, Now: func() time.Time { return now }})
	before := cl.event(tempo)["icu_ctl"]
	do[object](cl, "DELETE", home+"/events/70010002", nil)
	if got := cl.event(tempo)["icu_ctl"]; got != before {
		t.Errorf("moved at once: %v %v", before, got)
	}
	now = now.Add(2 * time.Minute)
	if got := cl.event(tempo)["icu_ctl"]; got == before {
		t.Errorf("never moved: %v", got)
	}
}

func TestDeviceKeepsItsCopy(t *testing.T) {
	cl := start(t, nil)
	e := ride("Soon", "- 1h 70%")
	e["start_date_local"] = "2026-12-03T08:00:00"
	e = cl.create(e)
	if e["push_errors"] != nil || len(cl.sim.Outbox()) != 2 {
		t.Errorf("%v %v", e["push_errors"], cl.sim.Outbox())
	}
	do[object](cl, "DELETE", home+"/events/"+str(e["id"]), nil)
	if len(cl.sim.Outbox()) != 2 {
		t.Error("the device's copy went away")
	}
	bad := ride("No target", "- 1h")
	bad["start_date_local"] = "2026-12-03T08:00:00"
	if e := cl.create(bad); e["push_errors"] == nil {
		t.Error("a step without a target was pushed without an error")
	}
	far := ride("Far", "- 1h")
	if e := cl.create(far); e["push_errors"] != nil {
		t.Errorf("pushed beyond seven days: %v", e["push_errors"])
	}
}

// One event, many writers: every effect is answered, and none is lost.
func TestConcurrentWritersAreRecordedOnce(t *testing.T) {
	cl := start(t, &Options{Seed: "demo"})
	const writers, each = 16, 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if a := cl.try("PUT", home+"/events/70010001", object{"name": uuid()}); a.status != http.StatusOK {
					t.Errorf("%d %v", a.status, a.err)
				}
				cl.try("GET", home+"/events", nil)
				cl.act("edit", object{"event_id": 70010002, "set": object{"name": uuid()}})
			}
		})
	}
	wg.Wait()
	byKey, seen := 0, map[int]bool{}
	for i, e := range cl.sim.Journal() {
		if e.Seq != i+1 || !e.Answered || seen[e.Request] && e.Request != 0 {
			t.Fatalf("%+v", e)
		}
		seen[e.Request] = true
		if e.Client == "key:i900001" {
			byKey++
		}
	}
	if byKey != writers*each {
		t.Errorf("%d effects", byKey)
	}
}
