package intervals_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/workout"
)

// explained previews and explains from what was stored alone.
func (c *calendar) explained(args string) (wetink.Change, wetink.Terms, wetink.Explanation) {
	c.t.Helper()
	ch, _ := c.mustPreview(args)
	terms, err := ch.Terms()
	if err != nil {
		c.t.Fatal(err)
	}
	return ch, terms, intervals.Explain(terms, ch.Before)
}

func TestAMoveIsToldAsPeopleTellIt(t *testing.T) {
	c := open(t, nil)
	_, _, e := c.explained(`{"action":"update","event_id":70010001,"set":{"start_date_local":"2026-12-11"}}`)
	if e.Noun != "session" || e.Zone != "Europe/Madrid" || e.Owner == "" || len(e.Ops) != 1 || e.Hidden != 0 {
		t.Errorf("%+v", e)
	}
	o := e.Ops[0]
	if o.Verb != "move" || o.Name != "Tempo 3x10 min" || o.Call != "PUT /api/v1/athlete/i900001/events/70010001" {
		t.Errorf("%q %q %q", o.Verb, o.Name, o.Call)
	}
	if *o.Was != (wetink.Entry{Day: "2026-12-10", Start: "08:00", Short: "Tempo", Name: "Tempo 3x10 min"}) || o.Will.Day != "2026-12-11" || o.Will.Start != "08:00" {
		t.Errorf("%+v %+v", o.Was, o.Will)
	}
	if m := o.Fields["start_date_local"]; m.Label != "Starts" || m.Kind != wetink.Moment || m.Note != "1 day later, same time" {
		t.Errorf("%+v", m)
	}
	if o.Shape[0] != nil || o.Shape[1] != nil {
		t.Error("a move changes no shape")
	}
	days := map[string]string{}
	for _, a := range e.Around {
		days[a.Day] += a.Name + ";"
		if a.Day < "2026-12-07" || a.Day > "2026-12-13" {
			t.Errorf("%+v is in another week", a)
		}
		if a.Name == "Tempo 3x10 min" {
			t.Error("what changes stands among what does not")
		}
	}
	for day, name := range map[string]string{"2026-12-11": "Strength", "2026-12-07": "School holidays", "2026-12-08": "School holidays", "2026-12-13": "Long ride"} {
		if !strings.Contains(days[day], name) {
			t.Errorf("%s has %q and not %s", day, days[day], name)
		}
	}
	if strings.Contains(days["2026-12-09"], "School holidays") {
		t.Error("the end of an event is exclusive")
	}
}

func TestAShorterWorkoutIsDrawnBeforeAndAfter(t *testing.T) {
	c := open(t, nil)
	ch, terms, e := c.explained(`{"action":"update","event_id":70010001,"set":{"start_date_local":"2026-12-11T09:30:00","name":"Tempo 2x10 min","description":"Warmup\n- 15m ramp 50-75%\n\n2x\n- 10m 85-90% 90rpm\n- 5m 55%\n\nCooldown\n- 10m 50%\n- easy spin home"}}`)
	o := e.Ops[0]
	if o.Verb != "move and shorten" || o.Fields["start_date_local"].Note != "1 day later, 1 h 30 min later in the day" || o.Fields["workout"].Note != "15 min shorter, follows from the text" {
		t.Errorf("%q %+v %+v", o.Verb, o.Fields["start_date_local"], o.Fields["workout"])
	}
	was, will := o.Shape[0], o.Shape[1]
	if was == nil || will == nil || len(was.Segments) != 8 || len(will.Segments) != 6 {
		t.Fatalf("%+v %+v", was, will)
	}
	if s := will.Segments[0]; s.Seconds != 900 || s.From != .5 || s.To != .75 {
		t.Errorf("the ramp is %+v", s)
	}
	if s := will.Segments[1]; s.Seconds != 600 || s.From != .875 || s.To != .875 {
		t.Errorf("the tempo is %+v", s)
	}
	if was.Load <= will.Load || will.Load == 0 || will.Estimate || will.Scale != "100 % FTP, 250 W" {
		t.Errorf("%+v %+v", was, will)
	}
	if will.Says != "15 min ramp 50 to 75 %, then 2 times 10 min at 85 to 90 % and 5 min at 55 %, then 10 min at 50 %" {
		t.Errorf("it says %q", will.Says)
	}
	if !reflect.DeepEqual(will.Ignored, []string{"- easy spin home"}) {
		t.Errorf("ignored: %q", will.Ignored)
	}
	if len(terms.Warnings) == 0 || !strings.Contains(strings.Join(terms.Warnings, "\n"), "will be no step") {
		t.Errorf("%q", terms.Warnings)
	}
	if again := intervals.Explain(terms, ch.Before); !reflect.DeepEqual(again, e) {
		t.Error("it is not the same twice")
	}
}

