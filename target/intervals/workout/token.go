package workout

import (
	"regexp"
	"strconv"
	"strings"
)

// Digits are counted in every expression: a number that long cannot overflow, and a longer one is no number of ours.
var (
	clockForm    = regexp.MustCompile(`^(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?$`)
	primeForm    = regexp.MustCompile(`^(?:(\d{1,5})')?(?:(\d{1,6})")?$`)
	distanceForm = regexp.MustCompile(`^(\d{1,6}(?:\.\d{1,4})?)(mtr|km|mi|yrd)$`)
	amountForm   = regexp.MustCompile(`^(\d{1,5}(?:\.\d{1,3})?)(?:-(\d{1,5}(?:\.\d{1,3})?))?(%|w|rpm|bpm)$`)
	zoneForm     = regexp.MustCompile(`^(c?z)(\d{1,2})(?:-c?z(\d{1,2}))?$`)
	paceForm     = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?:-(\d{1,2}):(\d{2}))?(?:/(km|mi|100m|100y|250m|400m|500m))?$`)
)

var metresPer = map[string]float64{"mtr": 1, "km": 1000, "mi": 1609.344, "yrd": 0.9144}

var paceUnits = map[string]string{
	"":   PerKilometre, // the sport's own unit, which the text does not know
	"km": PerKilometre, "mi": PerMile, "100m": Per100Metres, "100y": Per100Yards,
	"250m": Per250Metres, "400m": Per400Metres, "500m": Per500Metres,
}

// duration reads 1h2m30s, 5' or 1'30". The letter m is minutes, always.
func duration(token string) (seconds float64, ok bool) {
	if token == "" || token[0] < '0' || token[0] > '9' {
		return 0, false
	}
	token = strings.ToLower(token)
	if m := clockForm.FindStringSubmatch(token); m != nil {
		return number(m[1])*3600 + number(m[2])*60 + number(m[3]), true
	}
	if m := primeForm.FindStringSubmatch(token); m != nil {
		return number(m[1])*60 + number(m[2]), true
	}
	return 0, false
}

func distance(token string) (metres float64, ok bool) {
	m := distanceForm.FindStringSubmatch(strings.ToLower(token))
	if m == nil {
		return 0, false
	}
	return number(m[1]) * metresPer[m[2]], true
}

// target is a value as the text gives it, with the field of the step that it belongs to.
type target struct {
	field string // power, hr, pace, cadence; "" when the server knows no such target
	value Value
	words int    // how many tokens it takes
	why   string // with field "": why it is none
}

// readTarget reads a target at the head of words. ok is false when there is nothing like one.
func readTarget(words []string) (target, bool) {
	head := strings.ToLower(words[0])
	next := ""
	if len(words) > 1 {
		next = strings.ToLower(words[1])
	}
	if m := amountForm.FindStringSubmatch(head); m != nil {
		return amount(m, next, words), true
	}
	if m := zoneForm.FindStringSubmatch(head); m != nil {
		return zone(m, next), true
	}
	if m := paceForm.FindStringSubmatch(head); m != nil {
		if next != "pace" {
			return target{words: 1, why: "a pace needs the word Pace after it: " + words[0] + " Pace"}, true
		}
		v := between(number(m[1])*60+number(m[2]), number(m[3])*60+number(m[4]))
		v.Units = paceUnits[m[5]]
		return target{field: "pace", value: v, words: 2}, true
	}
	return target{}, false
}

func amount(m []string, next string, words []string) target {
	v := between(number(m[1]), number(m[2]))
	switch m[3] {
	case "w":
		v.Units = Watts
		return target{field: "power", value: v, words: 1}
	case "rpm":
		v.Units = RPM
		return target{field: "cadence", value: v, words: 1}
	case "bpm":
		return target{words: 1, why: "a heart rate in bpm is dropped: write a share of it, as in 75% HR or 95% LTHR"}
	}
	switch next {
	case "hr":
		v.Units = PercentHR
		return target{field: "hr", value: v, words: 2}
	case "lthr":
		v.Units = PercentLTHR
		return target{field: "hr", value: v, words: 2}
	case "pace":
		v.Units = PercentPace
		return target{field: "pace", value: v, words: 2}
	case "mmp":
		v.Units = PercentMMP
		if len(words) > 2 {
			if s, ok := duration(words[2]); ok {
				v.Window = s
				return target{field: "power", value: v, words: 3}
			}
		}
		return target{field: "power", value: v, words: 2}
	}
	v.Units = PercentFTP
	return target{field: "power", value: v, words: 1}
}

// zone reads Z2, Z3-Z4 and CZ1. Without HR or Pace after it, it is a power zone in every sport.
func zone(m []string, next string) target {
	v := between(number(m[2]), number(m[3]))
	switch {
	case m[1] == "cz":
		v.Units = CustomZone
	case next == "hr":
		v.Units = HRZone
		return target{field: "hr", value: v, words: 2}
	case next == "pace":
		v.Units = PaceZone
		return target{field: "pace", value: v, words: 2}
	default:
		v.Units = PowerZone
	}
	return target{field: "power", value: v, words: 1}
}

func between(start, end float64) Value {
	if end == 0 {
		return Value{Value: start}
	}
	return Value{Start: start, End: end}
}

func number(digits string) float64 {
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0 // an absent group; the expressions admit nothing else
	}
	return n
}
