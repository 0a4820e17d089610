package intervals

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wetink/wetink/target/intervals/workout"
)

// MaxListed events in one answer.
const MaxListed = 500

// EventQuery asks for a part of the calendar.
type EventQuery struct {
	Days
	Categories []string `json:"categories,omitempty" jsonschema:"only these, such as WORKOUT, RACE_A, NOTE, HOLIDAY; all of them by default"`
	Limit      int      `json:"limit,omitempty" jsonschema:"at most this many events, 1 to 500; 200 by default"`
	Full       bool     `json:"full,omitempty" jsonschema:"every field that the service has; long"`
}

// Calendar is the answer: what overlaps the days, by start. An event that began before them is included.
type Calendar struct {
	Today
	Days
	Events []any `json:"events"` // EventRow, or json.RawMessage with Full
	More   bool  `json:"more,omitempty"`
}

// EventRow is an event in short.
type EventRow struct {
	ID             json.Number `json:"id"`
	StartDateLocal string      `json:"start_date_local"`
	Weekday        string      `json:"weekday,omitempty"`
	EndDateLocal   string      `json:"end_date_local,omitempty"` // exclusive; not shown of a single day
	Category       string      `json:"category"`
	Type           string      `json:"type,omitempty"` // sport
	Name           string      `json:"name"`
	MovingTime     json.Number `json:"moving_time,omitempty"` // s
	Distance       json.Number `json:"distance,omitempty"`    // m
	TrainingLoad   json.Number `json:"icu_training_load,omitempty"`
	LoadTarget     json.Number `json:"load_target,omitempty"`
	TimeTarget     json.Number `json:"time_target,omitempty"`     // s
	DistanceTarget json.Number `json:"distance_target,omitempty"` // m
	Indoor         bool        `json:"indoor,omitempty"`
	Tags           []string    `json:"tags,omitempty"`
	Color          string      `json:"color,omitempty"`
	Paired         string      `json:"paired_activity_id,omitempty"`
	Locked         bool        `json:"athlete_cannot_edit,omitempty"`
	PlanWorkoutID  json.Number `json:"plan_workout_id,omitempty"`
	CalendarID     json.Number `json:"calendar_id,omitempty"` // not shown of the athlete's own
	Unread
}

func rowOf(e event) EventRow {
	var r EventRow
	fill(e, &r)
	r.shorten()
	return r
}

func (r *EventRow) shorten() {
	r.Weekday = weekday(r.StartDateLocal)
	if r.CalendarID == "1" {
		r.CalendarID = ""
	}
	if len(r.StartDateLocal) >= 10 && len(r.EndDateLocal) >= 10 {
		if from, err := day("", r.StartDateLocal[:10]); err == nil && r.EndDateLocal <= from.AddDate(0, 0, 1).Format("2006-01-02")+"T00:00:00" {
			r.EndDateLocal = ""
		}
	}
}

// EventDetail is an event with its text.
type EventDetail struct {
	EventRow
	SubType      string          `json:"sub_type,omitempty"`
	Target       string          `json:"target,omitempty"`
	Intensity    json.Number     `json:"icu_intensity,omitempty"` // % of FTP
	Availability string          `json:"training_availability,omitempty"`
	ForWeek      bool            `json:"for_week,omitempty"`
	ShowAsNote   bool            `json:"show_as_note,omitempty"`
	ExternalID   string          `json:"external_id,omitempty"`
	Updated      string          `json:"updated,omitempty"`     // UTC
	Description  string          `json:"description,omitempty"` // the workout's text
	Steps        int             `json:"workout_steps"`         // that the service reads in it
	PushErrors   json.RawMessage `json:"push_errors,omitempty"` // of devices
}

// Events lists the events that overlap the days, as they came; category may be "" or several with commas.
func (c *Client) Events(ctx context.Context, oldest, newest, category string) ([]json.RawMessage, error) {
	q := Days{oldest, newest}.query()
	if category != "" {
		q.Set("category", category)
	}
	var list []json.RawMessage
	err := c.get(ctx, c.own("/events"), q, &list)
	return list, err
}

