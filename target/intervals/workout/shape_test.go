package workout_test

import (
	"math"
	"testing"

	"github.com/wetink/wetink/target/intervals/workout"
)

func TestAWorkoutIsSaidInOneSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "no steps",
		"Squats and planks.":                  "no steps",
		"- 1h30m Z2 HR":                       "1 h 30 min at heart rate zone 2",
		"- 10m 95% LTHR":                      "10 min at 95 % of threshold heart rate",
		"- 400mtr 90% Pace":                   "400 m at 90 % of threshold pace",
		"- 1km 5:00/km Pace":                  "1000 m at 300 s/km",
		"- 30s 220w":                          "30 s at 220 W",
		"- 10m":                               "10 min",
		"- 20m freeride":                      "20 min as you like",
		"- 30s maxeffort":                     "30 s all out",
		"2x\n- 1m 120%\n- 1m 50%\n\n- 5m 50%": "2 times 1 min at 120 % and 1 min at 50 %, then 5 min at 50 %",
	} {
		if got := workout.Say(workout.Parse(text), 10); got != want {
			t.Errorf("%q is said as %q, want %q", text, got, want)
		}
	}
	if got := workout.Say(workout.Parse("- 1m 50%\n- 1m 60%"), 1); got != "2 steps" {
		t.Errorf("beyond the limit: %q", got)
	}
}

func TestAWorkoutIsUnrolledForADrawing(t *testing.T) {
	limits := workout.Thresholds{FTP: 200, PowerZones: []int{50, 100}, LTHR: 160, MaxHR: 180, ThresholdPace: 4}
	for text, want := range map[string][]workout.Stretch{
		"- 10m ramp 50-75%":             {{Seconds: 600, From: .5, To: .75}},
		"- 10m 50-70%":                  {{Seconds: 600, From: .6, To: .6}},
		"- 10m 100w":                    {{Seconds: 600, From: .5, To: .5}},
		"- 10m":                         {{Seconds: 600}},
		"- 400mtr 80% Pace":             {{Seconds: 125, From: .8, To: .8}},
		"- 400mtr":                      {{Seconds: 100}}, // at threshold, for want of anything better
		"- 10m ramp 70-90% LTHR":        {{Seconds: 600, From: .7, To: .9}},
		"2x\n- 1m 100%\n- 2m 50%":       {{60, 1, 1}, {120, .5, .5}, {60, 1, 1}, {120, .5, .5}},
		"Stay seated.":                  nil,
		"3x\n- 1m 100%\n- 2m 50%\n- 1s": nil, // nine pieces, one more than is asked for
	} {
		got, ok := workout.Shape(workout.Parse(text), limits, 8)
		if ok != (want != nil) || len(got) != len(want) {
			t.Errorf("%q: %v, %v", text, got, ok)
			continue
		}
		for i, s := range got {
			if math.Abs(s.Seconds-want[i].Seconds) > .01 || math.Abs(s.From-want[i].From) > .001 || math.Abs(s.To-want[i].To) > .001 {
				t.Errorf("%q: piece %d is %v, want %v", text, i, s, want[i])
			}
		}
	}
}
