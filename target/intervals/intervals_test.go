package intervals_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/intervalssim"
	"github.com/wetink/wetink/wetinktest"
)

var ctx = context.Background()

// Saturday; the demo calendar's week starts on Monday the 7th.
var today = time.Date(2026, 12, 5, 9, 0, 0, 0, time.UTC)

const (
	tempo   = 70010001 // Thursday 10th, 08:00
	easy    = 70010002 // Tuesday 8th
	note    = 70010004 // Monday 7th
	long    = 70010005 // Sunday 13th
	race    = 70010006
	paired  = 70010007
	plan    = 70010009
	foreign = 70010010
	locked  = 70010011
	holiday = 70010012
	camp    = 70010013 // Monday 14th to Wednesday 16th; not of the demo
)

// calendar is an engine at level agent on the guarded calendar of a simulator.
type calendar struct {
	*wetink.Engine
	t      *testing.T
	sim    *intervalssim.Sim
	url    string
	target *intervals.Target
	ledger wetink.Ledger
	seen   int // effects that were there before the last mark
}

func open(t *testing.T, o *intervalssim.Options) *calendar {
	t.Helper()
	opt := intervalssim.Options{}
	if o != nil {
		opt = *o
	}
	opt.Seed, opt.Now = "demo", func() time.Time { return today }
	sim := intervalssim.New(&opt)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { sim.Close(); server.Close() })
	if _, err := sim.Act("create", map[string]any{"set": map[string]any{"category": "HOLIDAY", "name": "Camp",
		"start_date_local": "2026-12-14T00:00:00", "end_date_local": "2026-12-17T00:00:00"}}); err != nil {
		t.Fatal(err)
	}
	c := &calendar{t: t, sim: sim, url: server.URL, ledger: wetinktest.NewLedger()}
	c.target = intervals.New(intervals.NewClient(server.URL, intervals.NewKey(sim.APIKey()), "0"),
		&intervals.Options{Now: func() time.Time { return today }})
	c.Engine = wetink.New(c.ledger, map[string]wetink.Target{"intervals": c.target},
		&wetink.Options{Policy: wetink.Floor{Level: wetink.Agent, People: 1}, Mode: wetink.ModeGuarded})
	c.mark()
	return c
}

func (c *calendar) mark() { c.seen = len(c.sim.Journal()) }

func (c *calendar) preview(args string) (wetink.Change, wetink.Evidence, error) {
	c.t.Helper()
	ch, ticket, err := c.Preview(ctx, "intervals", wetink.Request{Tool: "preview_event_change", Args: json.RawMessage(args)})
	return ch, wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}, err
}

func (c *calendar) mustPreview(args string) (wetink.Change, wetink.Evidence) {
	c.t.Helper()
	ch, ev, err := c.preview(args)
	if err != nil {
		c.t.Fatal(err)
	}
	return ch, ev
}

func (c *calendar) apply(ch wetink.Change, ev wetink.Evidence) (wetink.Change, wetink.Evidence) {
	c.t.Helper()
	got, undo, err := c.Apply(ctx, wetink.Principal{}, ch.ID, &ev)
	if err != nil {
		c.t.Fatal(err)
	}
	return got, wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: undo}
}

