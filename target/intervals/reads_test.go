package intervals_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
)

// canned is a client of a service that answers these paths with these texts.
func canned(t *testing.T, answers map[string]string) *intervals.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, ok := answers[strings.TrimPrefix(r.URL.Path, "/api/v1")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			body = `{"status":404,"error":"Not found"}`
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	c := intervals.NewClient(server.URL, intervals.NewKey("k"), "0")
	c.SetClock(func() time.Time { return today })
	return c
}

const madrid = `{"id":"i1","timezone":"Europe/Madrid"}`

func asJSON(t *testing.T, v any, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The service sends the API key with the athlete. What may be shown is listed; what is new is not shown.
func TestNoReadShowsKeysAddressesOrTokens(t *testing.T) {
	c := open(t, nil)
	for name, v := range c.readEverything() {
		text := asJSON(t, v, nil)
		for _, secret := range []string{c.sim.APIKey(), "@example.com", "1988-02-29", "invite-"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", name, secret)
			}
		}
	}
	client := canned(t, map[string]string{
		"/athlete/0": `{"id":"i1","name":"Sam","timezone":"Europe/Madrid","icu_api_key":"s3cr3t","email":"s3cr3t","icu_date_of_birth":"s3cr3t",
			"icu_friend_invite_token":"s3cr3t","ICU_Weight":"s3cr3t","added_tomorrow":"s3cr3t","bio":"s3cr3t","icu_weight":68.50}`,
		"/athlete/0/folders":  `[{"id":1,"name":"F","shareToken":"s3cr3t","owner":{"email":"s3cr3t"}}]`,
		"/athlete/0/workouts": `[]`,
	})
	profile, err := client.Profile(ctx)
	if text := asJSON(t, profile, err); strings.Contains(text, "s3cr3t") || !strings.Contains(text, `"icu_weight":68.50`) {
		t.Error(text)
	}
	library, err := client.Library(ctx, intervals.LibraryQuery{})
	if text := asJSON(t, library, err); strings.Contains(text, "s3cr3t") {
		t.Error(text)
	}
}

// hhopke/intervals-icu-mcp, changelog 4.3.1: explicit nulls for lists crash typed clients.
func TestNullsUnknownValuesAndOtherShapesDoNotBreakARead(t *testing.T) {
	client := canned(t, map[string]string{
		"/athlete/0": madrid,
		"/athlete/0/events": `[{"id":70010001,"category":"BRAND_NEW","start_date_local":"2026-12-07T00:00:00","end_date_local":null,"type":null,"name":"N","tags":null,
			"moving_time":3600.0,"distance":9007199254740993,"icu_training_load":null,"workout_doc":null,"added_tomorrow":{"x":1}},
			{"id":70010002,"category":"WORKOUT","start_date_local":null,"name":null,"tags":"one","moving_time":"soon","load_target":[1]}]`,
		"/athlete/0/events/70010001":  `{"id":70010001,"category":"BRAND_NEW","name":"N","start_date_local":"2026-12-07T00:00:00","workout_doc":"strange","push_errors":null}`,
		"/athlete/0/activities":       `[{"id":"i1","type":null,"source":null,"start_date_local":null,"moving_time":null}]`,
		"/activity/i1/intervals":      `{"id":"i1","analyzed":null,"icu_intervals":null,"icu_groups":null}`,
		"/activity/i1/streams":        `[{"type":"watts","data":[null,200,201.50,null],"data2":null},{"type":"time","data":null}]`,
		"/athlete/0/wellness":         `[{"id":"2026-12-05","sportInfo":null,"hrv":60,"HRV":999,"weight":68.50,"ctl":50.70581,"atl":null}]`,
		"/athlete/0/sport-settings":   `[{"id":1,"types":null,"power_zones":null,"threshold_pace":null}]`,
		"/athlete/0/power-curves":     `{"list":[{"id":"90d","secs":[1,2,5],"values":[900,null,800],"watts":null,"activity_id":[null,null,"i7"],"watts_per_kg":null}],"activities":null}`,
		"/athlete/0/folders":          `[{"id":41,"children":null,"name":"F","description":null}]`,
		"/athlete/0/workouts":         `[{"id":501,"folder_id":null,"name":"W","day":null,"tags":null}]`,
		"/athlete/0/unused/by/anyone": `null`,
	})
	for name, want := range map[string][]string{
		"list_events": {`"category":"BRAND_NEW"`, `"moving_time":3600.0`, `"distance":9007199254740993`, `"weekday":"Monday"`, `"unread":["moving_time","load_target","tags"]`},
		"get_event":   {`"workout_steps":0`, `"unread":["workout_doc"]`},
		"activities":  {`[{"id":"i1"}]`},
		"intervals":   {`"intervals":[]`},
		"streams":     {`"data":[null,200,201.50,null]`, `"samples":4`, `"every":1`, `"type":"time","data":[]`},
		"wellness":    {`"hrv":60`, `"weight":68.50`},
		"fitness":     {`{"date":"2026-12-05","weekday":"Saturday","ctl":50.70581}`},
		"settings":    {`{"id":1,"types":[]}`},
		"curves":      {`"points":[{"secs":1,"watts":900},{"secs":5,"watts":800,"activity_id":"i7"}]`},
		"library":     {`"workouts":[{"id":501,"name":"W"}]`, `"folders":[{"id":41,"name":"F"}]`},
	} {
		var v any
		var err error
		switch name {
		case "list_events":
			v, err = client.Calendar(ctx, intervals.EventQuery{})
		case "get_event":
			v, err = client.Event(ctx, 70010001, false)
		case "activities":
			v, err = client.Activities(ctx, intervals.ActivityQuery{})
		case "intervals":
			v, err = client.Intervals(ctx, "i1")
		case "streams":
			v, err = client.Streams(ctx, intervals.StreamQuery{ActivityID: "i1", Types: []string{"watts"}})
		case "wellness":
			v, err = client.Wellness(ctx, intervals.WellnessQuery{})
		case "fitness":
			v, err = client.Fitness(ctx, intervals.Days{})
		case "settings":
			v, err = client.SportSettings(ctx, "")
		case "curves":
			v, err = client.PowerCurves(ctx, intervals.CurveQuery{})
		case "library":
			v, err = client.Library(ctx, intervals.LibraryQuery{})
		}
		text := asJSON(t, v, err)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %s\nlacks %s", name, text, w)
			}
		}
	}
	for _, answer := range []string{`null`, `[]`, `[null]`} {
		client := canned(t, map[string]string{"/athlete/0": madrid, "/athlete/0/events": answer})
		list, err := client.Calendar(ctx, intervals.EventQuery{})
		if text := asJSON(t, list, err); !strings.Contains(text, `"events":[`) {
			t.Errorf("%s: %s", answer, text)
		}
	}
}

