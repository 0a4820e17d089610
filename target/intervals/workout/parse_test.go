package workout

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// one parses a single step line and fails unless it is a step.
func one(t *testing.T, line string) Step {
	t.Helper()
	d := Parse(line)
	if len(d.Steps) != 1 {
		t.Fatalf("%q: %d steps, discarded %v", line, len(d.Steps), d.Discarded)
	}
	return d.Steps[0]
}

func TestStepLengths(t *testing.T) {
	for line, want := range map[string]Step{
		"- 1h":          {Seconds: 3600},
		"- 10m":         {Seconds: 600},
		"- 30s":         {Seconds: 30},
		"- 1h2m30s":     {Seconds: 3750},
		"- 5m30s":       {Seconds: 330},
		"- 5'":          {Seconds: 300},
		`- 30"`:         {Seconds: 30},
		`- 1'30"`:       {Seconds: 90},
		"- 400m":        {Seconds: 24000},
		"- 500mtr":      {Metres: 500},
		"- 0.4km":       {Metres: 400},
		"- 10km":        {Metres: 10000},
		"- 1mi":         {Metres: 1609.344},
		"- 100yrd":      {Metres: 91.44},
		"-Easy 10m":     {Seconds: 600, Text: "Easy"},
		"- Big gear 5m": {Seconds: 300, Text: "Big gear"},
	} {
		if got := one(t, line); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
}

func TestStepTargets(t *testing.T) {
	for line, want := range map[string]Step{
		"- 10m 75%":                     {Power: &Value{Value: 75, Units: PercentFTP}},
		"- 10m 95-105%":                 {Power: &Value{Start: 95, End: 105, Units: PercentFTP}},
		"- 10m 220w":                    {Power: &Value{Value: 220, Units: Watts}},
		"- 10m 200-240W":                {Power: &Value{Start: 200, End: 240, Units: Watts}},
		"- 10m Z2":                      {Power: &Value{Value: 2, Units: PowerZone}},
		"- 10m Z3-Z4":                   {Power: &Value{Start: 3, End: 4, Units: PowerZone}},
		"- 10m CZ1":                     {Power: &Value{Value: 1, Units: CustomZone}},
		"- 10m 60% MMP 5m":              {Power: &Value{Value: 60, Units: PercentMMP, Window: 300}},
		"- 10m 70% HR":                  {HR: &Value{Value: 70, Units: PercentHR}},
		"- 10m 75-80% HR":               {HR: &Value{Start: 75, End: 80, Units: PercentHR}},
		"- 10m 95% LTHR":                {HR: &Value{Value: 95, Units: PercentLTHR}},
		"- 10m Z2 HR":                   {HR: &Value{Value: 2, Units: HRZone}},
		"- 10m 78-82% Pace":             {Pace: &Value{Start: 78, End: 82, Units: PercentPace}},
		"- 10m Z2 Pace":                 {Pace: &Value{Value: 2, Units: PaceZone}},
		"- 10m 5:00 Pace":               {Pace: &Value{Value: 300, Units: PerKilometre}},
		"- 10m 5:40-6:10/km Pace":       {Pace: &Value{Start: 340, End: 370, Units: PerKilometre}},
		"- 10m 1:45/100m Pace":          {Pace: &Value{Value: 105, Units: Per100Metres}},
		"- 10m ramp 50-75%":             {Ramp: true, Power: &Value{Start: 50, End: 75, Units: PercentFTP}},
		"- 10m Ramp 50-75% 85rpm":       {Ramp: true, Power: &Value{Start: 50, End: 75, Units: PercentFTP}, Cadence: &Value{Value: 85, Units: RPM}},
		"- 10m 75% 90-100rpm":           {Power: &Value{Value: 75, Units: PercentFTP}, Cadence: &Value{Start: 90, End: 100, Units: RPM}},
		"- 10m freeride":                {Freeride: true},
		"- 10m maxeffort":               {MaxEffort: true},
		"- 10m 50% intensity=recovery":  {Power: &Value{Value: 50, Units: PercentFTP}, Intensity: "recovery"},
		"- 10m 50% press lap":           {Power: &Value{Value: 50, Units: PercentFTP}, LapPress: true},
		"- 10m 50% hidepower":           {Power: &Value{Value: 50, Units: PercentFTP}, HidePower: true},
		"- 10m Z2 Pace 20s rest":        {Pace: &Value{Value: 2, Units: PaceZone}, Rest: 20},
		"- Label gone Z2 10m":           {Power: &Value{Value: 2, Units: PowerZone}},
		"- ramp it up 10m 75%":          {Text: "ramp it up", Power: &Value{Value: 75, Units: PercentFTP}},
		"- 60^sit up<!> Steady 10m 75%": {Text: "60^sit up<!> Steady", Power: &Value{Value: 75, Units: PercentFTP}},
	} {
		want.Seconds = 600
		if got := one(t, line); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %+v\nwant %+v", line, got, want)
		}
	}
}

