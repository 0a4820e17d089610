package intervalssim

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestRefusesWhatTheServiceRefuses(t *testing.T) {
	with := func(name string, v any) object {
		e := ride("Test", "- 10m 75%")
		if v == nil {
			delete(e, name)
		} else {
			e[name] = v
		}
		return e
	}
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
	}{
		"bare date":            {"POST", "/events", with("start_date_local", "2026-12-03"), 422},
		"date with Z":          {"POST", "/events", with("start_date_local", "2026-12-03T08:00:00Z"), 422},
		"date with an offset":  {"POST", "/events", with("start_date_local", "2026-12-03T08:00:00+01:00"), 422},
		"no such day":          {"POST", "/events", with("start_date_local", "2026-02-30T08:00:00"), 422},
		"no date":              {"POST", "/events", with("start_date_local", nil), 422},
		"bare end date":        {"POST", "/events", with("end_date_local", "2026-12-03"), 422},
		"category RACE":        {"POST", "/events", with("category", "RACE"), 400},
		"category GOAL":        {"POST", "/events", with("category", "GOAL"), 400},
		"category Note":        {"POST", "/events", with("category", "Note"), 400},
		"category note":        {"POST", "/events", with("category", "note"), 400},
		"no category":          {"POST", "/events", with("category", nil), 422},
		"sport as sub_type":    {"POST", "/events", with("sub_type", "Ride"), 400},
		"no type":              {"POST", "/events", with("type", nil), 422},
		"unknown type":         {"POST", "/events", with("type", "ride"), 400},
		"no name":              {"POST", "/events", with("name", nil), 422},
		"empty name":           {"POST", "/events", with("name", ""), 422},
		"blank name":           {"POST", "/events", with("name", "  "), 422},
		"note without a name":  {"POST", "/events", object{"category": "NOTE", "start_date_local": "2026-12-03T00:00:00"}, 422},
		"text as a number":     {"POST", "/events", with("moving_time", "long"), 400},
		"fraction as a number": {"POST", "/events", with("moving_time", 1.5), 400},
		"number beyond int32":  {"POST", "/events", with("load_target", 3e9), 400},
		"text as a list":       {"POST", "/events", with("tags", "a,b"), 400},
		"text as a flag":       {"POST", "/events", with("indoor", "yes"), 400},
		"unknown sport listed": {"POST", "/events", with("can_train_sports", []string{"Chess"}), 400},
		"unknown target":       {"POST", "/events", with("target", "WATTS"), 400},
		"list where one":       {"POST", "/events", []object{ride("Test", "")}, 400},
		"one where a list":     {"POST", "/events/bulk", ride("Test", ""), 400},
		"no body":              {"POST", "/events", nil, 400},
		"no JSON":              {"POST", "/events", "{", 400},
		"update: bare date":    {"PUT", "/events/70010001", object{"start_date_local": "2026-12-04"}, 422},
		"update: empty name":   {"PUT", "/events/70010001", object{"name": ""}, 422},
		"update: no type left": {"PUT", "/events/70010004", object{"category": "WORKOUT"}, 422},
		"id with a letter":     {"GET", "/events/e123", nil, 422},
		"id of a plan":         {"PUT", "/events/plan_7", object{"name": "x"}, 422},
		"id beyond int32":      {"GET", "/events/99999999999", nil, 422},
		"missing event":        {"GET", "/events/1", nil, 404},
		"update a missing one": {"PUT", "/events/1", object{"name": "x"}, 404},
		"delete a missing one": {"DELETE", "/events/1", nil, 404},
		"singular path":        {"GET", "/event/70010001", nil, 404},
		"bad oldest":           {"GET", "/events?oldest=yesterday", nil, 422},
		"bad newest":           {"GET", "/events?newest=2026-13-01", nil, 422},
		"bad limit":            {"GET", "/events?limit=all", nil, 500},
		"bad category asked":   {"GET", "/events?category=RACE", nil, 400},
		"range delete, open":   {"DELETE", "/events?oldest=2026-12-01", nil, 400},
		"folder's workouts":    {"GET", "/folders/41/workouts", nil, 405},
		"post on a detail":     {"POST", "/events/70010001", object{}, 405},
		"activities, no range": {"GET", "/activities", nil, 400},
		"curves without type":  {"GET", "/power-curves", nil, 400},
		"wellness: feel":       {"PUT", "/wellness/2026-12-01", object{"feel": 3}, 422},
		"wellness: bad date":   {"PUT", "/wellness/today", object{"weight": 70}, 422},
		"pace in seconds":      {"PUT", "/sport-settings/Run?recalcHrZones=false", object{"threshold_pace": 240}, 422},
		"another athlete":      {"GET", "/../i900002/events", nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			cl := start(t, nil)
			path := home + c.path
			if rest, ok := strings.CutPrefix(c.path, "/.."); ok {
				path = "/api/v1/athlete" + rest
			}
			a := cl.try(c.method, path, c.body)
			if a.status != c.status {
				t.Errorf("%s %s: %d %s, want %d", c.method, path, a.status, a.body, c.status)
			}
			var shape struct {
				Status int    `json:"status"`
				Error  string `json:"error"`
			}
			if err := json.Unmarshal(a.body, &shape); err != nil || shape.Status != c.status || shape.Error == "" {
				t.Errorf("body %s (%v)", a.body, err)
			}
			cl.wantKinds()
		})
	}
}

