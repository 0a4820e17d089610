package intervals_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/wetink/wetink"
)

// A retry of a write is a second write; a retry of a read is harmless, and one is enough.
func TestAReadIsRepeatedOnceAndAWriteNever(t *testing.T) {
	for fault, reads := range map[string]int{
		"500_before": 2, "429:0": 2, "429:14400": 1, "401": 1, "403": 1, "422": 1, "html": 1, "redirect": 1, "truncated": 1,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			c.fault(fault, -1)
			if _, _, err := c.target.Account(ctx); err == nil {
				t.Error("it worked")
			}
			if n := len(c.sim.Requests()); n != reads {
				t.Errorf("%d requests, want %d", n, reads)
			}
		})
	}
	for _, fault := range []string{"500_before", "500_after", "429:0", "429:14400", "401", "403", "422", "html", "html_after", "redirect:308", "truncated", "apply_then_drop", "drop_before_apply"} {
		for method, args := range map[string]string{"PUT": moveTempo, "POST": createWorkout("Ride", "- 30m 55%"), "DELETE": `{"action":"delete","event_id":70010001}`} {
			t.Run(fault+"@"+method, func(t *testing.T) {
				t.Parallel()
				c := open(t, nil)
				ch, ev := c.mustPreview(args)
				c.fault(fault+"@"+method, -1)
				got, _ := c.apply(ch, ev)
				if n := c.writes(); n != 1 {
					t.Errorf("%d writes were sent; it is %s", n, got.Status)
				}
				again, _ := c.apply(ch, ev)
				if n := c.writes(); n != 1 || again.Status != got.Status {
					t.Errorf("applied again: %d writes, %s and then %s", n, got.Status, again.Status)
				}
			})
		}
	}
}

func (c *calendar) writes() int {
	n := 0
	for _, r := range c.sim.Requests() {
		if r.Method != http.MethodGet {
			n++
		}
	}
	return n
}

// The service has no conditional write (no ETag, no version; see its OpenAPI document). What somebody does between our
// last read and our write is out of reach: these are the limits, as they are.
func TestInTheResidualWindowTheWriteGoesThroughAndIsReportedAsWhatItIs(t *testing.T) {
	del := `{"action":"delete","event_id":70010001}`
	for name, w := range map[string]struct {
		fault, args string
		status      wetink.Status
		effects     []string
		then        map[string]any // of the event
	}{
		"an edit of another field survives: a write is sparse": {"before_write:name=Theirs", moveTempo, wetink.Applied,
			[]string{"update 70010001", "update 70010001"}, map[string]any{"name": "Theirs", "start_date_local": "2026-12-11T08:00:00"}},
		"an edit of the same field is overwritten": {"before_write:start_date_local=2026-12-20T08:00:00", moveTempo, wetink.Applied,
			[]string{"update 70010001", "update 70010001"}, map[string]any{"start_date_local": "2026-12-11T08:00:00"}},
		"a session swapped underneath is moved": {"before_write:swap_for_easy_run", moveTempo, wetink.Applied,
			[]string{"update 70010001", "update 70010001"}, map[string]any{"name": "Easy run", "start_date_local": "2026-12-11T08:00:00"}},
		"a session paired underneath is moved": {"before_write:pair", moveTempo, wetink.Applied,
			[]string{"pair 70010001", "update 70010001"}, map[string]any{"start_date_local": "2026-12-11T08:00:00"}},
		"a session deleted underneath stays deleted": {"before_write:delete", moveTempo, wetink.Failed,
			[]string{"delete 70010001"}, nil},
		"an edited session is deleted": {"before_write:name=Theirs", del, wetink.Applied,
			[]string{"update 70010001", "delete 70010001"}, nil},
		"a session deleted underneath is not claimed": {"before_write:delete", del, wetink.Failed,
			[]string{"delete 70010001"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, nil)
			ch, ev := c.mustPreview(w.args)
			c.fault(w.fault, 1)
			got, _ := c.apply(ch, ev)
			if got.Status != w.status {
				t.Errorf("%s (%s), want %s", got.Status, got.Why, w.status)
			}
			c.wantEffects(w.effects...)
			e := c.event(tempo)
			for f, v := range w.then {
				if e[f] != v {
					t.Errorf("%s is %v, want %v", f, e[f], v)
				}
			}
			if w.then == nil && len(e) > 0 {
				t.Errorf("it is there: %v", e)
			}
		})
	}
}

// Paired after the preview: it is history now. Paired after the apply: an undo would rewrite history.
func TestAPairingBetweenTheStepsRefusesTheNext(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	c.act("pair", map[string]any{"event_id": tempo})
	if got, _ := c.apply(ch, ev); got.Status != wetink.Failed {
		t.Errorf("%s: %s", got.Status, got.Why)
	}
	c.wantEffects()

	ch, ev = c.mustPreview(`{"action":"update","event_id":70010002,"set":{"name":"Renamed"}}`)
	_, undo := c.apply(ch, ev)
	c.act("pair", map[string]any{"event_id": easy})
	if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); !errors.Is(err, wetink.ErrStale) || !strings.Contains(err.Error(), "paired_activity_id") {
		t.Errorf("undo: %v", err)
	}
	c.wantEffects()
}

func TestAnEventPairedInTheResidualWindowIsNotUndone(t *testing.T) {
	c := open(t, nil)
	ch, ev := c.mustPreview(moveTempo)
	c.fault("before_write:pair", 1)
	_, undo := c.apply(ch, ev)
	c.mark()
	var re *wetink.RequestError
	if _, _, err := c.Undo(ctx, wetink.Principal{}, ch.ID, &undo); !errors.As(err, &re) || !strings.Contains(re.Reason, "paired") {
		t.Errorf("undo: %v", err)
	}
	c.wantEffects()
}
