package intervals_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// https://github.com/yerzhansa/enduragent/issues/50: today was UTC's, and today's workouts were refused as past.
// https://github.com/gazpachoking/trainaspower/issues/9: a morning run wrote yesterday's session.
// https://github.com/bakermat/suffersync/issues/1: sessions a day early for athletes in America.
func TestTodayIsTheAthletesAndLocalDatesAreNeverConverted(t *testing.T) {
	for _, w := range []struct{ zone, now, today, weekday, yesterday string }{
		{"America/New_York", "2026-12-09T03:30:00Z", "2026-12-08", "Tuesday", "2026-12-07"},
		{"America/New_York", "2026-12-09T05:00:00Z", "2026-12-09", "Wednesday", "2026-12-08"},
		{"America/New_York", "2026-11-01T04:30:00Z", "2026-11-01", "Sunday", "2026-10-31"}, // the clocks go back that night
		{"Pacific/Auckland", "2026-12-08T11:30:00Z", "2026-12-09", "Wednesday", "2026-12-08"},
		{"Pacific/Auckland", "2026-12-08T10:59:59Z", "2026-12-08", "Tuesday", "2026-12-07"},
		{"Pacific/Kiritimati", "2026-12-08T10:00:00Z", "2026-12-09", "Wednesday", "2026-12-08"},
	} {
		t.Run(w.zone+" "+w.now, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, w.now)
			if err != nil {
				t.Fatal(err)
			}
			clock := func() time.Time { return now }
			sim := intervalssim.New(&intervalssim.Options{Now: clock})
			server := httptest.NewServer(sim)
			t.Cleanup(func() { sim.Close(); server.Close() })
			id, key := sim.AddAthlete(intervalssim.AthleteOptions{TimeZone: w.zone})
			client := intervals.NewClient(server.URL, intervals.NewKey(key), "0")
			client.SetClock(clock)
			target := intervals.New(client, &intervals.Options{Now: clock})

			profile, err := client.Profile(ctx)
			if err != nil || profile.Date != w.today || profile.Weekday != w.weekday || profile.TimeZone != w.zone {
				t.Errorf("profile: %+v, %v", profile.Today, err)
			}
			list, err := client.Calendar(ctx, intervals.EventQuery{})
			if err != nil || list.Oldest != w.today {
				t.Errorf("the calendar begins on %s: %v", list.Oldest, err)
			}
			recent, err := client.Activities(ctx, intervals.ActivityQuery{})
			if err != nil || recent.Newest != w.today {
				t.Errorf("activities end on %s: %v", recent.Newest, err)
			}

			create := func(day string) (wetink.Prepared, error) {
				return target.Prepare(ctx, wetink.Request{Args: json.RawMessage(`{"action":"create","event":{"category":"WORKOUT","type":"Run","name":"N","start_date_local":"` + day + `"}}`)})
			}
			var re *wetink.RequestError
			if _, err := create(w.yesterday); !errors.As(err, &re) || !strings.Contains(re.Reason, w.today) || !strings.Contains(re.Reason, w.zone) {
				t.Errorf("yesterday: %v", err)
			}
			p, err := create(w.today)
			if err != nil {
				t.Fatalf("today: %v", err)
			}
			if p.Account != wetink.Account(id) {
				t.Errorf("prepared for %s", p.Account)
			}
			if _, err := target.Execute(ctx, p.Account, p.Ops[0], nil); err != nil {
				t.Fatal(err)
			}
			if list, err = client.Calendar(ctx, intervals.EventQuery{}); err != nil || len(list.Events) != 1 {
				t.Fatalf("%d events today: %v", len(list.Events), err)
			}
			if row := list.Events[0].(intervals.EventRow); row.StartDateLocal != w.today+"T00:00:00" || row.Weekday != w.weekday {
				t.Errorf("it is on %s, %s", row.Weekday, row.StartDateLocal)
			}
		})
	}
}

// time.LoadLocation takes "" for UTC, and "Local" for wherever this process runs.
func TestWithoutATimeZoneThereIsNoToday(t *testing.T) {
	for _, zone := range []string{`null`, `""`, `"Local"`, `"Mars/Olympus"`, `7`} {
		client := canned(t, map[string]string{"/athlete/0": `{"id":"i1","timezone":` + zone + `}`})
		if _, err := client.Profile(ctx); err == nil {
			t.Errorf("%s: read", zone)
		}
		if _, err := intervals.New(client, nil).Prepare(ctx, wetink.Request{Args: json.RawMessage(moveTempo)}); err == nil || !strings.Contains(err.Error(), "time zone") {
			t.Errorf("%s: prepared: %v", zone, err)
		}
	}
}
