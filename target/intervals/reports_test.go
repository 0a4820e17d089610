package intervals_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
)

// Each test here is something that went wrong for somebody with another program; the report is named.

// warnings of a preview.
func (c *calendar) warnings(args string) string {
	c.t.Helper()
	ch, _ := c.mustPreview(args)
	terms, err := ch.Terms()
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Join(terms.Warnings, "\n")
}

func createWorkout(sport, description string) string {
	b, err := json.Marshal(map[string]any{"action": "create", "event": map[string]any{"category": "WORKOUT", "type": sport,
		"start_date_local": "2026-12-09", "name": "W", "description": description}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// https://github.com/eddmann/intervals-icu-mcp/issues/9: a bare date is answered 422.
// https://github.com/ricardocabral/icuvisor/pull/62: mended for workouts and notes only; races and holidays still failed.
func TestABareDateIsCompletedWhateverTheCategory(t *testing.T) {
	for category, sport := range map[string]string{"WORKOUT": `"type":"Ride",`, "RACE_A": `"type":"Run",`, "RACE_B": `"type":"Run",`, "RACE_C": `"type":"Ride",`,
		"NOTE": "", "HOLIDAY": "", "SICK": "", "INJURED": ""} {
		t.Run(category, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"create","event":{"category":%q,%s"start_date_local":"2026-12-09","name":"N"}}`, category, sport))
			got, undo := c.apply(ch, ev)
			if got.Status != wetink.Applied {
				t.Fatalf("%s: %s", got.Status, got.Why)
			}
			var id int
			if _, err := fmt.Sscan(got.Steps[0].Receipt.Object, &id); err != nil {
				t.Fatal(err)
			}
			e := c.event(id)
			if e["start_date_local"] != "2026-12-09T00:00:00" || e["end_date_local"] != "2026-12-10T00:00:00" || e["category"] != category {
				t.Errorf("created %v", e)
			}
			if u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil || u.Status != wetink.Applied {
				t.Error(err, u.Status, u.Why)
			}
		})
	}
}

func TestCategoriesThatRewriteTheFitnessModelOrThePlanAreRefused(t *testing.T) {
	c := open(t, nil)
	for _, category := range []string{"PLAN", "TARGET", "SET_EFTP", "FITNESS_DAYS", "SEASON_START", "SET_FITNESS", "set_eftp"} {
		for field, args := range map[string]string{
			"event.category": `{"action":"create","event":{"category":%q,"type":"Ride","start_date_local":"2026-12-09","name":"N"}}`,
			"set.category":   `{"action":"update","event_id":70010001,"set":{"category":%q}}`,
		} {
			_, _, err := c.preview(fmt.Sprintf(args, category))
			var re *wetink.RequestError
			if !errors.As(err, &re) || re.Field != field {
				t.Errorf("%s in %s: %v", category, field, err)
			}
		}
	}
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"category": "TARGET"}})
	if _, _, err := c.preview(fmt.Sprintf(`{"action":"delete","event_id":%d}`, tempo)); err == nil {
		t.Error("a TARGET may be deleted")
	}
	c.wantEffects()
}

// https://github.com/eddmann/intervals-icu-mcp/pull/6: RACE and GOAL are answered 400.
func TestAnUnknownCategoryNamesTheOnesThereAre(t *testing.T) {
	c := open(t, nil)
	for category, says := range map[string]string{"RACE": "RACE_A, RACE_B or RACE_C", "GOAL": "WORKOUT, RACE_A", "NOTES": "NOTE"} {
		_, _, err := c.preview(fmt.Sprintf(`{"action":"create","event":{"category":%q,"type":"Run","start_date_local":"2026-12-09","name":"N"}}`, category))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", category, err)
		}
	}
}

// https://github.com/mvilanova/intervals-mcp-server/pull/116: a delete by range took races, notes and rest days with it.
func TestNothingIsDeletedByRange(t *testing.T) {
	c := open(t, nil)
	for _, args := range []string{
		`{"action":"bulk_delete","from":"2026-12-07","to":"2026-12-13"}`,
		`{"action":"bulk_delete","oldest":"2026-12-07"}`,
		`{"action":"bulk_delete","event_ids":[]}`,
		`{"action":"delete","category":"WORKOUT"}`,
	} {
		if _, _, err := c.preview(args); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
	ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"bulk_delete","event_ids":[%d,%d]}`, tempo, long))
	c.apply(ch, ev)
	c.wantEffects(fmt.Sprint("delete ", tempo), fmt.Sprint("delete ", long))
	for _, r := range c.sim.Requests() {
		if r.Method == http.MethodDelete && (strings.Contains(r.Path, "?") || strings.HasSuffix(r.Path, "/events")) {
			t.Errorf("%s %s deletes more than one event", r.Method, r.Path)
		}
	}
}

// https://github.com/mvilanova/intervals-mcp-server/issues/106 and pull/119: a singular /event/ path was answered 404 for
// every id that the list had shown, and mocks hid it.
func TestEveryListedEventCanBeRead(t *testing.T) {
	c := open(t, nil)
	list, err := c.client().Calendar(ctx, intervals.EventQuery{Days: intervals.Days{Oldest: "2026-11-25", Newest: "2027-01-31"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Events) != 13 {
		t.Errorf("%d events", len(list.Events))
	}
	for _, row := range list.Events {
		id, err := row.(intervals.EventRow).ID.Int64()
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.client().Event(ctx, intervals.EventID(id), false)
		if err != nil {
			t.Errorf("%d: %v", id, err)
		} else if d := got.(intervals.EventDetail); string(d.ID) != fmt.Sprint(id) {
			t.Errorf("asked for %d and was given %s", id, d.ID)
		}
	}
}

// https://github.com/watt-mind/coach/pull/173: plan_… sent as an id is answered 422, for ever.
func TestAnIDThatIsNoNumberNeverReachesTheService(t *testing.T) {
	c := open(t, nil)
	for _, id := range []string{`"e123"`, `"plan_7"`, `12.5`, `-1`, `0`, `"../athlete"`, `99999999999`, `null`, `""`} {
		for _, args := range []string{`{"action":"delete","event_id":%s}`, `{"action":"bulk_delete","event_ids":[%s]}`, `{"action":"update","event_id":%s,"set":{"name":"n"}}`} {
			_, _, err := c.preview(fmt.Sprintf(args, id))
			var re *wetink.RequestError
			if !errors.As(err, &re) || !strings.HasPrefix(re.Field, "event_id") {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	for _, r := range c.sim.Requests() {
		if strings.Contains(r.Path, "/events") {
			t.Errorf("%s %s was sent", r.Method, r.Path)
		}
	}
}

// https://github.com/mvilanova/intervals-mcp-server/pull/120 and 133: the type was always shown as Other.
// https://github.com/mvilanova/intervals-mcp-server/pull/30: dates were unknown, read from a field of another name.
func TestRowsHaveCategoryTypeAndDateUnderTheServicesNames(t *testing.T) {
	c := open(t, nil)
	list, err := c.client().Calendar(ctx, intervals.EventQuery{Days: intervals.Days{Oldest: "2026-12-10", Newest: "2026-12-10"}})
	if err != nil || len(list.Events) != 1 {
		t.Fatal(err, list.Events)
	}
	b, err := json.Marshal(list.Events[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{`"category":"WORKOUT"`, `"type":"Ride"`, `"start_date_local":"2026-12-10T08:00:00"`, `"weekday":"Thursday"`} {
		if !strings.Contains(string(b), member) {
			t.Errorf("%s lacks %s", b, member)
		}
	}
}

// https://github.com/watt-mind/coach/issues/168, https://github.com/hhopke/intervals-icu-mcp/pull/82: 400m was read as
// minutes, and swims took 18, 41 and 80 hours.
// https://github.com/hhopke/intervals-icu-mcp/pull/86: prose instead of syntax, targets that are dropped.
// https://github.com/watt-mind/coach/issues/37: a ramp written as a range is steady.
func TestWhatTheServiceWillReadOtherwiseIsWarnedOfAtPreview(t *testing.T) {
	for name, w := range map[string]struct{ sport, text, says string }{
		"metres as minutes":             {"Swim", "8x\n- 400m 90% Pace", "400mtr"},
		"an absurd total":               {"Ride", "8x\n- 400m 90%", "53h20m0s"},
		"a power zone on a run":         {"Run", "- 40m Z5", "Z5 Pace"},
		"a range in beats is dropped":   {"Run", "- 40m 140-150bpm", ""},
		"a pace without the word Pace":  {"Run", "- 10m 5:00/km", ""},
		"a named pace":                  {"Run", "- 10m 5K Pace", ""},
		"prose":                         {"Ride", "* 10m 75%\n* 20m 90%", "prose"},
		"a ramp that is none":           {"Ride", "- 10m building 50-75%", "ramp"},
		"a line without any duration":   {"Ride", "- 10m 75%\n- steady 80%", "no step"},
		"metres that are none, on foot": {"Run", "- 800m Z4 Pace", "800mtr"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, nil)
			got := c.warnings(createWorkout(w.sport, w.text))
			if !strings.Contains(got, "event.description: ") || !strings.Contains(got, w.says) {
				t.Errorf("warnings %q, want one of the description that says %q", got, w.says)
			}
			var sent map[string]any
			if err := json.Unmarshal([]byte(createWorkout(w.sport, w.text)), &sent); err != nil {
				t.Fatal(err)
			}
			delete(sent, "action")
			update, err := json.Marshal(map[string]any{"action": "update", "event_id": 70010008, "set": map[string]any{"type": w.sport, "description": w.text}})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.warnings(string(update)); !strings.Contains(got, "set.description: ") || !strings.Contains(got, w.says) {
				t.Errorf("warnings of an update %q, want one that says %q", got, w.says)
			}
		})
	}
}

func TestAGoodTextHasNoWarning(t *testing.T) {
	c := open(t, nil)
	for sport, text := range map[string]string{"Ride": "Warmup\n- 10m 55%\n\n3x\n- 8m 100%\n- 4m 55%\n\nCooldown\n- 10m 50%", "Swim": "8x\n- 100mtr 95% Pace 20s rest", "Run": "- 45m Z2 HR"} {
		if got := c.warnings(createWorkout(sport, text)); strings.Contains(got, "description") {
			t.Errorf("%s: %s", sport, got)
		}
	}
}

// icuvisor's changelog: editing the description of a structured workout wipes its steps.
func TestLosingTheStepsOfAWorkoutIsWarnedOf(t *testing.T) {
	c := open(t, nil)
	for _, args := range []string{
		`{"action":"update","event_id":70010001,"set":{"description":"As you feel."}}`,
		`{"action":"update","event_id":70010001,"clear":["description"]}`,
	} {
		if got := c.warnings(args); !strings.Contains(got, "loses its 4 steps") {
			t.Errorf("%s: %q", args, got)
		}
	}
	if got := c.warnings(`{"action":"update","event_id":70010001,"set":{"description":"- 20m 60%"}}`); strings.Contains(got, "loses") {
		t.Error(got)
	}
}

// https://github.com/freekode/tp2intervals/issues/113: durations and loads that a client sends are overwritten.
func TestWhatTheServiceComputesIsNotSent(t *testing.T) {
	c := open(t, nil)
	ch, _ := c.mustPreview(`{"action":"create","event":{"category":"WORKOUT","type":"Ride","start_date_local":"2026-12-09","name":"W","description":"- 30m 55%","moving_time":60,"icu_training_load":999,"distance":5}}`)
	terms, err := ch.Terms()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"moving_time", "icu_training_load", "distance", "workout_doc"} {
		if strings.Contains(string(terms.Ops[0].Payload), `"`+f+`"`) {
			t.Errorf("%s is sent", f)
		}
		if f != "workout_doc" && !strings.Contains(strings.Join(terms.Warnings, "\n"), "event."+f+" is left out") {
			t.Errorf("nobody says that %s is left out: %q", f, terms.Warnings)
		}
	}
}

// https://github.com/freekode/tp2intervals/issues/100: sync loops double workouts. Two previews of one wish are two
// events; the second says that there is one already. One preview is one event, however often it is applied.
func TestADuplicateIsWarnedOfAndARepeatedApplyMakesNone(t *testing.T) {
	c := open(t, nil)
	args := createWorkout("Ride", "- 30m 55%")
	ch, ev := c.mustPreview(args)
	for range 3 {
		c.apply(ch, ev)
	}
	if n := len(c.sim.Journal()) - c.seen; n != 1 {
		t.Errorf("%d effects", n)
	}
	if got := c.warnings(args); !strings.Contains(got, "has an event of that name already") {
		t.Errorf("warnings %q", got)
	}
	if got := c.warnings(`{"action":"copy_week","from":"2026-12-07","to":"2026-12-14"}`); strings.Contains(got, "of that name already") {
		t.Errorf("warnings %q", got)
	}
}

// https://forum.intervals.icu/t/yet-another-ai-chatgpt-coach/117856?page=10: sessions were created as notes without a
// type. What is approved names both, and what is read back otherwise is not called applied.
func TestCategoryAndTypeAreInTheDiffAndReadBack(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(createWorkout("Ride", "- 30m 55%"))
	terms, err := ch.Terms()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, f := range c.target.Diff(terms.Ops[0], ch.Before[0]) {
		seen[f.Field] = string(f.After)
	}
	if seen["category"] != `"WORKOUT"` || seen["type"] != `"Ride"` {
		t.Errorf("the diff is %v", seen)
	}
	got, _ := c.apply(ch, ev)
	if got.Status != wetink.Applied {
		t.Fatal(got.Status, got.Why)
	}
	for field, value := range map[string]string{"category": `"NOTE"`, "type": "null"} {
		body := map[string]json.RawMessage{}
		if err := json.Unmarshal(got.Steps[0].Receipt.After.Body, &body); err != nil {
			t.Fatal(err)
		}
		body[field] = json.RawMessage(value)
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if v, why := c.target.Judge(terms.Ops[0], ch.Before[0], wetink.Snapshot{Object: "1", Body: b}); v != wetink.Otherwise || !strings.Contains(why, field) {
			t.Errorf("%s lost: judged %s (%s)", field, v, why)
		}
	}
}

// https://github.com/zoffline/zwift-offline/issues/535: marking a session as done counts its load twice.
func TestThereIsNoMarkingAsDone(t *testing.T) {
	c := open(t, nil)
	for _, action := range []string{"mark_done", "apply_plan", "duplicate"} {
		if _, _, err := c.preview(fmt.Sprintf(`{"action":%q,"event_id":70010001}`, action)); err == nil {
			t.Errorf("%s was accepted", action)
		}
	}
}

func TestADeleteOfAnEventWithAttachmentsWarnsThatTheyAreLost(t *testing.T) {
	c := open(t, nil)
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"attachments": []map[string]any{{"id": 1, "filename": "course.gpx", "url": "https://files.example/1?sig=a"}}}})
	args := fmt.Sprintf(`{"action":"delete","event_id":%d}`, tempo)
	if got := c.warnings(args); !strings.Contains(got, "attachments") {
		t.Errorf("warnings %q", got)
	}
	ch, ev := c.mustPreview(args)
	if terms, err := ch.Terms(); err != nil || terms.Undo.Extent != wetink.PartialUndo || !strings.Contains(strings.Join(terms.Undo.Notes, "\n"), "new id") {
		t.Errorf("promises %+v: %v", terms.Undo, err)
	}
	// The link to a file is signed and expires; another one is no other file.
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"attachments": []map[string]any{{"id": 1, "filename": "course.gpx", "url": "https://files.example/1?sig=b"}}}})
	if got, _ := c.apply(ch, ev); got.Status != wetink.Applied {
		t.Errorf("%s: %s", got.Status, got.Why)
	}
	c.wantEffects(fmt.Sprint("delete ", tempo))
}

