package intervalssim

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wetink/wetink/target/intervals/workout"
)

// writing is one event's write: what came, and how it is to be read.
type writing struct {
	sent      map[string]json.RawMessage
	nullClear bool   // a null empties the field
	ignore    string // field that silent_ignore swallows
	drift     bool   // the server parses otherwise than it should
}

func (s *Sim) writing(c *call, sent map[string]json.RawMessage) writing {
	w := writing{sent: sent, nullClear: s.opts.NullSemantics == "clear", drift: c.struck("parse_drift") != nil}
	if st := c.struck("silent_ignore"); st != nil {
		w.ignore = st.arg
	}
	return w
}

// draft is a new event with nothing in it but what the server gives it.
func (s *Sim) draft(a *athlete, client string, oauth int64, batch int) *event {
	e := &event{values: map[string]any{
		"uid": uuid(), "athlete_id": a.id, "created_by_id": a.id, "calendar_id": int64(1),
	}, client: client, batch: batch}
	if oauth != 0 {
		e.set("oauth_client_id", oauth)
	}
	return e
}

// write merges what was sent into e, checks it and derives the rest. e is a copy that nobody sees yet.
func (s *Sim) write(a *athlete, e *event, w writing) *failure {
	oneDay := e.text("end_date_local") == nextMidnight(e.text("start_date_local"))
	if f := s.merge(e, w); f != nil {
		return f
	}
	if f := check(e); f != nil {
		return f
	}
	s.end(e, w, oneDay)
	s.derive(a, e, w)
	e.set("updated", stamp(s.now()))
	return nil
}

func (s *Sim) merge(e *event, w writing) *failure {
	for name, raw := range w.sent {
		f, known := fieldNamed[name]
		if !known {
			if s.opts.StrictUnknownKeys && !acceptedToo[name] {
				return refuse(400, fmt.Sprintf("JSON parse error: Unrecognized field %q", name))
			}
			continue
		}
		// Read even when it is ignored: a value of the wrong type is refused whoever owns the field.
		v, fail := f.read(raw)
		if fail != nil {
			return fail
		}
		if f.ours || name == w.ignore {
			continue
		}
		switch v := v.(type) {
		case nil:
			if w.nullClear {
				e.set(name, nil)
			}
		case clearing:
			e.set(name, nil)
		case string:
			if name == "description" {
				v = stored(v)
			}
			e.set(name, v)
		default:
			e.set(name, v)
		}
	}
	if e.text("category") == "NOTE" {
		e.set("type", nil)
	}
	return nil
}

// acceptedToo are members of a write that are none of a read.
var acceptedToo = map[string]bool{"workout": true, "file_contents": true, "file_contents_base64": true, "filename": true, "plan_name": true}

func check(e *event) *failure {
	category := e.text("category")
	switch {
	case category == "":
		return refuse(422, "category is required")
	case e.text("start_date_local") == "":
		return refuse(422, "start_date_local is required")
	case strings.TrimSpace(e.text("name")) == "":
		return refuse(422, "Name is required")
	case e.text("type") == "" && (category == "WORKOUT" || strings.HasPrefix(category, "RACE_")):
		return refuse(422, "type is required")
	}
	return nil
}

// end gives the event an end, or moves the end of what was a one-day event along with its start.
func (s *Sim) end(e *event, w writing, oneDay bool) {
	_, startSent := w.sent["start_date_local"]
	_, endSent := w.sent["end_date_local"]
	if e.text("end_date_local") == "" || (startSent && !endSent && oneDay && s.opts.ShiftEnd == "follow") {
		e.set("end_date_local", nextMidnight(e.text("start_date_local")))
	}
}

// derive does what the server computes: the parsed text, and the time, distance and load that follow from it.
func (s *Sim) derive(a *athlete, e *event, w writing) {
	if e.text("category") != "WORKOUT" {
		e.steps = nil
		e.set("workout_doc", nil)
		return
	}
	if _, sent := w.sent["description"]; sent && w.ignore != "description" {
		e.steps = workout.Parse(e.text("description")).Steps
		if w.drift {
			e.steps = drifted(e.steps)
		}
		if e.text("description") == "" {
			e.set("workout_doc", nil)
			return
		}
	} else if raw, sent := w.sent["workout_doc"]; sent && s.opts.WorkoutDocWrite == "accept_without_description" {
		if steps, err := workout.ServerSteps(raw); err == nil {
			e.steps = steps
		}
	} else if e.values["workout_doc"] == nil {
		return // no text has ever been written
	}
	s.cost(a, e)
}

// cost computes what follows from the steps. It is done again when thresholds change.
func (s *Sim) cost(a *athlete, e *event) {
	doc := workout.Doc{Steps: e.steps}
	seconds, metres := doc.Seconds(), doc.Metres()
	wire := map[string]any{"steps": orEmpty(e.steps), "duration": int64(seconds), "distance": metres, "locales": []string{}, "zoneTimes": nil}
	e.set("distance", metres) // also 0, for prose
	if len(e.steps) == 0 {
		for _, name := range []string{"icu_intensity", "joules"} {
			e.set(name, nil)
		}
		e.set("workout_doc", wire)
		return
	}
	e.set("moving_time", int64(seconds))
	effort, ok := workout.Load(doc, a.thresholds(e.text("type"), e.is("indoor")))
	if ok && !effort.Estimate {
		e.set("icu_training_load", int64(effort.Load))
		e.set("icu_intensity", effort.Intensity*100)
		e.set("joules", int64(effort.Joules+0.5))
		wire["average_watts"] = int64(effort.AverageWatts + 0.5)
		wire["normalized_power"] = int64(effort.NormalizedPower + 0.5)
		wire["variability_index"] = effort.NormalizedPower / effort.AverageWatts
	} else {
		// Nothing to compute a load from: a client's own is kept.
		e.set("icu_intensity", nil)
		e.set("joules", nil)
	}
	e.set("workout_doc", wire)
}

func orEmpty(steps []workout.Step) []workout.Step {
	if steps == nil {
		return []workout.Step{}
	}
	return steps
}

// drifted is how a server may read the steps otherwise: the first repeat once less, else the first target lost.
func drifted(steps []workout.Step) []workout.Step {
	for i, st := range steps {
		if st.Reps > 1 {
			steps[i].Reps--
			return steps
		}
	}
	if len(steps) > 0 {
		steps[0].Power, steps[0].HR, steps[0].Pace = nil, nil, nil
	}
	return steps
}

func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
