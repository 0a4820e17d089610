package workout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Finding is something in a text that will probably not become what its author meant.
type Finding struct {
	Code    Code   `json:"code"`
	Line    int    `json:"line,omitempty"` // from 1; 0: the whole text
	Text    string `json:"text,omitempty"`
	Message string `json:"message"` // what happens, and what to write instead
}

// Code names a kind of Finding.
type Code string

// The kinds of Finding. Every one has been reported by somebody whose workout arrived otherwise than written.
const (
	Discarded         Code = "discarded_line"
	DroppedTarget     Code = "dropped_target"
	MetresAsMinutes   Code = "metres_as_minutes"
	PowerZoneOnFoot   Code = "power_zone_without_power"
	MisplacedRepeat   Code = "misplaced_repeat"
	AbsurdTotal       Code = "absurd_total"
	NotAStep          Code = "step_without_dash"
	RangeNotARamp     Code = "range_is_steady"
	UnsortedPace      Code = "pace_range_unsorted"
	NothingStructured Code = "nothing_structured"
	More              Code = "more"
)

// MaxFindings is how many findings a text gets; how many more there are is then said in one.
const MaxFindings = 100

// AbsurdSeconds is the total beyond which a text is taken for a mistake.
const AbsurdSeconds = 8 * 3600

var (
	longMinutes = regexp.MustCompile(`(?i)(?:^|\s)(\d{2,5})m(?:\s|$)`)
	starred     = regexp.MustCompile(`^\s*(?:[*•–—+]|\d+\.)\s*\S`)
	stepLike    = regexp.MustCompile(`(?i)(?:^|\s)(?:\d+h|\d+m|\d+s|\d+(?:\.\d+)?(?:mtr|km))+\s.*(?:%|\bz\d|\d+w\b|pace)`)
	rampWord    = regexp.MustCompile(`(?i)\b(?:build|building|progress|progressive|increasing|rising)\b`)
)

// Lint reads a description as the server will and lists what will surprise. sport is an Intervals.icu activity type; ""
// is none in particular. A text without findings may still be a poor workout.
func Lint(text, sport string) []Finding {
	doc := Parse(text)
	var found []Finding
	add := func(c Code, line int, text, message string) {
		found = append(found, Finding{Code: c, Line: line, Text: clip(text), Message: message})
	}
	for _, l := range doc.Discarded {
		add(Discarded, l.Number, l.Text, "this line will be no step: "+l.Reason)
	}
	for _, l := range doc.Dropped {
		add(DroppedTarget, l.Number, l.Text, l.Reason)
	}
	for _, l := range doc.Misread {
		add(MisplacedRepeat, l.Number, l.Text, l.Reason)
	}
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	at := 0
	for line := range strings.Lines(text) {
		at++
		lintLine(strings.TrimSpace(line), at, sport, add)
	}
	if s := doc.Seconds(); s > AbsurdSeconds {
		add(AbsurdTotal, 0, "", fmt.Sprintf("the steps add up to %s; m is minutes, metres are mtr", (time.Duration(s)*time.Second).String()))
	}
	if len(doc.Steps) == 0 && (len(doc.Discarded) > 0 || slices.ContainsFunc(found, func(f Finding) bool { return f.Code == NotAStep })) {
		add(NothingStructured, 0, "", "nothing in this text will be a step, so a device gets no workout")
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Line - b.Line })
	if len(found) > MaxFindings {
		found = append(found[:MaxFindings:MaxFindings], Finding{Code: More, Message: fmt.Sprintf("and %d more", len(found)-MaxFindings)})
	}
	return found
}

func lintLine(line string, at int, sport string, add func(Code, int, string, string)) {
	if !strings.HasPrefix(line, "-") {
		if starred.MatchString(line) && stepLike.MatchString(line) {
			add(NotAStep, at, line, `a step starts with "- "; this line is prose`)
		}
		return
	}
	r := reader{words: strings.Fields(line[1:])}
	if r.read() != "" {
		return
	}
	if onFoot(sport) || inWater(sport) {
		for _, m := range longMinutes.FindAllStringSubmatch(line, -1) {
			if n := int(number(m[1])); n >= 60 || (inWater(sport) && n >= 25) {
				add(MetresAsMinutes, at, line, fmt.Sprintf("%sm is %s minutes; for metres write %smtr", m[1], m[1], m[1]))
			}
		}
		if r.step.Power != nil && r.step.Power.Units == PowerZone {
			add(PowerZoneOnFoot, at, line, fmt.Sprintf("a bare zone is a power zone in every sport: write Z%g Pace or Z%g HR", zoneOf(*r.step.Power), zoneOf(*r.step.Power)))
		}
	}
	if v := r.step.Power; v != nil && v.Range() && !r.step.Ramp && rampWord.MatchString(line) {
		add(RangeNotARamp, at, line, `a range is ridden steadily at its middle; for a ramp write "ramp" before it`)
	}
	if v := r.step.Pace; v != nil && v.Range() && paceMetres[v.Units] > 0 && v.Start < v.End {
		add(UnsortedPace, at, line, "a pace range is not sorted by the server: write the slow end first")
	}
}

func zoneOf(v Value) float64 {
	if v.Range() {
		return v.Start
	}
	return v.Value
}

func onFoot(sport string) bool {
	return slices.Contains([]string{"Run", "TrailRun", "VirtualRun", "Walk", "Hike"}, sport)
}

func inWater(sport string) bool { return slices.Contains([]string{"Swim", "OpenWaterSwim"}, sport) }
