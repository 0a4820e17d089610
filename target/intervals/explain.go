package intervals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/workout"
)

// scene is the Context of a change: what a person needs around it to understand it. Nothing of it is executed, and
// nothing of it is checked again at apply.
type scene struct {
	Zone   string            `json:"zone"`
	Owner  string            `json:"owner,omitempty"`
	Limits map[string]limits `json:"thresholds,omitempty"` // by sport
	Around []neighbour       `json:"around,omitempty"`
	Hidden int               `json:"hidden,omitempty"` // how many more neighbours there are
}

// neighbour is an event that stands in the weeks of the change and is not part of it, on one day.
type neighbour struct {
	Day   string `json:"day"`
	Start string `json:"start,omitempty"` // HH:MM; "": the whole day
	Name  string `json:"name,omitempty"`
	Type  string `json:"type,omitempty"` // sport, or the category of what has none
}

// limits are the athlete's thresholds for a sport, in the service's own words and units.
type limits struct {
	FTP           int       `json:"ftp,omitempty"`
	IndoorFTP     int       `json:"indoor_ftp,omitempty"`
	PowerZones    []int     `json:"power_zones,omitempty"`
	LTHR          int       `json:"lthr,omitempty"`
	MaxHR         int       `json:"max_hr,omitempty"`
	HRZones       []int     `json:"hr_zones,omitempty"`
	ThresholdPace float64   `json:"threshold_pace,omitempty"` // m/s
	PaceZones     []float64 `json:"pace_zones,omitempty"`
}

// What a scene holds at most: a week of a busy calendar, and of names as much as a page can show.
const (
	maxNeighbours = 100
	maxNames      = 16 << 10 // bytes of all names together
	maxSceneDays  = 42       // further apart the days are not drawn
	sceneTime     = 5 * time.Second
)

// scene fills in Context. It costs one read at most, and a preview never fails because of it: without it a person sees
// less, and nothing wrong.
func (p *plan) scene(ctx context.Context) {
	s := scene{Zone: p.owner.TimeZone, Owner: p.owner.Name, Limits: map[string]limits{}}
	own := map[string]bool{}
	var days []string
	for i, op := range p.Ops {
		was, will := states(op, p.Before[i])
		own[op.Object] = true
		for _, e := range []event{was, will} {
			if d := e.day(); d != "" {
				days = append(days, d)
			}
			if sport := e.text("type"); sport != "" {
				if l, ok := limitsOf(p.owner.sports, sport); ok {
					s.Limits[sport] = l
				}
			}
		}
	}
	if oldest, newest, ok := weeks(days); ok {
		ctx, cancel := context.WithTimeout(ctx, sceneTime)
		defer cancel()
		if list, err := p.t.list(ctx, p.Account, oldest, newest); err != nil {
			p.warn("what else stands on those days could not be read")
		} else {
			s.neighbours(list, own, oldest, newest)
		}
	}
	if b, err := marshal(s); err == nil {
		p.Context = b
	}
}

// weeks are the Monday before the first day and the Sunday after the last.
func weeks(days []string) (oldest, newest time.Time, ok bool) {
	if len(days) == 0 {
		return oldest, newest, false
	}
	first, err := time.Parse(time.DateOnly, slices.Min(days))
	last, err2 := time.Parse(time.DateOnly, slices.Max(days))
	if err != nil || err2 != nil {
		return oldest, newest, false
	}
	oldest = first.AddDate(0, 0, -(int(first.Weekday())+6)%7)
	newest = last.AddDate(0, 0, 6-(int(last.Weekday())+6)%7)
	return oldest, newest, newest.Sub(oldest) < maxSceneDays*24*time.Hour
}

func (s *scene) neighbours(list []event, own map[string]bool, oldest, newest time.Time) {
	names := 0
	for _, e := range list {
		if own[EventID(e.id()).String()] {
			continue
		}
		n := neighbour{Start: clock(e), Name: e.text("name"), Type: cmp.Or(e.text("type"), e.text("category"))}
		start, end, err := e.span()
		if err != nil {
			start, _ = time.Parse(time.DateOnly, e.day())
			end = start
		}
		for d := start.Truncate(24 * time.Hour); !d.After(newest); d = d.AddDate(0, 0, 1) {
			if d.After(start) && !d.Before(end) {
				break
			}
			if d.Before(oldest) {
				continue
			}
			n.Day = d.Format(time.DateOnly)
			if len(s.Around) == maxNeighbours || names+len(n.Name) > maxNames {
				s.Hidden++
				continue
			}
			s.Around, names = append(s.Around, n), names+len(n.Name)
			n.Start = "" // of its other days it takes all
		}
	}
}