// https://github.com/hhopke/intervals-icu-mcp/issues/14, https://github.com/mvilanova/intervals-mcp-server/issues/108: of
// Strava's recordings there is only a stub, and models took what is missing for zero.
func TestWhatStravaDoesNotLetThroughIsCalledUnavailableAndNotEmpty(t *testing.T) {
	c := open(t, nil)
	client := c.client()
	client.SetClock(func() time.Time { return today })
	const unavailable = `"unavailable":"strava_licence"`
	list, err := client.Activities(ctx, intervals.ActivityQuery{})
	if text := asJSON(t, list, err); strings.Count(text, unavailable) != 1 {
		t.Error(text)
	}
	list, err = client.Activities(ctx, intervals.ActivityQuery{Fields: []string{"name"}})
	if text := asJSON(t, list, err); strings.Count(text, unavailable) != 1 {
		t.Error(text)
	}
	for _, full := range []bool{false, true} {
		one, err := client.Activity(ctx, "15550001", full)
		if text := asJSON(t, one, err); !strings.Contains(text, unavailable) || strings.Contains(text, `"moving_time"`) {
			t.Error(text)
		}
	}
	efforts, err := client.Intervals(ctx, "15550001")
	if text := asJSON(t, efforts, err); !strings.Contains(text, unavailable) {
		t.Error(text)
	}
	streams, err := client.Streams(ctx, intervals.StreamQuery{ActivityID: "15550001"})
	if text := asJSON(t, streams, err); !strings.Contains(text, unavailable) {
		t.Error(text)
	}

	got, err := c.sim.Act("add_activity", map[string]any{"type": "Ride", "start_date_local": "2026-12-05T08:00:00", "analyzed": nil})
	if err != nil {
		t.Fatal(err)
	}
	var fresh struct {
		ID intervals.ActivityID `json:"id"`
	}
	if err := json.Unmarshal([]byte(asJSON(t, got, nil)), &fresh); err != nil {
		t.Fatal(err)
	}
	efforts, err = client.Intervals(ctx, fresh.ID)
	if err != nil || efforts.Unavailable != intervals.NotAnalysed {
		t.Errorf("%+v: %v", efforts, err)
	}
	c.fault("422", 1)
	if efforts, err = client.Intervals(ctx, "i88001101"); err == nil {
		t.Errorf("another 422 is taken for a reason: %+v", efforts)
	}
}