func TestStepsThatTheServerDropsAreListedWithAReason(t *testing.T) {
	for _, line := range []string{
		"- remember to drink", "- 0s 50%", "- 10min 75%", "- 30secs 120%", "- 400 metres", "- Drill 50 fingertip 100mtr",
		"- ", "-", "  - 10m 75%", "- 75%",
	} {
		d := Parse(line)
		if len(d.Steps) != 0 || len(d.Discarded) != 1 || d.Discarded[0].Reason == "" || d.Discarded[0].Number != 1 {
			t.Errorf("%q: steps %+v, discarded %+v", line, d.Steps, d.Discarded)
		}
	}
}

func TestTargetsThatTheServerDropsAreListed(t *testing.T) {
	for _, line := range []string{
		"- 10m 5:00/km", "- 10m 140-150bpm", "- 10m 145 bpm", "- 10m Threshold Pace", "- 10m 5K Pace", "- 10m 95%-105%",
	} {
		d := Parse(line)
		if len(d.Steps) != 1 || len(d.Dropped) != 1 || d.Summary().Targeted != 0 {
			t.Errorf("%q: %+v", line, d)
		}
	}
	if d := Parse("- 10m 75% easy spin"); len(d.Dropped) != 0 {
		t.Errorf("a remark was taken for a target: %+v", d.Dropped)
	}
}

const threshold = "Warmup\n- 10m 55%\n\n3x\n- 8m 100%\n- 4m 55%\n\nCooldown\n- 10m 50%"

func TestRepeatsAndSections(t *testing.T) {
	d := Parse(threshold)
	if len(d.Steps) != 3 || d.Seconds() != 3360 || !d.Steps[0].Warmup || !d.Steps[2].Cooldown || d.Steps[1].Reps != 3 || d.Steps[1].Seconds != 2160 {
		t.Fatalf("%+v", d)
	}
	if s := d.Summary(); s.Steps != 4 || s.Targeted != 4 {
		t.Errorf("%+v", s)
	}
	titled := Parse("Main set 3x\n- 8m 100%\n")
	if titled.Seconds() != 3*480 {
		t.Errorf("titled repeat: %g s", titled.Seconds())
	}
	if d := Parse("German: Aufwärmen\n- 10m 55%"); d.Steps[0].Warmup {
		t.Error("only the exact English title marks a warm-up")
	}
}

func TestRepeatLosesItsEffectWithoutBlankLines(t *testing.T) {
	for text, want := range map[string]float64{
		"- 10m 55%\n3x\n- 8m 100%":           600 + 480, // no blank line before
		"3x\n\n- 8m 100%":                    480,       // one too many after
		"3x\n- 8m 100%\nCooldown\n- 10m 50%": 3*480 + 600,
	} {
		d := Parse(text)
		if d.Seconds() != want || len(d.Misread) != 1 {
			t.Errorf("%q: %g s, misread %+v", text, d.Seconds(), d.Misread)
		}
	}
}