// clock is the local time of an event, "" for one of the whole day.
func clock(e event) string {
	if s := e.text("start_date_local"); len(s) >= len("2006-01-02T15:04") && s[11:] != "00:00:00" {
		return s[11:16]
	}
	return ""
}

// limitsOf finds the settings of the group that has the sport.
func limitsOf(settings json.RawMessage, sport string) (limits, bool) {
	var groups []json.RawMessage
	if json.Unmarshal(settings, &groups) != nil {
		return limits{}, false
	}
	for _, g := range groups {
		var of struct {
			Types []string `json:"types"`
		}
		var l limits
		if json.Unmarshal(g, &of) == nil && slices.Contains(of.Types, sport) && json.Unmarshal(g, &l) == nil {
			return l, true
		}
	}
	return limits{}, false
}

func (s scene) thresholds(e event) workout.Thresholds {
	l := s.Limits[e.text("type")]
	t := workout.Thresholds{FTP: l.FTP, PowerZones: l.PowerZones, LTHR: l.LTHR, MaxHR: l.MaxHR, HRZones: l.HRZones, ThresholdPace: l.ThresholdPace, PaceZones: l.PaceZones}
	if e.flag("indoor") && l.IndoorFTP > 0 {
		t.FTP = l.IndoorFTP
	}
	return t
}

// states are the event before an Op and after it; nil where there is none.
func states(op wetink.Op, before wetink.Snapshot) (was, will event) {
	if !before.Absent {
		was = fields(before)
	}
	if op.Action == Delete {
		return was, nil
	}
	var sent event
	if json.Unmarshal(op.Payload, &sent) != nil {
		return was, nil
	}
	will = event{}
	maps.Copy(will, was)
	for f, v := range sent {
		if empty(f, v) {
			v = json.RawMessage("null")
		}
		will[f] = v
	}
	return was, will
}

// Explain implements wetink.Explainer.
func (t *Target) Explain(terms wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	return Explain(terms, before)
}

// Explain needs no Target, so that a process without credentials can show a change. All of it follows from what was
// signed: the operations, the snapshots that they bind, and the Context.
func Explain(t wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	var s scene
	_ = json.Unmarshal(t.Context, &s) // a change from before there was one has none
	e := wetink.Explanation{Zone: s.Zone, Owner: s.Owner, Hidden: s.Hidden}
	for _, n := range s.Around {
		e.Around = append(e.Around, wetink.Entry{Day: n.Day, Start: n.Start, Short: short(n.Type, n.Name), Name: n.Name})
	}
	for i, op := range t.Ops {
		if i == len(before) {
			break
		}
		e.Ops = append(e.Ops, s.explain(string(t.Account), op, before[i]))
	}
	for i, o := range e.Ops {
		switch {
		case i == 0:
			e.Noun = o.Noun
		case e.Noun != o.Noun:
			e.Noun = "event"
		}
	}
	return e
}

func (s scene) explain(account string, op wetink.Op, before wetink.Snapshot) wetink.OpExplanation {
	was, will := states(op, before)
	known := was
	if known == nil {
		known = will
	}
	d := Diff(op, before)
	o := wetink.OpExplanation{Noun: noun(known.text("category")), Verb: verb(op, d, was, will), Name: known.text("name"), Fields: meanings(d, was, will)}
	o.Was, o.Will = entry(was), entry(will)
	if op.Action != Update || changed(d, "description") || changed(d, "type") || changed(d, "indoor") {
		o.Shape = [2]*wetink.Profile{s.profile(was), s.profile(will)}
	}
	events := "/api/v1/athlete/" + account + "/events"
	switch op.Action {
	case Create:
		o.Call = "POST " + events + "/bulk?upsert=true"
	case Update:
		o.Call = "PUT " + events + "/" + op.Object
	case Delete:
		o.Call = "DELETE " + events + "/" + op.Object
	}
	return o
}

func changed(d []wetink.FieldChange, field string) bool {
	return slices.ContainsFunc(d, func(f wetink.FieldChange) bool { return f.Field == field })
}

// noun is what people call an event of the category.
func noun(category string) string {
	switch {
	case category == "WORKOUT":
		return "session"
	case strings.HasPrefix(category, "RACE"):
		return "race"
	case category == "NOTE":
		return "note"
	case category == "HOLIDAY":
		return "holiday"
	case category == "SICK":
		return "sick day"
	case category == "INJURED":
		return "injured day"
	}
	return "event"
}