func (c *calendar) shown(id wetink.ChangeID) string {
	c.t.Helper()
	ch, undo, err := c.Status(ctx, wetink.Principal{}, id, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return wetink.Shown(ch, undo)
}

func (c *calendar) act(act string, args map[string]any) {
	c.t.Helper()
	if _, err := c.sim.Act(act, args); err != nil {
		c.t.Fatal(err)
	}
	c.mark()
}

func (c *calendar) fault(spec string, times int) {
	c.t.Helper()
	if err := c.sim.Fault(spec, times); err != nil {
		c.t.Fatal(err)
	}
}

// wantEffects judges by the simulator's own journal: what really changed since the last mark.
func (c *calendar) wantEffects(want ...string) {
	c.t.Helper()
	var got []string
	for _, e := range c.sim.Journal()[c.seen:] {
		got = append(got, fmt.Sprintf("%s %d", e.Kind, e.EventID))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("effects %v, want %v", got, want)
	}
}

func (c *calendar) event(id int) map[string]any {
	c.t.Helper()
	s, err := c.target.Observe(ctx, wetink.Account(c.sim.AthleteID()), wetink.Op{Object: fmt.Sprint(id)})
	if err != nil {
		c.t.Fatal(err)
	}
	m := map[string]any{}
	if !s.Absent {
		if err := json.Unmarshal(s.Body, &m); err != nil {
			c.t.Fatal(err)
		}
	}
	return m
}

const moveTempo = `{"action":"update","event_id":70010001,"set":{"start_date_local":"2026-12-11"}}`

func TestMoveIsPreviewedAppliedAndUndone(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	c.wantEffects()
	terms, err := ch.Terms()
	if err != nil {
		t.Fatal(err)
	}
	diff := c.target.Diff(terms.Ops[0], ch.Before[0])
	if len(diff) != 1 || diff[0].Field != "start_date_local" || string(diff[0].Before) != `"2026-12-10T08:00:00"` || string(diff[0].After) != `"2026-12-11T08:00:00"` {
		t.Errorf("diff: %s", diff)
	}
	if terms.Account != wetink.Account(c.sim.AthleteID()) {
		t.Errorf("the terms name account %s", terms.Account)
	}
	if !strings.Contains(fmt.Sprint(terms.Warnings), "Garmin") {
		t.Errorf("no warning of devices: %q", terms.Warnings)
	}
	got, undo := c.apply(ch, ev)
	if got.Status != wetink.Applied {
		t.Fatal(got.Status, got.Why)
	}
	c.wantEffects("update 70010001")
	if u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil || u.Status != wetink.Applied {
		t.Fatal(err, u.Status, u.Why)
	}
	c.wantEffects("update 70010001", "update 70010001")
	if at := c.event(tempo)["start_date_local"]; at != "2026-12-10T08:00:00" {
		t.Errorf("after undo on %v", at)
	}
}

// actions are the seven, some of them twice.
var actions = []struct {
	name, args, shown string
	applied, undone   int // effects
}{
	{"create", `{"action":"create","event":{"category":"WORKOUT","type":"Ride","start_date_local":"2026-12-09","name":"Spin <easy> & short","description":"- 30m 55%"}}`, "undone", 1, 1},
	{"create note", `{"action":"create","event":{"category":"note","start_date_local":"2026-12-09","name":"Rest"}}`, "undone", 1, 1},
	{"bulk_create", `{"action":"bulk_create","events":[{"category":"WORKOUT","type":"Run","start_date_local":"2026-12-08","name":"A"},{"category":"NOTE","start_date_local":"2026-12-09T10:00","name":"B"}]}`, "undone", 2, 2},
	{"update fields", `{"action":"update","event_id":70010008,"set":{"name":"Strength B","moving_time":3000,"tags":["gym"],"indoor":true},"clear":["description"]}`, "undone", 1, 1},
	{"update day", `{"action":"update","event_id":70010001,"set":{"start_date_local":"2026-12-12"}}`, "undone", 1, 1},
	{"update day of several", `{"action":"update","event_id":70010013,"set":{"start_date_local":"2026-12-15"}}`, "undone", 1, 1},
	{"update description", `{"action":"update","event_id":70010001,"set":{"description":"- 20m 60%\n- 20m 70%"}}`, "undone", 1, 1},
	{"delete", `{"action":"delete","event_id":"70010001"}`, "undone", 1, 1},
	{"bulk_delete", `{"action":"bulk_delete","event_ids":[70010001,70010002]}`, "undone", 2, 2},
	{"swap", `{"action":"swap","event_ids":[70010001,70010002]}`, "undone", 2, 2},
	{"copy_week", `{"action":"copy_week","from":"2026-12-07","to":"2027-01-04"}`, "undone", 6, 6},
}

func TestEveryActionAppliesAndUndoes(t *testing.T) {
	for _, a := range actions {
		t.Run(a.name, func(t *testing.T) {
			c := open(t, nil)
			before := c.all()
			ch, ev := c.mustPreview(a.args)
			c.wantEffects()
			got, undo := c.apply(ch, ev)
			if got.Status != wetink.Applied {
				t.Fatalf("%s: %s %+v", got.Status, got.Why, got.Steps)
			}
			if n := len(c.sim.Journal()) - c.seen; n != a.applied {
				t.Errorf("%d effects of apply, want %d", n, a.applied)
			}
			u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo)
			if err != nil {
				t.Fatal(err)
			}
			if s := c.shown(ch.ID); s != a.shown {
				t.Errorf("shown %s: %s %s", s, u.Status, u.Why)
			}
			if n := len(c.sim.Journal()) - c.seen - a.applied; n != a.undone {
				t.Errorf("%d effects of undo, want %d", n, a.undone)
			}
			if after := c.all(); !slices.Equal(before, after) {
				t.Errorf("the calendar differs:\nbefore %v\nafter  %v", before, after)
			}
		})
	}
}

