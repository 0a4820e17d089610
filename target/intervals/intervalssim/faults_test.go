package intervalssim

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A fault is judged by three things: what the client got, what the journal says, and what is really on the calendar.
func TestJournalIsHonestUnderEveryFault(t *testing.T) {
	rename := func(c *client) answer { return c.try("PUT", home+"/events/70010001", object{"name": "Renamed"}) }
	for spec, want := range map[string]struct {
		status   int  // 0: no answer
		done     bool // the name really changed
		answered bool
	}{
		"drop_before_apply":     {0, false, false},
		"apply_then_drop":       {0, true, false},
		"500_before":            {500, false, false},
		"500_after":             {500, true, true},
		"401":                   {401, false, false},
		"403":                   {403, false, false},
		"422":                   {422, false, false},
		"429:7200":              {429, false, false},
		"redirect":              {302, false, false},
		"redirect:307":          {307, false, false},
		"html":                  {200, false, false},
		"html_after":            {502, true, true},
		"truncated":             {200, true, false},
		"wrong_id":              {200, true, true},
		"slow:1":                {200, true, true},
		"apply_then_drop@PUT#1": {0, true, false},
	} {
		t.Run(spec, func(t *testing.T) {
			cl := start(t, nil)
			cl.fault(spec, 1)
			a := rename(cl)
			if a.status != want.status || (want.status == 0) != (a.err != nil && a.header == nil) {
				t.Errorf("answer %d %v", a.status, a.err)
			}
			if done := cl.event(tempo)["name"] == "Renamed"; done != want.done {
				t.Errorf("done: %v", done)
			}
			j := cl.sim.Journal()
			if !want.done {
				cl.wantKinds()
			} else if len(j) != 1 || j[0].Answered != want.answered || !slices.Equal(j[0].Fields, []string{"name"}) {
				t.Errorf("journal %+v", j)
			}
			if a := rename(cl); a.status != 200 {
				t.Errorf("the fault outlived its time: %d", a.status)
			}
		})
	}
}

func TestSpoiledAnswers(t *testing.T) {
	cl := start(t, nil)
	cl.fault("429:7200", 1)
	if a := cl.try("GET", home+"/events", nil); a.header.Get("Retry-After") != "7200" || !strings.Contains(string(a.body), `"retry_after_seconds":7200`) {
		t.Errorf("429: %v %s", a.header, a.body)
	}
	cl.fault("html", 1)
	if a := cl.try("GET", home+"/events", nil); !strings.Contains(a.header.Get("Content-Type"), "text/html") || json.Valid(a.body) {
		t.Errorf("html: %s", a.body)
	}
	cl.fault("truncated", 1)
	if a := cl.try("GET", home+"/events", nil); a.err == nil || json.Valid(a.body) {
		t.Errorf("truncated: %v", a.err)
	}
	cl.fault("wrong_id", 1)
	if e := cl.create(note("x")); e["id"] != 70110013.0 {
		t.Errorf("wrong_id: %v", e["id"])
	}
	cl.fault("redirect", 1)
	if a := cl.try("PUT", home+"/events/70010001", object{"name": "x"}); a.header.Get("Location") != home+"/events/70010001?redirected=1" {
		t.Errorf("redirect: %v", a.header)
	}
}

