package intervalssim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink/target/intervals/workout"
)

// athlete is one account and all that is its own.
type athlete struct {
	id, name, key string
	zone          *time.Location
	zoneName      string
	ftp           int // W
	indoorFTP     int
	thresholdPace float64 // of running, m/s

	events     map[int64]*event
	before     map[int64]*event // as they were before the last write, for stale reads
	activities map[string]*activity
	wellness   map[string]map[string]any // by day
	connected  []string                  // services that get planned workouts
	quota      quota
	form       form
}

func newAthlete(o AthleteOptions, zone *time.Location, key string) *athlete {
	if o.TimeZone == "" {
		o.TimeZone = "UTC"
	}
	if o.Name == "" {
		o.Name = "Athlete " + o.ID
	}
	return &athlete{
		id: o.ID, name: o.Name, key: key, zone: zone, zoneName: o.TimeZone,
		ftp: o.FTP, indoorFTP: o.FTP - 10, thresholdPace: 4.0,
		events: map[int64]*event{}, before: map[int64]*event{}, activities: map[string]*activity{}, wellness: map[string]map[string]any{},
	}
}

var (
	powerZones = []int{55, 75, 90, 105, 120, 150, 999}
	hrZones    = []int{134, 147, 154, 164, 169, 174, 185}
	paceZones  = []float64{77.5, 87.7, 94.3, 100, 103.4, 111.5, 999}
)

// thresholds are what a workout of this sport is costed with.
func (a *athlete) thresholds(sport string, indoor bool) workout.Thresholds {
	t := workout.Thresholds{LTHR: 165, MaxHR: 185, HRZones: hrZones}
	switch family(sport) {
	case "Ride":
		t.FTP, t.PowerZones = a.ftp, powerZones
		if indoor {
			t.FTP = a.indoorFTP
		}
	case "Run":
		t.ThresholdPace, t.PaceZones = a.thresholdPace, paceZones
	case "Swim":
		t.ThresholdPace, t.PaceZones = 1.25, paceZones
	}
	return t
}

// family puts sports together whose plans and recordings match.
func family(sport string) string {
	switch sport {
	case "Ride", "VirtualRide", "GravelRide", "MountainBikeRide", "TrackRide", "Cyclocross", "EBikeRide":
		return "Ride"
	case "Run", "TrailRun", "VirtualRun":
		return "Run"
	case "Swim", "OpenWaterSwim":
		return "Swim"
	}
	return sport
}

// today is the athlete's, not the server's.
func (s *Sim) today(a *athlete) string { return s.now().In(a.zone).Format(time.DateOnly) }

// sorted lists events by start, then id.
func (a *athlete) sorted(events map[int64]*event) []*event {
	return slices.SortedFunc(maps.Values(events), func(x, y *event) int {
		if c := strings.Compare(x.text("start_date_local"), y.text("start_date_local")); c != 0 {
			return c
		}
		return int(x.id() - y.id())
	})
}

// visible are the events that a read sees: the present ones, or with stale_read those before the last write.
func (c *call) visible() map[int64]*event {
	if c.struck("stale_read") != nil {
		return c.a.before
	}
	return c.a.events
}

// The three ways in which a calendar changes. Each records what it did.

func (s *Sim) add(c cause, a *athlete, e *event) {
	e.set("id", s.nextID)
	s.nextID++
	s.place(a, e)
	s.record(c, "create", e.id(), setFields(e))
}

func (s *Sim) replace(c cause, a *athlete, old, e *event) {
	s.place(a, e)
	s.record(c, "update", e.id(), differences(old, e))
}

func (s *Sim) remove(c cause, a *athlete, e *event) {
	delete(a.events, e.id())
	for _, act := range a.activities {
		if act.values["paired_event_id"] == e.id() {
			delete(act.values, "paired_event_id")
		}
	}
	s.formMoved(a)
	s.record(c, "delete", e.id(), nil)
}

// place puts an event on the calendar and sends it to the devices.
func (s *Sim) place(a *athlete, e *event) {
	s.push(a, e)
	a.events[e.id()] = e
	s.formMoved(a)
}

func setFields(e *event) []string {
	var names []string
	for name := range e.values {
		if f := fieldNamed[name]; !f.ours {
			names = append(names, name)
		}
	}
	return names
}

// snapshots are all calendars as they are; keep makes them what a stale read shows.
func (s *Sim) snapshots() []map[int64]*event {
	l := make([]map[int64]*event, len(s.athletes))
	for i, a := range s.athletes {
		l[i] = maps.Clone(a.events)
	}
	return l
}

func (s *Sim) keep(before []map[int64]*event) {
	for i, events := range before {
		s.athletes[i].before = events
	}
}
