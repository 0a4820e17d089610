package intervalssim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// activity is something that was done.
type activity struct {
	id     string
	strava bool // the licence leaves a stub of it
	values map[string]any
}

func (act *activity) day() string {
	s, _ := act.values["start_date_local"].(string)
	return strings.SplitN(s, "T", 2)[0]
}

func (act *activity) copy() *activity {
	c := *act
	c.values = maps.Clone(act.values)
	return &c
}

// MarshalJSON shows what the service shows: of a Strava activity, five members.
func (act *activity) MarshalJSON() ([]byte, error) {
	if act.strava {
		return json.Marshal(map[string]any{
			"id": act.id, "icu_athlete_id": act.values["icu_athlete_id"], "start_date_local": act.values["start_date_local"],
			"source": "STRAVA", "_note": "STRAVA activities are not available via the API",
		})
	}
	return json.Marshal(act.values)
}

// newActivity stores an activity and records nothing.
func (s *Sim) newActivity(a *athlete, values map[string]any) *activity {
	act := &activity{id: "i" + strconv.Itoa(s.nextAct), values: maps.Clone(values)}
	s.nextAct++
	for name, v := range map[string]any{
		"id": act.id, "icu_athlete_id": a.id, "source": "MANUAL", "name": "Activity", "type": "Ride", "paired_event_id": nil,
		"start_date_local": s.now().In(a.zone).Format("2006-01-02T15:04:05"), "analyzed": stamp(s.now()), "icu_ftp": a.ftp,
	} {
		if _, ok := act.values[name]; !ok {
			act.values[name] = v
		}
	}
	a.activities[act.id] = act
	s.formMoved(a)
	return act
}

// autoPair pairs an activity with the first plan of that day and kind, be it the right one or not.
func (s *Sim) autoPair(c cause, a *athlete, act *activity) {
	sport, _ := act.values["type"].(string)
	for _, e := range a.sorted(a.events) {
		if e.text("category") == "WORKOUT" && e.day() == act.day() && family(e.text("type")) == family(sport) && e.text("paired_activity_id") == "" {
			s.pair(c, a, act, e)
			return
		}
	}
}

// pair links the two. It is the activity that holds the link; the event shows it.
func (s *Sim) pair(c cause, a *athlete, act *activity, old *event) {
	e := old.copy()
	e.set("paired_activity_id", act.id)
	s.touch(e)
	act.values["paired_event_id"] = e.id()
	a.events[e.id()] = e
	s.formMoved(a)
	s.record(c, "pair", e.id(), []string{"paired_activity_id"})
}

func (s *Sim) unpair(c cause, a *athlete, act *activity) {
	id, _ := act.values["paired_event_id"].(int64)
	act.values["paired_event_id"] = nil
	old, ok := a.events[id]
	if !ok {
		return
	}
	e := old.copy()
	e.set("paired_activity_id", nil)
	s.touch(e)
	a.events[id] = e
	s.formMoved(a)
	s.record(c, "unpair", id, []string{"paired_activity_id"})
}

// markDone makes a manual activity of a plan: its load counts twice if the recording comes in as well.
func (s *Sim) markDone(c *call) (any, *failure) {
	e, f := s.addressed(c)
	if f != nil {
		return nil, f
	}
	act := s.newActivity(c.a, map[string]any{
		"type": e.text("type"), "name": e.text("name"), "start_date_local": e.text("start_date_local"),
		"moving_time": int64(e.integer("moving_time")), "icu_training_load": int64(e.integer("icu_training_load")),
	})
	s.record(c.cause, "activity", e.id(), nil)
	s.pair(c.cause, c.a, act, e)
	return act, nil
}

