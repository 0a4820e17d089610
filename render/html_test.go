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

// post is one that people will read.
var post = wetink.Post{Author: "North Beck Maps", Handle: "@northbeck.example", Text: "Live now, works off\u200bline: northbeck.example/routes\nThanks @ana.example!",
	Spans: []wetink.Span{{From: 28, To: 52, URL: "https://north\u0431eck.example/routes", Kind: "link"}, {From: 60, To: 72, URL: "did:plc:abc", Kind: "mention"},
		{From: 64, To: 500, URL: "https://evil.example/", Kind: "link"}},
	Lang: []string{"en"}, Card: &wetink.Card{URL: "https://northbeck.example/routes"}, Images: []wetink.Image{{Digest: other, Alt: "A map", Type: "image/png", Size: 1234}, {Digest: other, Type: "image/png", Size: 1}},
	Audience: "everyone", Warning: "maps", Replies: "@bo.example", Count: 68, Limit: 300, Unit: "characters", Bytes: 71}

func posted(wetink.Terms, []wetink.Snapshot) wetink.Explanation {
	return wetink.Explanation{Noun: "post", Ops: []wetink.OpExplanation{{Verb: "publish", Fields: map[string]wetink.Meaning{"text": {Label: "Text", Kind: wetink.Prose}}, Post: &post}}}
}

// stale is a move of an event that somebody renamed meanwhile.
func stale(t *testing.T, o *render.Options) string {
	t.Helper()
	now2 := strings.Replace(strings.Replace(tempo, "Tempo 3 x 10", "Tempo 2 x 15", 1), "- 3x 10m 90%", "- 2x 15m 90%", 1)
	var b strings.Builder
	if err := render.Stale(&b, render.View{Change: move(t, wetink.Failed), Now: now}, []wetink.Snapshot{event("53412", now2)}, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
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
		"post": func() string {
			c := change(t, wetink.Pending, []wetink.Snapshot{{Absent: true}}, wetink.Terms{Warnings: []string{"Public at once, for everyone."},
				Ops: []wetink.Op{{Action: "create", Payload: raw(map[string]any{"text": post.Text})}}})
			c.Request.Args = raw(map[string]string{"reason": "A short launch post.\nwetink checked it.\u202e"})
			return drawn(t, render.View{Now: now, Change: c}, &render.Options{Explain: posted})
		},
		"create": func() string {
			return drawn(t, render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{{Absent: true}}, wetink.Terms{Require: wetink.Require{Level: wetink.Session, People: 1},
				Ops: []wetink.Op{{Action: "create", Payload: raw(map[string]any{"name": "Tempo 2 x 10 min", "start_date_local": "2026-07-17T08:00:00", "type": "Ride",
					"description": "- 10m ramp 50-75%\n\n2x\n- 10m 88%\n- easy spin home"})}}})}, told)
		},
		"stale": func() string { return stale(t, &render.Options{Explain: explained}) },
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
	inline = regexp.MustCompile(`</?(?:bdi|del|ins|b|mark|code|span|time)(?: [^>]*)?>`)
	tag    = regexp.MustCompile(`<[^>]*>`)
	inTags = regexp.MustCompile(`<[^>]* (style|on[a-z]+|id)=`)
)

// seen is the text that a person reads of it without any picture or colour: cells and lines apart, words together.
func seen(page string) string {
	return html.UnescapeString(tag.ReplaceAllString(inline.ReplaceAllString(page, ""), "\x00"))
}

