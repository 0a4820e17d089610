package render_test

import (
	"encoding/json"
	"errors"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// explained tells what a calendar would.
func explained(t wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	e := wetink.Explanation{Noun: "session", Zone: "Europe/Madrid", Owner: "Ana Ruiz", Around: []wetink.Entry{{Day: "2026-07-17", Start: "18:00", Short: "Gym", Name: "Strength"}}}
	for i, op := range t.Ops {
		o := wetink.OpExplanation{Call: "PUT /events/" + op.Object, Fields: map[string]wetink.Meaning{
			"name": {Label: "Name"}, "start_date_local": {Label: "Starts", Kind: wetink.Moment, Note: "1 day later, same time"},
			"moving_time": {Label: "Duration", Kind: wetink.Seconds}, "distance": {Label: "Distance", Kind: wetink.Metres},
			"icu_training_load": {Label: "Load", Kind: wetink.Number, Unit: "points"}, "indoor": {Label: "Indoors", Kind: wetink.Flag},
			"description": {Label: "Workout text", Kind: wetink.Prose}, "type": {Label: "Sport"},
		}}
		if !before[i].Absent {
			o.Was = &wetink.Entry{Day: "2026-07-16", Start: "08:00", Short: "Tempo", Name: "Tempo 3 x 10 min"}
		}
		if op.Action != "delete" {
			o.Will = &wetink.Entry{Day: "2026-07-17", Start: "08:00", Short: "Tempo", Name: "Tempo 2 x 10 min"}
		}
		o.Shape = [2]*wetink.Profile{
			{Segments: []wetink.Segment{{Seconds: 600, From: .5, To: .75}, {Seconds: 1800, From: .88, To: .88}}, Load: 62, Says: "10 min ramp, 30 min at 88 %", Scale: "100 % FTP, 250 W"},
			{Segments: []wetink.Segment{{Seconds: 600, From: .5, To: .75}, {Seconds: 1200, From: .88, To: .88}}, Load: 46, Estimate: true, Says: "10 min ramp, 20 min at 88 %", Scale: "100 % FTP, 250 W", Ignored: []string{"- easy spin home"}},
		}
		e.Ops = append(e.Ops, o)
	}
	return e
}

func drawn(t *testing.T, v render.View, o *render.Options) string {
	t.Helper()
	var b strings.Builder
	if err := render.HTML(&b, v, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func one(t *testing.T, before string, payload any) wetink.Change {
	return change(t, wetink.Pending, []wetink.Snapshot{event("1", before)}, wetink.Terms{Ops: []wetink.Op{{Action: "update", Object: "1", Payload: raw(payload)}}})
}

func TestTheSheetIsWhatItWas(t *testing.T) {
	told := &render.Options{Noun: "session", Explain: explained}
	for name, draw := range map[string]func() string{
		"move": func() string {
			return drawn(t, render.View{Change: move(t, wetink.Pending), Now: now}, told)
		},
		"workout": func() string {
			return drawn(t, render.View{Now: now, Change: one(t, tempo, map[string]any{"name": "Tempo 2 x 10 min", "moving_time": 3000, "indoor": true,
				"description": "Warm up\n- 10m 60%\n\nMain\n- 2x 10m 90%\n- easy spin home\n"})}, told)
		},
		"deletes": func() string {
			return drawn(t, render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{{Absent: true}, event("7", tempo)}, wetink.Terms{
				Require: wetink.Require{Level: wetink.Passkey, People: 2, Other: true}, Undo: wetink.Promise{Extent: wetink.NoUndo},
				Ops: []wetink.Op{{Action: "create", Payload: raw(map[string]any{"name": "New"})}, {Action: "delete", Object: "7"}}})}, &render.Options{Noun: "race"})
		},
		"deception": func() string {
			return drawn(t, render.View{Now: now, Change: one(t, `{"name":"invoice"}`, map[string]any{
				"name": "in\u202evoice\u200b ", "url": "https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/<img src=x onerror=alert(1)>", "note": "a\n</script><b>b"})}, nil)
		},
		"uninspectable": func() string {
			return drawn(t, render.View{Now: now, Change: one(t, `{"name":"x"}`, map[string]any{"name": "y", "x_secret": map[string]any{"deep": true}})}, told)
		},
	} {
		path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "_")+".html")
		got := draw()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s is not what it was (run with -update and look at the difference): %v\n%s", name, err, got)
		}
	}
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	inTags = regexp.MustCompile(`<[^>]* (style|on[a-z]+|id)=`)
)

// seen is what a person reads of it.
func seen(page string) string { return html.UnescapeString(tag.ReplaceAllString(page, "\x00")) }