func (s *Sim) createManual(c *call) (any, *failure) {
	var sent map[string]any
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	start, _ := sent["start_date_local"].(string)
	if _, f := localTime(start); f != nil {
		return nil, f
	}
	if sport, _ := sent["type"].(string); !slices.Contains(sports, sport) {
		return nil, refuse(422, "type is required")
	}
	values := map[string]any{}
	for _, name := range []string{"start_date_local", "type", "name", "description", "external_id"} {
		if v, ok := sent[name].(string); ok {
			values[name] = v
		}
	}
	for _, name := range []string{"moving_time", "icu_training_load"} {
		if n, ok := sent[name].(float64); ok {
			values[name] = int64(n)
		}
	}
	act := s.newActivity(c.a, values)
	s.record(c.cause, "activity", 0, nil)
	s.autoPair(c.cause, c.a, act)
	return act, nil
}

// recorded finds an activity of the caller's.
func (s *Sim) recorded(c *call) (*activity, *failure) {
	id := c.r.PathValue("activity")
	if act, ok := c.owner.activities[id]; ok {
		return act, nil
	}
	for _, a := range s.athletes {
		if _, ok := a.activities[id]; ok {
			return nil, refuse(403, "Access denied")
		}
	}
	return nil, refuse(404, "Not found")
}

func (s *Sim) getActivity(c *call) (any, *failure) {
	act, f := s.recorded(c)
	if f != nil {
		return nil, f
	}
	if c.r.URL.Query().Get("intervals") != "true" || act.strava {
		return act, nil
	}
	act = act.copy()
	act.values["icu_intervals"], act.values["icu_groups"] = intervalsOf(act), []any{}
	return act, nil
}

// updateActivity is where pairing is done. The distance of a recording cannot be overwritten.
func (s *Sim) updateActivity(c *call) (any, *failure) {
	act, f := s.recorded(c)
	if f != nil {
		return nil, f
	}
	var sent map[string]any
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	if act.strava {
		return nil, refuse(422, "Cannot read Strava activities via the API")
	}
	var changed []string
	for _, name := range []string{"name", "description", "icu_rpe", "feel", "icu_distance"} {
		if v, ok := sent[name]; ok && v != nil {
			act.values[name] = v
			changed = append(changed, name)
		}
	}
	if rpe, ok := sent["icu_rpe"].(float64); ok {
		minutes, _ := act.values["moving_time"].(int64)
		act.values["session_rpe"] = int64(rpe) * minutes / 60
	}
	if len(changed) > 0 {
		s.record(c.cause, "activity", 0, changed)
	}
	v, ok := sent["paired_event_id"]
	switch id, number := v.(float64); {
	case !ok || v == nil:
	case !number:
		return nil, refuse(400, "JSON parse error: Cannot deserialize value of paired_event_id")
	case id <= 0:
		s.unpair(c.cause, c.owner, act)
	default:
		e, ok := c.owner.events[int64(id)]
		if !ok {
			return nil, refuse(422, "Event not found")
		}
		s.pair(c.cause, c.owner, act, e)
	}
	return act, nil
}

func (s *Sim) listActivities(c *call) (any, *failure) {
	if c.r.URL.Query().Get("oldest") == "" {
		return nil, refuse(400, "Required request parameter 'oldest' is not present")
	}
	oldest, newest, f := c.span("", 0)
	if f != nil {
		return nil, f
	}
	if c.r.URL.Query().Get("newest") == "" {
		newest = "9999-12-31"
	}
	limit, f := c.number("limit", 0)
	if f != nil {
		return nil, f
	}
	list := []any{}
	for _, act := range newestFirst(c.a.activities) {
		if act.day() < oldest || act.day() > newest || limit > 0 && len(list) == limit {
			continue
		}
		list = append(list, only(act, c.r.URL.Query().Get("fields")))
	}
	return list, nil
}

func (s *Sim) getActivities(c *call) (any, *failure) {
	list := []*activity{}
	for _, id := range strings.Split(c.r.PathValue("ids"), ",") {
		if act, ok := c.a.activities[id]; ok {
			list = append(list, act)
		}
	}
	return list, nil
}

func newestFirst(m map[string]*activity) []*activity {
	return slices.SortedFunc(maps.Values(m), func(x, y *activity) int {
		if c := strings.Compare(fmt.Sprint(y.values["start_date_local"]), fmt.Sprint(x.values["start_date_local"])); c != 0 {
			return c
		}
		return strings.Compare(y.id, x.id)
	})
}