func TestNothingThatCameFromOutsideIsMarkupOrHidden(t *testing.T) {
	for _, d := range deceptions {
		name, s := d.name, d.text
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
		3600, "1 h", 3600.5, []any{}, []any{1}, "[1]", map[string]any{}, map[string]any{"a": 1}, "a\nb", "a", "\u00e9", "e\u0301", "\u202ea", "[U+202E]a", "U+202E right-to-left overridea", "[U+202E right-to-left override]a",
		"a b", "a\n b", "a\nb ignored there", "a\n\nb"}
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

func TestAPostIsShownAsItWillAppear(t *testing.T) {
	c := change(t, wetink.Pending, []wetink.Snapshot{{Absent: true}}, wetink.Terms{Ops: []wetink.Op{{Action: "create", Payload: raw(map[string]any{"text": post.Text})}}})
	o := &render.Options{Explain: posted}
	var text strings.Builder
	if err := render.Text(&text, render.View{Change: c, Now: now}, o); err != nil {
		t.Fatal(err)
	}
	onlyText(t, "a post", text.String())
	for name, shown := range map[string]string{"page": seen(drawn(t, render.View{Change: c, Now: now}, o)), "text": text.String()} {
		for _, want := range []string{"Publish 1 post", "North Beck Maps", "@northbeck.example", "works off[U+200B", "link card unknown", "A map", "no text for those who do not see it",
			"everyone", "@bo.example", "68 of 300 characters, 71 bytes", "evil.example", "did:plc:abc", "maps", "1 hidden or unusual character", "mixes Latin and Cyrillic letters"} {
			if !strings.Contains(shown, want) {
				t.Errorf("the %s lacks %q:\n%s", name, want, shown)
			}
		}
	}
}

func TestAStaleChangeShowsThreeStates(t *testing.T) {
	page := seen(stale(t, &render.Options{Explain: explained}))
	for _, want := range []string{"Not done: 1 session changed meanwhile", "Nothing was sent.", "Thu 16 Jul 2026 08:00 Europe/Madrid", "Fri 17 Jul 2026 08:00 Europe/Madrid",
		"Tempo 3 x 10 min", "Tempo 2 x 15 min", "- 3x 10m 90%", "- 2x 15m 90%", "no change"} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q:\n%s", want, page)
		}
	}
	if n := strings.Count(page, "changed meanwhile"); n != 3 { // the heading and two fields
		t.Errorf("%d times changed", n)
	}
	for want, now := range map[string][]wetink.Snapshot{"It is gone.": {{Absent: true}}, "could not be read": nil, "Nothing changed meanwhile": {event("53412", tempo)}} {
		var b strings.Builder
		c := move(t, wetink.Applied)
		if err := render.Stale(&b, render.View{Change: c}, now, nil); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v\n%s", want, err, b.String())
		}
		if strings.Contains(b.String(), "Nothing was sent") {
			t.Error("of an applied change it says that nothing was sent")
		}
	}
}

