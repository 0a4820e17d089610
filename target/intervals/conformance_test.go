package intervals_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/intervalssim"
	"github.com/wetink/wetink/target/targettest"
)

func TestTheCalendarKeepsTheContractOfATarget(t *testing.T) {
	request := func(args string) wetink.Request {
		return wetink.Request{Tool: "preview_event_change", Args: json.RawMessage(args)}
	}
	targettest.Run(t, func(t *testing.T) targettest.Case {
		sim := intervalssim.New(&intervalssim.Options{Seed: "demo", Now: func() time.Time { return today }})
		server := httptest.NewServer(sim)
		t.Cleanup(func() { sim.Close(); server.Close() })
		edits := 0
		return targettest.Case{
			Target: intervals.New(intervals.NewClient(server.URL, intervals.NewKey(sim.APIKey()), "0"),
				&intervals.Options{Now: func() time.Time { return today }}),
			Create: request(`{"action":"create","event":{"category":"WORKOUT","type":"Ride","start_date_local":"2026-12-09","name":"Spin <easy>","description":"- 30m 55%"}}`),
			Update: request(`{"action":"update","event_id":70010001,"set":{"start_date_local":"2026-12-11","name":"Moved"}}`),
			Delete: request(fmt.Sprintf(`{"action":"delete","event_id":%d}`, easy)),
			Bad:    request(`[]`),
			Edit: func(object string) {
				id, err := strconv.Atoi(object)
				if err != nil {
					t.Fatal(err)
				}
				edits++
				if _, err := sim.Act("edit", map[string]any{"event_id": id, "set": map[string]any{"color": fmt.Sprintf("color-%d", edits)}}); err != nil {
					t.Fatal(err)
				}
			},
			Effects: func() int { return len(sim.Journal()) },
			Break:   server.Close,
			Secrets: []string{sim.APIKey()},
		}
	})
}