// only keeps the asked-for members; id is always one of them.
func only(act *activity, fields string) any {
	if fields == "" || act.strava {
		return act
	}
	kept := map[string]any{"id": act.id}
	for _, name := range strings.Split(fields, ",") {
		kept[name] = act.values[name]
	}
	return kept
}

func (s *Sim) getIntervals(c *call) (any, *failure) {
	act, f := s.analysed(c)
	if f != nil {
		return nil, f
	}
	return map[string]any{"id": act.id, "analyzed": act.values["analyzed"], "icu_intervals": intervalsOf(act), "icu_groups": []any{}}, nil
}

func (s *Sim) analysed(c *call) (*activity, *failure) {
	act, f := s.recorded(c)
	switch {
	case f != nil:
		return nil, f
	case act.strava:
		return nil, refuse(422, "Cannot read Strava activities via the API")
	case act.values["analyzed"] == nil:
		return nil, refuse(404, "Not found")
	}
	return act, nil
}

// intervalsOf invents as many efforts as fit: ten minutes on, four off.
func intervalsOf(act *activity) []any {
	list := []any{}
	secs, _ := act.values["moving_time"].(int64)
	for at, n := int64(0), 1; at+600 <= secs && n <= 20; n++ {
		kind, long, watts := "WORK", int64(600), 225
		if n%2 == 0 {
			kind, long, watts = "RECOVERY", 240, 140
		}
		list = append(list, map[string]any{
			"id": n, "type": kind, "label": nil, "start_index": at, "end_index": at + long, "start_time": at, "end_time": at + long,
			"moving_time": long, "elapsed_time": long, "distance": float64(long) * 9, "average_watts": watts, "max_watts": watts + 60,
			"average_heartrate": 120 + watts/8, "max_heartrate": 125 + watts/8, "average_cadence": 88.5, "intensity": watts * 100 / 250,
			"training_load": float64(long) / 36 * float64(watts*watts) / 62500, "zone": 3,
		})
		at += long
	}
	return list
}

func (s *Sim) getStreams(c *call) (any, *failure) {
	act, f := s.analysed(c)
	if f != nil {
		return nil, f
	}
	secs, _ := act.values["moving_time"].(int64)
	types := c.r.URL.Query().Get("types")
	if types == "" {
		types = "time,watts,heartrate,cadence,distance,altitude,latlng"
	}
	list := []any{}
	for _, name := range strings.Split(types, ",") {
		wave, ok := waves[name]
		if !ok {
			continue
		}
		stream := map[string]any{"type": name, "name": nil, "data": samples(secs, wave), "data2": nil, "valueTypeIsArray": false, "custom": false, "allNull": false}
		if name == "latlng" {
			stream["data2"] = samples(secs, func(t float64) float64 { return -3.7 + t*1e-4 })
		}
		list = append(list, stream)
	}
	return list, nil
}

var waves = map[string]func(t float64) float64{
	"time":      func(t float64) float64 { return t },
	"watts":     func(t float64) float64 { return math.Round(190 + 40*math.Sin(t/300)) },
	"heartrate": func(t float64) float64 { return math.Round(138 + 12*math.Sin(t/300-0.5)) },
	"cadence":   func(t float64) float64 { return math.Round(88 + 4*math.Sin(t/90)) },
	"distance":  func(t float64) float64 { return 8.8 * t },
	"altitude":  func(t float64) float64 { return math.Round(650 + 30*math.Sin(t/500)) },
	"latlng":    func(t float64) float64 { return 40.4 + t*1e-4 },
}

// samples are one a second; the last is null, as at the end of recordings.
func samples(secs int64, wave func(float64) float64) []any {
	secs = min(secs, 6*3600)
	data := make([]any, max(secs, 0))
	for i := range data {
		data[i] = wave(float64(i))
	}
	if len(data) > 0 {
		data[len(data)-1] = nil
	}
	return data
}
