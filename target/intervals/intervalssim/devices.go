package intervalssim

import (
	"encoding/json"
	"time"

	"github.com/wetink/wetink/target/intervals/workout"
)

// push sends a workout of the coming seven days to every connected service. What was sent stays sent.
func (s *Sim) push(a *athlete, e *event) {
	today := s.today(a)
	if e.text("category") != "WORKOUT" || len(e.steps) == 0 || e.day() < today || e.day() > day(s.now().In(a.zone).AddDate(0, 0, 6)) {
		return
	}
	failed := []map[string]any{}
	for _, service := range a.connected {
		p := Push{Time: s.now().UTC(), Service: service, EventID: e.id(), Day: e.day(), Name: e.text("name")}
		if !allTargeted(e.steps) {
			p.Error = "Plan validation error: a step has no target"
			failed = append(failed, map[string]any{"service": service, "message": p.Error, "date": stamp(s.now())})
		}
		s.outbox = append(s.outbox, p)
	}
	e.set("push_errors", nil)
	if len(failed) > 0 {
		e.set("push_errors", failed)
	}
}

func allTargeted(steps []workout.Step) bool {
	for _, st := range steps {
		if len(st.Steps) > 0 {
			if !allTargeted(st.Steps) {
				return false
			}
			continue
		}
		if !st.Targeted() {
			return false
		}
	}
	return true
}

// resolved is the workout_doc with watts, beats and speeds beside the shares and zones that were written.
func resolved(a *athlete, e *event) any {
	raw, err := json.Marshal(e.values["workout_doc"])
	if err != nil {
		return nil
	}
	var doc map[string]any
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	t := a.thresholds(e.text("type"), e.is("indoor"))
	doc["ftp"], doc["lthr"], doc["threshold_pace"] = t.FTP, t.LTHR, t.ThresholdPace
	steps, _ := doc["steps"].([]any)
	resolveSteps(steps, t)
	return doc
}

func resolveSteps(steps []any, t workout.Thresholds) {
	for _, v := range steps {
		step, _ := v.(map[string]any)
		if children, ok := step["steps"].([]any); ok {
			resolveSteps(children, t)
			continue
		}
		one := workout.Step{Seconds: 1}
		if raw, err := json.Marshal(step["power"]); err == nil && step["power"] != nil && json.Unmarshal(raw, &one.Power) == nil {
			if effort, ok := workout.Load(workout.Doc{Steps: []workout.Step{one}}, t); ok {
				step["_power"] = map[string]any{"value": effort.AverageWatts, "units": "w"}
			}
		}
		scale := func(from, to string, by float64, units string) {
			if v, ok := step[from].(map[string]any); ok {
				if share, ok := v["value"].(float64); ok && v["units"] != workout.HRZone && v["units"] != workout.PaceZone {
					step[to] = map[string]any{"value": share / 100 * by, "units": units}
				}
			}
		}
		scale("hr", "_hr", float64(t.LTHR), "bpm")
		scale("pace", "_pace", t.ThresholdPace, "m/s")
	}
}

// weekday is the date of a day of the week that begins with monday.
func weekday(monday time.Time, d time.Weekday) time.Time {
	return monday.AddDate(0, 0, (int(d)+6)%7)
}