func TestFaultsOnWhatIsWritten(t *testing.T) {
	t.Run("silent_ignore", func(t *testing.T) {
		cl := start(t, nil)
		cl.fault("silent_ignore:start_date_local", 1)
		e := cl.update(tempo, object{"start_date_local": "2026-12-11T08:00:00", "name": "x"})
		if e["start_date_local"] != "2026-12-10T08:00:00" || e["name"] != "x" {
			t.Errorf("%v", e)
		}
		if f := cl.sim.Journal()[0].Fields; slices.Contains(f, "start_date_local") {
			t.Errorf("%v", f)
		}
	})
	t.Run("parse_drift", func(t *testing.T) {
		cl := start(t, nil)
		cl.fault("parse_drift", 1)
		if e := cl.create(ride("x", threshold)); e["moving_time"] != 2640.0 {
			t.Errorf("%v s", e["moving_time"])
		}
	})
	t.Run("bulk_short", func(t *testing.T) {
		cl := start(t, &Options{})
		cl.fault("bulk_short:1", 1)
		if l := do[[]object](cl, "POST", home+"/events/bulk", bulk("a", "b", "c")); len(l) != 2 {
			t.Errorf("%v", l)
		}
		cl.wantKinds("create", "create")
	})
	t.Run("bulk_reply_short", func(t *testing.T) {
		cl := start(t, &Options{})
		cl.fault("bulk_reply_short:2", 1)
		if l := do[[]object](cl, "POST", home+"/events/bulk", bulk("a", "b", "c")); len(l) != 1 {
			t.Errorf("%v", l)
		}
		cl.wantKinds("create", "create", "create")
	})
	t.Run("500_after_n", func(t *testing.T) {
		cl := start(t, &Options{})
		cl.fault("500_after_n:2", 1)
		if a := cl.try("POST", home+"/events/bulk", bulk("a", "b", "c")); a.status != 500 {
			t.Errorf("%d", a.status)
		}
		cl.wantKinds("create", "create")
	})
	t.Run("before_write", func(t *testing.T) {
		for spec, want := range map[string]string{"before_write:swap_for_easy_run": "Easy run", "before_write:name=Other": "Other"} {
			cl := start(t, nil)
			cl.fault(spec, 1)
			e := cl.update(tempo, object{"start_date_local": "2026-12-11T08:00:00"})
			if e["name"] != want || e["start_date_local"] != "2026-12-11T08:00:00" {
				t.Errorf("%s: %v", spec, e)
			}
			if j := cl.sim.Journal(); len(j) != 2 || j[0].Client != "web_app" || j[1].Client != "key:i900001" {
				t.Errorf("%s: %+v", spec, j)
			}
		}
		both := start(t, nil)
		both.fault("before_write:delete", 1)
		if got := do[object](both, "PUT", home+"/events/bulk-delete", []object{{"id": tempo}, {"id": 70010002}}); got["eventsDeleted"] != 1.0 {
			t.Errorf("bulk delete: %v", got)
		}
		cl := start(t, nil)
		cl.fault("before_write:delete", 1)
		if a := cl.try("PUT", home+"/events/70010001", object{"name": "x"}); a.status != 404 {
			t.Errorf("%d", a.status)
		}
	})
}

func TestFaultsOnReads(t *testing.T) {
	cl := start(t, nil)
	cl.update(tempo, object{"name": "New"})
	cl.fault("stale_read:2", 1)
	if e := cl.event(tempo); e["name"] != "Tempo 3x10 min" {
		t.Errorf("stale: %v", e["name"])
	}
	if l := do[[]object](cl, "GET", home+"/events?oldest=2026-12-10&newest=2026-12-10", nil); l[0]["name"] != "Tempo 3x10 min" {
		t.Errorf("stale list: %v", l[0]["name"])
	}
	if e := cl.event(tempo); e["name"] != "New" {
		t.Errorf("fresh: %v", e["name"])
	}
	do[object](cl, "DELETE", home+"/events/70010001", nil)
	cl.fault("stale_read", 1)
	if e := cl.event(tempo); e["name"] != "New" {
		t.Errorf("deleted, stale: %v", e["name"])
	}
	cl.fault("list_detail_404", 1)
	if a := cl.try("GET", home+"/events/70010002", nil); a.status != 404 {
		t.Errorf("list_detail_404: %d", a.status)
	}
	cl.event(70010002)
}