func TestTheArgumentsOfReadsAreCheckedAndTheFieldIsNamed(t *testing.T) {
	c := open(t, nil)
	client := c.client()
	client.SetClock(func() time.Time { return today })
	calendar := func(q intervals.EventQuery) error { _, err := client.Calendar(ctx, q); return err }
	days := func(oldest, newest string) intervals.EventQuery {
		return intervals.EventQuery{Days: intervals.Days{Oldest: oldest, Newest: newest}}
	}
	seen := len(c.sim.Requests())
	for name, w := range map[string]struct {
		err         error
		field, says string
	}{
		"no date":          {calendar(days("2026-02-30", "")), "oldest", "YYYY-MM-DD"},
		"a time":           {calendar(days("", "2026-12-09T00:00:00")), "newest", "YYYY-MM-DD"},
		"backwards":        {calendar(days("2026-12-09", "2026-12-08")), "newest", "before oldest"},
		"367 days":         {calendar(days("2026-01-01", "2027-01-02")), "newest", "366"},
		"far ahead":        {calendar(days("", "2028-01-01")), "newest", "366"},
		"a million events": {calendar(intervals.EventQuery{Limit: 1e6}), "limit", "500"},
		"minus one event":  {calendar(intervals.EventQuery{Limit: -1}), "limit", "500"},
		"a category":       {calendar(intervals.EventQuery{Categories: []string{"NOTE", "RACE"}}), "categories[1]", "RACE_A"},
		"an event": {func() error { _, err := client.Event(ctx, 4711, false); return err }(),
			"event_id", "list_events"},
		"an activity": {func() error { _, err := client.Activity(ctx, "i1", false); return err }(),
			"activity_id", "list_activities"},
		"a path as an activity": {func() error { _, err := client.Intervals(ctx, "../athlete/0"); return err }(),
			"activity_id", "list_activities"},
		"intervals of none": {func() error { _, err := client.Intervals(ctx, "i1"); return err }(),
			"activity_id", "list_activities"},
		"a field": {func() error {
			_, err := client.Activities(ctx, intervals.ActivityQuery{Fields: []string{"name", "a,b"}})
			return err
		}(), "fields[1]", "names"},
		"a stream": {func() error {
			_, err := client.Streams(ctx, intervals.StreamQuery{ActivityID: "i88001101", Types: []string{"watts&x=1"}})
			return err
		}(), "types[0]", "watts"},
		"too many points": {func() error {
			_, err := client.Streams(ctx, intervals.StreamQuery{ActivityID: "i88001101", MaxPoints: 1e6})
			return err
		}(), "max_points", "5000"},
		"a curve": {func() error {
			_, err := client.PowerCurves(ctx, intervals.CurveQuery{Curves: []string{"90 days"}})
			return err
		}(), "curves[0]", "90d"},
		"a sport": {func() error { _, err := client.SportSettings(ctx, "Riding"); return err }(),
			"sport", "Ride"},
		"a folder": {func() error { _, err := client.Library(ctx, intervals.LibraryQuery{FolderID: 7}); return err }(),
			"folder_id", "folders"},
	} {
		var re *wetink.RequestError
		if !errors.As(w.err, &re) || re.Field != w.field || !strings.Contains(re.Error(), w.says) {
			t.Errorf("%s: %v; want field %s and %q", name, w.err, w.field, w.says)
		}
	}
	for _, r := range c.sim.Requests()[seen:] {
		if strings.Contains(r.Path, "..") || strings.Contains(r.Path, "x=1") {
			t.Errorf("%s was sent", r.Path)
		}
	}
	if err := calendar(days("2026-01-01", "2027-01-01")); err != nil {
		t.Errorf("366 days: %v", err)
	}
}