func TestEveryActionHasItsNounsAndVerbs(t *testing.T) {
	c := open(t, nil)
	for _, w := range []struct{ args, told string }{
		{`{"action":"bulk_delete","event_ids":[70010001,70010006]}`, "event: delete session, delete race"},
		{`{"action":"create","event":{"category":"RACE_C","type":"Run","name":"Parkrun","start_date_local":"2026-12-12T09:00:00"}}`, "race: create race"},
		{`{"action":"create","event":{"category":"NOTE","name":"Rest","start_date_local":"2026-12-12"}}`, "note: create note"},
		{`{"action":"swap","event_ids":[70010001,70010002]}`, "session: move session, move session"},
		{`{"action":"update","event_id":70010001,"set":{"name":"Other"}}`, "session: rename session"},
		{`{"action":"update","event_id":70010001,"set":{"name":"Other","start_date_local":"2026-12-12"}}`, "session: move and rename session"},
		{`{"action":"update","event_id":70010001,"set":{"tags":["a"]}}`, "session: change session"},
		{`{"action":"update","event_id":70010001,"set":{"tags":["a"],"start_date_local":"2026-12-12"}}`, "session: move and change session"},
		{`{"action":"update","event_id":70010001,"set":{"tags":["a"],"name":"x","start_date_local":"2026-12-12"}}`, "session: change session"},
		{`{"action":"update","event_id":70010008,"set":{"moving_time":3600}}`, "session: lengthen session"},
		{`{"action":"update","event_id":70010004,"set":{"description":"Bike stays here."}}`, "note: rewrite note"},
		{`{"action":"update","event_id":70010013,"set":{"end_date_local":"2026-12-16"}}`, "holiday: shorten holiday"},
	} {
		_, _, e := c.explained(w.args)
		var ops []string
		for _, o := range e.Ops {
			ops = append(ops, o.Verb+" "+o.Noun)
		}
		if got := e.Noun + ": " + strings.Join(ops, ", "); got != w.told {
			t.Errorf("%s\n is told as %q, want %q", w.args, got, w.told)
		}
	}
}

// A field of ours that Explain forgets would be called uninspectable, and raise the level of every change.
func TestEveryWritableFieldIsExplainedAndNoOther(t *testing.T) {
	fields := reflect.TypeFor[intervals.Fields]()
	payload := map[string]any{}
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		payload[name] = "1"
	}
	payload["description"], payload["x_new"] = "- 10m 50%", "?"
	b, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	op := wetink.Op{Action: "create", Payload: b}
	e := intervals.Explain(wetink.Terms{Ops: []wetink.Op{op}}, []wetink.Snapshot{{Absent: true}})
	n := 0
	labels := map[string]string{}
	for _, f := range intervals.Diff(op, wetink.Snapshot{Absent: true}) {
		m, known := e.Ops[0].Fields[f.Field]
		if known == (f.Field == "x_new") {
			t.Errorf("%s: explained is %v", f.Field, known)
		}
		if known && m.Label == "" || labels[m.Label] != "" {
			t.Errorf("%s: label %q, which is also that of %s", f.Field, m.Label, labels[m.Label])
		}
		labels[m.Label] = f.Field
		n++
	}
	if n != fields.NumField()+2 {
		t.Errorf("%d fields", n)
	}
}

func TestAPreviewNeverFailsForWhatStandsAround(t *testing.T) {
	c := open(t, nil)
	fake := &lossy{c: c}
	fake.start(t)
	p, err := fake.target.Prepare(ctx, wetink.Request{Args: json.RawMessage(moveTempo)})
	if err != nil || len(p.Ops) != 1 {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(p.Warnings, "\n"), "what else stands on those days could not be read") {
		t.Errorf("%q", p.Warnings)
	}
	e := intervals.Explain(wetink.Terms{Ops: p.Ops, Context: p.Context}, p.Before)
	if len(e.Around) != 0 || e.Zone != "Europe/Madrid" || e.Ops[0].Verb != "move" {
		t.Errorf("%+v", e)
	}
	if fake.lists != 1 {
		t.Errorf("%d reads of the list", fake.lists)
	}
}

