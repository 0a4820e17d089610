package workout

import (
	"math"
	"strconv"
	"testing"
)

var rider = Thresholds{
	FTP: 250, PowerZones: []int{55, 75, 90, 105, 120, 150, 999},
	LTHR: 165, MaxHR: 185, HRZones: []int{134, 147, 154, 164, 169, 174, 185},
	ThresholdPace: 4.0, PaceZones: []float64{77.5, 87.7, 94.3, 100, 103.4, 111.5, 999},
}

func TestLoadOfPowerWorkouts(t *testing.T) {
	for _, c := range []struct {
		text               string
		secs, avg, np, pct float64
		load               int
	}{
		{threshold, 3360, 183.5, 206.9, 82.8, 64},
		{"- 1h 70%", 3600, 175, 175, 70, 49},
		{"- 10m ramp 50-75%\n- 20m 88-94%\n- 5m 40%", 2100, 188.9, 203.7, 81.5, 39},
		{"5x\n- 30s 120%\n- 30s 50%", 300, 212.5, 239.1, 95.6, 8},
		{"8x\n- 400m 90%", 192000, 225, 225, 90, 4320},
	} {
		d := Parse(c.text)
		e, ok := Load(d, rider)
		near := func(got, want float64) bool { return math.Abs(got-want) <= 0.051 }
		if !ok || d.Seconds() != c.secs || !near(e.AverageWatts, c.avg) || !near(e.NormalizedPower, c.np) || !near(100*e.Intensity, c.pct) || e.Load != c.load || e.Estimate {
			t.Errorf("%q: %g s %+v", c.text, d.Seconds(), e)
		}
	}
}

func TestLoadOfPowerZones(t *testing.T) {
	for i, want := range []float64{123, 163, 207, 244, 282, 338, 1437} {
		e, ok := Load(Parse("- 10m Z"+strconv.Itoa(i+1)), rider)
		if !ok || e.AverageWatts != want {
			t.Errorf("Z%d: %g W, want %g", i+1, e.AverageWatts, want)
		}
	}
}

func TestLoadWithoutPowerIsAnEstimate(t *testing.T) {
	for text, want := range map[string]int{
		"- 1h 100% LTHR":      100,
		"- 30m 80% Pace":      32,
		"- 12km 4:10/km Pace": 83, // 4 m/s is threshold: 50 min
	} {
		if e, ok := Load(Parse(text), rider); !ok || !e.Estimate || e.Load != want {
			t.Errorf("%q: %+v %v", text, e, ok)
		}
	}
}

func TestLoadSaysWhenThereIsNone(t *testing.T) {
	for _, text := range []string{"", "Lift things.", "- 30m", "999x\n- 9999h 50%"} {
		if e, ok := Load(Parse(text), rider); ok {
			t.Errorf("%q: %+v", text, e)
		}
	}
	if _, ok := Load(Parse("- 10m 75%"), Thresholds{}); ok {
		t.Error("a load without an FTP")
	}
}
