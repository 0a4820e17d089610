package intervals

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WellnessQuery asks for days of wellness.
type WellnessQuery struct {
	Days
	Full bool `json:"full,omitempty" jsonschema:"every field, the athlete's own among them; long"`
}

// Wellness is the answer, oldest first.
type Wellness struct {
	Today
	Days
	Wellness []any `json:"wellness"` // WellnessRow, or json.RawMessage with Full
}

// WellnessRow is a day in short, in the scales of the service or of the device that sent it.
type WellnessRow struct {
	Date         string          `json:"id"`
	Weekday      string          `json:"weekday,omitempty"`
	Weight       json.Number     `json:"weight,omitempty"`    // kg
	RestingHR    json.Number     `json:"restingHR,omitempty"` // bpm
	HRV          json.Number     `json:"hrv,omitempty"`       // rMSSD, ms
	HRVSDNN      json.Number     `json:"hrvSDNN,omitempty"`   // ms
	SleepSecs    json.Number     `json:"sleepSecs,omitempty"`
	SleepScore   json.Number     `json:"sleepScore,omitempty"`   // 0 to 100
	SleepQuality json.Number     `json:"sleepQuality,omitempty"` // 1 to 4
	Soreness     json.Number     `json:"soreness,omitempty"`
	Fatigue      json.Number     `json:"fatigue,omitempty"`
	Stress       json.Number     `json:"stress,omitempty"`
	Mood         json.Number     `json:"mood,omitempty"`
	Motivation   json.Number     `json:"motivation,omitempty"`
	Injury       json.Number     `json:"injury,omitempty"`
	Readiness    json.Number     `json:"readiness,omitempty"` // the scale is the device's
	VO2max       json.Number     `json:"vo2max,omitempty"`
	SportInfo    json.RawMessage `json:"sportInfo,omitempty"` // estimates by sport
	Comments     string          `json:"comments,omitempty"`
	Locked       bool            `json:"locked,omitempty"` // devices no longer overwrite it
	Unread
}

// Wellness lists days: by default the last seven.
func (c *Client) Wellness(ctx context.Context, q WellnessQuery) (Wellness, error) {
	out := Wellness{Wellness: []any{}}
	var list []event
	var err error
	if out.Today, out.Days, list, err = c.wellness(ctx, q.Days, 6, 0, ""); err != nil {
		return out, err
	}
	for _, e := range list {
		if !q.Full {
			var r WellnessRow
			fill(e, &r)
			r.Weekday = weekday(r.Date)
			out.Wellness = append(out.Wellness, r)
			continue
		}
		whole, err := e.whole("id")
		if err != nil {
			return out, err
		}
		out.Wellness = append(out.Wellness, whole)
	}
	return out, nil
}

func (c *Client) wellness(ctx context.Context, d Days, back, ahead int, fields string) (Today, Days, []event, error) {
	today, err := c.Today(ctx)
	if err != nil {
		return today, d, nil, err
	}
	if d, err = d.within(today, back, ahead); err != nil {
		return today, d, nil, err
	}
	query := d.query()
	if fields != "" {
		query.Set("fields", fields)
	}
	var list []event
	err = c.get(ctx, c.own("/wellness"), query, &list)
	return today, d, list, err
}

// Fitness is the answer, oldest first.
type Fitness struct {
	Today
	Days
	Fitness []FitnessRow `json:"fitness"`
}

// FitnessRow is a day's fitness. The service computes it some time after a write.
type FitnessRow struct {
	Date     string      `json:"date"`
	Weekday  string      `json:"weekday,omitempty"`
	CTL      json.Number `json:"ctl,omitempty"`  // fitness
	ATL      json.Number `json:"atl,omitempty"`  // fatigue
	Form     json.Number `json:"form,omitempty"` // ctl - atl
	RampRate json.Number `json:"rampRate,omitempty"`
	Load     json.Number `json:"ctlLoad,omitempty"` // of the day
	Forecast bool        `json:"forecast,omitempty"`
	Unread
}

// Fitness lists fitness, fatigue and form: by default of the last fourteen days and the coming seven, which are a
// forecast.
func (c *Client) Fitness(ctx context.Context, d Days) (Fitness, error) {
	out := Fitness{Fitness: []FitnessRow{}}
	var list []event
	var err error
	if out.Today, out.Days, list, err = c.wellness(ctx, d, 13, 7, "id,ctl,atl,rampRate,ctlLoad"); err != nil {
		return out, err
	}
	for _, e := range list {
		var r FitnessRow
		fill(e, &r)
		r.Date = e.text("id")
		r.Weekday, r.Forecast = weekday(r.Date), r.Date > out.Today.Date
		r.Form = difference(r.CTL, r.ATL)
		out.Fitness = append(out.Fitness, r)
	}
	return out, nil
}

