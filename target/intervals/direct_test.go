package intervals_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
)

func TestDirectMutatorsForTrustedGoCode(t *testing.T) {
	c := open(t, nil)
	client := intervals.NewClient(c.url, intervals.NewKey(c.sim.APIKey()), "0")
	var made struct {
		ID int64 `json:"id"`
	}
	b, err := client.CreateEvent(ctx, json.RawMessage(`{"category":"NOTE","start_date_local":"2026-12-09T00:00:00","name":"a <b>"}`))
	if err != nil || json.Unmarshal(b, &made) != nil || made.ID == 0 {
		t.Fatalf("%s %v", b, err)
	}
	if _, err := client.UpdateEvent(ctx, made.ID, json.RawMessage(`{"name":"c"}`)); err != nil {
		t.Error(err)
	}
	if err := client.DeleteEvent(ctx, made.ID); err != nil {
		t.Error(err)
	}
	list, err := client.CreateEvents(ctx, []json.RawMessage{
		json.RawMessage(`{"category":"NOTE","start_date_local":"2026-12-09T00:00:00","name":"d","external_id":"x-1"}`),
		json.RawMessage(`{"category":"NOTE","start_date_local":"2026-12-09T00:00:00","name":"e","external_id":"x-2"}`)})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	var ids []int64
	for _, e := range list {
		if err := json.Unmarshal(e, &made); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
	}
	if n, err := client.DeleteEvents(ctx, append(ids, 4711)); n != 2 || err != nil {
		t.Error(n, err)
	}
	if n := len(c.sim.Journal()) - c.seen; n != 7 {
		t.Errorf("%d effects", n)
	}
	if err := client.DeleteEvent(ctx, 4711); !errors.Is(err, wetink.ErrNotApplied) {
		t.Error(err)
	}
}

// Nobody sees 53 hours in "8x 400m": the diff of a description says what it adds up to.
func TestDiffOfADescriptionTellsStepsAndTotalTime(t *testing.T) {
	c := open(t, nil)
	ch, _ := c.mustPreview(`{"action":"update","event_id":70010001,"set":{"description":"8x\n- 400m 90%"}}`)
	terms, err := ch.Terms()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.target.Diff(terms.Ops[0], ch.Before[0]) {
		if f.Field == "workout" {
			if string(f.Before) != `"4 steps, 1 h 10 min"` || string(f.After) != `"1 step, 53 h 20 min"` {
				t.Errorf("%s → %s", f.Before, f.After)
			}
			return
		}
	}
	t.Error("no line of the diff says it")
}