// all is the calendar without what no undo can bring back: ids.
func (c *calendar) all() []string {
	c.t.Helper()
	list, err := intervals.NewClient(c.url, intervals.NewKey(c.sim.APIKey()), "0").Events(ctx, "2026-11-01", "2027-02-01", "")
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		var m map[string]any
		if err := json.Unmarshal(e, &m); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, fmt.Sprint(m["category"], m["type"], m["name"], m["start_date_local"], m["end_date_local"], m["description"], m["tags"], m["moving_time"], m["icu_training_load"], m["indoor"] == true, m["target"]))
	}
	slices.Sort(out)
	return out
}

// Each of the fields that the article's snapshot holds, changed by somebody else after the preview.
func TestEachBoundFieldMakesThePreviewStale(t *testing.T) {
	for field, edit := range map[string]struct {
		act  string
		args map[string]any
	}{
		"date":        {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"start_date_local": "2026-12-12T08:00:00"}}},
		"name":        {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"name": "Other"}}},
		"description": {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"description": "- 10m 50%"}}},
		"type":        {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"type": "VirtualRide"}}},
		"category":    {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"category": "RACE_C"}}},
		"target":      {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"target": "HR"}}},
		"indoor":      {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"indoor": true}}},
		"tags":        {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"tags": []string{"x"}}}},
		"colour":      {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"color": "red"}}},
		"pairing":     {"pair", map[string]any{"event_id": tempo}},
		"editability": {"lock", map[string]any{"event_id": tempo}},
		"swapped":     {"swap_for_easy_run", map[string]any{"event_id": tempo}},
		"deleted":     {"delete", map[string]any{"event_id": tempo}},
		"load":        {"edit", map[string]any{"event_id": tempo, "set": map[string]any{"icu_training_load": 99}}},
	} {
		t.Run(field, func(t *testing.T) {
			c := open(t, nil)
			ch, ev := c.mustPreview(moveTempo)
			c.act(edit.act, edit.args)
			got, _ := c.apply(ch, ev)
			if got.Status != wetink.Failed {
				t.Errorf("%s %s", got.Status, got.Why)
			}
			c.wantEffects()
		})
	}
	t.Run("duration", func(t *testing.T) {
		c := open(t, nil)
		ch, ev := c.mustPreview(`{"action":"update","event_id":70010008,"set":{"start_date_local":"2026-12-12"}}`)
		c.act("edit", map[string]any{"event_id": 70010008, "set": map[string]any{"moving_time": 600}})
		if got, _ := c.apply(ch, ev); got.Status != wetink.Failed {
			t.Errorf("%s %s", got.Status, got.Why)
		}
		c.wantEffects()
	})
}

func TestTheServersOwnRecomputationNeverBlocksAnUndo(t *testing.T) {
	c := open(t, &intervalssim.Options{UpdatedMovesByItself: true})
	ch, ev := c.mustPreview(moveTempo)
	_, undo := c.apply(ch, ev)
	c.act("ftp", map[string]any{"ftp": 290})
	c.act("recompute", nil)
	if u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil || u.Status != wetink.Applied {
		t.Error(err, u.Status, u.Why)
	}
	c.wantEffects("update 70010001")
}

