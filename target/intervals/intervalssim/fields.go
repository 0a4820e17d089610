package intervalssim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The values of an event's enumerations.
var (
	categories     = strings.Fields("WORKOUT RACE_A RACE_B RACE_C NOTE PLAN HOLIDAY SICK INJURED SET_EFTP FITNESS_DAYS SEASON_START TARGET SET_FITNESS")
	subTypes       = strings.Fields("NONE COMMUTE WARMUP COOLDOWN RACE")
	targets        = strings.Fields("AUTO POWER HR PACE")
	availabilities = strings.Fields("NORMAL LIMITED UNAVAILABLE")
	sports         = strings.Fields(`Ride Run Swim WeightTraining Hike Walk AlpineSki BackcountrySki Badminton Canoeing Crossfit EBikeRide
		EMountainBikeRide Elliptical Golf GravelRide TrackRide Handcycle HighIntensityIntervalTraining Hockey IceSkate InlineSkate Kayaking
		Kitesurf MountainBikeRide Cyclocross NordicSki OpenWaterSwim Padel Pilates Pickleball Racquetball Rugby RockClimbing RollerSki Rowing
		Sail Skateboard Snowboard Snowshoe Soccer Squash StairStepper StandUpPaddling Surfing TableTennis Tennis TrailRun Transition
		Velomobile VirtualRide VirtualRow VirtualRun VirtualSki WaterSport Wheelchair Windsurf Workout Yoga Other`)
)

type kind int

const (
	integer kind = iota
	decimal
	text
	flag
	choice // one of field.values
	moment // local date-time
	texts  // list of text
	choices
	anything // whatever JSON
)

// field is one property of an event. ours means that the server owns it and ignores what is sent.
type field struct {
	name   string
	kind   kind
	ours   bool
	values []string
	unset  any // what reads show when nothing was set
}

// eventFields is the schema, in the order of the answer. paired_activity_id is not in the published one but is answered.
var eventFields = []field{
	{name: "id", kind: integer, ours: true},
	{name: "start_date_local", kind: moment},
	{name: "icu_training_load", kind: integer},
	{name: "icu_atl", kind: decimal, ours: true},
	{name: "icu_ctl", kind: decimal, ours: true},
	{name: "type", kind: choice, values: sports},
	{name: "carbs_used", kind: integer, ours: true},
	{name: "ss_p_max", kind: decimal, ours: true},
	{name: "ss_w_prime", kind: decimal, ours: true},
	{name: "ss_cp", kind: decimal, ours: true},
	{name: "calendar_id", kind: integer},
	{name: "uid", kind: text, ours: true},
	{name: "athlete_id", kind: text, ours: true},
	{name: "category", kind: choice, values: categories},
	{name: "end_date_local", kind: moment},
	{name: "name", kind: text},
	{name: "description", kind: text},
	{name: "indoor", kind: flag},
	{name: "color", kind: text},
	{name: "moving_time", kind: integer},
	{name: "icu_ftp", kind: integer, ours: true},
	{name: "w_prime", kind: integer, ours: true},
	{name: "p_max", kind: integer, ours: true},
	{name: "atl_days", kind: integer},
	{name: "ctl_days", kind: integer},
	{name: "updated", kind: text, ours: true},
	{name: "not_on_fitness_chart", kind: flag, unset: false},
	{name: "show_as_note", kind: flag, unset: false},
	{name: "show_on_ctl_line", kind: flag, unset: false},
	{name: "for_week", kind: flag, unset: false},
	{name: "target", kind: choice, values: targets},
	{name: "joules", kind: integer, ours: true},
	{name: "joules_above_ftp", kind: integer, ours: true},
	{name: "workout_doc", kind: anything, ours: true},
	{name: "push_errors", kind: anything, ours: true},
	{name: "athlete_cannot_edit", kind: flag, unset: false},
	{name: "hide_from_athlete", kind: flag, unset: false},
	{name: "structure_read_only", kind: flag, unset: false},
	{name: "created_by_id", kind: text, ours: true},
	{name: "shared_event_id", kind: integer},
	{name: "entered", kind: flag},
	{name: "carbs_per_hour", kind: integer},
	{name: "sub_type", kind: choice, values: subTypes},
	{name: "distance", kind: decimal},
	{name: "tags", kind: texts},
	{name: "attachments", kind: anything, ours: true},
	{name: "oauth_client_id", kind: integer, ours: true},
	{name: "external_id", kind: text},
	{name: "load_target", kind: integer},
	{name: "time_target", kind: integer},
	{name: "distance_target", kind: decimal},
	{name: "training_availability", kind: choice, values: availabilities, unset: "NORMAL"},
	{name: "max_training_time", kind: integer},
	{name: "can_train_sports", kind: choices, values: sports},
	{name: "plan_athlete_id", kind: text, ours: true},
	{name: "plan_folder_id", kind: integer, ours: true},
	{name: "plan_workout_id", kind: integer, ours: true},
	{name: "plan_applied", kind: text, ours: true},
	{name: "icu_intensity", kind: decimal, ours: true},
	{name: "strain_score", kind: decimal, ours: true},
	{name: "paired_activity_id", kind: text, ours: true},
}