// verb is the outcome of an update in at most two words.
func verb(op wetink.Op, d []wetink.FieldChange, was, will event) string {
	if op.Action != Update {
		return op.Action
	}
	var verbs []string
	add := func(v string) {
		if !slices.Contains(verbs, v) {
			verbs = append(verbs, v)
		}
	}
	before, after := seconds(was), seconds(will)
	other, renamed := false, false
	for _, f := range d {
		switch f.Field {
		case "start_date_local":
			add("move")
		case "end_date_local":
			if !changed(d, "start_date_local") || span(was) != span(will) {
				add(map[bool]string{true: "shorten", false: "lengthen"}[span(will) < span(was)])
			}
		case "description", "workout", "moving_time":
			switch {
			case after < before && after > 0:
				add("shorten")
			case after > before && before > 0:
				add("lengthen")
			case f.Field == "description":
				add("rewrite")
			case f.Field == "moving_time":
				other = true
			}
		case "name":
			renamed = true
		default:
			other = true
		}
	}
	if renamed && (len(verbs) == 0 || len(verbs) == 1 && !slices.Contains([]string{"shorten", "lengthen", "rewrite"}, verbs[0])) {
		add("rename") // a new length has a new name as a rule
	}
	if other {
		add("change")
	}
	if len(verbs) == 0 || len(verbs) > 2 {
		return "change"
	}
	return strings.Join(verbs, " and ")
}

// seconds is how long an event is: by its text where that has steps, as the service computes it.
func seconds(e event) float64 {
	if s := workout.Parse(e.text("description")).Seconds(); s > 0 {
		return s
	}
	var n float64
	_ = json.Unmarshal(e["moving_time"], &n) // none is 0
	return n
}

func span(e event) time.Duration {
	start, end, err := e.span()
	if err != nil {
		return 0
	}
	return end.Sub(start)
}

func entry(e event) *wetink.Entry {
	if e.day() == "" {
		return nil
	}
	return &wetink.Entry{Day: e.day(), Start: clock(e), Short: short(cmp.Or(e.text("type"), e.text("category")), e.text("name")), Name: e.text("name")}
}

// short is one word of at most six letters for the strip of days.
func short(kind, name string) string {
	words := map[string]string{"WeightTraining": "Gym", "VirtualRide": "Ride", "GravelRide": "Ride", "MountainBikeRide": "Ride", "TrailRun": "Run",
		"VirtualRun": "Run", "OpenWaterSwim": "Swim", "NOTE": "Note", "HOLIDAY": "Off", "SICK": "Sick", "INJURED": "Hurt",
		"RACE_A": "Race", "RACE_B": "Race", "RACE_C": "Race"}
	if first, _, _ := strings.Cut(name, " "); len(first) >= 3 && len(first) <= 6 && !strings.ContainsFunc(first, func(r rune) bool { return r < 'A' || r > 'z' }) {
		return first
	}
	if w := words[kind]; w != "" {
		return w
	}
	if kind != "" && len(kind) <= 6 {
		return kind
	}
	return "Event"
}

// labels and kinds of every field that can be written, and of the one that Diff adds. What is not here nobody can explain.
var fieldMeanings = map[string]wetink.Meaning{
	"category":              {Label: "Category"},
	"start_date_local":      {Label: "Starts", Kind: wetink.Moment},
	"end_date_local":        {Label: "Ends before", Kind: wetink.Moment},
	"type":                  {Label: "Sport"},
	"sub_type":              {Label: "Sub-type"},
	"name":                  {Label: "Name"},
	"description":           {Label: "Text", Kind: wetink.Prose},
	"target":                {Label: "Target on devices"},
	"indoor":                {Label: "Indoors", Kind: wetink.Flag},
	"moving_time":           {Label: "Duration", Kind: wetink.Seconds},
	"distance":              {Label: "Distance", Kind: wetink.Metres},
	"icu_training_load":     {Label: "Training load", Kind: wetink.Number},
	"load_target":           {Label: "Load target", Kind: wetink.Number},
	"time_target":           {Label: "Time target", Kind: wetink.Seconds},
	"distance_target":       {Label: "Distance target", Kind: wetink.Metres},
	"color":                 {Label: "Colour"},
	"tags":                  {Label: "Tags"},
	"show_as_note":          {Label: "Shown as a note", Kind: wetink.Flag},
	"not_on_fitness_chart":  {Label: "Hidden on the fitness chart", Kind: wetink.Flag},
	"show_on_ctl_line":      {Label: "Shown on the fitness line", Kind: wetink.Flag},
	"for_week":              {Label: "For the whole week", Kind: wetink.Flag},
	"training_availability": {Label: "Availability"},
	"max_training_time":     {Label: "Longest training", Kind: wetink.Seconds},
	"can_train_sports":      {Label: "Sports one can train"},
	"carbs_per_hour":        {Label: "Carbohydrates", Kind: wetink.Number, Unit: "g/h"},
	"entered":               {Label: "Race is entered", Kind: wetink.Flag},
	"workout":               {Label: "Steps"},
}

