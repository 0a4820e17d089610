package intervals_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// What is not known of the service must not make a difference to honesty: whichever way it behaves, every action is
// undone, or says which field it could not put back.
func TestEveryActionIsUndoneHoweverTheServiceBehavesWhereItIsNotKnown(t *testing.T) {
	for name, o := range map[string]intervalssim.Options{
		"null clears a field":                 {NullSemantics: "clear"},
		"the end stays when the start moves":  {ShiftEnd: "keep"},
		"a workout_doc that is sent is kept":  {WorkoutDocWrite: "accept_without_description"},
		"a bulk create is all or nothing":     {BulkAtomic: true},
		"a locked event is forbidden":         {LockedForbidden: true},
		"an unknown field is refused":         {StrictUnknownKeys: true},
		"fitness lags behind":                 {RecalcDelay: 10 * time.Minute},
		"updated moves by itself":             {UpdatedMovesByItself: true},
		"fields are emptied otherwise, all 4": {NullSemantics: "clear", ShiftEnd: "keep", StrictUnknownKeys: true, BulkAtomic: true},
	} {
		for _, a := range actions {
			t.Run(name+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				c := open(t, &o)
				before := c.whole()
				ch, ev := c.mustPreview(a.args)
				got, undo := c.apply(ch, ev)
				if o.ShiftEnd == "keep" && (a.name == "update day" || a.name == "swap") {
					// A move that leaves the end behind is no move. It is said, and a swap is cleaned up.
					if got.Status != wetink.Partial || !strings.Contains(got.Why, "end_date_local") {
						t.Fatalf("%s: %s", got.Status, got.Why)
					}
					if a.name == "swap" {
						if d := differences(before, c.whole()); c.shown(ch.ID) != "apply_failed" || len(d) > 0 {
							t.Errorf("shown %s, and %v differ", c.shown(ch.ID), d)
						}
						return
					}
				} else if got.Status != wetink.Applied {
					t.Fatalf("%s: %s", got.Status, got.Why)
				}
				for id, e := range c.whole() {
					if start, end := e["start_date_local"], e["end_date_local"]; got.Status == wetink.Applied && end != nil && fmt.Sprint(end) <= fmt.Sprint(start) {
						t.Errorf("event %s ends at %v before it starts at %v, and nobody says so", id, end, start)
					}
				}
				u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo)
				if err != nil {
					t.Fatal(err)
				}
				differing := differences(before, c.whole())
				switch shown := c.shown(ch.ID); {
				case shown == "undone" && len(differing) > 0:
					t.Errorf("undone, and %v differ", differing)
				case shown == "undo_partial":
					for _, field := range differing {
						if !strings.Contains(u.Why, field) {
							t.Errorf("undo_partial, and nobody says that %s differs: %s", field, u.Why)
						}
					}
				case shown != "undone":
					t.Errorf("%s: %s", shown, u.Why)
				}
			})
		}
	}
}

// whole is the calendar by name and day, with every field; ids, and what the service computes by itself, aside.
func (c *calendar) whole() map[string]map[string]any {
	c.t.Helper()
	list, err := c.client().Events(ctx, "2026-11-01", "2027-02-01", "")
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, raw := range list {
		var e map[string]any
		if err := json.Unmarshal(raw, &e); err != nil {
			c.t.Fatal(err)
		}
		key := fmt.Sprint(e["name"], " ", e["start_date_local"])
		for _, f := range []string{"id", "uid", "external_id", "updated", "icu_ctl", "icu_atl"} {
			delete(e, f)
		}
		for f, v := range e {
			switch fmt.Sprint(v) { // all of them mean nothing
			case "<nil>", "false", "", "[]", "NONE", "AUTO":
				delete(e, f)
			}
		}
		out[key] = e
	}
	return out
}

// differences names the fields in which two calendars differ, or the events that only one of them has.
func differences(before, after map[string]map[string]any) []string {
	var out []string
	for key, was := range before {
		is, ok := after[key]
		if !ok {
			out = append(out, key+" is gone")
			continue
		}
		for f := range was {
			if fmt.Sprint(was[f]) != fmt.Sprint(is[f]) {
				out = append(out, f)
			}
		}
		for f := range is {
			if _, had := was[f]; !had {
				out = append(out, f)
			}
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			out = append(out, key+" is new")
		}
	}
	return out
}

// The service may refuse to empty a number that nobody had set: then the undo says so, and does not claim to have put
// everything back.
func TestAnUndoThatCannotEmptyAFieldSaysWhich(t *testing.T) {
	for field, value := range map[string]string{"load_target": "50", "tags": `["x"]`, "color": `"red"`, "description": `"Prose."`} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			id := 70010006 // the race: none of these is set
			ch, ev := c.mustPreview(fmt.Sprintf(`{"action":"update","event_id":%d,"set":{"name":"Other",%q:%s}}`, id, field, value))
			_, undo := c.apply(ch, ev)
			c.fault("silent_ignore:"+field, 1)
			u, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo)
			if err != nil {
				t.Fatal(err)
			}
			if shown := c.shown(ch.ID); shown != "undo_partial" || !strings.Contains(u.Why, field) {
				t.Errorf("shown %s: %s", shown, u.Why)
			}
			if name := c.event(id)["name"]; name != "Hill climb championship" {
				t.Errorf("the name is %v", name)
			}
		})
	}
}
