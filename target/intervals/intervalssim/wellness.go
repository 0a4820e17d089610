package intervalssim

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// wellnessFields is the schema, in the order of the answer.
var wellnessFields = strings.Fields(`id ctl atl rampRate ctlLoad atlLoad sportInfo updated weight restingHR hrv hrvSDNN menstrualPhase
	menstrualPhasePredicted kcalConsumed sleepSecs sleepScore sleepQuality avgSleepingHR soreness fatigue stress mood motivation injury spO2
	systolic diastolic hydration hydrationVolume readiness baevskySI bloodGlucose lactate bodyFat abdomen vo2max comments steps respiration
	carbohydrates protein fatTotal locked tempWeight tempRestingHR`)

var wellnessKnown = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range wellnessFields {
		m[name] = true
	}
	return m
}()

func (s *Sim) listWellness(c *call) (any, *failure) {
	oldest, newest, f := c.span(s.today(c.a), 0)
	if f != nil {
		return nil, f
	}
	curve := s.curve(c.a, newest)
	list := []any{}
	first, err := time.Parse(time.DateOnly, oldest)
	const mostDays = 1500
	for i := 0; err == nil && i < mostDays; i++ {
		d := day(first.AddDate(0, 0, i))
		if d > newest {
			break
		}
		if c.a.wellness[d] == nil {
			if _, ok := curve[d]; !ok {
				continue // before there was anything
			}
		}
		list = append(list, s.wellnessOf(c.a, d, curve, c.r.URL.Query().Get("fields")))
	}
	return list, nil
}

func (s *Sim) getWellness(c *call) (any, *failure) {
	d, f := c.date()
	if f != nil {
		return nil, f
	}
	return s.wellnessOf(c.a, d, s.curve(c.a, d), ""), nil
}

// wellnessOf is a day as it was noted, with the fitness of that day; of a day to come, the forecast.
func (s *Sim) wellnessOf(a *athlete, d string, curve map[string]point, fields string) map[string]any {
	all := map[string]any{}
	for _, name := range wellnessFields {
		all[name] = a.wellness[d][name]
	}
	all["id"] = d
	if p, ok := curve[d]; ok {
		week, _ := time.Parse(time.DateOnly, d)
		all["ctl"], all["atl"] = math.Round(p.ctl*1e5)/1e5, math.Round(p.atl*1e5)/1e5
		all["ctlLoad"], all["atlLoad"] = p.load, p.load
		if before, ok := curve[day(week.AddDate(0, 0, -7))]; ok {
			all["rampRate"] = math.Round((p.ctl-before.ctl)*1e5) / 1e5
		}
	}
	if fields == "" {
		return all
	}
	kept := map[string]any{"id": d}
	for _, name := range strings.Split(fields, ",") {
		kept[name] = all[name]
	}
	return kept
}

// updateWellness merges what is sent. A null is ignored, and what was once locked stays locked.
func (s *Sim) updateWellness(c *call) (any, *failure) {
	d, f := c.date()
	if f != nil {
		return nil, f
	}
	var sent map[string]any
	if err := json.Unmarshal(c.body, &sent); err != nil {
		return nil, refuse(400, "JSON parse error: "+err.Error())
	}
	for name := range sent {
		if !wellnessKnown[name] {
			return nil, refuse(422, "Unrecognized wellness field ["+name+"]")
		}
	}
	if c.a.wellness[d] == nil {
		c.a.wellness[d] = map[string]any{}
	}
	var changed []string
	for name, v := range sent {
		computed := name == "id" || name == "ctl" || name == "atl" || name == "rampRate" || name == "ctlLoad" || name == "atlLoad"
		if v == nil || computed || name == "locked" && c.a.wellness[d]["locked"] == true {
			continue
		}
		c.a.wellness[d][name] = v
		changed = append(changed, name)
	}
	c.a.wellness[d]["updated"] = stamp(s.now())
	s.record(c.cause, "wellness", 0, changed)
	return s.wellnessOf(c.a, d, s.curve(c.a, d), ""), nil
}

func (c *call) date() (string, *failure) {
	d := c.r.PathValue("date")
	if _, err := time.Parse(time.DateOnly, d); err != nil {
		return "", refuse(422, "Text "+strconv.Quote(d)+" could not be parsed at index 0")
	}
	return d, nil
}