func TestUndoAfterALaterEditKeepsTheEdit(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	_, undo := c.apply(ch, ev)
	c.act("edit", map[string]any{"event_id": tempo, "set": map[string]any{"name": "Edited"}})
	if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); !errors.Is(err, wetink.ErrStale) || !strings.Contains(err.Error(), "name") {
		t.Errorf("undo: %v", err)
	}
	c.wantEffects()
}

func TestUndoOfManyChecksAllBeforeTheFirstDelete(t *testing.T) {
	c := open(t, nil)
	var events []string
	for i := range 25 {
		events = append(events, fmt.Sprintf(`{"category":"NOTE","start_date_local":"2026-12-%02d","name":"n%d"}`, 7+i%20, i))
	}
	ch, ev := c.mustPreview(`{"action":"bulk_create","events":[` + strings.Join(events, ",") + `]}`)
	got, undo := c.apply(ch, ev)
	if got.Status != wetink.Applied || len(got.Steps) != 25 {
		t.Fatal(got.Status, got.Why)
	}
	var last int
	fmt.Sscan(got.Steps[24].Receipt.Object, &last)
	c.act("edit", map[string]any{"event_id": last, "set": map[string]any{"name": "mine now"}})
	if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); !errors.Is(err, wetink.ErrStale) {
		t.Errorf("undo: %v", err)
	}
	c.wantEffects()
}

func TestWhatMustNotBeTouchedIsRefusedAtPreview(t *testing.T) {
	c := open(t, nil)
	for id, word := range map[int]string{paired: "paired", locked: "locked", foreign: "another calendar", holiday: "past", 4711: "no event"} {
		for _, args := range []string{`{"action":"delete","event_id":%d}`, `{"action":"update","event_id":%d,"set":{"name":"x"}}`} {
			_, _, err := c.preview(fmt.Sprintf(args, id))
			var re *wetink.RequestError
			if !errors.As(err, &re) || !strings.Contains(re.Reason, word) {
				t.Errorf("%d: %v, want %q", id, err, word)
			}
		}
	}
	if _, ev, err := c.preview(fmt.Sprintf(`{"action":"delete","event_id":%d}`, plan)); err != nil || ev.Ticket.IsZero() {
		t.Error(err)
	}
	c.wantEffects()
}