func TestAnotherFileMakesThePreviewStale(t *testing.T) {
	c := open(t, nil)
	file := func(name string) map[string]any {
		return map[string]any{"event_id": tempo, "set": map[string]any{"attachments": []map[string]any{{"id": 1, "filename": name, "url": "https://files.example/1"}}}}
	}
	c.act("edit", file("a.gpx"))
	ch, ev := c.mustPreview(moveTempo)
	c.act("edit", file("b.gpx"))
	if got, _ := c.apply(ch, ev); got.Status != wetink.Failed {
		t.Errorf("%s: %s", got.Status, got.Why)
	}
	c.wantEffects()
}

// hhopke/intervals-icu-mcp, changelogs 4.1 to 4.3: wrong verbs and parameters that had never worked. The simulator
// answers 404 or 405 to what the API does not have, so every request here is one that it has.
func TestEveryRequestIsOneThatTheAPIHas(t *testing.T) {
	c := open(t, nil)
	c.readEverything()
	for _, a := range actions {
		ch, ev, err := c.preview(a.args)
		if err != nil {
			continue // an action before it took away what it needs
		}
		_, undo := c.apply(ch, ev)
		if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
	seen := map[string]bool{}
	for _, r := range c.sim.Requests() {
		path, _, _ := strings.Cut(r.Path, "?")
		path = regexp.MustCompile(`/i?\d+(/|$)`).ReplaceAllString(path, "/{}$1")
		seen[r.Method+" "+path] = true
		if r.Status == http.StatusMethodNotAllowed || r.Status == http.StatusBadRequest || r.Status == http.StatusNotFound && !strings.Contains(r.Path, "/events/") {
			t.Errorf("%s %s is answered %d", r.Method, r.Path, r.Status)
		}
	}
	want := []string{
		"GET /api/v1/activity/{}", "GET /api/v1/activity/{}/intervals", "GET /api/v1/activity/{}/streams",
		"GET /api/v1/athlete/{}", "GET /api/v1/athlete/{}/activities", "GET /api/v1/athlete/{}/connections",
		"GET /api/v1/athlete/{}/events", "GET /api/v1/athlete/{}/events/{}", "GET /api/v1/athlete/{}/folders",
		"GET /api/v1/athlete/{}/power-curves", "GET /api/v1/athlete/{}/sport-settings", "GET /api/v1/athlete/{}/wellness",
		"GET /api/v1/athlete/{}/workouts",
		"DELETE /api/v1/athlete/{}/events/{}", "POST /api/v1/athlete/{}/events/bulk", "PUT /api/v1/athlete/{}/events/{}",
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("%s was never sent", w)
		}
		delete(seen, w)
	}
	for extra := range seen {
		t.Errorf("%s is sent, and nobody has said that it may be", extra)
	}
}