func TestFaultsAreAddressed(t *testing.T) {
	cl := start(t, nil)
	cl.fault("500_before@PUT#2", 1)
	var got []int
	for _, method := range []string{"PUT", "GET", "PUT", "PUT"} {
		got = append(got, cl.try(method, home+"/events/70010001", object{"name": method}).status)
	}
	if !slices.Equal(got, []int{200, 200, 500, 200}) {
		t.Errorf("%v", got)
	}
	cl.fault("401", -1)
	cl.try("GET", home, nil)
	if a := cl.try("GET", home, nil); a.status != 401 {
		t.Errorf("-1 did not stay: %d", a.status)
	}
	cl.fault("clear", 0)
	if a := cl.try("GET", home, nil); a.status != 200 {
		t.Errorf("clear did not clear: %d", a.status)
	}
	cl.fault("apply_then_drop", 1)
	if a := cl.try("GET", home, nil); a.status != 200 {
		t.Errorf("a write's fault struck a read: %d", a.status)
	}
	cl.fault("clear", 0)
	for _, spec := range []string{"", "nothing", "429", "slow:soon", "stale_read:0", "before_write", "clock:+1", "drop_before_apply@put", "500_before#0", "500_before PUT"} {
		if err := cl.sim.Fault(spec, 1); err == nil {
			t.Errorf("%q is a fault", spec)
		}
	}
	if f := cl.sim.Requests()[2].Faults; !slices.Equal(f, []string{"500_before@PUT#2"}) {
		t.Errorf("%v", f)
	}
}

func TestClockFault(t *testing.T) {
	cl := start(t, nil)
	cl.fault("clock:+16m", 1)
	if e := cl.create(note("x")); e["updated"] != "2026-12-01T09:46:00.000+00:00" {
		t.Errorf("%v", e["updated"])
	}
}

func TestHeldWriteLandsWhenReleased(t *testing.T) {
	cl := start(t, nil)
	cl.fault("hold", 1)
	done := make(chan answer)
	go func() { done <- cl.try("PUT", home+"/events/70010001", object{"name": "Late"}) }()
	request, err := cl.sim.AwaitHeld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cl.wantKinds()
	if e := cl.event(tempo); e["name"] != "Tempo 3x10 min" {
		t.Errorf("landed early: %v", e["name"])
	}
	cl.act("release", object{"request": request})
	if a := <-done; a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
	if j := cl.sim.Journal(); len(j) != 1 || !j[0].Answered {
		t.Errorf("%+v", j)
	}
}

func TestHeldWriteLandsAfterItsClientIsGone(t *testing.T) {
	for _, spec := range []string{"hold", "hold:release"} {
		t.Run(spec, func(t *testing.T) {
			cl := start(t, nil)
			cl.fault(spec, 1)
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				r, _ := http.NewRequestWithContext(ctx, "PUT", cl.url+home+"/events/70010001", strings.NewReader(`{"name":"Late"}`))
				r.Header.Set("User-Agent", "test")
				cl.auth(r)
				if resp, err := cl.http.Do(r); err == nil {
					_ = resp.Body.Close()
				}
			}()
			request, err := cl.sim.AwaitHeld(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave()
			<-gone
			if spec == "hold:release" {
				cl.wantKinds()
				cl.act("release", object{"request": request})
			}
			for cl.event(tempo)["name"] != "Late" {
				if t.Context().Err() != nil {
					t.Fatal("never landed")
				}
			}
			if j := cl.sim.Journal(); len(j) != 1 || spec == "hold" && j[0].Answered {
				t.Errorf("%+v", j)
			}
		})
	}
}

func TestClosedSimulatorDropsHeldWrites(t *testing.T) {
	cl := start(t, nil)
	cl.fault("hold:release", 1)
	done := make(chan answer)
	go func() { done <- cl.try("PUT", home+"/events/70010001", object{"name": "Late"}) }()
	if _, err := cl.sim.AwaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	cl.sim.Close()
	if a := <-done; a.err == nil {
		t.Errorf("answered %d", a.status)
	}
	cl.wantKinds()
}

func TestSlowTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := New(nil)
		if err := sim.Fault("slow:5000", 1); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		w := serve(t, sim, "GET", home)
		if took := time.Since(before); w.Code != 200 || took != 5*time.Second {
			t.Errorf("%d after %s", w.Code, took)
		}
	})
}