func TestBadInputNamesTheFieldAndTheFix(t *testing.T) {
	c := open(t, nil)
	long := strings.Repeat("x", 70<<10)
	many := strings.Repeat(`{"category":"NOTE","start_date_local":"2026-12-09","name":"n"},`, 26)
	for name, in := range map[string]struct{ args, field, says string }{
		"zone suffix":      {`{"action":"create","event":{"category":"NOTE","name":"n","start_date_local":"2026-12-09T08:00:00Z"}}`, "event.start_date_local", "zone"},
		"offset":           {`{"action":"create","event":{"category":"NOTE","name":"n","start_date_local":"2026-12-09T08:00:00+01:00"}}`, "event.start_date_local", "zone"},
		"no date":          {`{"action":"create","event":{"category":"NOTE","name":"n","start_date_local":"2026-02-30"}}`, "event.start_date_local", "YYYY-MM-DD"},
		"unknown category": {`{"action":"create","event":{"category":"RACE","name":"n","type":"Run","start_date_local":"2026-12-09"}}`, "event.category", "RACE_A"},
		"model category":   {`{"action":"create","event":{"category":"SET_EFTP","name":"n","start_date_local":"2026-12-09"}}`, "event.category", "web app"},
		"sport in subtype": {`{"action":"create","event":{"category":"WORKOUT","type":"Ride","sub_type":"Ride","name":"n","start_date_local":"2026-12-09"}}`, "event.sub_type", "type"},
		"text id":          {`{"action":"delete","event_id":"e123"}`, "event_id", "list_events"},
		"note with type":   {`{"action":"create","event":{"category":"NOTE","type":"Ride","name":"n","start_date_local":"2026-12-09"}}`, "event.type", "leave type out"},
		"no type":          {`{"action":"create","event":{"category":"WORKOUT","name":"n","start_date_local":"2026-12-09"}}`, "event.type", "sport"},
		"empty name":       {`{"action":"create","event":{"category":"NOTE","name":"  ","start_date_local":"2026-12-09"}}`, "event.name", "empty"},
		"26 events":        {`{"action":"bulk_create","events":[` + many[:len(many)-1] + `]}`, "events", "25"},
		"null":             {`{"action":"update","event_id":70010001,"set":{"color":null}}`, "set.color", "clear"},
		"unknown field":    {`{"action":"update","event_id":70010001,"set":{"colour":"red"}}`, "set.colour", "schema"},
		"long description": {`{"action":"update","event_id":70010001,"set":{"description":"` + long + `"}}`, "set.description", "65536"},
		"2 MB description": {`{"action":"update","event_id":70010001,"set":{"description":"` + strings.Repeat("x", 2<<20) + `"}}`, "set.description", "1048576"},
		"past":             {`{"action":"create","event":{"category":"NOTE","name":"n","start_date_local":"2026-12-04"}}`, "event.start_date_local", "today"},
		"no action":        {`{"action":"move","event_id":70010001}`, "action", "update"},
		"wrong argument":   {`{"action":"delete","event_id":70010001,"set":{}}`, "set", "leave it out"},
		"missing argument": {`{"action":"delete"}`, "event_id", "needs"},
		"nothing changes":  {`{"action":"update","event_id":70010001,"set":{"name":"Tempo 3x10 min"}}`, "set", "nothing would change"},
		"same event twice": {`{"action":"bulk_delete","event_ids":[70010001,70010001]}`, "event_ids[1]", "twice"},
		"computed":         {`{"action":"update","event_id":70010001,"set":{"moving_time":60}}`, "set.moving_time", "steps"},
		"fraction":         {`{"action":"update","event_id":70010008,"set":{"moving_time":60.5}}`, "set.moving_time", ""},
		"set and clear":    {`{"action":"update","event_id":70010001,"set":{"color":"red"},"clear":["color"]}`, "clear[0]", "one of the two"},
		"overlapping week": {`{"action":"copy_week","from":"2026-12-07","to":"2026-12-09"}`, "to", "overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.preview(in.args)
			var re *wetink.RequestError
			if !errors.As(err, &re) || re.Field != in.field || !strings.Contains(re.Error(), in.says) {
				t.Errorf("got %v\nwant field %q and %q", err, in.field, in.says)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	c.wantEffects()
}

func TestTheServicesErrorsSayWhatToDo(t *testing.T) {
	for fault, says := range map[string]string{
		"401": "INTERVALS_API_KEY", "403": "INTERVALS_API_KEY", "422": "422", "429:14400": "opens again in 4h0m0s",
		"html": "INTERVALS_URL", "redirect": "INTERVALS_URL", "truncated": "INTERVALS",
	} {
		t.Run(fault, func(t *testing.T) {
			c := open(t, nil)
			c.fault(fault, -1)
			_, _, err := c.preview(moveTempo)
			if err == nil || !strings.Contains(err.Error(), says) && fault != "truncated" {
				t.Errorf("preview: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), c.sim.APIKey()) {
				t.Error("the key is in the error")
			}
			c.wantEffects()
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		target := intervals.New(intervals.NewClient("http://127.0.0.1:1", intervals.NewKey("k"), ""), nil)
		_, _, err := target.Account(ctx)
		if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("%v", err)
		}
	})
}

func TestWritesBrokenBothWaysJudgedByTheJournal(t *testing.T) {
	create := `{"action":"create","event":{"category":"NOTE","start_date_local":"2026-12-09","name":"Rest"}}`
	del := `{"action":"delete","event_id":70010001}`
	for _, f := range []struct {
		fault   string
		args    string
		status  wetink.Status
		effects int
	}{
		{"apply_then_drop", moveTempo, wetink.Applied, 1},
		{"apply_then_drop", create, wetink.Applied, 1},
		{"apply_then_drop", del, wetink.Applied, 1},
		{"500_after", moveTempo, wetink.Applied, 1},
		{"html_after", moveTempo, wetink.Applied, 1},
		{"truncated@PUT", moveTempo, wetink.Applied, 1},
		{"wrong_id", moveTempo, wetink.Applied, 1},
		{"wrong_id", create, wetink.Applied, 1},
		{"drop_before_apply", moveTempo, wetink.InDoubt, 0},
		{"drop_before_apply", create, wetink.InDoubt, 0},
		{"drop_before_apply", del, wetink.InDoubt, 0},
		{"500_before@PUT", moveTempo, wetink.InDoubt, 0},
		{"html@PUT", moveTempo, wetink.InDoubt, 0},
		{"redirect:307@PUT", moveTempo, wetink.InDoubt, 0},
		{"redirect@DELETE", del, wetink.InDoubt, 0},
		{"422@PUT", moveTempo, wetink.Failed, 0},
		{"401@PUT", moveTempo, wetink.Failed, 0},
		{"429:3600@DELETE", del, wetink.Failed, 0},
		{"422@POST", create, wetink.Failed, 0},
		{"bulk_short:1", create, wetink.Failed, 0},
		{"bulk_reply_short:1", create, wetink.Applied, 1},
		{"silent_ignore:start_date_local", moveTempo, wetink.InDoubt, 1}, // a write arrived, and changed nothing
	} {
		t.Run(f.fault+" "+strings.Fields(f.args[11:])[0], func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			ch, ev := c.mustPreview(f.args)
			c.fault(f.fault, 1)
			got, _ := c.apply(ch, ev)
			if got.Status != f.status {
				t.Errorf("%s (%s), want %s", got.Status, got.Why, f.status)
			}
			if n := len(c.sim.Journal()) - c.seen; n != f.effects {
				t.Errorf("%d effects, want %d", n, f.effects)
			}
			writes := 0
			for _, r := range c.sim.Requests() {
				if r.Method != "GET" {
					writes++
				}
			}
			if writes != 1 {
				t.Errorf("%d write requests, want 1: nothing is sent again", writes)
			}
		})
	}
}

func TestAllOrNothingIsCleanedUp(t *testing.T) {
	bulk := `{"action":"bulk_create","events":[{"category":"WORKOUT","type":"Ride","start_date_local":"2026-12-08","name":"A","description":"3x\n- 10m 90%\n- 5m 50%"},{"category":"NOTE","start_date_local":"2026-12-09","name":"B"},{"category":"NOTE","start_date_local":"2026-12-10","name":"C"}]}`
	for name, f := range map[string]struct {
		args, fault string
		effects     int
		shown       string
	}{
		"bulk create comes back short":      {bulk, "bulk_short:1@POST#3", 4, "apply_failed"},
		"bulk create: one is refused":       {bulk, "422@POST#2", 2, "apply_failed"},
		"create is read otherwise":          {`{"action":"create","event":{"category":"WORKOUT","type":"Ride","start_date_local":"2026-12-08","name":"A","description":"3x\n- 10m 90%\n- 5m 50%"}}`, "parse_drift", 2, "apply_failed"},
		"second half of a swap fails":       {`{"action":"swap","event_ids":[70010001,70010002]}`, "422@PUT#2", 2, "apply_failed"},
		"update is read back otherwise":     {`{"action":"update","event_id":70010008,"set":{"name":"S","moving_time":1200}}`, "silent_ignore:name", 1, "apply_partial"},
		"bulk delete stops at the refused":  {`{"action":"bulk_delete","event_ids":[70010001,70010002,70010005]}`, "403@DELETE#2", 1, "apply_partial"},
		"copy week: the third is refused":   {`{"action":"copy_week","from":"2026-12-07","to":"2027-01-04"}`, "422@POST#3", 4, "apply_failed"},
		"create whose name the server lost": {`{"action":"create","event":{"category":"NOTE","start_date_local":"2026-12-09","name":"B","color":"red"}}`, "silent_ignore:color", 2, "apply_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			before := c.all()
			ch, ev := c.mustPreview(f.args)
			c.fault(f.fault, 1)
			got, _ := c.apply(ch, ev)
			if s := c.shown(ch.ID); s != f.shown {
				t.Errorf("shown %s: %s %s", s, got.Status, got.Why)
			}
			if n := len(c.sim.Journal()) - c.seen; n != f.effects {
				t.Errorf("%d effects, want %d: %v", n, f.effects, c.sim.Journal()[c.seen:])
			}
			if f.shown == "apply_failed" {
				if after := c.all(); !slices.Equal(before, after) {
					t.Errorf("the calendar differs:\nbefore %v\nafter  %v", before, after)
				}
			}
		})
	}
}

func TestEveryFieldOfTheServicesSchemaIsBoundOrIgnoredForAReason(t *testing.T) {
	c := open(t, nil)
	list, err := intervals.NewClient(c.url, intervals.NewKey(c.sim.APIKey()), "0").Events(ctx, "2026-12-10", "2026-12-10", "")
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	var e map[string]json.RawMessage
	if err := json.Unmarshal(list[0], &e); err != nil {
		t.Fatal(err)
	}
	bound := c.event(tempo)
	for f := range e {
		_, isBound := bound[f]
		why, isIgnored := intervals.Ignored[f]
		if isBound == isIgnored || isIgnored && why == "" {
			t.Errorf("%s: bound %t, ignored %t for %q", f, isBound, isIgnored, why)
		}
	}
	if len(e) < 60 {
		t.Errorf("only %d fields", len(e))
	}
}

// applyAndUndo returns what is shown at the end.
func (c *calendar) applyAndUndo(args string) (shown string, warnings []string) {
	c.t.Helper()
	ch, ev := c.mustPreview(args)
	terms, err := ch.Terms()
	if err != nil {
		c.t.Fatal(err)
	}
	if got, undo := c.apply(ch, ev); got.Status == wetink.Applied {
		if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.shown(ch.ID), terms.Warnings
}

func TestAnUndoThatCannotRestoreAFieldSaysSo(t *testing.T) {
	c := open(t, nil)
	if shown, _ := c.applyAndUndo(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"type":"Ride"}}`, camp)); shown == "undone" && c.event(camp)["type"] != nil {
		t.Errorf("the type is %v, and it is shown as %s", c.event(camp)["type"], shown)
	}
}

func TestUndoFromStepsToProseRestoresWhatTheStepsComputed(t *testing.T) {
	c := open(t, nil)
	const strength = 70010008
	before := c.event(strength)
	shown, _ := c.applyAndUndo(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"description":"- 10m 75%%\n- 5m 50%%"}}`, strength))
	after := c.event(strength)
	for _, f := range []string{"moving_time", "icu_training_load", "description"} {
		if fmt.Sprint(before[f]) != fmt.Sprint(after[f]) {
			t.Errorf("%s was %v and is %v, shown as %s", f, before[f], after[f], shown)
		}
	}
}

func TestAWorkoutOfProseWithADistanceIsCreated(t *testing.T) {
	c := open(t, nil)
	shown, warnings := c.applyAndUndo(`{"action":"create","event":{"category":"WORKOUT","type":"Swim","name":"Easy swim","start_date_local":"2026-12-09","description":"Swim easy, no watch.","distance":1500,"moving_time":2400}}`)
	if shown != "undone" || !strings.Contains(fmt.Sprint(warnings), "distance is left out") {
		t.Errorf("%s %q", shown, warnings)
	}
}

func TestWarningsSpeakOnlyOfWhatWasAsked(t *testing.T) {
	c := open(t, nil)
	_, warnings := c.applyAndUndo(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"description":"- 10m 75%%"}}`, tempo))
	if strings.Contains(fmt.Sprint(warnings), "left out") {
		t.Errorf("%q", warnings)
	}
}

func TestASportThatNoUndoBringsBackIsNotDropped(t *testing.T) {
	c := open(t, nil)
	if _, _, err := c.preview(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"category":"NOTE"}}`, easy)); err == nil || !strings.Contains(err.Error(), "category") {
		t.Errorf("%v", err)
	}
}