// readEverything calls each read once.
func (c *calendar) readEverything() map[string]any {
	c.t.Helper()
	cl := c.client()
	out := map[string]any{}
	note := func(name string, v any, err error) {
		c.t.Helper()
		if err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
		out[name] = v
	}
	days := intervals.Days{Oldest: "2026-11-01", Newest: "2026-12-31"}
	for _, full := range []bool{false, true} {
		suffix := map[bool]string{true: " full"}[full]
		events, err := cl.Calendar(ctx, intervals.EventQuery{Days: days, Full: full})
		note("list_events"+suffix, events, err)
		event, err := cl.Event(ctx, tempo, full)
		note("get_event"+suffix, event, err)
		activity, err := cl.Activity(ctx, "i88001101", full)
		note("get_activity"+suffix, activity, err)
		wellness, err := cl.Wellness(ctx, intervals.WellnessQuery{Days: days, Full: full})
		note("get_wellness"+suffix, wellness, err)
		curves, err := cl.PowerCurves(ctx, intervals.CurveQuery{Curves: []string{"90d", "s0"}, Full: full})
		note("get_power_curves"+suffix, curves, err)
		library, err := cl.Library(ctx, intervals.LibraryQuery{Full: full})
		note("list_workouts"+suffix, library, err)
	}
	profile, err := cl.Profile(ctx)
	note("get_athlete", profile, err)
	activities, err := cl.Activities(ctx, intervals.ActivityQuery{Days: days})
	note("list_activities", activities, err)
	fields, err := cl.Activities(ctx, intervals.ActivityQuery{Days: days, Fields: []string{"compliance", "name"}})
	note("list_activities fields", fields, err)
	efforts, err := cl.Intervals(ctx, "i88001101")
	note("get_activity_intervals", efforts, err)
	streams, err := cl.Streams(ctx, intervals.StreamQuery{ActivityID: "i88001101"})
	note("get_activity_streams", streams, err)
	fitness, err := cl.Fitness(ctx, days)
	note("get_fitness", fitness, err)
	settings, err := cl.SportSettings(ctx, "")
	note("get_sport_settings", settings, err)
	return out
}

func TestTheWeekThatIsCopiedIsListedEventByEvent(t *testing.T) {
	c := open(t, nil)
	ch, _ := c.mustPreview(`{"action":"copy_week","from":"2026-12-07","to":"2027-01-04"}`)
	terms, err := ch.Terms()
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for i, op := range terms.Ops {
		for _, f := range c.target.Diff(op, ch.Before[i]) {
			if f.Field == "start_date_local" {
				days = append(days, string(f.After)[1:11])
			}
		}
	}
	if want := []string{"2027-01-04", "2027-01-05", "2027-01-06", "2027-01-07", "2027-01-08", "2027-01-10"}; !slices.Equal(days, want) {
		t.Errorf("copied to %v, want %v", days, want)
	}
	if w := strings.Join(terms.Warnings, "\n"); !strings.Contains(w, "Dentist") || !strings.Contains(w, "School holidays") {
		t.Errorf("what is not copied is not named: %q", w)
	}
}
