package intervals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ActivityQuery asks for recordings.
type ActivityQuery struct {
	Days
	Limit  int      `json:"limit,omitempty" jsonschema:"the newest ones, 1 to 200; 50 by default"`
	Fields []string `json:"fields,omitempty" jsonschema:"these fields instead of the usual ones, under the service's names, such as icu_training_load, decoupling, compliance"`
}

// Activities is the answer, newest first.
type Activities struct {
	Today
	Days
	Activities []any `json:"activities"` // ActivityRow, or json.RawMessage of the asked-for fields
	More       bool  `json:"more,omitempty"`
}

// ActivityRow is a recording in short.
type ActivityRow struct {
	ID              string      `json:"id"`
	StartDateLocal  string      `json:"start_date_local,omitempty"`
	Weekday         string      `json:"weekday,omitempty"`
	Type            string      `json:"type,omitempty"`
	Name            string      `json:"name,omitempty"`
	Unavailable     string      `json:"unavailable,omitempty"` // StravaLicence: what is missing here is unknown, and not nothing
	MovingTime      json.Number `json:"moving_time,omitempty"` // s
	Distance        json.Number `json:"distance,omitempty"`    // m
	ElevationGain   json.Number `json:"total_elevation_gain,omitempty"`
	TrainingLoad    json.Number `json:"icu_training_load,omitempty"`
	Intensity       json.Number `json:"icu_intensity,omitempty"` // % of FTP
	AverageWatts    json.Number `json:"icu_average_watts,omitempty"`
	NormalizedWatts json.Number `json:"icu_weighted_avg_watts,omitempty"`
	AverageHR       json.Number `json:"average_heartrate,omitempty"`
	MaxHR           json.Number `json:"max_heartrate,omitempty"`
	RPE             json.Number `json:"icu_rpe,omitempty"`
	Feel            json.Number `json:"feel,omitempty"` // 1 strong to 5 weak
	PairedEventID   json.Number `json:"paired_event_id,omitempty"`
	Source          string      `json:"source,omitempty"`
	Unread
}

// activityFields are asked for by name: there are 178.
var activityFields = []string{"id", "start_date_local", "type", "name", "moving_time", "distance", "total_elevation_gain", "icu_training_load",
	"icu_intensity", "icu_average_watts", "icu_weighted_avg_watts", "average_heartrate", "max_heartrate", "icu_rpe", "feel", "paired_event_id", "source"}

// ActivityDetail is a recording with more of what is measured.
type ActivityDetail struct {
	ActivityRow
	ElapsedTime    json.Number `json:"elapsed_time,omitempty"` // s
	AverageSpeed   json.Number `json:"average_speed,omitempty"`
	Pace           json.Number `json:"pace,omitempty"` // m/s
	AverageCadence json.Number `json:"average_cadence,omitempty"`
	Joules         json.Number `json:"icu_joules,omitempty"`
	Calories       json.Number `json:"calories,omitempty"`
	Decoupling     json.Number `json:"decoupling,omitempty"` // %
	Compliance     json.Number `json:"compliance,omitempty"` // %
	SessionRPE     json.Number `json:"session_rpe,omitempty"`
	FTP            json.Number `json:"icu_ftp,omitempty"`
	CTL            json.Number `json:"icu_ctl,omitempty"`
	ATL            json.Number `json:"icu_atl,omitempty"`
	Trainer        bool        `json:"trainer,omitempty"`
	Race           bool        `json:"race,omitempty"`
	Tags           []string    `json:"tags,omitempty"`
	Analyzed       string      `json:"analyzed,omitempty"` // UTC
	Description    string      `json:"description,omitempty"`
}

// stub tells whether all that the service may pass on is that there is something.
func (e event) stub() bool {
	return !e.set("type") && (strings.EqualFold(e.text("source"), "STRAVA") || e.set("_note"))
}

func (r *ActivityRow) finish(e event) {
	r.Weekday = weekday(r.StartDateLocal)
	if e.stub() {
		r.Unavailable = StravaLicence
	}
}

var fieldForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// Activities lists recordings: by default of the last fourteen days.
func (c *Client) Activities(ctx context.Context, q ActivityQuery) (Activities, error) {
	limit, err := limited(q.Limit, 50, 200)
	if err != nil {
		return Activities{}, err
	}
	if len(q.Fields) > 60 {
		return Activities{}, bad("fields", fmt.Sprintf("%d of them", len(q.Fields)), "ask for at most 60")
	}
	for i, f := range q.Fields {
		if !fieldForm.MatchString(f) {
			return Activities{}, bad(fmt.Sprintf("fields[%d]", i), fmt.Sprintf("%q is no field", clean(f)), "use the service's names, such as icu_training_load")
		}
	}
	out := Activities{Activities: []any{}}
	if out.Today, err = c.Today(ctx); err != nil {
		return out, err
	}
	if out.Days, err = q.within(out.Today, 13, 0); err != nil {
		return out, err
	}
	fields := activityFields
	if len(q.Fields) > 0 {
		fields = unique(append([]string{"id", "start_date_local", "type", "source"}, q.Fields...))
	}
	query := out.query()
	query.Set("limit", strconv.Itoa(limit+1))
	query.Set("fields", strings.Join(fields, ","))
	var list []event
	if err := c.get(ctx, c.own("/activities"), query, &list); err != nil {
		return out, err
	}
	if len(list) > limit {
		list, out.More = list[:limit], true
	}
	for _, e := range list {
		if len(q.Fields) == 0 {
			var r ActivityRow
			fill(e, &r)
			r.finish(e)
			out.Activities = append(out.Activities, r)
			continue
		}
		whole, err := wholeActivity(e)
		if err != nil {
			return out, err
		}
		out.Activities = append(out.Activities, whole)
	}
	return out, nil
}

func wholeActivity(e event) (json.RawMessage, error) {
	if e.stub() {
		e["unavailable"] = quote(StravaLicence)
	}
	return e.whole("start_date_local")
}

func activityPath(id ActivityID) string { return "/activity/" + url.PathEscape(string(id)) }

func (c *Client) activity(ctx context.Context, id ActivityID) (event, error) {
	if !activityForm.MatchString(string(id)) {
		return nil, bad("activity_id", fmt.Sprintf("%q is no id", clean(string(id))), "use the one that list_activities gives, such as i88001101")
	}
	var e event
	err := c.get(ctx, activityPath(id), nil, &e)
	return e, notFound(err, "activity_id", "activity "+string(id), "look it up with list_activities")
}

// Activity reads one recording: an ActivityDetail, or everything as it came.
func (c *Client) Activity(ctx context.Context, id ActivityID, full bool) (any, error) {
	e, err := c.activity(ctx, id)
	if err != nil {
		return nil, err
	}
	if full {
		return wholeActivity(e)
	}
	var d ActivityDetail
	fill(e, &d)
	d.finish(e)
	return d, nil
}

// part reads what belongs to a recording. The service refuses it of Strava's recordings, and of those that it has not
// analysed yet; why says which.
func (c *Client) part(ctx context.Context, id ActivityID, path string, query url.Values, into any) (why string, err error) {
	if !activityForm.MatchString(string(id)) {
		_, err := c.activity(ctx, id)
		return "", err
	}
	err = c.get(ctx, activityPath(id)+path, query, into)
	var api *APIError
	if !errors.As(err, &api) || api.Status != http.StatusNotFound && api.Status != http.StatusUnprocessableEntity {
		return "", err
	}
	e, gone := c.activity(ctx, id)
	switch {
	case gone != nil:
		return "", gone
	case e.stub():
		return StravaLicence, nil
	case !e.set("analyzed"):
		return NotAnalysed, nil
	}
	return "", err
}

// Intervals are the efforts of a recording.
type Intervals struct {
	ActivityID  ActivityID    `json:"activity_id"`
	Unavailable string        `json:"unavailable,omitempty"`
	Analyzed    string        `json:"analyzed,omitempty"` // UTC
	Intervals   []IntervalRow `json:"intervals"`
	Groups      []IntervalRow `json:"groups,omitempty"` // of efforts that are alike
}

// IntervalRow is one effort.
type IntervalRow struct {
	Type            string      `json:"type,omitempty"` // WORK or RECOVERY
	Label           string      `json:"label,omitempty"`
	GroupID         string      `json:"group_id,omitempty"`
	Count           json.Number `json:"count,omitempty"`       // of a group
	StartTime       json.Number `json:"start_time,omitempty"`  // s
	EndTime         json.Number `json:"end_time,omitempty"`    // s
	MovingTime      json.Number `json:"moving_time,omitempty"` // s
	Distance        json.Number `json:"distance,omitempty"`    // m
	AverageWatts    json.Number `json:"average_watts,omitempty"`
	NormalizedWatts json.Number `json:"weighted_average_watts,omitempty"`
	MaxWatts        json.Number `json:"max_watts,omitempty"`
	AverageHR       json.Number `json:"average_heartrate,omitempty"`
	MaxHR           json.Number `json:"max_heartrate,omitempty"`
	AverageCadence  json.Number `json:"average_cadence,omitempty"`
	AverageSpeed    json.Number `json:"average_speed,omitempty"` // m/s
	Climb           json.Number `json:"total_elevation_gain,omitempty"`
	Intensity       json.Number `json:"intensity,omitempty"` // % of FTP
	TrainingLoad    json.Number `json:"training_load,omitempty"`
	Zone            json.Number `json:"zone,omitempty"`
	Unread
}

