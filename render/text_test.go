package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	now   = time.Date(2026, 7, 16, 14, 19, 0, 0, time.UTC)
	other = sha256.Sum256([]byte("a picture"))
)

// change builds a Change around terms; what the terms leave out is as in a plain preview.
func change(t testing.TB, status wetink.Status, before []wetink.Snapshot, terms wetink.Terms) wetink.Change {
	t.Helper()
	terms.V, terms.Change, terms.Nonce = 1, "chg_01kwtrgq000123456789abcdef", make([]byte, 32)
	terms.Ledger, terms.Target, terms.Version, terms.Account = "ledger-1", "intervals", "intervals/1", "i12345"
	terms.Client, terms.Requester, terms.Policy = "Claude Desktop", "ana", "floor/host"
	terms.Expires, terms.StartBy = now.Add(11*time.Minute), now.Add(26*time.Minute)
	if terms.OnFailure == "" {
		terms.OnFailure = wetink.StopOnFailure
	}
	if terms.Undo.Extent == "" {
		terms.Undo = wetink.Promise{Extent: wetink.FullUndo, Until: 24 * time.Hour}
	}
	if terms.Require.People == 0 {
		terms.Require = wetink.Require{Level: wetink.Host, People: 1}
	}
	for i := range terms.Ops {
		terms.Ops[i].Before = before[i].Digest()
		terms.Ops[i].Key = fmt.Sprintf("key-%d", i)
	}
	s, err := wetink.Encode(terms)
	if err != nil {
		t.Fatal(err)
	}
	return wetink.Change{ID: terms.Change, Rev: 1, Status: status, Statement: s, Before: before, Target: terms.Target,
		Account: terms.Account, Undoes: terms.Undoes, Replaces: terms.Replaces}
}

func event(id, body string) wetink.Snapshot {
	return wetink.Snapshot{Object: id, Body: json.RawMessage(body)}
}

