package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// The largest changes that are taken: 25 events in one, each with a text of steps and its profile. The HTML of a page is 60 KiB
// at most.
func TestThePageOf25RowsIsLight(t *testing.T) {
	const limit = 60 << 10
	for name, tc := range map[string]struct {
		text  string
		limit int
	}{
		"25 sessions": {"", limit},
		"25 workouts": {"Warmup\n- 15m ramp 50-75%%\n\n%dx\n- 8m 98%%\n- 4m 55%%\n\nCooldown\n- 10m 50%%", limit},
	} {
		t.Run(name, func(t *testing.T) {
			var events []map[string]any
			for i := range 25 {
				n := i%4 + 2
				e := map[string]any{"category": "WORKOUT", "type": "Ride", "start_date_local": next(i) + "T07:00:00", "name": fmt.Sprintf("Threshold %d x 8 min", n)}
				if tc.text != "" {
					e["description"] = fmt.Sprintf(tc.text, n)
				}
				events = append(events, e)
			}
			body := bulkPage(t, map[string]any{"action": "bulk_create", "events": events})
			if n := strings.Count(body, `name="keep"`); n != 25 || !strings.Contains(body, "Create 25 sessions") {
				t.Fatalf("%d rows: %.2000s", n, body)
			}
			t.Logf("%d bytes", len(body))
			if len(body) > tc.limit {
				t.Errorf("it has %d bytes, more than %d", len(body), tc.limit)
			}
		})
	}
}

// bulkPage is the page of a change of the simulated calendar, as it waits for cy.
func bulkPage(t *testing.T, request any) string {
	t.Helper()
	sim := intervalssim.New(&intervalssim.Options{Seed: "demo"})
	address, err := sim.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	who := peopleOf(t, d.cfg)
	e := wetink.New(d.ledger, map[string]wetink.Target{"intervals": intervals.New(intervals.NewClient(address, intervals.NewKey(sim.APIKey()), ""), nil)}, d.cfg.Options(who))
	args, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := e.Preview(t.Context(), "intervals", wetink.Request{By: wetink.Principal{Client: "Claude Desktop"}, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	p, err := page.New(t.Context(), deskOrigin, e, d.ledger, who, &page.Options{Passphrases: who.passphrases, Render: drawn, Exclude: someRows})
	if err != nil {
		t.Fatal(err)
	}
	return d.browse(p).get(strings.TrimPrefix(p.Link(c), deskOrigin))
}