func meanings(d []wetink.FieldChange, was, will event) map[string]wetink.Meaning {
	list := maps.Clone(fieldMeanings)
	note := func(field, text string) {
		m := list[field]
		m.Note = text
		list[field] = m
	}
	if was == nil || will == nil {
		return list
	}
	if changed(d, "start_date_local") {
		note("start_date_local", later(was.text("start_date_local"), will.text("start_date_local")))
		if span(was) == span(will) {
			note("end_date_local", "follows the start")
		}
	}
	before, after := seconds(was), seconds(will)
	if changed(d, "workout") && before > 0 && after > 0 {
		note("workout", apart(after-before)+", follows from the text")
	}
	if changed(d, "moving_time") && before > 0 && after > 0 && !changed(d, "workout") {
		note("moving_time", apart(after-before))
	}
	return list
}

func apart(secs float64) string {
	d := time.Duration(secs * float64(time.Second)).Round(time.Second)
	switch {
	case d < 0:
		return spell(-d) + " shorter"
	case d > 0:
		return spell(d) + " longer"
	}
	return "as long as before"
}

// later tells how far an event moves in its calendar; local times have no zone, so a day is a day.
func later(from, to string) string {
	a, err := time.Parse(localLayout, from)
	b, err2 := time.Parse(localLayout, to)
	if err != nil || err2 != nil {
		return ""
	}
	days := int(b.Truncate(24*time.Hour).Sub(a.Truncate(24*time.Hour)).Hours() / 24)
	shift := b.Sub(b.Truncate(24*time.Hour)) - a.Sub(a.Truncate(24*time.Hour))
	day := "same day"
	if days != 0 {
		day = fmt.Sprintf("%d days ", max(days, -days))
		if days == 1 || days == -1 {
			day = "1 day "
		}
		day += map[bool]string{true: "later", false: "earlier"}[days > 0]
	}
	switch {
	case shift == 0:
		return day + ", same time"
	case shift > 0:
		return day + ", " + spell(shift) + " later in the day"
	}
	return day + ", " + spell(-shift) + " earlier in the day"
}

// spell writes a length of time in full.
func spell(d time.Duration) string {
	var parts []string
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.of; n > 0 {
			parts, d = append(parts, fmt.Sprintf("%d %s", n, u.name)), d%u.of
		}
	}
	if len(parts) == 0 {
		return "0 s"
	}
	return strings.Join(parts, " ")
}

// What a drawing, and its sentence, take in.
const (
	maxPieces = 500
	maxSaid   = 40
)

// profile is the shape of an event's workout; nil without a text that has, or tries to have, steps.
func (s scene) profile(e event) *wetink.Profile {
	text := e.text("description")
	doc := workout.Parse(text)
	if len(doc.Steps) == 0 && len(doc.Discarded) == 0 && len(doc.Misread) == 0 {
		return nil
	}
	t := s.thresholds(e)
	p := &wetink.Profile{Says: workout.Say(doc, maxSaid), Scale: scale(doc, t)}
	if list, ok := workout.Shape(doc, t, maxPieces); ok {
		for _, x := range list {
			p.Segments = append(p.Segments, wetink.Segment(x))
		}
	}
	if load, ok := workout.Load(doc, t); ok {
		p.Load, p.Estimate = load.Load, load.Estimate
	}
	lines := strings.Split(text, "\n")
	for _, l := range slices.Concat(doc.Discarded, doc.Misread) {
		takes := !strings.HasPrefix(l.Reason, "no blank line after") // that one is read, and reaches further than meant
		if takes && l.Number > 0 && l.Number <= len(lines) {
			p.Ignored = append(p.Ignored, strings.TrimSpace(lines[l.Number-1]))
		}
	}
	return p
}

// scale says what height 1 is.
func scale(d workout.Doc, t workout.Thresholds) string {
	uses := map[string]bool{}
	var walk func([]workout.Step)
	walk = func(steps []workout.Step) {
		for _, s := range steps {
			uses["power"] = uses["power"] || s.Power != nil
			uses["hr"] = uses["hr"] || s.HR != nil
			uses["pace"] = uses["pace"] || s.Pace != nil
			walk(s.Steps)
		}
	}
	walk(d.Steps)
	var parts []string
	if uses["power"] && t.FTP > 0 {
		parts = append(parts, fmt.Sprintf("FTP, %d W", t.FTP))
	}
	if uses["hr"] && t.LTHR > 0 {
		parts = append(parts, fmt.Sprintf("threshold heart rate, %d bpm", t.LTHR))
	}
	if uses["pace"] && t.ThresholdPace > 0 {
		per := int(1000/t.ThresholdPace + 0.5)
		parts = append(parts, fmt.Sprintf("threshold pace, %d:%02d/km", per/60, per%60))
	}
	if len(parts) == 0 {
		return ""
	}
	return "100 % " + strings.Join(parts, "; ")
}