func raw(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

const tempo = `{"id":53412,"name":"Tempo 3 x 10 min","start_date_local":"2026-07-16T08:00:00","category":"WORKOUT","type":"Run","color":null,"description":"Warm up\n- 10m 60%\n\nMain\n- 3x 10m 90%\n"}`

func move(t testing.TB, status wetink.Status) wetink.Change {
	return change(t, status, []wetink.Snapshot{event("53412", tempo)}, wetink.Terms{
		Warnings: []string{"It was already sent to Garmin: the watch keeps a copy."},
		Ops:      []wetink.Op{{Action: "update", Object: "53412", Payload: raw(map[string]string{"start_date_local": "2026-07-17T08:00:00"})}},
	})
}

func TestTextIsWhatItWas(t *testing.T) {
	events := &render.Options{Noun: "event"}
	absent := wetink.Snapshot{Absent: true}
	cases := map[string]func() (render.View, *render.Options){
		"move": func() (render.View, *render.Options) {
			return render.View{Change: move(t, wetink.Pending), Now: now}, events
		},
		"all": func() (render.View, *render.Options) {
			return render.View{Change: move(t, wetink.Pending), Now: now}, &render.Options{Noun: "event", All: true}
		},
		"too late": func() (render.View, *render.Options) {
			return render.View{Change: move(t, wetink.Pending), Now: now.Add(time.Hour)}, events
		},
		"description": func() (render.View, *render.Options) {
			return render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{event("53412", tempo)}, wetink.Terms{
				Ops: []wetink.Op{{Action: "update", Object: "53412", Payload: raw(map[string]any{
					"description": "Warm up\n- 15m 60%\n\nMain\n- 3x 10m 90%\nCool down \n", "tags": []string{"key", "run"}, "moving_time": 3600, "indoor": true})}},
			})}, events
		},
		"bulk, partly": func() (render.View, *render.Options) {
			c := change(t, wetink.Partial, []wetink.Snapshot{absent, absent, absent}, wetink.Terms{
				OnFailure: wetink.UndoOnFailure,
				Ops: []wetink.Op{
					{Action: "create", Payload: raw(map[string]any{"name": "Easy", "start_date_local": "2026-07-20T00:00:00"})},
					{Action: "create", Payload: raw(map[string]any{"name": "Long", "start_date_local": "2026-07-25T00:00:00"})},
					{Action: "create", Payload: raw(map[string]any{"start_date_local": "2026-07-26"})},
				}})
			c.Why = "the service refused it"
			c.Steps = []wetink.Step{
				{Op: 0, Outcome: wetink.TookEffect, How: "read back"},
				{Op: 1, Outcome: wetink.NoEffect, How: "answer", Why: "Intervals.icu says 422:\n  \x1b[2Jall is well"},
			}
			undo := c
			undo.ID, undo.Status = "chg_01kwtrgq000123456789abcdeg", wetink.Applied
			undo.Undoes = []wetink.Undone{{Change: c.ID, Effects: 1}}
			undo.Approvals = []wetink.Approval{{Evidence: wetink.Evidence{Kind: wetink.EvidenceOrdered}}}
			return render.View{Change: c, Undo: &undo, Now: now}, events
		},
		"delete and create": func() (render.View, *render.Options) {
			return render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{absent, event("53412", tempo), event("53413", `{"name":"Race"}`)}, wetink.Terms{
				Require:   wetink.Require{Level: wetink.Reauth, People: 2, Other: true},
				NotBefore: now.Add(5 * time.Minute),
				Undo:      wetink.Promise{Extent: wetink.PartialUndo, Until: 30 * time.Minute, Notes: []string{"They come back with new ids.", "Pairings do not follow."}},
				Ops: []wetink.Op{
					{Action: "create", Payload: raw(map[string]any{"name": "Rest"}), Blobs: []wetink.Blob{{Digest: other, Size: 12345, Type: "image/png"}}},
					{Action: "delete", Object: "53412"},
					{Action: "delete", Object: "53413"},
				}})}, events
		},
		"applied": func() (render.View, *render.Options) {
			c := move(t, wetink.Applied)
			c.Steps = []wetink.Step{{Op: 0, Outcome: wetink.TookEffect, How: "read back"}}
			c.Approvals = []wetink.Approval{{Evidence: wetink.Evidence{Kind: wetink.EvidenceReauth, By: "ana"}, Level: wetink.Reauth, At: now}}
			return render.View{Change: c, Now: now}, events
		},
		"colour": func() (render.View, *render.Options) {
			return render.View{Change: move(t, wetink.Pending), Now: now}, &render.Options{Noun: "event", Colour: true}
		},
		"an undo": func() (render.View, *render.Options) {
			return render.View{Now: now, Change: change(t, wetink.Approved, []wetink.Snapshot{event("53412", tempo)}, wetink.Terms{
				Undoes: []wetink.Undone{{Change: "chg_01kwtrgq000123456789abcde0", Effects: 1}}, Undo: wetink.Promise{Extent: wetink.NoUndo},
				Ops: []wetink.Op{{Action: "update", Object: "53412", Payload: raw(map[string]any{"start_date_local": "2026-07-15T08:00:30"})}},
			})}, events
		},
		"a tool of a gateway": func() (render.View, *render.Options) {
			return render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{absent}, wetink.Terms{
				Undo: wetink.Promise{Extent: wetink.NoUndo},
				Ops:  []wetink.Op{{Action: "write_file", Payload: json.RawMessage(`{"path":"a.md","lines":[{"n":1,"text":"<b>\u202e"}],"n":1e400}`)}},
			})}, nil
		},
		"explained": func() (render.View, *render.Options) {
			return render.View{Now: now, Change: change(t, wetink.Pending, []wetink.Snapshot{event("53412", tempo)}, wetink.Terms{
				Ops: []wetink.Op{{Action: "update", Object: "53412", Payload: raw(map[string]any{"start_date_local": "2026-07-17T08:00:00", "x_new": 1, "moving_time": 3000,
					"description": "Warm up\n- 10m 60%\n\nMain\n- 2x 10m 90%\n- easy spin home", "note": "p\u0430ypal"})}}})}, &render.Options{Explain: explained}
		},
		"hostile": func() (render.View, *render.Options) {
			c := change(t, wetink.Pending, []wetink.Snapshot{event("1", `{"name":"x\" (event \"2\")\n  ! All is well","note":"plain"}`)}, wetink.Terms{
				Warnings: []string{"first\n  ! second\u202e"},
				Ops: []wetink.Op{{Action: "update", Object: "1\u200b", Payload: raw(map[string]any{
					"note": "line\n      + \"forged\"\n  Valid      for ever\r\x1b[8m", "a field\u202e": "\u202egnp.exe", "thu": "Thu 16 Jul 2026 08:00", "one": "1", "nil": "null"})}}})
			return render.View{Change: c, Now: now}, events
		},
	}

	file := filepath.Join("testdata", "text.txtar")
	archive, err := txtar.ParseFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: []byte("What render.Text writes. go test ./render -update rewrites it: read the difference.\n")}
	names := make([]string, 0, len(cases))
	for name := range cases {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var b bytes.Buffer
		v, o := cases[name]()
		if err := render.Text(&b, v, o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Escape characters of the one case with colours are written as ESC, so that the file is text.
		got.Files = append(got.Files, txtar.File{Name: name, Data: bytes.ReplaceAll(b.Bytes(), []byte("\x1b"), []byte("ESC"))})
		if name != "colour" {
			onlyText(t, name, b.String())
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(archive.Files) != len(got.Files) {
		t.Fatalf("%d cases, and %d in %s", len(got.Files), len(archive.Files), file)
	}
	for i, f := range got.Files {
		if want := archive.Files[i]; want.Name != f.Name || !bytes.Equal(want.Data, f.Data) {
			t.Errorf("%s is now\n%s\nand was\n%s", f.Name, f.Data, want.Data)
		}
	}
}

func onlyText(t testing.TB, name, s string) {
	t.Helper()
	for _, r := range s {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Cf, r) {
			t.Errorf("%s has %U in\n%q", name, r, s)
			return
		}
	}
	for l := range strings.SplitSeq(s, "\n") {
		if strings.HasSuffix(l, " ") {
			t.Errorf("%s has a line that ends in a blank: %q", name, l)
		}
	}
}

// shown renders a field that goes from a to b, without what differs by the statement's digest.
func shown(t testing.TB, a, b json.RawMessage) string {
	c := change(t, wetink.Pending, []wetink.Snapshot{{Absent: true}}, wetink.Terms{Ops: []wetink.Op{{Action: "create", Payload: raw(1)}}})
	var out bytes.Buffer
	err := render.Text(&out, render.View{Change: c, Now: now}, &render.Options{Diff: func(wetink.Op, wetink.Snapshot) []wetink.FieldChange {
		return []wetink.FieldChange{{Field: "f", Before: a, After: b}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	onlyText(t, "a change", out.String())
	return out.String()
}

func TestDifferentValuesNeverLookAlike(t *testing.T) {
	text := rapid.Map(nasty(), func(s string) json.RawMessage { return raw(strings.ToValidUTF8(s, "\ufffd")) })
	value := rapid.OneOf(text, text, text,
		rapid.SampledFrom([]json.RawMessage{raw(nil), raw(1), raw("1"), raw(true), raw("true"), raw(""), raw("null"), raw([]string{}), raw("[]"), json.RawMessage(`1.0`),
			json.RawMessage(`"\ud800"`), json.RawMessage(`"\ufffd"`), raw(`json "x"`), raw(map[string]string{"a": "b"}), raw("{\n  \"a\": \"b\"\n}"),
			raw("2026-07-16"), raw("Thu 16 Jul 2026"), raw("2026-07-16T00:00:00"), raw("2026-07-16T08:00"), raw("a\nb"), raw("a\n b"), raw("\"a\n")}),
		rapid.Map(rapid.SliceOfN(text, 0, 3), func(l []json.RawMessage) json.RawMessage { return raw(l) }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := value.Draw(rt, "a"), value.Draw(rt, "b")
		if string(a) == string(b) {
			return
		}
		base := value.Draw(rt, "base")
		if x, y := shown(t, base, a), shown(t, base, b); x == y {
			rt.Fatalf("after %s and after %s look alike:\n%s", a, b, x)
		}
		if x, y := shown(t, a, base), shown(t, b, base); x == y {
			rt.Fatalf("before %s and before %s look alike:\n%s", a, b, x)
		}
	})
}

func TestNothingIsEverCut(t *testing.T) {
	long := strings.Repeat("word ", 20_000) + "end"
	if text := shown(t, raw("x"), raw(long)); !strings.Contains(text, long) {
		t.Error("a long line was cut")
	}
	var a, b []string
	for i := range 3000 {
		a, b = append(a, fmt.Sprint("a", i)), append(b, fmt.Sprint("b", i))
	}
	text := shown(t, raw(strings.Join(a, "\n")), raw(strings.Join(b, "\n")))
	if strings.Count(text, "\n      - ") != 3000 || strings.Count(text, "\n      + ") != 3000 {
		t.Error("lines are missing")
	}
}

func TestTextRefusesARowThatIsNotWhatWasSigned(t *testing.T) {
	c := move(t, wetink.Pending)
	c.Before[0].Body = json.RawMessage(strings.Replace(tempo, "Tempo", "Rest", 1))
	var b bytes.Buffer
	if err := render.Text(&b, render.View{Change: c, Now: now}, nil); !errors.Is(err, wetink.ErrTampered) || b.Len() > 0 {
		t.Errorf("%v, after %q", err, b.String())
	}
	if _, err := render.Headline(c, nil); !errors.Is(err, wetink.ErrTampered) {
		t.Error(err)
	}
}

func TestTheHeadlineSaysTheOutcome(t *testing.T) {
	absent, there := wetink.Snapshot{Absent: true}, event("1", `{"name":"A","day":"2026-07-16"}`)
	create := wetink.Op{Action: "create", Payload: raw(map[string]string{"name": "B"})}
	remove := wetink.Op{Action: "delete", Object: "1"}
	rename := wetink.Op{Action: "update", Object: "1", Payload: raw(map[string]string{"name": "C"})}
	shift := wetink.Op{Action: "update", Object: "1", Payload: raw(map[string]string{"day": "2026-07-17"})}
	both := wetink.Op{Action: "update", Object: "1", Payload: raw(map[string]string{"day": "2026-07-17", "name": "C"})}
	for _, tc := range []struct {
		want, verb string
		before     []wetink.Snapshot
		ops        []wetink.Op
	}{
		{"Create 3 events", "create", []wetink.Snapshot{absent, absent, absent}, []wetink.Op{create, create, create}},
		{"Move 1 event", "move", []wetink.Snapshot{there}, []wetink.Op{shift}},
		{"Change 2 events", "change", []wetink.Snapshot{there, there}, []wetink.Op{rename, both}},
		{"Delete 2 events, create 1 event, move 1 event", "delete", []wetink.Snapshot{absent, there, there, there}, []wetink.Op{create, shift, remove, remove}},
	} {
		got, err := render.Headline(change(t, wetink.Pending, tc.before, wetink.Terms{Ops: tc.ops}), &render.Options{Noun: "event"})
		if err != nil || got != tc.want || render.Verb(got) != tc.verb {
			t.Errorf("%q (%q), %v; want %q (%q)", got, render.Verb(got), err, tc.want, tc.verb)
		}
	}
}

func TestDurationsAreSpelled(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", 11*time.Minute + 40*time.Second: "11 min", 90 * time.Minute: "90 min", time.Hour: "1 h",
		24 * time.Hour: "24 h", 72 * time.Hour: "3 days", 25*time.Hour + 10*time.Minute: "25 h 10 min", -time.Minute: "-1 min",
	} {
		if got := render.Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
