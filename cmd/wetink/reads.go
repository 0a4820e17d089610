package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/target/intervals"
)

// calendarReads are the tools without any effect. Each answers an object.
func calendarReads(c *intervals.Client) []mcpserver.Read {
	type none struct{}
	type oneEvent struct {
		ID   intervals.EventID `json:"event_id" jsonschema:"from list_events"`
		Full bool              `json:"full,omitempty" jsonschema:"every field that the service has; long"`
	}
	type oneActivity struct {
		ID   intervals.ActivityID `json:"activity_id" jsonschema:"from list_activities"`
		Full bool                 `json:"full,omitempty" jsonschema:"every field that the service has; long"`
	}
	type effortsOf struct {
		ID intervals.ActivityID `json:"activity_id" jsonschema:"from list_activities"`
	}
	type sport struct {
		Sport string `json:"sport,omitempty" jsonschema:"such as Ride, Run or Swim; all by default"`
	}
	return []mcpserver.Read{
		read("get_athlete", "Whose account it is, and today's date and weekday in the athlete's time zone. Call it before working with relative dates such as tomorrow.",
			func(ctx context.Context, _ none) (any, error) { return c.Profile(ctx) }),
		read("list_events", "What is planned on the calendar: workouts, races, notes, holidays. By default today and the next six days in the athlete's time zone.",
			func(ctx context.Context, q intervals.EventQuery) (any, error) { return c.Calendar(ctx, q) }),
		read("get_event", "One event of the calendar, with the text of the workout.",
			func(ctx context.Context, q oneEvent) (any, error) { return c.Event(ctx, q.ID, q.Full) }),
		read("list_activities", "What was done, newest first; by default in the last fourteen days. An activity that is unavailable is not empty: what it holds cannot be seen.",
			func(ctx context.Context, q intervals.ActivityQuery) (any, error) { return c.Activities(ctx, q) }),
		read("get_activity", "One activity in numbers.",
			func(ctx context.Context, q oneActivity) (any, error) { return c.Activity(ctx, q.ID, q.Full) }),
		read("get_activity_intervals", "The efforts of an activity, one by one.",
			func(ctx context.Context, q effortsOf) (any, error) { return c.Intervals(ctx, q.ID) }),
		read("get_activity_streams", "Samples of an activity, such as power and heart rate, evenly thinned.",
			func(ctx context.Context, q intervals.StreamQuery) (any, error) { return c.Streams(ctx, q) }),
		read("get_wellness", "Sleep, resting heart rate, HRV, weight and how the athlete felt, by day. By default the last seven days.",
			func(ctx context.Context, q intervals.WellnessQuery) (any, error) { return c.Wellness(ctx, q) }),
		read("get_fitness", "Fitness (ctl), fatigue (atl), form and ramp rate by day; days to come are a forecast from what is planned. By default the last fourteen and the next seven days.",
			func(ctx context.Context, q intervals.Days) (any, error) { return c.Fitness(ctx, q) }),
		read("get_power_curves", "Best power by duration, over one or several spans of time.",
			func(ctx context.Context, q intervals.CurveQuery) (any, error) { return c.PowerCurves(ctx, q) }),
		read("list_workouts", "The workout library: its folders and plans, and the workouts in them.",
			func(ctx context.Context, q intervals.LibraryQuery) (any, error) { return c.Library(ctx, q) }),
		read("get_sport_settings", "Thresholds and zones by sport: FTP, heart rate, pace.",
			func(ctx context.Context, q sport) (any, error) {
				list, err := c.SportSettings(ctx, q.Sport)
				return map[string]any{"sport_settings": list}, err
			}),
	}
}

// read makes a tool of a function whose arguments are the struct In.
func read[In any](name, description string, call func(context.Context, In) (any, error)) mcpserver.Read {
	return mcpserver.Read{Name: name, Description: description, Input: readSchema[In](name),
		Call: func(ctx context.Context, args json.RawMessage) (any, error) {
			var in In
			err := strictjson.Decode(args, &in, strictjson.Default)
			if je := (*strictjson.Error)(nil); errors.As(err, &je) {
				return nil, &wetink.RequestError{Field: je.Path, Reason: je.Reason, Fix: "compare with the tool's input schema"}
			}
			if err != nil {
				return nil, fmt.Errorf("arguments of %s: %w", name, err)
			}
			if err := required(args, readSchema[In](name)); err != nil {
				return nil, err
			}
			return call(ctx, in)
		}}
}

func required(args json.RawMessage, s *jsonschema.Schema) error {
	members, err := strictjson.Members(args)
	if err != nil {
		return &wetink.RequestError{Reason: err.Error(), Fix: "send one JSON object"}
	}
	for _, name := range s.Required {
		if !slices.ContainsFunc(members, func(m strictjson.Member) bool { return m.Name == name }) {
			return &wetink.RequestError{Field: name, Reason: "it is missing", Fix: "add it"}
		}
	}
	return nil
}

// readSchema says what decoding takes: no null anywhere, and an id as a number or as its digits.
func readSchema[In any](name string) *jsonschema.Schema {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %s: %v", name, err)) // of a type of this file or of intervals
	}
	for name, p := range s.Properties {
		if p.Types = slices.DeleteFunc(p.Types, func(t string) bool { return t == "null" }); len(p.Types) == 1 {
			p.Type, p.Types = p.Types[0], nil
		}
		if name == "event_id" || name == "activity_id" {
			p.Type, p.Types = "", []string{"string", "integer"}
		}
	}
	return s
}
