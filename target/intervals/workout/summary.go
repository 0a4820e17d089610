package workout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Summary is what is compared between a text and what the server made of it.
type Summary struct {
	Steps    int     // written steps: the children of a repeat count once
	Targeted int     // of them, those with a target
	Seconds  float64 // repetitions included
	Metres   float64 // repetitions included
	// Digest is the SHA-256 of the steps' structure: lengths, repeats, targets, ramps, step types. Cues are left out, for
	// the server escapes and trims them; a changed cue is a changed description.
	Digest string
}

// Summary sums up the document.
func (d Doc) Summary() Summary { return summarise(d.Steps) }

// StepsDigest is Summary().Digest.
func (d Doc) StepsDigest() string { return digest(d.Steps) }

// DigestOf is the digest of a server's workout_doc, to be compared with Doc.StepsDigest or with an earlier one.
func DigestOf(workoutDoc json.RawMessage) (string, error) {
	steps, err := ServerSteps(workoutDoc)
	if err != nil {
		return "", err
	}
	return digest(steps), nil
}

// ServerSummary sums up a server's workout_doc. Nothing and null are a document without steps.
func ServerSummary(workoutDoc json.RawMessage) (Summary, error) {
	steps, err := ServerSteps(workoutDoc)
	if err != nil {
		return Summary{}, err
	}
	return summarise(steps), nil
}

// ServerSteps reads the steps of a server's workout_doc. Members that it does not know, resolved targets among them, are
// left out.
func ServerSteps(workoutDoc json.RawMessage) ([]Step, error) {
	if len(bytes.TrimSpace(workoutDoc)) == 0 {
		return nil, nil
	}
	var doc struct {
		Steps []Step `json:"steps"`
	}
	if err := json.Unmarshal(workoutDoc, &doc); err != nil {
		return nil, fmt.Errorf("read workout_doc: %w", err)
	}
	return doc.Steps, nil
}

func summarise(steps []Step) Summary {
	s := Summary{Seconds: totalSeconds(steps), Metres: totalMetres(steps), Digest: digest(steps)}
	var count func([]Step)
	count = func(steps []Step) {
		for _, step := range steps {
			if len(step.Steps) > 0 {
				count(step.Steps)
				continue
			}
			s.Steps++
			if step.Targeted() {
				s.Targeted++
			}
		}
	}
	count(steps)
	return s
}

// digest hashes one line a step. Every field stands in a fixed place, so no two structures share an encoding.
func digest(steps []Step) string {
	var b strings.Builder
	b.WriteString("wetink/workout-steps/v1\n")
	encode(&b, steps)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func encode(b *strings.Builder, steps []Step) {
	for _, s := range steps {
		if len(s.Steps) > 0 {
			fmt.Fprintf(b, "repeat %d {\n", max(s.Reps, 1))
			encode(b, s.Steps)
			b.WriteString("}\n")
			continue
		}
		fmt.Fprintf(b, "step s=%s m=%s flags=%s type=%q power=%s hr=%s pace=%s cadence=%s\n",
			decimal(s.Seconds), decimal(s.Metres), flags(s), strings.ToLower(s.Intensity),
			encodeValue(s.Power), encodeValue(s.HR), encodeValue(s.Pace), encodeValue(s.Cadence))
	}
}

func flags(s Step) string {
	var b strings.Builder
	for _, f := range []struct {
		set  bool
		name byte
	}{{s.Warmup, 'w'}, {s.Cooldown, 'c'}, {s.Ramp, 'r'}, {s.Freeride, 'f'}, {s.MaxEffort, 'm'}, {s.HidePower, 'h'}, {s.LapPress, 'l'}} {
		if f.set {
			b.WriteByte(f.name)
		}
	}
	return b.String()
}

func encodeValue(v *Value) string {
	if v == nil {
		return "-"
	}
	units, scale := v.Units, 1.0
	switch units {
	case "secs/km":
		units = PerKilometre
	case "secs/mi", "secs/mile":
		units = PerMile
	}
	// Seen both in minutes and in seconds; nobody runs a kilometre in 30 s or plans one of 30 min.
	if (units == PerKilometre || units == PerMile) && v.Mid() < 30 {
		scale = 60
	}
	if v.Range() {
		return fmt.Sprintf("%s..%s %q", decimal(v.Start*scale), decimal(v.End*scale), units)
	}
	return fmt.Sprintf("%s %q", decimal(v.Value*scale), units)
}

// decimal drops what floating point adds: a server that keeps float32 must not look like another workout.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}
