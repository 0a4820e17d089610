package intervalssim

import (
	"slices"
	"testing"
)

func bulk(names ...string) []object {
	var l []object
	for _, name := range names {
		e := note(name)
		e["external_id"] = "ext-" + name
		l = append(l, e)
	}
	return l
}

func TestUpsertByExternalIDMakesOneEvent(t *testing.T) {
	cl := start(t, &Options{})
	first := do[[]object](cl, "POST", home+"/events/bulk?upsert=true", bulk("a", "b"))
	again := bulk("b", "a")
	again[1]["name"] = "renamed"
	second := do[[]object](cl, "POST", home+"/events/bulk?upsert=true", again)
	if first[0]["id"] != second[1]["id"] || first[1]["id"] != second[0]["id"] || second[1]["name"] != "renamed" {
		t.Errorf("%v\n%v", first, second)
	}
	cl.wantKinds("create", "create", "update", "update")
	third := do[[]object](cl, "POST", home+"/events/bulk", bulk("a"))
	if third[0]["id"] == first[0]["id"] {
		t.Error("matched without upsert")
	}
}

func TestUpsertMatchesTheSameClientOnly(t *testing.T) {
	cl := start(t, &Options{})
	app := cl.bearer(cl.sim.AddToken(cl.sim.AthleteID(), "CALENDAR:WRITE"))
	mine := do[[]object](cl, "POST", home+"/events/bulk?upsert=true", bulk("a"))
	theirs := do[[]object](app, "POST", home+"/events/bulk?upsert=true", bulk("a"))
	if mine[0]["id"] == theirs[0]["id"] || theirs[0]["oauth_client_id"] == nil {
		t.Errorf("%v %v", mine[0]["id"], theirs[0]["id"])
	}
	if j := cl.sim.Journal(); j[0].Client != "key:i900001" || j[1].Client != "oauth:101" {
		t.Errorf("%+v", j)
	}
}

func TestBulkIsNotAtomicUnlessSwitched(t *testing.T) {
	bad := bulk("a", "b", "c")
	bad[1]["start_date_local"] = "2026-12-09"
	for atomic, want := range map[bool][]string{false: {"create"}, true: {}} {
		cl := start(t, &Options{BulkAtomic: atomic})
		if a := cl.try("POST", home+"/events/bulk?upsert=true", bad); a.status != 422 {
			t.Errorf("%d", a.status)
		}
		cl.wantKinds(want...)
	}
	if a := start(t, &Options{BulkLimit: 2}).try("POST", home+"/events/bulk", bulk("a", "b", "c")); a.status != 422 {
		t.Errorf("over the limit: %d", a.status)
	}
}

func TestBulkDeleteIgnoresWhatIsMissing(t *testing.T) {
	cl := start(t, &Options{})
	made := do[[]object](cl, "POST", home+"/events/bulk", bulk("a", "b", "c"))
	got := do[object](cl, "PUT", home+"/events/bulk-delete", []object{{"id": made[0]["id"]}, {"id": 1}, {"external_id": "ext-c", "id": made[1]["id"]}})
	if got["eventsDeleted"] != 2.0 {
		t.Errorf("%v", got)
	}
	cl.event(made[1]["id"])
	cl.wantKinds("create", "create", "create", "delete", "delete")
}

func TestDeleteAndItsTraps(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		cl := start(t, nil)
		do[object](cl, "DELETE", home+"/events/70010001", nil)
		if a := cl.try("GET", home+"/events/70010001", nil); a.status != 404 {
			t.Errorf("%d", a.status)
		}
		cl.wantKinds("delete")
	})
	t.Run("others added at the same time", func(t *testing.T) {
		cl := start(t, &Options{})
		made := do[[]object](cl, "POST", home+"/events/bulk", bulk("a", "b"))
		cl.create(note("another request"))
		do[object](cl, "DELETE", home+"/events/"+str(made[0]["id"])+"?others=true&notBefore=2027-01-01", nil)
		cl.wantKinds("create", "create", "create", "delete") // notBefore protects the other, never the one named
		do[object](cl, "DELETE", home+"/events/"+str(made[1]["id"])+"?others=true", nil)
		if l := do[[]object](cl, "GET", home+"/events?oldest=2026-12-09", nil); len(l) != 1 {
			t.Errorf("%v", l)
		}
	})
	t.Run("a range without an end is all of the future", func(t *testing.T) {
		cl := start(t, nil)
		do[object](cl, "DELETE", home+"/events?oldest=2026-12-01&category=WORKOUT", nil)
		if n := len(cl.kinds()); n != 7 {
			t.Errorf("%d deleted", n)
		}
	})
}

func TestHideAndLockForARange(t *testing.T) {
	cl := start(t, nil)
	got := do[[]object](cl, "PUT", home+"/events?oldest=2026-12-10&newest=2026-12-10", object{"athlete_cannot_edit": true, "name": "x"})
	if len(got) != 1 || got[0]["athlete_cannot_edit"] != true || got[0]["name"] != "Tempo 3x10 min" {
		t.Errorf("%v", got)
	}
}

func TestDuplicateEvents(t *testing.T) {
	cl := start(t, nil)
	got := do[[]object](cl, "POST", home+"/duplicate-events", object{"numCopies": 2, "weeksBetween": 1, "eventIds": []int{tempo}})
	var dates []any
	for _, e := range got {
		dates = append(dates, e["start_date_local"])
	}
	if !slices.Equal(dates, []any{"2026-12-17T08:00:00", "2026-12-24T08:00:00"}) {
		t.Errorf("%v", dates)
	}
}

func TestAccountsAreApart(t *testing.T) {
	cl := start(t, nil)
	id, key := cl.sim.AddAthlete(AthleteOptions{Name: "Bo Runner", TimeZone: "America/New_York", Seed: "demo"})
	other := cl.as("API_KEY", key)
	if a := do[object](other, "GET", home, nil); a["id"] != id || a["timezone"] != "America/New_York" || id == cl.sim.AthleteID() {
		t.Errorf("%v", a["id"])
	}
	if a := other.try("GET", home+"/events/70010001", nil); a.status != 404 {
		t.Errorf("sees another's event: %d", a.status)
	}
	if a := other.try("GET", "/api/v1/athlete/"+cl.sim.AthleteID()+"/events", nil); a.status != 403 {
		t.Errorf("sees another's calendar: %d", a.status)
	}
	if a := other.try("GET", "/api/v1/activity/15550001", nil); a.status != 200 { // has one of its own
		t.Errorf("%d", a.status)
	}
	do[[]object](cl, "GET", "/api/v1/athlete/"+cl.sim.AthleteID()+"/events", nil)
	other.create(note("theirs"))
	if j := cl.sim.Journal(); len(j) != 1 || j[0].Client != "key:"+id {
		t.Errorf("%+v", j)
	}
}