func TestRefusesEveryCategoryWithABareDate(t *testing.T) {
	cl := start(t, nil)
	for _, category := range categories {
		e := ride("Test", "")
		e["category"], e["start_date_local"] = category, "2026-12-03"
		if a := cl.try("POST", home+"/events", e); a.status != 422 || !strings.Contains(string(a.body), "could not be parsed at index 10") {
			t.Errorf("%s: %d %s", category, a.status, a.body)
		}
		e["start_date_local"] = "2026-12-03T00:00:00"
		if a := cl.try("POST", home+"/events", e); a.status != 200 {
			t.Errorf("%s with a time: %d %s", category, a.status, a.body)
		}
	}
}

func TestRefusesCredentials(t *testing.T) {
	cl := start(t, nil)
	reader := cl.sim.AddToken(cl.sim.AthleteID(), "CALENDAR:READ")
	writer := cl.sim.AddToken(cl.sim.AthleteID(), "CALENDAR:WRITE")
	for name, c := range map[string]struct {
		client *client
		method string
		status int
	}{
		"right key":              {cl, "GET", 200},
		"wrong key":              {cl.as("API_KEY", "guess"), "GET", 401},
		"athlete id as the user": {cl.as(cl.sim.AthleteID(), cl.sim.APIKey()), "GET", 401},
		"key as a bearer":        {cl.bearer(cl.sim.APIKey()), "GET", 403},
		"unknown bearer":         {cl.bearer("guess"), "GET", 401},
		"reader reads":           {cl.bearer(reader), "GET", 200},
		"reader writes":          {cl.bearer(reader), "POST", 403},
		"writer writes":          {cl.bearer(writer), "POST", 200},
	} {
		if a := c.client.try(c.method, home+"/events", note("x")); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	if a := cl.bearer(reader).try("GET", home+"/wellness", nil); a.status != 403 {
		t.Errorf("wellness with a calendar scope: %d", a.status)
	}
	for _, agent := range []string{"", "Python-urllib/3.12"} {
		r := httptest.NewRequest("GET", home+"/events", nil)
		r.SetBasicAuth("API_KEY", cl.sim.APIKey())
		r.Header.Set("User-Agent", agent)
		w := httptest.NewRecorder()
		cl.sim.ServeHTTP(w, r)
		if w.Code != 403 || !strings.Contains(w.Header().Get("Content-Type"), "html") {
			t.Errorf("user agent %q: %d", agent, w.Code)
		}
	}
}

func TestAdminIsForThisMachineOnly(t *testing.T) {
	sim := New(nil)
	for name, c := range map[string]struct {
		from, origin string
		status       int
	}{
		"this machine": {"127.0.0.1:1234", "", 200},
		"by IPv6":      {"[::1]:1234", "", 200},
		"another":      {"192.0.2.7:1234", "", 403},
		"a web page":   {"127.0.0.1:1234", "http://example.com", 403},
		"no address":   {"", "", 403},
	} {
		r := httptest.NewRequest("GET", "/_sim/journal", nil)
		r.RemoteAddr = c.from
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		sim.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d", name, w.Code, c.status)
		}
	}
}

func TestServeListensOnLoopbackOnly(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "nonsense"} {
		if url, err := New(nil).Serve(t.Context(), listen); err == nil {
			t.Errorf("%s: listens on %s", listen, url)
		}
	}
	sim := New(nil)
	url, err := sim.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/_sim/act", "application/json", bytes.NewReader([]byte(`{"act":"create","set":{"category":"NOTE","name":"x","start_date_local":"2026-12-09T00:00:00"}}`)))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	if len(sim.Journal()) != 1 {
		t.Errorf("%+v", sim.Journal())
	}
}

func TestUnknownMembersAreIgnoredUnlessStrict(t *testing.T) {
	e := note("x")
	maps.Copy(e, object{"colour": "red", "paired_activity_id": "i1"})
	if got := start(t, nil).create(e); got["colour"] != nil || got["paired_activity_id"] != nil {
		t.Errorf("%v", got)
	}
	if a := start(t, &Options{StrictUnknownKeys: true}).try("POST", home+"/events", e); a.status != 400 {
		t.Errorf("strict: %d %s", a.status, a.body)
	}
}

func TestLockedEventIsRefusedWithTheSwitch(t *testing.T) {
	for locked, want := range map[bool]int{false: 200, true: 403} {
		cl := start(t, &Options{Seed: "demo", LockedForbidden: locked})
		if a := cl.try("PUT", home+"/events/70010011", object{"name": "x"}); a.status != want {
			t.Errorf("LockedForbidden %v: %d", locked, a.status)
		}
	}
}

func TestQuota(t *testing.T) {
	cl := start(t, &Options{EnforceQuota: true, QuotaQuarter: 2})
	var last answer
	for range 3 {
		last = cl.try("GET", home+"/events", nil)
	}
	if last.status != 429 || last.header.Get("Retry-After") != "901" || last.header.Get("X-RateLimit-Remaining") != "0,4997" || !strings.Contains(string(last.body), "retry_after_seconds") {
		t.Errorf("%d %v %s", last.status, last.header, last.body)
	}
	if h := start(t, nil).try("GET", home+"/events", nil).header; h.Get("X-RateLimit-Limit") != "2500,5000" || h.Get("X-RateLimit-Remaining") != "2499,4999" {
		t.Errorf("%v", h)
	}
}

func TestBurst(t *testing.T) {
	cl := start(t, &Options{BurstPerSecond: 2})
	var got []int
	for range 3 {
		got = append(got, cl.try("GET", home+"/events", nil).status)
	}
	cl.fault("clock:+1s", 1)
	got = append(got, cl.try("GET", home+"/events", nil).status)
	if !slices.Equal(got, []int{200, 200, 429, 200}) {
		t.Errorf("%v", got)
	}
}
