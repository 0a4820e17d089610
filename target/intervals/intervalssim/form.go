package intervalssim

import (
	"math"
	"strings"
	"time"
)

// form is where an athlete's fitness and fatigue come from: a day on which they were known, and loads since.
type form struct {
	from     string // the day before the first that is computed
	ctl, atl float64
	moved    time.Time // first write since loads were added up
	loads    map[string]float64
}

// point is one day of the forecast.
type point struct{ ctl, atl, load float64 }

func (s *Sim) formMoved(a *athlete) {
	if a.form.moved.IsZero() {
		a.form.moved = s.now()
	}
}

// curve is fitness (CTL) and fatigue (ATL) by day up to `to`: each day the load pulls them by 1-e^(-1/τ), τ 42 and 7 days.
// Planned load counts from today on, delivered load until today.
func (s *Sim) curve(a *athlete, to string) map[string]point {
	f := &a.form
	late := !f.moved.IsZero() && s.now().Sub(f.moved) < s.opts.RecalcDelay
	if f.loads == nil || !late {
		f.loads, f.moved = s.loads(a), time.Time{}
	}
	points := map[string]point{}
	first, err := time.Parse(time.DateOnly, f.from)
	if err != nil {
		return points // an athlete without a history
	}
	p := point{ctl: f.ctl, atl: f.atl}
	const mostDays = 1500
	for i := 1; i <= mostDays; i++ {
		d := day(first.AddDate(0, 0, i))
		if d > to {
			break
		}
		p.load = f.loads[d]
		p.ctl += (p.load - p.ctl) * (1 - math.Exp(-1.0/42))
		p.atl += (p.load - p.atl) * (1 - math.Exp(-1.0/7))
		points[d] = p
	}
	return points
}

func (s *Sim) loads(a *athlete) map[string]float64 {
	today := s.today(a)
	sum := map[string]float64{}
	for _, act := range a.activities {
		if load, ok := act.values["icu_training_load"].(int64); ok && act.day() <= today {
			sum[act.day()] += float64(load)
		}
	}
	for _, e := range a.events {
		planned := e.text("category") == "WORKOUT" || strings.HasPrefix(e.text("category"), "RACE_")
		if planned && e.day() >= today && e.text("paired_activity_id") == "" {
			sum[e.day()] += float64(e.integer("icu_training_load"))
		}
	}
	return sum
}

// shown is an event as a read shows it: with the forecast of its day, which moves whenever anything else does.
func (s *Sim) shown(a *athlete, e *event, resolve bool) *event {
	e = e.copy()
	if p, ok := s.curve(a, e.day())[e.day()]; ok {
		for name, v := range map[string]float64{"icu_ctl": p.ctl, "icu_atl": p.atl} {
			if e.values[name] == nil {
				e.set(name, math.Round(v*1e5)/1e5)
			}
		}
	}
	if resolve && e.values["workout_doc"] != nil {
		e.set("workout_doc", resolved(a, e))
	}
	return e
}