func TestProseIsNoStep(t *testing.T) {
	d := Parse("Ride easy.\nTalk to people.\r\n\r\nThen coffee.")
	if len(d.Steps) != 0 || len(d.Discarded) != 0 || d.Prose != 3 {
		t.Errorf("%+v", d)
	}
}

func TestTextLongerThanTheLimitIsReadUpToIt(t *testing.T) {
	d := Parse(strings.Repeat("- 1s\n", 400_000))
	if len(d.Steps) != MaxText/5 || len(d.Discarded) == 0 || !strings.Contains(d.Discarded[0].Reason, "longer") {
		t.Errorf("%d steps, discarded %v", len(d.Steps), d.Discarded)
	}
}

func TestDigestIsTheSameForTheTextAndForWhatTheServerMadeOfIt(t *testing.T) {
	server := `{"duration":3360,"distance":0,"average_watts":184,"normalized_power":207,"zoneTimes":[],"locales":null,"steps":[
	  {"duration":600,"power":{"value":55,"units":"%ftp"},"_power":{"value":137.5},"warmup":true,"text":"Warmup &lt;easy&gt;"},
	  {"reps":3,"steps":[{"duration":480,"power":{"value":100.0,"units":"%ftp"}},{"duration":240,"power":{"value":55,"units":"%ftp"}}],"duration":2160},
	  {"duration":600,"power":{"value":50,"units":"%ftp","start":null},"cooldown":true}]}`
	want := Parse(threshold).Summary()
	got, err := ServerSummary(json.RawMessage(server))
	if err != nil || got != want {
		t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
	}
	for _, other := range []string{
		strings.Replace(threshold, "3x", "4x", 1), strings.Replace(threshold, "100%", "101%", 1), strings.Replace(threshold, "4m", "5m", 1),
		strings.Replace(threshold, "100%", "ramp 90-100%", 1), strings.Replace(threshold, "100%", "100% HR", 1),
		strings.Replace(threshold, "Warmup", "Warm up", 1), strings.Replace(threshold, "100%", "100% 90rpm", 1), "",
	} {
		if Parse(other).StepsDigest() == want.Digest {
			t.Errorf("same digest for %q", other)
		}
	}
}

func TestDigestKnowsBothSpellingsOfPace(t *testing.T) {
	want := Parse("- 1km 5:00/km Pace").StepsDigest()
	for _, pace := range []string{`{"value":300,"units":"secs/km"}`, `{"value":5,"units":"MINS_KM"}`, `{"value":300.0001,"units":"MINS_KM"}`} {
		got, err := DigestOf(json.RawMessage(`{"steps":[{"distance":1000,"pace":` + pace + `}]}`))
		if err != nil || got != want {
			t.Errorf("%s: %s %v", pace, got, err)
		}
	}
}

func TestDigestOfNothing(t *testing.T) {
	want := Parse("").StepsDigest()
	for _, doc := range []string{"", "null", "{}", `{"steps":null}`, `{"steps":[]}`} {
		if got, err := DigestOf(json.RawMessage(doc)); err != nil || got != want {
			t.Errorf("%q: %s %v", doc, got, err)
		}
	}
	if _, err := DigestOf(json.RawMessage(`{"steps":7}`)); err == nil {
		t.Error("a workout_doc that is none was accepted")
	}
}

func TestStepJSONIsReadBackAsItself(t *testing.T) {
	d := Parse(threshold + "\n\n- 1km ramp 50-75% HR 90rpm\n- 500mtr 1:45/100m Pace 20s rest\n- 10m 60% MMP 5m")
	wire, err := json.Marshal(map[string]any{"steps": d.Steps})
	if err != nil {
		t.Fatal(err)
	}
	back, err := ServerSteps(wire)
	if err != nil || !reflect.DeepEqual(back, d.Steps) {
		t.Errorf("%v\n got %+v\nwant %+v", err, back, d.Steps)
	}
}