// difference of two numbers that have five decimals, without the noise of binary ones.
func difference(a, b json.Number) json.Number {
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	if err1 != nil || err2 != nil {
		return ""
	}
	return json.Number(strconv.FormatFloat(math.Round((x-y)*1e5)/1e5, 'f', -1, 64))
}

// CurveQuery asks for the best power of some spans of time.
type CurveQuery struct {
	Type   string   `json:"type,omitempty" jsonschema:"sport; Ride by default"`
	Curves []string `json:"curves,omitempty" jsonschema:"spans: 90d, 1y, s0 (this season), s1 (the last one), all, r.2026-01-01.2026-03-31; 90d by default; with -kj0 or -kj1 after work"`
	Full   bool     `json:"full,omitempty" jsonschema:"every duration and field that the service has; very long"`
}

// Curves is the answer.
type Curves struct {
	Type   string `json:"type"`
	Curves []any  `json:"curves"` // PowerCurve, or json.RawMessage with Full
}

// PowerCurve is the best power of one span at the durations that people talk about.
type PowerCurve struct {
	ID             string       `json:"id"`
	Label          string       `json:"label,omitempty"`
	StartDateLocal string       `json:"start_date_local,omitempty"`
	EndDateLocal   string       `json:"end_date_local,omitempty"`
	Days           json.Number  `json:"days,omitempty"`
	Weight         json.Number  `json:"weight,omitempty"` // kg
	Points         []PowerPoint `json:"points"`
	Unread
}

// PowerPoint is a best effort.
type PowerPoint struct {
	Secs       json.Number `json:"secs"`
	Watts      json.Number `json:"watts"`
	PerKilo    json.Number `json:"watts_per_kg,omitempty"`
	ActivityID string      `json:"activity_id,omitempty"`
}

var durations = []string{"1", "5", "15", "30", "60", "120", "180", "300", "480", "600", "1200", "1800", "3600", "5400", "7200", "10800", "14400", "18000"}

var curveForm = regexp.MustCompile(`^(all|[1-9][0-9]{0,3}[dwmy]|s[0-9]{1,2}|r\.\d{4}-\d{2}-\d{2}\.\d{4}-\d{2}-\d{2})(-kj[01])?$`)

// PowerCurves reads best efforts.
func (c *Client) PowerCurves(ctx context.Context, q CurveQuery) (Curves, error) {
	out := Curves{Type: "Ride", Curves: []any{}}
	if q.Type != "" {
		i := slices.IndexFunc(sports, func(s string) bool { return strings.EqualFold(s, q.Type) })
		if i < 0 {
			return out, bad("type", fmt.Sprintf("%q is no sport", clean(q.Type)), "use one such as Ride, VirtualRide or Run")
		}
		out.Type = sports[i]
	}
	wanted := q.Curves
	if len(wanted) == 0 {
		wanted = []string{"90d"}
	}
	if len(wanted) > 6 {
		return out, bad("curves", fmt.Sprintf("%d of them", len(wanted)), "ask for at most 6")
	}
	for i, s := range wanted {
		if !curveForm.MatchString(s) {
			return out, bad(fmt.Sprintf("curves[%d]", i), fmt.Sprintf("%q is no span", clean(s)), "use one such as 90d, 1y, s0, all or r.2026-01-01.2026-03-31")
		}
	}
	query := out.query(wanted)
	var raw struct {
		List []event `json:"list"`
	}
	if err := c.get(ctx, c.own("/power-curves"), query, &raw); err != nil {
		return out, err
	}
	for _, e := range raw.List {
		if q.Full {
			b, err := encode(e)
			if err != nil {
				return out, err
			}
			out.Curves = append(out.Curves, b)
			continue
		}
		out.Curves = append(out.Curves, curve(e))
	}
	return out, nil
}

func (o Curves) query(wanted []string) map[string][]string {
	return map[string][]string{"type": {o.Type}, "curves": {strings.Join(wanted, ",")}}
}

func curve(e event) PowerCurve {
	p := PowerCurve{Points: []PowerPoint{}}
	fill(e, &p)
	watts := e["watts"]
	if !e.set("watts") {
		watts = e["values"]
	}
	secs, values, kilo, ids := texts(e["secs"]), texts(watts), texts(e["watts_per_kg"]), texts(e["activity_id"])
	for i, s := range secs {
		if !slices.Contains(durations, s) || at(values, i) == "" {
			continue
		}
		p.Points = append(p.Points, PowerPoint{json.Number(s), json.Number(at(values, i)), json.Number(at(kilo, i)), at(ids, i)})
	}
	return p
}

// texts of the elements of a list; "" for a null, and none for what is no list.
func texts(raw json.RawMessage) []string {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // whatever else it is has no elements
	out := make([]string, len(list))
	for i, v := range list {
		if s := strings.Trim(string(v), `"`); s != "null" {
			out[i] = s
		}
	}
	return out
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}