func TestDefaultDaysSurroundToday(t *testing.T) {
	c := open(t, nil)
	client := c.client()
	client.SetClock(func() time.Time { return today })
	for _, w := range []struct{ oldest, newest, from, to string }{
		{"", "", "2026-12-05", "2026-12-11"},
		{"2026-11-01", "", "2026-11-01", "2026-11-07"},
		{"", "2026-12-31", "2026-12-05", "2026-12-31"},
		{"", "2026-11-30", "2026-11-24", "2026-11-30"},
	} {
		got, err := client.Calendar(ctx, intervals.EventQuery{Days: intervals.Days{Oldest: w.oldest, Newest: w.newest}})
		if err != nil || got.Oldest != w.from || got.Newest != w.to {
			t.Errorf("%q to %q: %s to %s, %v", w.oldest, w.newest, got.Oldest, got.Newest, err)
		}
	}
	fitness, err := client.Fitness(ctx, intervals.Days{})
	if err != nil || fitness.Oldest != "2026-11-22" || fitness.Newest != "2026-12-12" {
		t.Errorf("fitness: %+v, %v", fitness.Days, err)
	}
	for _, r := range fitness.Fitness {
		ctl, err1 := r.CTL.Float64()
		atl, err2 := r.ATL.Float64()
		form, err3 := r.Form.Float64()
		if err := errors.Join(err1, err2, err3); err != nil || form-(ctl-atl) > 1e-5 || form-(ctl-atl) < -1e-5 || len(r.Form) > 10 {
			t.Errorf("%+v: %v", r, err)
		}
		if r.Forecast != (r.Date > "2026-12-05") {
			t.Errorf("%s is a forecast: %t", r.Date, r.Forecast)
		}
	}
}

func TestListsAreCutWhereAskedAndSaySo(t *testing.T) {
	c := open(t, nil)
	days := intervals.Days{Oldest: "2026-11-01", Newest: "2026-12-31"}
	events, err := c.client().Calendar(ctx, intervals.EventQuery{Days: days, Limit: 3})
	if err != nil || len(events.Events) != 3 || !events.More {
		t.Errorf("%d events, more: %t, %v", len(events.Events), events.More, err)
	}
	events, err = c.client().Calendar(ctx, intervals.EventQuery{Days: days, Limit: 13})
	if err != nil || len(events.Events) != 13 || events.More {
		t.Errorf("%d events, more: %t, %v", len(events.Events), events.More, err)
	}
	races, err := c.client().Calendar(ctx, intervals.EventQuery{Days: days, Categories: []string{"race_b", "NOTE"}})
	if err != nil || len(races.Events) != 3 {
		t.Errorf("%d races and notes, %v", len(races.Events), err)
	}
	activities, err := c.client().Activities(ctx, intervals.ActivityQuery{Days: days, Limit: 2})
	if err != nil || len(activities.Activities) != 2 || !activities.More {
		t.Errorf("%d activities, more: %t, %v", len(activities.Activities), activities.More, err)
	}
	streams, err := c.client().Streams(ctx, intervals.StreamQuery{ActivityID: "i88001101", Types: []string{"watts", "smo2"}, MaxPoints: 100})
	if err != nil || streams.Samples != 3300 || streams.Every != 33 || len(streams.Streams) != 2 || len(streams.Streams[1].Data) != 100 || strings.Join(streams.Missing, ",") != "smo2" {
		t.Errorf("%+v, %v", streams, err)
	}
}

// https://github.com/eoinoconn/intervals-mcp-server/issues/37: answers that are too long.
func TestRowsAreShort(t *testing.T) {
	c := open(t, nil)
	days := intervals.Days{Oldest: "2026-11-01", Newest: "2026-12-31"}
	events, err := c.client().Calendar(ctx, intervals.EventQuery{Days: days})
	if err != nil {
		t.Fatal(err)
	}
	activities, err := c.client().Activities(ctx, intervals.ActivityQuery{Days: days})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range append(events.Events, activities.Activities...) {
		text := asJSON(t, row, nil)
		var members map[string]any
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatal(err)
		}
		if len(members) > 20 || len(text) > 450 {
			t.Errorf("%d members, %d bytes: %s", len(members), len(text), text)
		}
	}
}

// https://github.com/hhopke/intervals-icu-mcp/issues/88: a swim threshold is m/s, and not seconds a hundred metres.
func TestThresholdsSayTheirUnit(t *testing.T) {
	c := open(t, nil)
	swim, err := c.client().SportSettings(ctx, "swim")
	if err != nil || len(swim) != 1 || swim[0].ThresholdPace != "1.25" || swim[0].Measures["threshold_pace"] != "m/s" {
		t.Errorf("%+v: %v", swim, err)
	}
	if ride, err := c.client().SportSettings(ctx, "VirtualRide"); err != nil || len(ride) != 1 || ride[0].FTP != "250" || ride[0].IndoorFTP != "240" {
		t.Errorf("%+v: %v", ride, err)
	}
}