func TestLint(t *testing.T) {
	for _, c := range []struct {
		text, sport string
		want        []Code
	}{
		{threshold, "Ride", nil},
		{"8x\n- 400m 90%", "Run", []Code{AbsurdTotal, MetresAsMinutes}},
		{"- 100m Z2 Pace", "Swim", []Code{MetresAsMinutes}},
		{"- 90m 70%", "Ride", nil},
		{"- 10m Z2", "Run", []Code{PowerZoneOnFoot}},
		{"- 10m Z2", "Ride", nil},
		{"- 10m 5:00/km", "Run", []Code{DroppedTarget}},
		{"- 10m 140-150bpm", "Run", []Code{DroppedTarget}},
		{"- 10m 55%\n3x\n- 8m 100%", "Ride", []Code{MisplacedRepeat}},
		{"- drink\n- 10m 55%", "Ride", []Code{Discarded}},
		{"- drink", "Ride", []Code{NothingStructured, Discarded}},
		{"* 10m at 75%", "Ride", []Code{NothingStructured, NotAStep}},
		{"1. 10m at 75%", "Ride", []Code{NothingStructured, NotAStep}},
		{"- Build 10m 60-80%", "Ride", []Code{RangeNotARamp}},
		{"- Build 10m ramp 60-80%", "Ride", nil},
		{"- 10m 5:00-5:30/km Pace", "Run", []Code{UnsortedPace}},
		{"- 9h 50%", "Ride", []Code{AbsurdTotal}},
		{"Easy spin, 75 min. Talk.", "Ride", nil},
	} {
		var got []Code
		for _, f := range Lint(c.text, c.sport) {
			if f.Message == "" {
				t.Errorf("%q: %s says nothing", c.text, f.Code)
			}
			got = append(got, f.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q in %s: %v, want %v", c.text, c.sport, got, c.want)
		}
	}
}

func TestHostileTextIsReadInProportionToItsLength(t *testing.T) {
	for _, unit := range []string{
		"- 10m 60m\n", " 60m", " Z2 5:00/km", " ramp", " 60^", "<!> 60^", "9x\n", "- x\n", " 9999h", "3x\n\n", "&lt;", "* 10m 5 %", " intensity=", "-",
	} {
		text := "- 10m " + strings.Repeat(unit, MaxText/8/len(unit))
		// Four times the text takes four times the memory; what copies the rest of the text for each word of it takes
		// sixteen times. (Time would be the better measure, and is none on a busy machine.)
		if short, long := allocated(text[:len(text)/4]), allocated(text); long > 8*short {
			t.Errorf("%q: %d bytes for a quarter, %d for all", unit, short, long)
		}
		if found := Lint(text, "Swim"); len(found) > MaxFindings+1 {
			t.Errorf("%q: %d findings", unit, len(found))
		}
	}
}

func allocated(text string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Lint(text, "Swim")
	Parse(text).StepsDigest()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{threshold, "8x\n- 400m 90%", "- 60^a<!> 10m Z2 Pace", "3x\n\n- 1'30\" 5:00/km Pace", "- 10m 60% MMP 5m 90-100rpm", "- \xff 10m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := Parse(text)
		if d.Seconds() < 0 || d.Metres() < 0 {
			t.Fatalf("negative total: %+v", d)
		}
		wire, err := json.Marshal(map[string]any{"steps": d.Steps})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DigestOf(wire); err != nil || got != d.StepsDigest() {
			t.Fatalf("the digest did not survive JSON: %v", err)
		}
		Lint(text, "Run")
		if d.Seconds() < 3600 {
			Load(d, Thresholds{FTP: 250, PowerZones: []int{55, 75, 90, 105, 120, 150, 999}})
		}
	})
}
