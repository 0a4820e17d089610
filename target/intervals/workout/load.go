package workout

import "math"

// MaxSeconds is the longest workout that Load costs. A longer one is a mistake (see Lint), and not worth a second's sum
// for each of its seconds.
const MaxSeconds = 14 * 24 * 3600

// Thresholds are an athlete's for one sport. What is zero or empty is unknown, and targets that need it cost nothing.
type Thresholds struct {
	FTP           int       // W; the indoor one for an indoor workout
	PowerZones    []int     // upper ends, % of FTP
	LTHR, MaxHR   int       // bpm
	HRZones       []int     // upper ends, bpm
	ThresholdPace float64   // m/s
	PaceZones     []float64 // upper ends, % of threshold pace
}

// Effort is what a workout costs.
type Effort struct {
	AverageWatts    float64
	NormalizedPower float64
	Joules          float64
	Intensity       float64 // 1 is one hour at threshold
	Load            int
	// Estimate means that Load comes from heart-rate or pace targets, for which the server's formula is not published:
	// nothing is known about how near it is.
	Estimate bool
}

// Load costs the workout, second by second: a range counts as its middle, a ramp sweeps, a zone is the middle of its band in
// whole watts, a step without a power target is 0 W. ok is false when there is nothing to cost or more than MaxSeconds.
//
// The normalised power takes partial windows at the start into its mean, as the server does: with them it is within half a
// watt of the server's own on every power workout that people have published.
func Load(d Doc, t Thresholds) (e Effort, ok bool) {
	secs := d.Seconds()
	if secs > MaxSeconds {
		return Effort{}, false
	}
	if t.FTP > 0 && has(d.Steps, func(s Step) bool { return s.Power != nil }) && secs > 0 {
		return power(d.Steps, t), true
	}
	return estimate(d.Steps, t)
}

func power(steps []Step, t Thresholds) Effort {
	var m meter
	each(steps, func(s Step) {
		from, to := watts(s, t)
		n := int(math.Round(s.Seconds))
		for i := range n {
			m.add(from + (to-from)*(float64(i)+0.5)/float64(n))
		}
	})
	if m.n == 0 {
		return Effort{}
	}
	np := math.Pow(m.fourth/float64(m.n), 0.25)
	intensity := np / float64(t.FTP)
	return Effort{
		AverageWatts:    m.joules / float64(m.n),
		NormalizedPower: np,
		Joules:          m.joules,
		Intensity:       intensity,
		Load:            int(math.Round(float64(m.n) / 3600 * intensity * intensity * 100)),
	}
}

// meter is a power meter at 1 Hz with a trailing mean over 30 s.
type meter struct {
	last   [30]float64
	n      int
	joules float64
	fourth float64
}

func (m *meter) add(w float64) {
	m.last[m.n%len(m.last)] = w
	m.n++
	m.joules += w
	filled := min(m.n, len(m.last))
	var sum float64
	for _, v := range m.last[:filled] {
		sum += v
	}
	mean := sum / float64(filled)
	m.fourth += mean * mean * mean * mean
}

// watts resolves a step's power, at its beginning and at its end.
func watts(s Step, t Thresholds) (from, to float64) {
	if s.Power == nil {
		return 0, 0
	}
	v := *s.Power
	var scale float64
	switch v.Units {
	case Watts:
		scale = 1
	case PercentFTP:
		scale = float64(t.FTP) / 100
	case PowerZone:
		if v.Range() {
			low, _ := powerZone(int(v.Start), t)
			_, high := powerZone(int(v.End), t)
			return middle(low, high), middle(low, high)
		}
		w := middle(powerZone(int(v.Value), t))
		return w, w
	default:
		return 0, 0 // a share of a best effort or a custom zone needs what we do not have
	}
	if s.Ramp && v.Range() {
		return v.Start * scale, v.End * scale
	}
	return v.Mid() * scale, v.Mid() * scale
}

// powerZone is the band of zone k in whole watts.
func powerZone(k int, t Thresholds) (low, high int) {
	if k < 1 || k > len(t.PowerZones) {
		return 0, 0
	}
	high = t.PowerZones[k-1] * t.FTP / 100
	if k == 1 {
		return high * 8 / 10, high
	}
	return t.PowerZones[k-2]*t.FTP/100 + 1, high
}

func middle(low, high int) float64 { return math.Floor(float64(low+high)/2 + 0.5) }

// estimate sums hours × intensity² × 100 over the steps whose intensity is known.
func estimate(steps []Step, t Thresholds) (Effort, bool) {
	var hours, squares float64
	each(steps, func(s Step) {
		f := fraction(s, t)
		if f == 0 {
			return
		}
		secs := s.Seconds
		if secs == 0 && t.ThresholdPace > 0 {
			secs = s.Metres / (t.ThresholdPace * f)
		}
		hours += secs / 3600
		squares += secs / 3600 * f * f
	})
	if hours == 0 {
		return Effort{}, false
	}
	return Effort{Intensity: math.Sqrt(squares / hours), Load: int(math.Round(squares * 100)), Estimate: true}, true
}

// fraction is a step's share of threshold; 0 when unknown.
func fraction(s Step, t Thresholds) float64 {
	switch {
	case s.HR != nil && t.LTHR > 0:
		lthr := float64(t.LTHR)
		switch s.HR.Units {
		case PercentLTHR:
			return s.HR.Mid() / 100
		case PercentHR:
			return s.HR.Mid() / 100 * float64(t.MaxHR) / lthr
		case HRZone:
			return bandMiddle(s.HR.Mid(), t.HRZones) / lthr
		}
	case s.Pace != nil:
		switch s.Pace.Units {
		case PercentPace:
			return s.Pace.Mid() / 100
		case PaceZone:
			return bandMiddle(s.Pace.Mid(), t.PaceZones) / 100
		}
		if per := paceMetres[s.Pace.Units]; per > 0 && s.Pace.Mid() > 0 && t.ThresholdPace > 0 {
			return per / s.Pace.Mid() / t.ThresholdPace
		}
	}
	return 0
}

var paceMetres = map[string]float64{
	PerKilometre: 1000, PerMile: 1609.344, Per100Metres: 100, Per100Yards: 91.44, Per250Metres: 250, Per400Metres: 400, Per500Metres: 500,
}

func bandMiddle[N int | float64](zone float64, ends []N) float64 {
	k := int(zone)
	if k < 1 || k > len(ends) {
		return 0
	}
	if k == 1 {
		return float64(ends[0]) * 0.9
	}
	return (float64(ends[k-2]) + min(float64(ends[k-1]), float64(ends[k-2])*1.2)) / 2
}

// each calls f for every leaf step, as often as it is repeated.
func each(steps []Step, f func(Step)) {
	for _, s := range steps {
		if len(s.Steps) == 0 {
			f(s)
			continue
		}
		for range max(s.Reps, 1) {
			each(s.Steps, f)
		}
	}
}

func has(steps []Step, is func(Step) bool) bool {
	for _, s := range steps {
		if is(s) || has(s.Steps, is) {
			return true
		}
	}
	return false
}
