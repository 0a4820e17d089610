package intervalssim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrNoEvent means that an Act names an event that is not there.
var ErrNoEvent = errors.New("no such event")

// Act lets somebody else change things: not through the API, and not as its client.
//
//	edit               event_id, set {field: value}     the web app changes any field; null empties it; a member that the
//	                                                     schema lacks is kept and shown as well
//	create             set {…}                          the web app adds an event
//	swap_for_easy_run  event_id                         the web app swaps the session for an easy run
//	delete             event_id
//	pair, unpair       event_id                         a watch uploads the activity and it is paired with the event
//	add_activity       type, start_date_local           an activity arrives and pairs itself if a plan matches
//	lock, unlock       event_id                         the coach sets athlete_cannot_edit
//	plan_reapply       [event_id]                       the plan writes its own sessions again
//	ftp                ftp                              FTP changes, and with it the load of every coming workout
//	recompute                                           the server computes what it owns again, with other results
//	calendar_refresh                                    the imported calendar is imported again: same events, other ids
//	release            [request]                        lets held writes go
//
// athlete names another account than the first. It answers with the event as it is then, or with what else is of use.
func (s *Sim) Act(act string, args map[string]any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.actor(args)
	if err != nil {
		return nil, fmt.Errorf("act %s: %w", act, err)
	}
	before, effects := s.snapshots(), len(s.effects)
	v, err := s.act(act, a, args)
	if err != nil {
		return nil, fmt.Errorf("act %s: %w", act, err)
	}
	if len(s.effects) > effects {
		s.keep(before)
	}
	return v, nil
}

func (s *Sim) actor(args map[string]any) (*athlete, error) {
	id, ok := args["athlete"]
	if !ok {
		return s.first, nil
	}
	for _, a := range s.athletes {
		if a.id == id {
			return a, nil
		}
	}
	return nil, fmt.Errorf("no athlete %v", id)
}

// onEvent are the acts on one event.
var onEvent = map[string]func(s *Sim, c cause, a *athlete, e *event, args map[string]any) (any, error){
	"edit": func(s *Sim, c cause, a *athlete, e *event, args map[string]any) (any, error) {
		set, _ := args["set"].(map[string]any)
		return s.edit(c, a, e, set)
	},
	"swap_for_easy_run": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		return s.edit(c, a, e, map[string]any{"name": "Easy run", "type": "Run", "target": nil, "description": "- 40m Z2 HR"})
	},
	"lock": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		return s.edit(c.as("coach"), a, e, map[string]any{"athlete_cannot_edit": true})
	},
	"unlock": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		return s.edit(c.as("coach"), a, e, map[string]any{"athlete_cannot_edit": nil})
	},
	"pair": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		act := s.newActivity(a, map[string]any{
			"type": e.text("type"), "name": e.text("name"), "start_date_local": e.text("start_date_local"),
			"moving_time": int64(e.integer("moving_time")), "icu_training_load": int64(e.integer("icu_training_load")), "source": "GARMIN_CONNECT",
		})
		s.pair(c.as("watch"), a, act, e)
		return a.events[e.id()], nil
	},
	"unpair": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		if act, ok := a.activities[e.text("paired_activity_id")]; ok {
			s.unpair(c, a, act)
		}
		return a.events[e.id()], nil
	},
	"delete": func(s *Sim, c cause, a *athlete, e *event, _ map[string]any) (any, error) {
		s.remove(c, a, e)
		return map[string]any{}, nil
	},
}

func (s *Sim) act(act string, a *athlete, args map[string]any) (any, error) {
	c := cause{method: "ACT", path: "/_sim/act/" + act, client: "web_app"}
	if f, ok := onEvent[act]; ok {
		e, ok := a.events[int64(whole(args["event_id"]))]
		if !ok {
			return nil, fmt.Errorf("event %v: %w", args["event_id"], ErrNoEvent)
		}
		return f(s, c, a, e, args)
	}
	switch act {
	case "create":
		set, _ := args["set"].(map[string]any)
		return s.webCreate(c, a, set)
	case "add_activity":
		values := maps.Clone(args)
		delete(values, "athlete")
		act := s.newActivity(a, values)
		s.record(c.as("watch"), "activity", 0, nil)
		s.autoPair(c.as("watch"), a, act)
		return act.copy(), nil
	case "plan_reapply":
		return s.reapplyPlan(c.as("coach"), a, whole(args["event_id"]))
	case "ftp":
		ftp := whole(args["ftp"])
		if ftp < 50 || ftp > 600 {
			return nil, fmt.Errorf("ftp %v: want 50 to 600 W", args["ftp"])
		}
		s.changeFTP(c, a, ftp)
		return map[string]any{"ftp": ftp}, nil
	case "recompute":
		s.recompute(c.as("server"), a)
		return map[string]any{}, nil
	case "calendar_refresh":
		return s.reimport(c.as("server"), a), nil
	case "release":
		return map[string]any{"released": s.release(whole(args["request"]))}, nil
	}
	return nil, errors.New("nobody does that")
}

func (c cause) as(client string) cause {
	c.client = client
	return c
}