func TestABusyCalendarIsCounted(t *testing.T) {
	c := open(t, nil)
	for i := range 120 {
		c.act("create", map[string]any{"set": map[string]any{"category": "NOTE", "name": fmt.Sprint("n", i), "start_date_local": "2026-12-09T00:00:00"}})
	}
	_, terms, e := c.explained(moveTempo)
	if len(e.Around) != 100 || e.Hidden < 20 {
		t.Errorf("%d around, %d more", len(e.Around), e.Hidden)
	}
	if len(terms.Context) > 32<<10 {
		t.Errorf("the context has %d bytes", len(terms.Context))
	}
	c.act("create", map[string]any{"set": map[string]any{"category": "NOTE", "name": strings.Repeat("long ", 4000), "start_date_local": "2026-12-07T00:00:00"}})
	if _, terms, e := c.explained(moveTempo); len(terms.Context) > 32<<10 || len(e.Around) != 100 || slices.ContainsFunc(e.Around, func(a wetink.Entry) bool { return len(a.Name) > 1000 }) {
		t.Errorf("with a long name it has %d bytes and %d events", len(terms.Context), len(e.Around))
	}
}

// Each is a workout that arrived otherwise than written; see workout.Lint.
func TestWhatTheServiceReadsOtherwiseIsAWarning(t *testing.T) {
	c := open(t, nil)
	for name, w := range map[string]struct{ text, warning, ignored string }{
		"metres as minutes":       {`8x\n- 400m 90% Pace\n- 1m 60% Pace`, "400m is 400 minutes", ""},
		"a dropped target":        {`- 10m 150bpm`, "in bpm is dropped", ""},
		"no blank line before it": {`- 10m 60% Pace\n3x\n- 5m 90% Pace`, "no blank line before the repeat", "3x"},
		"a blank line after it":   {`3x\n\n- 5m 90% Pace`, "they are not repeated", "3x"},
		"no blank line after it":  {`3x\n- 5m 90% Pace\nCooldown\n- 10m 50% Pace`, "what follows may be repeated too", ""},
	} {
		_, terms, e := c.explained(`{"action":"create","event":{"category":"WORKOUT","type":"Run","name":"` + name + `","start_date_local":"2026-12-12","description":"` + w.text + `"}}`)
		if all := strings.Join(terms.Warnings, "\n"); !strings.Contains(all, w.warning) {
			t.Errorf("%s: %q", name, all)
		}
		if got := strings.Join(e.Ops[0].Shape[1].Ignored, "|"); got != w.ignored {
			t.Errorf("%s: ignored %q, want %q", name, got, w.ignored)
		}
	}
}

func TestHugeRepeatsAreNotDrawnPieceByPiece(t *testing.T) {
	text := strings.Repeat("999x\n- 1s 90%\n- 1s 50%\n\n", 1000)
	op := wetink.Op{Action: "create", Payload: json.RawMessage(`{"type":"Ride","category":"WORKOUT","description":` + string(mustJSON(t, text)) + `}`)}
	e := intervals.Explain(wetink.Terms{Ops: []wetink.Op{op}}, []wetink.Snapshot{{Absent: true}})
	if p := e.Ops[0].Shape[1]; len(p.Segments) != 0 || p.Says != "2000 steps" {
		t.Errorf("%d segments, %q", len(p.Segments), p.Says)
	}
	doc := workout.Parse("- 10m 50%")
	if list, ok := workout.Shape(doc, workout.Thresholds{}, 1); !ok || list[0] != (workout.Stretch{Seconds: 600, From: .5, To: .5}) {
		t.Errorf("without a threshold: %+v", list)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lossy is the simulator behind a front that answers lists of events with an error.
type lossy struct {
	c      *calendar
	target *intervals.Target
	lists  int
}

func (l *lossy) start(t *testing.T) {
	u, err := url.Parse(l.c.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			l.lists++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	l.target = intervals.New(intervals.NewClient(front.URL, intervals.NewKey(l.c.sim.APIKey()), "0"), &intervals.Options{Now: func() time.Time { return today }})
}