func TestNothingThatCameFromOutsideIsMarkupOrHidden(t *testing.T) {
	for name, s := range deceptions {
		payload := map[string]any{"name": s, "list": []string{s}, "lines": s + "\n" + s}
		if !strings.ContainsFunc(s, unicode.IsControl) { // which no member may have in its name
			payload[s] = s
		}
		b, err := json.Marshal(payload)
		if err != nil || !json.Valid(b) {
			t.Fatal(err)
		}
		c := change(t, wetink.Pending, []wetink.Snapshot{event(s, `{"name":"`+"x"+`"}`)}, wetink.Terms{Warnings: []string{s},
			Ops: []wetink.Op{{Action: "update", Object: "1", Payload: b}}})
		c.Why = s
		page := drawn(t, render.View{Change: c, Now: now}, nil)
		if inTags.MatchString(page) {
			t.Errorf("%s: %s", name, inTags.FindString(page))
		}
		for _, r := range page {
			if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200b || r == 0xfeff) {
				t.Errorf("%s: the page holds %U", name, r)
				break
			}
		}
	}
	for _, s := range []string{`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `"><svg onload=alert(1)>`, `&lt;b&gt;`, `[click](javascript:alert(1))`} {
		page := drawn(t, render.View{Now: now, Change: one(t, `{"name":"x"}`, map[string]any{"name": s, s: 1})}, nil)
		for _, markup := range []string{"<img", "<script", "<svg onload", "onerror=alert(1)>"} {
			if strings.Contains(page, markup) {
				t.Errorf("%s became markup", s)
			}
		}
		if !strings.Contains(seen(page), s) {
			t.Errorf("%s is not shown as it stands", s)
		}
	}
}

func TestNoValueIsCutOnThePage(t *testing.T) {
	long := strings.Repeat("word ", 10_000) + "the end"
	if page := drawn(t, render.View{Now: now, Change: one(t, `{"name":"x"}`, map[string]any{"name": long})}, nil); !strings.Contains(page, "the end") {
		t.Error("the end of a long text is not on the page")
	}
}

func TestWhatGoesStandsFirst(t *testing.T) {
	var before []wetink.Snapshot
	terms := wetink.Terms{}
	for range 24 {
		before, terms.Ops = append(before, wetink.Snapshot{Absent: true}), append(terms.Ops, wetink.Op{Action: "create", Payload: raw(map[string]any{"name": "harmless"})})
	}
	before, terms.Ops = append(before, event("9", `{"name":"Olympia"}`)), append(terms.Ops, wetink.Op{Action: "delete", Object: "9"})
	page := drawn(t, render.View{Now: now, Change: change(t, wetink.Pending, before, terms)}, nil)
	if gone, rest := strings.Index(page, "Olympia"), strings.Index(page, "harmless"); gone < 0 || gone > rest {
		t.Errorf("what is deleted stands at %d, behind what is harmless at %d", gone, rest)
	}
	if !strings.Contains(page, "Delete 1 object, create 24 objects") {
		t.Error("the heading does not count")
	}
	if len(page) > 60<<10 {
		t.Errorf("25 operations take %d bytes", len(page))
	}
}

func TestARowThatWasEditedIsNotDrawn(t *testing.T) {
	c := move(t, wetink.Pending)
	c.Before[0].Body = []byte(`{"name":"edited"}`)
	if err := render.HTML(&strings.Builder{}, render.View{Change: c}, nil); !errors.Is(err, wetink.ErrTampered) {
		t.Error(err)
	}
}

// Two payloads that differ are two pages that read differently.
func TestDifferentValuesNeverReadAlikeOnThePage(t *testing.T) {
	values := []any{nil, "", " ", "null", "none", "0", 0, "1", 1, 1.5, "true", true, false, "yes", "no", "2026-07-16", "Thu 16 Jul 2026", "2026-07-16T08:00:00",
		3600, "1 h", 3600.5, []any{}, []any{1}, "[1]", map[string]any{}, map[string]any{"a": 1}, "a\nb", "a", "\u00e9", "e\u0301", "\u202ea", "[U+202E]a"}
	for _, o := range []*render.Options{nil, {Explain: explained}} {
		for _, field := range []string{"name", "moving_time", "distance", "indoor", "start_date_local", "description", "icu_training_load"} {
			was := map[string]any{}
			for _, v := range values {
				b := raw(map[string]any{field: v})
				c := change(t, wetink.Pending, []wetink.Snapshot{event("1", `{"`+field+`":"before"}`)}, wetink.Terms{Ops: []wetink.Op{{Action: "update", Object: "1", Payload: b}}})
				page := seen(drawn(t, render.View{Change: c, Now: now}, o))
				page, _, _ = strings.Cut(page, "Exact call and digest") // which would tell them apart anyway
				if old, twice := was[page]; twice {
					t.Errorf("%s: %#v and %#v read alike", field, old, v)
				}
				was[page] = v
			}
		}
	}
}
