package intervals

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Actions of Args.
const (
	Create     = "create"
	Update     = "update"
	Delete     = "delete"
	BulkCreate = "bulk_create"
	BulkDelete = "bulk_delete"
	Swap       = "swap"
	CopyWeek   = "copy_week"
)

// MaxEvents of one change: more than that nobody reads.
const MaxEvents = 25

// Args are the arguments of preview_event_change.
type Args struct {
	Action   string    `json:"action" jsonschema:"create, bulk_create, update, delete, bulk_delete, swap or copy_week"`
	Event    *Fields   `json:"event,omitempty" jsonschema:"create: the new event"`
	Events   []Fields  `json:"events,omitempty" jsonschema:"bulk_create: up to 25 new events"`
	EventID  *EventID  `json:"event_id,omitempty" jsonschema:"update, delete: the event's id"`
	EventIDs []EventID `json:"event_ids,omitempty" jsonschema:"bulk_delete: up to 25 ids; swap: exactly two"`
	Set      *Fields   `json:"set,omitempty" jsonschema:"update: only the fields to change"`
	Clear    []string  `json:"clear,omitempty" jsonschema:"update: names of fields to empty"`
	From     string    `json:"from,omitempty" jsonschema:"copy_week: first day of the week to copy, YYYY-MM-DD"`
	To       string    `json:"to,omitempty" jsonschema:"copy_week: first day of the week to copy to, YYYY-MM-DD"`
}

// EventID is an event's number. Agents send it as a number or as its digits.
type EventID int64

// UnmarshalJSON refuses everything but digits before any request: the service answers 422 to anything else.
func (id *EventID) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 || s[0] == '+' {
		return fmt.Errorf("%s is not an event id: use the number that list_events gives, such as 70010001", clean(string(b)))
	}
	*id = EventID(n)
	return nil
}

func (id EventID) String() string { return strconv.FormatInt(int64(id), 10) }

// Fields are what can be written of an event. A nil one is not touched.
type Fields struct {
	Category             *string   `json:"category,omitempty" jsonschema:"WORKOUT, RACE_A, RACE_B, RACE_C, NOTE, HOLIDAY, SICK or INJURED"`
	StartDateLocal       *string   `json:"start_date_local,omitempty" jsonschema:"the athlete's local time, YYYY-MM-DDTHH:MM:SS, or a date; never with a zone"`
	EndDateLocal         *string   `json:"end_date_local,omitempty" jsonschema:"exclusive end of several days, as start_date_local"`
	Type                 *string   `json:"type,omitempty" jsonschema:"sport, such as Ride, Run, Swim; required for workouts and races, absent for notes"`
	SubType              *string   `json:"sub_type,omitempty" jsonschema:"NONE, COMMUTE, WARMUP, COOLDOWN or RACE"`
	Name                 *string   `json:"name,omitempty"`
	Description          *string   `json:"description,omitempty" jsonschema:"workout text: lines such as '- 10m 75%'; m is minutes, mtr is metres; a repeat is '3x' on its own line between blank lines"`
	Target               *string   `json:"target,omitempty" jsonschema:"what devices get: AUTO, POWER, HR or PACE"`
	Indoor               *bool     `json:"indoor,omitempty"`
	MovingTime           *int64    `json:"moving_time,omitempty" jsonschema:"seconds; computed by the service when the description has steps"`
	Distance             *float64  `json:"distance,omitempty" jsonschema:"metres; computed by the service when the description has steps"`
	TrainingLoad         *int64    `json:"icu_training_load,omitempty" jsonschema:"computed by the service when the description has steps"`
	LoadTarget           *int64    `json:"load_target,omitempty"`
	TimeTarget           *int64    `json:"time_target,omitempty" jsonschema:"seconds"`
	DistanceTarget       *float64  `json:"distance_target,omitempty" jsonschema:"metres"`
	Color                *string   `json:"color,omitempty"`
	Tags                 *[]string `json:"tags,omitempty"`
	ShowAsNote           *bool     `json:"show_as_note,omitempty"`
	NotOnFitnessChart    *bool     `json:"not_on_fitness_chart,omitempty"`
	ShowOnCTLLine        *bool     `json:"show_on_ctl_line,omitempty"`
	ForWeek              *bool     `json:"for_week,omitempty"`
	TrainingAvailability *string   `json:"training_availability,omitempty" jsonschema:"NORMAL, LIMITED or UNAVAILABLE"`
	MaxTrainingTime      *int64    `json:"max_training_time,omitempty" jsonschema:"seconds"`
	CanTrainSports       *[]string `json:"can_train_sports,omitempty"`
	CarbsPerHour         *int64    `json:"carbs_per_hour,omitempty" jsonschema:"grams"`
	Entered              *bool     `json:"entered,omitempty" jsonschema:"the race is entered"`
}