// Calendar lists events: by default of today and the next six days, today in the athlete's zone.
func (c *Client) Calendar(ctx context.Context, q EventQuery) (Calendar, error) {
	limit, err := limited(q.Limit, 200, MaxListed)
	if err != nil {
		return Calendar{}, err
	}
	known := slices.Concat(categories, modelled)
	wanted := slices.Clone(q.Categories)
	for i, name := range wanted {
		if wanted[i] = strings.ToUpper(name); !slices.Contains(known, wanted[i]) {
			return Calendar{}, bad(fmt.Sprintf("categories[%d]", i), fmt.Sprintf("%q is no category", clean(name)), "use "+strings.Join(known, ", "))
		}
	}
	out := Calendar{Events: []any{}}
	if out.Today, err = c.Today(ctx); err != nil {
		return out, err
	}
	if out.Days, err = q.within(out.Today, 0, 6); err != nil {
		return out, err
	}
	query := out.query()
	query.Set("limit", strconv.Itoa(limit+1)) // one more tells whether there are more
	if len(wanted) > 0 {
		query.Set("category", strings.Join(wanted, ","))
	}
	var list []event
	if err := c.get(ctx, c.own("/events"), query, &list); err != nil {
		return out, err
	}
	if len(list) > limit {
		list, out.More = list[:limit], true
	}
	for _, e := range list {
		if !q.Full {
			out.Events = append(out.Events, rowOf(e))
			continue
		}
		whole, err := e.whole("start_date_local")
		if err != nil {
			return out, err
		}
		out.Events = append(out.Events, whole)
	}
	return out, nil
}

// Event reads one event: an EventDetail, or everything as it came.
func (c *Client) Event(ctx context.Context, id EventID, full bool) (any, error) {
	var e event
	if err := c.get(ctx, c.own("/events/"+id.String()), nil, &e); err != nil {
		return nil, notFound(err, "event_id", "event "+id.String(), "look it up with list_events")
	}
	if full {
		return e.whole("start_date_local")
	}
	var d EventDetail
	fill(e, &d)
	d.shorten()
	if d.Availability == "NORMAL" {
		d.Availability = ""
	}
	if sum, err := workout.ServerSummary(e["workout_doc"]); err == nil {
		d.Steps = sum.Steps
	} else {
		d.Unread.Unread = append(d.Unread.Unread, "workout_doc")
	}
	return d, nil
}

// LibraryQuery asks for workouts of the library.
type LibraryQuery struct {
	FolderID int64 `json:"folder_id,omitempty" jsonschema:"only this folder or plan; all of them by default"`
	Full     bool  `json:"full,omitempty" jsonschema:"with the text of each workout and every other field; long"`
}

// Library is the answer. The service has no list of one folder's workouts: they are all read.
type Library struct {
	Folders  []Folder `json:"folders"`
	Workouts []any    `json:"workouts"` // WorkoutRow, or json.RawMessage with Full
}

// Folder or plan of the library. Tokens by which it is shared are not among what is shown.
type Folder struct {
	ID          json.Number `json:"id"`
	Type        string      `json:"type,omitempty"` // FOLDER or PLAN
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Workouts    json.Number `json:"num_workouts,omitempty"`
	Weeks       json.Number `json:"duration_weeks,omitempty"`
	Unread
}

// WorkoutRow is a workout of the library in short.
type WorkoutRow struct {
	ID           json.Number `json:"id"`
	FolderID     json.Number `json:"folder_id,omitempty"`
	Name         string      `json:"name"`
	Type         string      `json:"type,omitempty"`
	MovingTime   json.Number `json:"moving_time,omitempty"` // s
	Distance     json.Number `json:"distance,omitempty"`    // m
	TrainingLoad json.Number `json:"icu_training_load,omitempty"`
	Intensity    json.Number `json:"icu_intensity,omitempty"` // % of FTP
	Target       string      `json:"target,omitempty"`
	Indoor       bool        `json:"indoor,omitempty"`
	Tags         []string    `json:"tags,omitempty"`
	Day          json.Number `json:"day,omitempty"` // of a plan, from 0
	Unread
}

// Library lists the folders and the workouts in them.
func (c *Client) Library(ctx context.Context, q LibraryQuery) (Library, error) {
	out := Library{[]Folder{}, []any{}}
	var folders, workouts []event
	if err := c.get(ctx, c.own("/folders"), nil, &folders); err != nil {
		return out, err
	}
	for _, e := range folders {
		if q.FolderID != 0 && e.id() != q.FolderID {
			continue
		}
		var f Folder
		fill(e, &f)
		out.Folders = append(out.Folders, f)
	}
	if q.FolderID != 0 && len(out.Folders) == 0 {
		return out, bad("folder_id", fmt.Sprintf("there is no folder %d", q.FolderID), "leave it out to see all folders")
	}
	if err := c.get(ctx, c.own("/workouts"), nil, &workouts); err != nil {
		return out, err
	}
	for _, e := range workouts {
		if q.FolderID != 0 && string(e["folder_id"]) != strconv.FormatInt(q.FolderID, 10) {
			continue
		}
		if q.Full {
			b, err := encode(e)
			if err != nil {
				return out, err
			}
			out.Workouts = append(out.Workouts, b)
			continue
		}
		var w WorkoutRow
		fill(e, &w)
		out.Workouts = append(out.Workouts, w)
	}
	return out, nil
}

