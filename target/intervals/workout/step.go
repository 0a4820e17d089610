package workout

import (
	"slices"
	"strings"
)

var intensities = []string{"warmup", "active", "recovery", "interval", "rest", "cooldown"}

// reader reads the words of one step line, the dash taken away.
type reader struct {
	words   []string
	step    Step
	dropped []Line
}

// read fills in step. A reason means that the server drops the whole line.
func (r *reader) read() (reason string) {
	cue, rest, reason := r.cue()
	if reason != "" {
		return reason
	}
	r.step.Text = strings.Join(cue, " ")
	if s, ok := duration(rest[0]); ok {
		r.step.Seconds = s
	} else {
		r.step.Metres, _ = distance(rest[0]) // cue stopped at one of the two
	}
	if r.step.Seconds == 0 && r.step.Metres == 0 {
		return "a step of no length"
	}
	r.rest(rest[1:])
	return ""
}

// cue takes the words up to the duration or distance. The first number ends it, so "Drill 50 fingertip 100mtr" is no step.
func (r *reader) cue() (cue, rest []string, reason string) {
	words := r.words
	// Timed prompts, "60^sit up<!>", hold numbers and end with the mark.
	for i := len(words) - 1; i >= 0; i-- {
		if strings.HasSuffix(words[i], "<!>") {
			cue, words = slices.Clone(words[:i+1]), words[i+1:]
			break
		}
	}
	for i := 0; i < len(words); {
		w := words[i]
		if _, ok := duration(w); ok {
			return cue, words[i:], ""
		}
		if _, ok := distance(w); ok {
			return cue, words[i:], ""
		}
		if t, ok := readTarget(words[i:]); ok {
			if w[0] < '0' || w[0] > '9' {
				cue = nil // a zone before the duration clears the label
			} else if n := len(cue); n > 0 && strings.EqualFold(cue[n-1], "ramp") {
				cue, r.step.Ramp = cue[:n-1], true
			}
			r.set(t, w)
			i += t.words
			continue
		}
		if w[0] >= '0' && w[0] <= '9' {
			return nil, nil, "the number " + clip(w) + " ends the cue and is no duration (10m, 30s, 1h) and no distance (400mtr, 1km)"
		}
		cue = append(cue, w)
		i++
	}
	return nil, nil, "no duration (10m, 30s, 1h) and no distance (400mtr, 1km)"
}

// rest reads what follows the duration.
func (r *reader) rest(words []string) {
	var unread []string
	for i := 0; i < len(words); {
		w := strings.ToLower(words[i])
		next := ""
		if i+1 < len(words) {
			next = strings.ToLower(words[i+1])
		}
		if s, ok := duration(w); ok && next == "rest" {
			r.step.Rest = s
			i += 2
			continue
		}
		if t, ok := readTarget(words[i:]); ok {
			r.set(t, words[i])
			i += t.words
			continue
		}
		if v, ok := strings.CutPrefix(w, "intensity="); ok && slices.Contains(intensities, v) {
			r.step.Intensity = v
			i++
			continue
		}
		i++
		switch {
		case w == "ramp":
			r.step.Ramp = true
		case w == "freeride":
			r.step.Freeride = true
		case w == "maxeffort":
			r.step.MaxEffort = true
		case w == "hidepower":
			r.step.HidePower = true
		case w == "press" && next == "lap":
			r.step.LapPress = true
			i++
		default:
			unread = append(unread, words[i-1])
		}
	}
	if looksLikeTarget(unread) {
		text := clip(strings.Join(unread, " "))
		r.dropped = append(r.dropped, Line{Text: text, Reason: "not understood, so the step has no such target"})
	}
}

func (r *reader) set(t target, text string) {
	v := t.value
	switch t.field {
	case "power":
		r.step.Power = &v
	case "hr":
		r.step.HR = &v
	case "pace":
		r.step.Pace = &v
	case "cadence":
		r.step.Cadence = &v
	default:
		r.dropped = append(r.dropped, Line{Text: clip(text), Reason: t.why})
	}
}

// looksLikeTarget tells words that somebody meant as a target from a remark.
func looksLikeTarget(words []string) bool {
	for _, w := range words {
		w = strings.ToLower(strings.Trim(w, "@,.;()"))
		if strings.ContainsAny(w, "0123456789%") {
			return true
		}
		switch w {
		case "pace", "hr", "lthr", "bpm", "threshold", "tempo", "power", "watts", "rpe", "zone", "vo2max", "max":
			return true
		}
	}
	return false
}

// clip keeps a message short whatever the text holds, without looking at all of it.
func clip(s string) string {
	const most = 60
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