var fieldNamed = func() map[string]field {
	m := map[string]field{}
	for _, f := range eventFields {
		m[f.name] = f
	}
	return m
}()

// clearing is what an empty value means to a sparse write: take away what is there.
type clearing struct{}

// read turns what was sent for the field into what is kept: a value, clearing{}, or nil for a null.
func (f field) read(raw json.RawMessage) (any, *failure) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, nil
	}
	switch f.kind {
	case integer, decimal:
		return f.number(raw)
	case flag:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, f.malformed(raw)
		}
		return b, nil
	case texts, choices:
		return f.list(raw)
	case anything:
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return nil, f.malformed(raw)
		}
		return v, nil
	case text, choice, moment:
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, f.malformed(raw)
	}
	switch {
	case f.kind == choice && !slices.Contains(f.values, s):
		return nil, f.notOneOf(s)
	case f.kind == moment:
		return localTime(s)
	case s == "":
		return clearing{}, nil
	}
	return s, nil
}

func (f field) number(raw json.RawMessage) (any, *failure) {
	var n float64
	if json.Unmarshal(raw, &n) != nil {
		return nil, f.malformed(raw)
	}
	if n == -1 {
		return clearing{}, nil
	}
	if f.kind == decimal {
		return n, nil
	}
	if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
		return nil, f.malformed(raw)
	}
	return int64(n), nil
}

func (f field) list(raw json.RawMessage) (any, *failure) {
	var l []string
	if json.Unmarshal(raw, &l) != nil {
		return nil, f.malformed(raw)
	}
	if len(l) == 0 {
		return clearing{}, nil
	}
	if f.kind == choices {
		for _, s := range l {
			if !slices.Contains(f.values, s) {
				return nil, f.notOneOf(s)
			}
		}
	}
	return l, nil
}

func (f field) malformed(raw json.RawMessage) *failure {
	return refuse(400, fmt.Sprintf("JSON parse error: Cannot deserialize value of %s from %.40s", f.name, raw))
}

func (f field) notOneOf(s string) *failure {
	return refuse(400, fmt.Sprintf("JSON parse error: Cannot deserialize value of %s from String %.40q: not one of the values accepted for Enum class: %v", f.name, s, f.values))
}

// localTime reads what java.time.LocalDateTime reads: a date and a time, and no zone.
func localTime(s string) (any, *failure) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format("2006-01-02T15:04:05"), nil
		}
	}
	why := "at index 0"
	switch {
	case len(s) >= 10 && !strings.Contains(s[10:], "T"):
		why = "at index 10"
	case len(s) > 19:
		why = "unparsed text found at index 19"
	}
	return nil, refuse(422, fmt.Sprintf("Text '%.40s' could not be parsed %s", s, why))
}