func TestARowOfAListSaysWhatAndTheFirstRisk(t *testing.T) {
	s, err := render.Summarize(render.View{Change: move(t, wetink.Pending)}, &render.Options{Explain: explained})
	if err != nil || s != (render.Summary{Title: "Move 1 session", Risk: "It was already sent to Garmin: the watch keeps a copy.", Where: "intervals, Ana Ruiz, asked by Claude Desktop"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestTheTargetNamesWhatItDoes(t *testing.T) {
	there := event("1", `{"name":"A"}`)
	more := func(wetink.Terms, []wetink.Snapshot) wetink.Explanation {
		return wetink.Explanation{Ops: []wetink.OpExplanation{{Verb: "create", Noun: "note"}, {Verb: "delete", Noun: "session"}, {Verb: "delete", Noun: "race"}, {Verb: "delete", Noun: "note"}, {Verb: "create", Noun: "race"}, {Verb: "create", Noun: "race"}}}
	}
	told := func(wetink.Terms, []wetink.Snapshot) wetink.Explanation {
		op := func(verb, noun string) wetink.OpExplanation { return wetink.OpExplanation{Verb: verb, Noun: noun} }
		return wetink.Explanation{Noun: "event", Ops: []wetink.OpExplanation{op("create", "session"), op("delete", "race"), op("delete", "race"), op("move and shorten", ""), op("create", "session"), op("delete", "race")}}
	}
	create, remove := wetink.Op{Action: "create", Payload: raw(map[string]string{"name": "B"})}, wetink.Op{Action: "delete", Object: "1"}
	absent := wetink.Snapshot{Absent: true}
	c := change(t, wetink.Pending, []wetink.Snapshot{absent, there, there, there, absent, there}, wetink.Terms{Require: wetink.Require{Level: wetink.Passkey, People: 1}, Ops: []wetink.Op{create, remove, remove,
		{Action: "update", Object: "1", Payload: raw(map[string]string{"name": "C"})}, create, remove}})
	got, err := render.Button(render.View{Change: c}, &render.Options{Explain: told})
	if want := "Delete 3 races, create 2 sessions, move and shorten 1 event with passkey"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	c = change(t, wetink.Pending, []wetink.Snapshot{absent, there, there, there, absent, absent}, wetink.Terms{Ops: []wetink.Op{create, remove, remove, remove, create, create}})
	got, err = render.Headline(c, &render.Options{Explain: more})
	if want := "Delete 1 session, 1 race and 1 note, create 1 note and 2 races"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAValueThatNobodyReadsIsTooLong(t *testing.T) {
	fits, long := strings.Repeat("\u00e9", render.Limit/2), strings.Repeat("\u00e9", render.Limit/2)+"x"
	none := []wetink.Snapshot{event("1", "{}")}
	for name, w := range map[string]struct {
		before  string
		payload any
		want    string
	}{
		"at the limit":           {`{"a":"x"}`, map[string]any{"a": fits, "b": fits}, ""},
		"over it":                {`{"a":"x"}`, map[string]any{"a": fits, "b": long}, "ops[0].b"},
		"over it in a list":      {`{}`, map[string]any{"b": []string{fits, fits}}, "ops[0].b"},
		"what is overwritten":    {`{"b":"` + long + `"}`, map[string]any{"b": "short"}, "ops[0].b"},
		"what stays as it is":    {`{"c":"` + long + `"}`, map[string]any{"b": "short"}, ""},
		"what goes":              {`{"c":"` + long + `"}`, nil, "ops[0].c"},
		"a payload without name": {`{}`, []string{long}, "ops[0]"},
		"a name":                 {`{}`, map[string]any{long: 1}, "ops[0].(a name)"},
	} {
		op := wetink.Op{Action: "update"}
		if w.payload != nil {
			op.Payload = raw(w.payload)
		}
		x := render.TooLong(wetink.Terms{Ops: []wetink.Op{op}}, []wetink.Snapshot{event("1", w.before)})
		if x.Field != w.want || (x.Size > render.Limit) != (w.want != "") {
			t.Errorf("%s: %v; want %q", name, x, w.want)
		}
	}
	op := []wetink.Op{{Action: "update", Object: "1", Payload: raw(map[string]any{"a": 1})}}
	for want, build := range map[string]func(text string) wetink.Terms{
		"warnings[1]":   func(s string) wetink.Terms { return wetink.Terms{Ops: op, Warnings: []string{"short", s}} },
		"undo.notes[0]": func(s string) wetink.Terms { return wetink.Terms{Ops: op, Undo: wetink.Promise{Notes: []string{s}}} },
		"context":       func(s string) wetink.Terms { return wetink.Terms{Ops: op, Context: raw(s)[2:]} },
		"client":        func(s string) wetink.Terms { return wetink.Terms{Ops: op, Client: s} },
		"requester":     func(s string) wetink.Terms { return wetink.Terms{Ops: op, Requester: wetink.Person(s)} },
		"account":       func(s string) wetink.Terms { return wetink.Terms{Ops: op, Account: wetink.Account(s)} },
		"ops[0].action": func(s string) wetink.Terms { return wetink.Terms{Ops: []wetink.Op{{Action: s}}} },
		"ops[0].object": func(s string) wetink.Terms { return wetink.Terms{Ops: []wetink.Op{{Object: s}}} },
		"ops[0].blobs[0]": func(s string) wetink.Terms {
			return wetink.Terms{Ops: []wetink.Op{{Blobs: []wetink.Blob{{Type: s}}}}}
		},
	} {
		if x := render.TooLong(build(fits), none); x != (render.Excess{}) {
			t.Errorf("%s at the limit: %v", want, x)
		}
		x := render.TooLong(build(long), none)
		if x.Field != want || x.Size <= render.Limit || !strings.Contains(x.String(), want+" has 65537 bytes, and more than 65536 nobody reads; shorten it") {
			t.Errorf("%s: %v", want, x)
		}
	}
	many := wetink.Terms{}
	for range render.Total/render.Limit + 1 {
		many.Warnings = append(many.Warnings, fits)
	}
	if x := render.TooLong(many, nil); x.Most != render.Total || !strings.Contains(x.String(), "all of the change has") {
		t.Errorf("all together: %v", x)
	}
	if words, x := render.Reason(raw(map[string]string{"reason": fits})); words != fits || x != (render.Excess{}) {
		t.Errorf("words at the limit: %v", x)
	}
	if _, x := render.Reason(raw(map[string]string{"reason": long})); x.Field != "reason" || x.Size != len(long) {
		t.Errorf("words over it: %v", x)
	}
}

func TestWhatStaysAsItIsIsToldByItsDigestWhereNobodyWouldReadIt(t *testing.T) {
	c := one(t, `{"name":"x","notes":"`+strings.Repeat("n", render.Limit+1)+`"}`, map[string]any{"name": "y"})
	page := drawn(t, render.View{Change: c, Now: now}, nil)
	if !strings.Contains(page, "65537 bytes, sha256 ") || len(page) > render.Limit {
		t.Errorf("%d bytes of page", len(page))
	}
}

func TestDaysTooFarApartAreToldByTheirDates(t *testing.T) {
	var before []wetink.Snapshot
	terms := wetink.Terms{}
	for range 8 {
		before, terms.Ops = append(before, wetink.Snapshot{Absent: true}), append(terms.Ops, wetink.Op{Action: "create", Payload: raw(map[string]any{"name": "n"})})
	}
	weeks := func(n int) string {
		return drawn(t, render.View{Now: now, Change: change(t, wetink.Pending, before, terms)}, &render.Options{Explain: func(wetink.Terms, []wetink.Snapshot) wetink.Explanation {
			e := wetink.Explanation{Hidden: 4}
			for i := range 8 {
				e.Ops = append(e.Ops, wetink.OpExplanation{Fields: map[string]wetink.Meaning{"name": {}}, Will: &wetink.Entry{Day: now.AddDate(0, 0, 7*(i%n)).Format("2006-01-02"), Short: "Ride", Name: "Ride"}})
			}
			return e
		}})
	}
	if page := weeks(6); strings.Count(page, `class="week"`) != 6 || strings.Count(page, "4 more stand there") != 1 || strings.Count(page, `class="ev will"`) != 8 {
		t.Error("six weeks are not drawn")
	}
	if page := weeks(7); strings.Contains(page, `class="week"`) || !strings.Contains(page, "more than six weeks") {
		t.Error("seven weeks are drawn")
	}
}

// A gateway's target tells what a server elsewhere told it.
func TestWhatATargetTellsIsNoMarkupEither(t *testing.T) {
	bad := "<img src=x>\u202e\x1b[8m\n! All is well"
	profile := &wetink.Profile{Segments: []wetink.Segment{{Seconds: 60, From: -1, To: 1e9}}, Load: 1, Scale: bad, Says: bad, Ignored: []string{bad}}
	entry := &wetink.Entry{Day: "2026-07-16", Start: bad, Short: bad, Name: bad}
	told := func(tt wetink.Terms, _ []wetink.Snapshot) wetink.Explanation {
		e := wetink.Explanation{Noun: bad, Zone: bad, Owner: bad, Around: []wetink.Entry{*entry, {Day: bad}}}
		for range tt.Ops {
			e.Ops = append(e.Ops, wetink.OpExplanation{Noun: bad, Verb: "\u00e4" + bad, Name: bad, Was: entry, Will: entry, Shape: [2]*wetink.Profile{profile, profile}, Call: bad,
				Fields: map[string]wetink.Meaning{"name": {Label: bad, Note: bad, Unit: bad, Kind: wetink.Number}, "day": {Label: bad, Kind: wetink.Moment}, "text": {Label: bad, Note: bad, Kind: wetink.Prose}},
				Post:   &wetink.Post{Author: bad, Handle: bad, Text: bad, Spans: []wetink.Span{{From: 0, To: 4, URL: bad, Kind: bad}}, Lang: []string{bad}, Card: &wetink.Card{URL: bad, Title: bad, Description: bad}, Images: []wetink.Image{{Alt: bad, Type: bad}}, Audience: bad, Warning: bad, Replies: bad, Quote: bad, Unit: bad}})
		}
		return e
	}
	o := &render.Options{Explain: told}
	there := event("1", `{"name":1,"day":"2026-07-16T08:00:00","text":"x","n":2}`)
	update := wetink.Op{Action: "update", Object: "1", Payload: raw(map[string]any{"name": 2, "day": "2026-07-17T08:00:00", "text": bad})}
	c := change(t, wetink.Pending, []wetink.Snapshot{there, there}, wetink.Terms{Ops: []wetink.Op{update, {Action: "delete", Object: "1"}}})
	v := render.View{Change: c, Now: now}
	var three, text strings.Builder
	if err := render.Stale(&three, v, []wetink.Snapshot{event("1", `{"name":3,"text":"y"}`), {Absent: true}}, o); err != nil {
		t.Fatal(err)
	}
	if err := render.Text(&text, v, o); err != nil {
		t.Fatal(err)
	}
	onlyText(t, "text", text.String())
	button, err := render.Button(v, o)
	if err != nil {
		t.Fatal(err)
	}
	onlyText(t, "the button", button)
	row, err := render.Summarize(v, o)
	if err != nil {
		t.Fatal(err)
	}
	onlyText(t, "a row", row.Title+row.Risk+row.Where)
	for name, page := range map[string]string{"the page": drawn(t, v, o), "the three states": three.String()} {
		if strings.Contains(page, "<img") || strings.ContainsAny(page, "\u202e\x1b\ufffd") {
			t.Errorf("%s:\n%s", name, page)
		}
		if !strings.Contains(page, "&lt;img") {
			t.Errorf("%s does not show it at all", name)
		}
	}
	if strings.Contains(text.String(), "\n! All") || strings.Contains(text.String(), "\n  ! All") {
		t.Errorf("a line of ours was forged:\n%s", text.String())
	}
}

func TestNoCrowdOfBadgesHidesWhatElseThereIsToKnow(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString("p\u0430y" + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + " ")
	}
	c := change(t, wetink.Pending, []wetink.Snapshot{event("1", "{}")}, wetink.Terms{Warnings: []string{"Mind this."}, Undo: wetink.Promise{Extent: wetink.NoUndo},
		Ops: []wetink.Op{{Action: "update", Object: "1", Payload: raw(map[string]any{"a": b.String() + strings.Repeat("\u0430b", 5000)})}}})
	page := drawn(t, render.View{Change: c, Now: now}, nil)
	risks, _, _ := strings.Cut(page, "</ul>")
	if n := strings.Count(risks, "<li>"); n > 30 || len(risks) > 8<<10 || !strings.Contains(risks, "481 more words and hosts like these") || !strings.Contains(risks, "Mind this.") {
		t.Errorf("%d findings, %d bytes: %s", n, len(risks), risks[max(0, len(risks)-300):])
	}
}

func TestTheAgentsWordsAreBadgedToo(t *testing.T) {
	c := one(t, `{"name":"x"}`, map[string]any{"name": "y"})
	c.Request.Args = raw(map[string]string{"reason": "As on p\u0430ypal.com"})
	if page := drawn(t, render.View{Change: c, Now: now}, nil); !strings.Contains(page, "mixes Latin and Cyrillic letters and looks like paypal") {
		t.Error("a look-alike in the agent's words is not told")
	}
}