// edit changes any field: checked as a write where a client could write it too, as it is where the server owns it. A number
// that the server would compute is kept as set, as if the server had come to another result.
func (s *Sim) edit(c cause, a *athlete, old *event, set map[string]any) (any, error) {
	e := old.copy()
	sent, err := encoded(set)
	if err != nil {
		return nil, err
	}
	if f := s.write(a, e, writing{sent: sent, nullClear: true}); f != nil {
		return nil, f
	}
	for name, raw := range sent {
		f, known := fieldNamed[name]
		if !known {
			if e.extra == nil {
				e.extra = map[string]any{}
			}
			e.extra[name] = set[name]
			continue
		}
		if !f.ours && f.kind != integer && f.kind != decimal {
			continue
		}
		v, _ := f.read(raw) // write has read it before
		if _, empty := v.(clearing); empty {
			v = nil
		}
		if v != nil || f.ours {
			e.set(name, v)
		}
	}
	s.replace(c, a, old, e)
	return e, nil
}

func encoded(set map[string]any) (map[string]json.RawMessage, error) {
	sent := map[string]json.RawMessage{}
	for name, v := range set {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sent[name] = raw
	}
	return sent, nil
}

func (s *Sim) webCreate(c cause, a *athlete, set map[string]any) (any, error) {
	sent, err := encoded(set)
	if err != nil {
		return nil, err
	}
	e := s.draft(a, c.client, 0, 0)
	if f := s.write(a, e, writing{sent: sent}); f != nil {
		return nil, f
	}
	s.add(c, a, e)
	return e, nil
}

// reapplyPlan writes the plan's sessions over what became of them.
func (s *Sim) reapplyPlan(c cause, a *athlete, only int) (any, error) {
	n := 0
	for _, old := range a.sorted(a.events) {
		if only != 0 && int(old.id()) != only || only == 0 && old.values["plan_workout_id"] == nil {
			continue
		}
		e := old.copy()
		sent, err := encoded(map[string]any{"name": "Plan: 4x5 min", "description": "- 15m 55%\n\n4x\n- 5m 105%\n- 3m 50%\n\n- 10m 50%"})
		if err != nil {
			return nil, err
		}
		if f := s.write(a, e, writing{sent: sent}); f != nil {
			return nil, f
		}
		e.set("plan_applied", stamp(s.now()))
		s.replace(c, a, old, e)
		n++
	}
	return map[string]any{"events": n}, nil
}

// changeFTP costs every coming workout again. Their text does not change, and their steps are shares of FTP.
func (s *Sim) changeFTP(c cause, a *athlete, ftp int) {
	a.ftp, a.indoorFTP = ftp, ftp-10
	s.record(c, "settings", 0, []string{"ftp", "indoor_ftp"})
	today := s.today(a)
	for _, old := range a.sorted(a.events) {
		if old.day() < today || len(old.steps) == 0 {
			continue
		}
		e := old.copy()
		s.cost(a, e)
		s.touch(e)
		if len(differences(old, e)) > 0 {
			s.replace(c.as("server"), a, old, e)
		}
	}
}

// recompute gives other values to everything that moves by itself.
func (s *Sim) recompute(c cause, a *athlete) {
	a.form.ctl += 0.25
	a.form.atl += 0.5
	for _, old := range a.sorted(a.events) {
		if len(old.steps) == 0 {
			continue
		}
		e := old.copy()
		for i, name := range []string{"strain_score", "ss_cp", "ss_w_prime", "ss_p_max"} {
			v, _ := e.values[name].(float64)
			e.set(name, v+float64(i+1)*1.5)
		}
		e.set("carbs_used", int64(e.integer("carbs_used")+7))
		e.set("joules_above_ftp", int64(e.integer("joules_above_ftp")+100))
		s.touch(e)
		s.replace(c, a, old, e)
	}
}

// touch moves `updated` without a user's doing, if the service does that.
func (s *Sim) touch(e *event) {
	if s.opts.UpdatedMovesByItself {
		e.set("updated", stamp(s.now()))
	}
}

// reimport replaces the events of foreign calendars by the same ones with other ids.
func (s *Sim) reimport(c cause, a *athlete) any {
	n := 0
	for _, old := range a.sorted(a.events) {
		if old.integer("calendar_id") == 1 {
			continue
		}
		e := old.copy()
		e.set("uid", uuid())
		e.set("updated", stamp(s.now()))
		s.remove(c, a, old)
		s.add(c, a, e)
		n++
	}
	return map[string]any{"events": n}
}

// release lets one held write go, or all.
func (s *Sim) release(request int) int {
	n := 0
	for r, ch := range s.held {
		if request != 0 && r != request {
			continue
		}
		close(ch)
		delete(s.held, r)
		n++
	}
	return n
}

// Acts are the names that Act knows.
func Acts() []string {
	l := slices.Collect(maps.Keys(onEvent))
	l = append(l, "create", "add_activity", "plan_reapply", "ftp", "recompute", "calendar_refresh", "release")
	slices.Sort(l)
	return l
}

// whole reads an id or a number, as JSON or Go gives it.
func whole(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case int64:
		return int(v)
	case float64:
		return int(v)
	case json.Number:
		n, _ := v.Int64()
		return int(n)
	}
	return 0
}