// How a field is emptied with a sparse PUT: null is ignored by the service, so numbers take -1 (said on its
// forum), text "" and lists []. An enumeration has no "": it takes the value that says nothing.
var (
	numeric = setOf("moving_time", "distance", "icu_training_load", "load_target", "time_target", "distance_target",
		"max_training_time", "carbs_per_hour")
	textual = setOf("description", "color")
	neutral = map[string]string{"sub_type": "NONE", "target": "AUTO"}
	listed  = setOf("tags", "can_train_sports")
	flags   = setOf("indoor", "show_as_note", "not_on_fitness_chart", "show_on_ctl_line", "for_week", "entered")
)

// writable are the fields that a re-creation sends back, in the order of Fields.
var writable = []string{"category", "start_date_local", "end_date_local", "type", "sub_type", "name", "description", "target",
	"indoor", "moving_time", "distance", "icu_training_load", "load_target", "time_target", "distance_target", "color", "tags",
	"show_as_note", "not_on_fitness_chart", "show_on_ctl_line", "for_week", "training_availability", "max_training_time",
	"can_train_sports", "carbs_per_hour", "entered"}

func setOf(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func emptied(field string) (json.RawMessage, bool) {
	switch {
	case numeric[field]:
		return json.RawMessage("-1"), true
	case textual[field]:
		return json.RawMessage(`""`), true
	case neutral[field] != "":
		return quote(neutral[field]), true
	case listed[field]:
		return json.RawMessage("[]"), true
	case flags[field]:
		return json.RawMessage("false"), true
	}
	return nil, false
}

var (
	categories = []string{"WORKOUT", "RACE_A", "RACE_B", "RACE_C", "NOTE", "HOLIDAY", "SICK", "INJURED"}
	// modelled categories rewrite the fitness model or the plan of every later day.
	modelled     = []string{"PLAN", "TARGET", "SET_EFTP", "FITNESS_DAYS", "SEASON_START", "SET_FITNESS"}
	subTypes     = []string{"NONE", "COMMUTE", "WARMUP", "COOLDOWN", "RACE"}
	targets      = []string{"AUTO", "POWER", "HR", "PACE"}
	availability = []string{"NORMAL", "LIMITED", "UNAVAILABLE"}
	sports       = strings.Fields(`Ride Run Swim WeightTraining Hike Walk AlpineSki BackcountrySki Badminton Canoeing Crossfit EBikeRide
		EMountainBikeRide Elliptical Golf GravelRide TrackRide Handcycle HighIntensityIntervalTraining Hockey IceSkate InlineSkate
		Kayaking Kitesurf MountainBikeRide Cyclocross NordicSki OpenWaterSwim Padel Pilates Pickleball Racquetball Rugby RockClimbing
		RollerSki Rowing Sail Skateboard Snowboard Snowshoe Soccer Squash StairStepper StandUpPaddling Surfing TableTennis Tennis
		TrailRun Transition Velomobile VirtualRide VirtualRow VirtualRun VirtualSki WaterSport Wheelchair Windsurf Workout Yoga Other`)
)

// maxDescription bounds a description: far above any workout, far below what nobody can read.
const maxDescription = 64 << 10

// parseArgs reads strictly: an unknown member is a mistake to be told, not a wish to be dropped.
func parseArgs(b json.RawMessage, into any) error {
	err := strictjson.Decode(b, into, strictjson.Default)
	var je *strictjson.Error
	if errors.As(err, &je) {
		fix := "compare with the tool's input schema"
		if strings.Contains(je.Reason, "null") {
			fix = `to empty a field of an event name it in "clear"; otherwise leave it out`
		}
		return &wetink.RequestError{Field: je.Path, Reason: je.Reason, Fix: fix}
	}
	return err
}

// refuseNulls: null would mean "empty it" to one reader and "leave it" to another; the service itself ignores it.
func refuseNulls(raw json.RawMessage) error {
	top, err := strictjson.Members(raw)
	if err != nil {
		return err
	}
	for _, m := range top {
		objects := []json.RawMessage{m.Value}
		if len(m.Value) > 0 && m.Value[0] == '[' {
			objects = nil
			_ = json.Unmarshal(m.Value, &objects) // it was decoded before
		}
		for i, o := range objects {
			at := m.Name
			if len(objects) > 1 || m.Name == "events" {
				at = fmt.Sprintf("%s[%d]", m.Name, i)
			}
			inner, err := strictjson.Members(o)
			if err != nil {
				continue // not an object
			}
			for _, f := range inner {
				if string(f.Value) == "null" {
					return bad(at+"."+f.Name, "it is null", `to empty a field of an event name it in "clear"; otherwise leave it out`)
				}
			}
		}
		if string(m.Value) == "null" {
			return bad(m.Name, "it is null", "leave it out")
		}
	}
	return nil
}

func bad(field, reason, fix string) error {
	return &wetink.RequestError{Field: field, Reason: reason, Fix: fix}
}

// normalise checks f and brings it to the form that is stored, shown and sent. at is its path in the
// arguments. clockTime is what a bare date is completed with.
func (f *Fields) normalise(at, clockTime string) error {
	one := func(name string, v *string, allowed []string, hint string) error {
		if v == nil {
			return nil
		}
		for _, a := range allowed {
			if strings.EqualFold(*v, a) {
				*v = a
				return nil
			}
		}
		return bad(at+"."+name, fmt.Sprintf("%q is not one of the service's values", clean(*v)), hint)
	}
	if f.Category != nil {
		up := strings.ToUpper(*f.Category)
		if slices.Contains(modelled, up) {
			return bad(at+".category", up+" events rewrite the fitness model or the plan and are not changed here", "make it in the web app")
		}
		hint := "use one of " + strings.Join(categories, ", ")
		if up == "RACE" {
			hint = "use RACE_A, RACE_B or RACE_C: ask the athlete how important the race is"
		}
		if err := one("category", f.Category, categories, hint); err != nil {
			return err
		}
	}
	if err := one("type", f.Type, sports, "use a sport such as Ride, Run, Swim, WeightTraining or Other"); err != nil {
		return err
	}
	if err := one("sub_type", f.SubType, subTypes, "use one of "+strings.Join(subTypes, ", ")+"; the sport goes into type"); err != nil {
		return err
	}
	if err := one("target", f.Target, targets, "use one of "+strings.Join(targets, ", ")); err != nil {
		return err
	}
	if err := one("training_availability", f.TrainingAvailability, availability, "use one of "+strings.Join(availability, ", ")); err != nil {
		return err
	}
	if f.CanTrainSports != nil {
		for i := range *f.CanTrainSports {
			if err := one("can_train_sports", &(*f.CanTrainSports)[i], sports, "use sports such as Ride or Run"); err != nil {
				return err
			}
		}
	}
	for name, v := range map[string]*string{"start_date_local": f.StartDateLocal, "end_date_local": f.EndDateLocal} {
		if v == nil {
			continue
		}
		local, err := localTime(at+"."+name, *v, clockTime)
		if err != nil {
			return err
		}
		*v = local
	}
	if f.StartDateLocal != nil && f.EndDateLocal != nil && *f.EndDateLocal <= *f.StartDateLocal {
		return bad(at+".end_date_local", "it is not after start_date_local", "the end is exclusive: for one whole day use the next day")
	}
	if f.Name != nil {
		if *f.Name = strings.TrimSpace(*f.Name); *f.Name == "" {
			return bad(at+".name", "it is empty", "give the event a name")
		}
		if len(*f.Name) > 1000 {
			return bad(at+".name", fmt.Sprintf("it has %d bytes", len(*f.Name)), "use at most 1000")
		}
	}
	if f.Description != nil {
		*f.Description = strings.ReplaceAll(*f.Description, "\r\n", "\n")
		if n := len(*f.Description); n > maxDescription {
			return bad(at+".description", fmt.Sprintf("it has %d bytes", n), fmt.Sprintf("use at most %d", maxDescription))
		}
	}
	for name, v := range map[string]*int64{"moving_time": f.MovingTime, "icu_training_load": f.TrainingLoad, "load_target": f.LoadTarget,
		"time_target": f.TimeTarget, "max_training_time": f.MaxTrainingTime, "carbs_per_hour": f.CarbsPerHour} {
		if v != nil && (*v < 0 || *v > 1<<31-1) {
			return bad(at+"."+name, fmt.Sprintf("%d is out of range", *v), `use 0 to 2147483647; to empty a field name it in "clear"`)
		}
	}
	for name, v := range map[string]*float64{"distance": f.Distance, "distance_target": f.DistanceTarget} {
		if v != nil && (*v < 0 || *v > 1e8) {
			return bad(at+"."+name, fmt.Sprintf("%g is out of range", *v), `use metres, 0 to 100000000; to empty a field name it in "clear"`)
		}
	}
	return nil
}

// complete checks what a new event needs.
func (f *Fields) complete(at string) error {
	switch {
	case f.Category == nil:
		return bad(at+".category", "it is missing", "use one of "+strings.Join(categories, ", "))
	case f.StartDateLocal == nil:
		return bad(at+".start_date_local", "it is missing", "use the athlete's local time, such as 2026-12-03T08:00:00")
	case f.Name == nil:
		return bad(at+".name", "it is missing", "give the event a name")
	case f.Type == nil && (*f.Category == "WORKOUT" || strings.HasPrefix(*f.Category, "RACE_")):
		return bad(at+".type", "a workout or race needs a sport", "use type such as Ride, Run or Swim")
	case f.Type != nil && *f.Category == "NOTE":
		return bad(at+".type", "a NOTE has no sport", "leave type out, or use category WORKOUT")
	}
	return nil
}

var (
	dateOnly = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	zoned    = regexp.MustCompile(`(?i)^\d{4}-\d{2}-\d{2}[T ][0-9:.]+ ?(z|[+-]\d{2}:?\d{2}|utc|gmt)$`)
)

// localTime brings a date or local time to YYYY-MM-DDTHH:MM:SS. It converts nothing: what is local stays local.
func localTime(field, s, clockTime string) (string, error) {
	sent := s
	switch {
	case zoned.MatchString(s):
		return "", bad(field, fmt.Sprintf("%q carries a time zone, and the calendar is in the athlete's local time", clean(s)), "leave the zone out and give the local time")
	case dateOnly.MatchString(s):
		s += "T" + clockTime
	case len(s) == len("2006-01-02T15:04"):
		s += ":00"
	}
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil || t.Year() < 2000 || t.Year() > 2100 {
		return "", bad(field, fmt.Sprintf("%q is no date or local time of the years 2000 to 2100", clean(sent)), "use YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, such as 2026-12-03T08:00:00")
	}
	return s, nil
}

// members gives the fields that are set, as JSON, in the order of the struct.
func (f *Fields) members() event {
	b, err := marshal(f)
	e := event{}
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil {
		panic(fmt.Sprintf("intervals: fields: %v", err)) // plain strings and numbers: it cannot happen
	}
	return e
}
