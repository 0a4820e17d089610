package workout

import (
	"fmt"
	"math"
	"strings"
)

// Stretch is a piece of a workout's shape: from one height to another, 1 being threshold.
type Stretch struct{ Seconds, From, To float64 }

// Shape unrolls the steps for a drawing. A step without a target, or with one that needs a threshold that is not known, has
// height 0; the time of one that is given as a distance is a guess from the threshold pace, and 0 without it. ok is false
// when there is nothing to draw or more than most pieces.
func Shape(d Doc, t Thresholds, most int) (list []Stretch, ok bool) {
	if n := unrolled(d.Steps); n == 0 || n > most {
		return nil, false
	}
	each(d.Steps, func(s Step) {
		from, to := heights(s, t)
		secs := s.Seconds
		if mid := (from + to) / 2; secs == 0 && t.ThresholdPace > 0 {
			if mid == 0 {
				mid = 1
			}
			secs = s.Metres / (t.ThresholdPace * mid)
		}
		if secs > 0 {
			list = append(list, Stretch{secs, from, to})
		}
	})
	return list, len(list) > 0
}

func unrolled(steps []Step) (n int) {
	for _, s := range steps {
		if len(s.Steps) > 0 {
			n += max(s.Reps, 1) * unrolled(s.Steps)
		} else {
			n++
		}
	}
	return n
}

// heights are a step's at its beginning and at its end.
func heights(s Step, t Thresholds) (from, to float64) {
	if s.Power != nil {
		if t.FTP > 0 {
			from, to = watts(s, t)
			return from / float64(t.FTP), to / float64(t.FTP)
		}
		if s.Power.Units != PercentFTP {
			return 0, 0
		}
		if s.Ramp && s.Power.Range() {
			return s.Power.Start / 100, s.Power.End / 100
		}
		return s.Power.Mid() / 100, s.Power.Mid() / 100
	}
	if v := s.HR; v != nil && s.Ramp && v.Range() && v.Units == PercentLTHR {
		return v.Start / 100, v.End / 100
	}
	if v := s.Pace; v != nil && s.Ramp && v.Range() && v.Units == PercentPace {
		return v.Start / 100, v.End / 100
	}
	f := fraction(s, t)
	return f, f
}

// Say puts the steps into one sentence, for those who do not see the drawing. Beyond most steps it only counts them.
func Say(d Doc, most int) string {
	n := d.Summary().Steps
	switch {
	case n == 0:
		return "no steps"
	case n > most:
		return fmt.Sprintf("%d steps", n)
	}
	return say(d.Steps, ", then ")
}

func say(steps []Step, between string) string {
	parts := make([]string, len(steps))
	for i, s := range steps {
		if len(s.Steps) > 0 {
			parts[i] = fmt.Sprintf("%d times %s", max(s.Reps, 1), say(s.Steps, " and "))
			continue
		}
		parts[i] = saidLength(s) + saidTarget(s)
	}
	return strings.Join(parts, between)
}

func saidLength(s Step) string {
	if s.Seconds == 0 {
		return decimal(s.Metres) + " m"
	}
	var parts []string
	left := int(math.Round(s.Seconds))
	for _, u := range []struct {
		secs int
		name string
	}{{3600, "h"}, {60, "min"}, {1, "s"}} {
		if n := left / u.secs; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			left %= u.secs
		}
	}
	return strings.Join(parts, " ")
}

var saidUnits = map[string]string{PercentFTP: "%", PercentMMP: "% of the best", Watts: "W", PercentHR: "% of maximal heart rate",
	PercentLTHR: "% of threshold heart rate", PercentPace: "% of threshold pace", PerKilometre: "s/km", PerMile: "s/mi", Per100Metres: "s/100 m",
	Per100Yards: "s/100 y", Per250Metres: "s/250 m", Per400Metres: "s/400 m", Per500Metres: "s/500 m"}

var saidZones = map[string]string{PowerZone: "power zone", CustomZone: "custom zone", HRZone: "heart rate zone", PaceZone: "pace zone"}

func saidTarget(s Step) string {
	var v *Value
	switch {
	case s.Power != nil:
		v = s.Power
	case s.HR != nil:
		v = s.HR
	case s.Pace != nil:
		v = s.Pace
	case s.Freeride:
		return " as you like"
	case s.MaxEffort:
		return " all out"
	default:
		return ""
	}
	number := decimal(v.Value)
	if v.Range() {
		number = decimal(v.Start) + " to " + decimal(v.End)
	}
	word := " at "
	if s.Ramp {
		word = " ramp "
	}
	if zone := saidZones[v.Units]; zone != "" {
		return word + zone + " " + number
	}
	unit := saidUnits[v.Units]
	if unit == "" {
		unit = v.Units
	}
	return word + number + " " + unit
}