// Athlete is whose account it is. It is a list of what may be shown: the service also sends the API key, the e-mail
// address, the date of birth and invitation tokens, and may send more tomorrow.
type Athlete struct {
	ID            string      `json:"id"`
	Name          string      `json:"name,omitempty"`
	Sex           string      `json:"sex,omitempty"`
	Locale        string      `json:"locale,omitempty"`
	Units         string      `json:"measurement_preference,omitempty"` // for showing; what is read is metric
	PoundsShown   bool        `json:"weight_pref_lb,omitempty"`
	Fahrenheit    bool        `json:"fahrenheit,omitempty"`
	Weight        json.Number `json:"icu_weight,omitempty"` // kg
	RestingHR     json.Number `json:"icu_resting_hr,omitempty"`
	FormAsPercent bool        `json:"icu_form_as_percent,omitempty"`
	Availability  string      `json:"training_availability,omitempty"`
	Unread
}

// Profile is the athlete, today there, and the services that planned workouts are sent to.
type Profile struct {
	Athlete
	Today
	UploadsTo []string `json:"uploads_planned_workouts_to,omitempty"`
}

// Profile reads the athlete.
func (c *Client) Profile(ctx context.Context) (Profile, error) {
	var p Profile
	e, err := c.athleteObject(ctx)
	if err != nil {
		return p, err
	}
	fill(e, &p.Athlete)
	p.UploadsTo = slices.Sorted(maps.Keys(uploads(e)))
	p.Today, err = c.today(e)
	return p, err
}

// SportSettings are thresholds and zones of a group of sports.
type SportSettings struct {
	ID             json.Number       `json:"id"`
	Types          []string          `json:"types"`
	FTP            json.Number       `json:"ftp,omitempty"`        // W
	IndoorFTP      json.Number       `json:"indoor_ftp,omitempty"` // W
	WPrime         json.Number       `json:"w_prime,omitempty"`    // J
	PMax           json.Number       `json:"p_max,omitempty"`      // W
	PowerZones     []json.Number     `json:"power_zones,omitempty"`
	PowerZoneNames []string          `json:"power_zone_names,omitempty"`
	LTHR           json.Number       `json:"lthr,omitempty"`   // bpm
	MaxHR          json.Number       `json:"max_hr,omitempty"` // bpm
	HRZones        []json.Number     `json:"hr_zones,omitempty"`
	ThresholdPace  json.Number       `json:"threshold_pace,omitempty"`
	PaceUnits      string            `json:"pace_units,omitempty"`
	PaceZones      []json.Number     `json:"pace_zones,omitempty"`
	LoadOrder      string            `json:"load_order,omitempty"`
	WorkoutOrder   string            `json:"workout_order,omitempty"`
	Measures       map[string]string `json:"units,omitempty"` // of the numbers above, in which people err
	Unread
}

// measures: a swim threshold is m/s, too, whatever pace_units says, which is only how it is shown.
var measures = map[string]string{"threshold_pace": "m/s", "power_zones": "% of FTP, upper ends", "pace_zones": "% of threshold pace, upper ends", "hr_zones": "bpm, upper ends"}

// SportSettings lists them; sport may be "" for all.
func (c *Client) SportSettings(ctx context.Context, sport string) ([]SportSettings, error) {
	if sport != "" && !slices.ContainsFunc(sports, func(s string) bool { return strings.EqualFold(s, sport) }) {
		return nil, bad("sport", fmt.Sprintf("%q is no sport", clean(sport)), "use one such as Ride, Run or Swim")
	}
	var list []event
	if err := c.get(ctx, c.own("/sport-settings"), nil, &list); err != nil {
		return nil, err
	}
	out := []SportSettings{}
	for _, e := range list {
		s := SportSettings{Types: []string{}}
		fill(e, &s)
		if sport != "" && !slices.ContainsFunc(s.Types, func(t string) bool { return strings.EqualFold(t, sport) }) {
			continue
		}
		for f, unit := range measures {
			if e.set(f) {
				if s.Measures == nil {
					s.Measures = map[string]string{}
				}
				s.Measures[f] = unit
			}
		}
		out = append(out, s)
	}
	return out, nil
}
