// Package workout reads the workout text of Intervals.icu: the lines in an event's description that its server turns
// into steps for a watch or a trainer.
//
// The server parses that text on every write, answers 200 whatever it made of it, and has no call that parses without
// saving. So a mistake is only seen on the device: "400m" becomes 400 minutes, a pace without the word Pace becomes no
// target at all, a repeat without a blank line before it happens once. This package says beforehand what the text will
// become (Parse), what in it will probably not be what its author meant (Lint), what it will cost (Load), and whether
// the server made the same of it (Doc.Summary against ServerSummary).
//
// The grammar is the "Workout Builder Syntax Quick Guide" (forum.intervals.icu, thread 123701) as reported by people who
// tried it. Where the service's behaviour is not known, Parse takes the worse reading and Lint says so.
//
// Nothing here does I/O; every function may be called from any number of goroutines.
package workout

// MaxText is how many bytes of a text are read. A workout is a few hundred; the rest of a longer text is reported as
// discarded and not looked at, so that Parse stays cheap whatever an agent sends.
const MaxText = 128 << 10

// Doc is what a text becomes.
type Doc struct {
	Steps     []Step
	Discarded []Line // looked like steps and are none: the server drops them without a word
	Dropped   []Line // parts of steps that look like targets and are none
	Misread   []Line // repeat headers that a missing or a superfluous blank line takes the effect from
	Prose     int    // lines of plain text
}

// Line is one line of the text, or a part of it, and what is wrong with it.
type Line struct {
	Number int // from 1
	Text   string
	Reason string
}

// Step is one step, or a repeat of Steps. Its JSON is that of workout_doc.steps.
type Step struct {
	Text     string  `json:"text,omitempty"`     // the cue
	Seconds  float64 `json:"duration,omitempty"` // of a repeat: all its repetitions
	Metres   float64 `json:"distance,omitempty"`
	Reps     int     `json:"reps,omitempty"`
	Steps    []Step  `json:"steps,omitempty"`
	Warmup   bool    `json:"warmup,omitempty"`
	Cooldown bool    `json:"cooldown,omitempty"`
	// Intensity is the step type that devices show: warmup, active, recovery, interval, rest, cooldown.
	Intensity string  `json:"intensity,omitempty"`
	Ramp      bool    `json:"ramp,omitempty"`
	Freeride  bool    `json:"freeride,omitempty"`
	MaxEffort bool    `json:"maxeffort,omitempty"`
	HidePower bool    `json:"hidepower,omitempty"`
	LapPress  bool    `json:"until_lap_press,omitempty"`
	Rest      float64 `json:"rest,omitempty"` // seconds at the wall after a swim step; in no total
	Power     *Value  `json:"power,omitempty"`
	HR        *Value  `json:"hr,omitempty"`
	Pace      *Value  `json:"pace,omitempty"`
	Cadence   *Value  `json:"cadence,omitempty"`
}

// Value is one number or a range, in Units. Start 0 and End 0 mean one number. A pace is in seconds per its unit, so its
// slow end is the larger one; the server does not sort ranges and neither does Parse.
type Value struct {
	Value float64 `json:"value,omitempty"`
	Start float64 `json:"start,omitempty"`
	End   float64 `json:"end,omitempty"`
	Units string  `json:"units"`
	// Window is the duration that a share of the best effort (%mmp) is taken from, in seconds.
	Window float64 `json:"mmp_duration,omitempty"`
}

// Range tells a range from one number.
func (v Value) Range() bool { return v.Start != 0 || v.End != 0 }

// Mid is the number itself, or the middle of the range.
func (v Value) Mid() float64 {
	if v.Range() {
		return (v.Start + v.End) / 2
	}
	return v.Value
}

// The units of a Value, as workout_doc names them.
const (
	PercentFTP   = "%ftp"
	PercentMMP   = "%mmp"
	Watts        = "w"
	PowerZone    = "power_zone"
	CustomZone   = "custom_zone"
	PercentHR    = "%hr" // of the maximum
	PercentLTHR  = "%lthr"
	HRZone       = "hr_zone"
	PercentPace  = "%pace"
	PaceZone     = "pace_zone"
	PerKilometre = "MINS_KM"
	PerMile      = "MINS_MILE"
	Per100Metres = "SECS_100M"
	Per100Yards  = "SECS_100Y"
	Per250Metres = "SECS_250M"
	Per400Metres = "SECS_400M"
	Per500Metres = "SECS_500M"
	RPM          = "rpm"
)

// Targeted tells whether the step asks for anything but time: power, heart rate, pace, a free ride or a maximal effort.
func (s Step) Targeted() bool {
	return s.Power != nil || s.HR != nil || s.Pace != nil || s.Freeride || s.MaxEffort
}

// Seconds is the time of all steps, repetitions included. A step given as a distance counts no time.
func (d Doc) Seconds() float64 { return totalSeconds(d.Steps) }

// Metres is the distance of all steps, repetitions included. A step given as a time counts no distance.
func (d Doc) Metres() float64 { return totalMetres(d.Steps) }

func totalSeconds(steps []Step) float64 {
	return total(steps, func(s Step) float64 { return s.Seconds })
}

func totalMetres(steps []Step) float64 {
	return total(steps, func(s Step) float64 { return s.Metres })
}

func total(steps []Step, of func(Step) float64) float64 {
	var sum float64
	for _, s := range steps {
		if len(s.Steps) > 0 {
			// A repeat's own total is somebody's arithmetic: ours is done from the leaves on both sides.
			sum += float64(max(s.Reps, 1)) * total(s.Steps, of)
			continue
		}
		sum += of(s)
	}
	return sum
}