// Intervals reads the efforts of a recording.
func (c *Client) Intervals(ctx context.Context, id ActivityID) (Intervals, error) {
	out := Intervals{ActivityID: id, Intervals: []IntervalRow{}}
	var raw struct {
		Analyzed  string  `json:"analyzed"`
		Intervals []event `json:"icu_intervals"`
		Groups    []event `json:"icu_groups"`
	}
	why, err := c.part(ctx, id, "/intervals", nil, &raw)
	if err != nil {
		return out, err
	}
	out.Unavailable, out.Analyzed = why, raw.Analyzed
	for _, e := range raw.Intervals {
		var r IntervalRow
		fill(e, &r)
		out.Intervals = append(out.Intervals, r)
	}
	for _, e := range raw.Groups {
		var r IntervalRow
		fill(e, &r)
		r.GroupID = e.text("id")
		out.Groups = append(out.Groups, r)
	}
	return out, nil
}

// StreamQuery asks for samples of a recording.
type StreamQuery struct {
	ActivityID ActivityID `json:"activity_id" jsonschema:"from list_activities"`
	Types      []string   `json:"types,omitempty" jsonschema:"such as watts, heartrate, cadence, velocity_smooth, altitude, latlng; watts and heartrate by default"`
	MaxPoints  int        `json:"max_points,omitempty" jsonschema:"at most this many samples of each, 2 to 5000; 300 by default; evenly thinned, not averaged"`
}

// Streams are samples of a recording, every Every-th of those that there are.
type Streams struct {
	ActivityID  ActivityID `json:"activity_id"`
	Unavailable string     `json:"unavailable,omitempty"`
	Samples     int        `json:"samples"` // that the recording has
	Every       int        `json:"every"`
	Streams     []Stream   `json:"streams"`
	Missing     []string   `json:"missing,omitempty"` // asked for, and not recorded
}

// Stream is one of them. A gap in the recording is null. Data2 is the longitude of latlng.
type Stream struct {
	Type  string            `json:"type"`
	Data  []json.RawMessage `json:"data"`
	Data2 []json.RawMessage `json:"data2,omitempty"`
}

// Streams reads samples. time is always among them, for recordings pause.
func (c *Client) Streams(ctx context.Context, q StreamQuery) (Streams, error) {
	out := Streams{ActivityID: q.ActivityID, Every: 1, Streams: []Stream{}}
	most := q.MaxPoints
	switch {
	case most == 0:
		most = 300
	case most < 2 || most > 5000:
		return out, bad("max_points", strconv.Itoa(most), "use 2 to 5000")
	}
	wanted := q.Types
	if len(wanted) == 0 {
		wanted = []string{"watts", "heartrate"}
	}
	if len(wanted) > 12 {
		return out, bad("types", fmt.Sprintf("%d of them", len(wanted)), "ask for at most 12")
	}
	for i, t := range wanted {
		if !fieldForm.MatchString(t) {
			return out, bad(fmt.Sprintf("types[%d]", i), fmt.Sprintf("%q is no stream", clean(t)), "use names such as watts, heartrate or cadence")
		}
	}
	wanted = unique(append([]string{"time"}, wanted...))
	var list []Stream
	why, err := c.part(ctx, q.ActivityID, "/streams", url.Values{"types": {strings.Join(wanted, ",")}}, &list)
	if err != nil || why != "" {
		out.Unavailable = why
		return out, err
	}
	for _, s := range list {
		out.Samples = max(out.Samples, len(s.Data))
	}
	out.Every = max(1, (out.Samples+most-1)/most)
	for _, name := range wanted {
		i := slices.IndexFunc(list, func(s Stream) bool { return s.Type == name })
		if i < 0 {
			out.Missing = append(out.Missing, name)
			continue
		}
		out.Streams = append(out.Streams, Stream{name, thin(list[i].Data, out.Every), thin(list[i].Data2, out.Every)})
	}
	return out, nil
}

// thin keeps every n-th sample, as it came: an average would be a number that nobody measured.
func thin(data []json.RawMessage, n int) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(data)/n+1)
	for i := 0; i < len(data); i += n {
		v := data[i]
		if v == nil {
			v = json.RawMessage("null")
		}
		out = append(out, v)
	}
	return out
}
