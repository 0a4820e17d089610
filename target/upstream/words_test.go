package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/upstream"
)

// Each word of a rule, in a life that shows what it is for.

func TestBindCarriesTheSeenVersionIntoTheCall(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  bind: {rev: $before.rev}
  undo: {put_record: {id, rev: $result.rev, $restore: changed}}
`, func(k *kit) {
		k.set("a", "rev", "rev-1")
		c := k.preview("put_record", `{"id":"a","title":"x"}`)
		// Between the last read of ours and the write, somebody else writes: the server itself refuses.
		k.OnCall = func(tool string, _ map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error) {
			if tool == "put_record" {
				k.set("a", "rev", "rev-9")
				k.set("a", "title", "mine")
			}
			return do(), true, nil
		}
		ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: c.ticket}
		got, _, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil || got.Status == wetink.Applied {
			t.Errorf("%v %s", err, got.Status)
		}
		k.want("a", "title", "mine")
		k.OnCall = nil

		done := k.apply(k.preview("put_record", `{"id":"a","title":"y"}`), wetink.Applied)
		if want := `put_record {"id":"a","title":"y","rev":"rev-9"}`; !strings.Contains(strings.Join(k.sent, "\n"), want) {
			t.Errorf("%q was not sent: %q", want, k.sent)
		}
		k.undone(done)
		k.want("a", "title", "mine")
		k.refused("put_record", `{"id":"a","title":"z","rev":"rev-1"}`, "what is there is")
	})
}

// A server that takes a number gets one, where the only place that tells it is a text.
func TestAPartOfATextIsANumberWhereTheRuleSaysSo(t *testing.T) {
	life(t, "create_record: {undo: {delete_record: {id: '$result.record.id', n: '$result.record.url ~ /r([0-9]+)$/ as number', s: '$result.record.url ~ /r([0-9]+)$/'}}}", func(k *kit) {
		k.undone(k.apply(k.preview("create_record", `{"title":"x"}`), wetink.Applied))
		if want := `delete_record {"id":"r2","n":2,"s":"2"}`; !strings.Contains(strings.Join(k.sent, "\n"), want) {
			t.Errorf("%s was not sent, but %q", want, k.sent)
		}
	})
	life(t, "create_record: {undo: {delete_record: {id: '$result.record.url ~ /(records)/ as number'}}}", func(k *kit) {
		k.apply(k.preview("create_record", `{"title":"x"}`), wetink.InDoubt)
	})
}

// The version that is bound into a call says what is meant, and is no change of it: a deletion asks for nothing else.
func TestABoundDeletionIsJudgedByWhatIsGone(t *testing.T) {
	life(t, "delete_record: {read: {get_record: {id}}, absent: not found, bind: {rev: $before.rev}, undo: none}", func(k *kit) {
		k.set("a", "rev", "rev-1")
		c := k.preview("delete_record", `{"id":"a"}`)
		k.broken(func(do func() json.RawMessage) (json.RawMessage, bool, error) { do(); return nil, true, errLost })
		k.apply(c, wetink.Applied)
	})
}

// That one argument asks for what is there already proves nothing of the others, which cannot be compared.
func TestWhatCannotBeComparedIsNotMetByWhatWasThere(t *testing.T) {
	life(t, "put_record: {read: {get_record: {id}}}", func(k *kit) {
		c := k.preview("put_record", `{"id":"a","title":"first","secret":"x"}`)
		k.broken(func(func() json.RawMessage) (json.RawMessage, bool, error) { return plainText("done"), true, nil })
		k.apply(c, wetink.InDoubt)
	})
}

// A server may take a time as a text and give it as an object. That these differ is no difference that anybody made.
func TestWhatDiffersInFormIsNotSaidToDiffer(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		k.set("a", "start", map[string]any{"at": "09:00"})
		c := k.preview("put_record", `{"id":"a","title":"x","start":"10:00"}`)
		k.broken(func(do func() json.RawMessage) (json.RawMessage, bool, error) {
			answer := do()
			k.set("a", "start", map[string]any{"at": "10:00"})
			return answer, true, nil
		})
		if c = k.apply(c, wetink.Applied); c.Compared() {
			t.Error("it says that all of it was compared")
		}
	})
}

func TestRestoreChangedPutsBackWhatTheCallSetAndAllWhatWasRead(t *testing.T) {
	for restore, want := range map[string]string{
		"changed": `put_record {"id":"a","title":"first"}`,
		"all":     `put_record {"id":"a","note":"kept","size":9007199254740993,"title":"first"}`,
	} {
		life(t, `
put_record:
  read: {get_record: {id}}
  undo: {put_record: {id, $restore: `+restore+`}}
`, func(k *kit) {
			k.undone(k.apply(k.preview("put_record", `{"id":"a","title":"x"}`), wetink.Applied))
			if !strings.Contains(strings.Join(k.sent, "\n"), want) {
				t.Errorf("%s: %q was not sent: %q", restore, want, k.sent)
			}
		})
	}
}

// No value says "none" to every server: what was set where nothing was before stays, and that is told beforehand.
func TestWhatHadNoValueCannotBePutBack(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  undo: {put_record: {id, $restore: changed}}
`, func(k *kit) {
		c := k.preview("put_record", `{"id":"a","title":"x","colour":"red"}`)
		if p := k.terms(c).Undo; p.Extent != wetink.PartialUndo || !strings.Contains(strings.Join(p.Notes, " "), "colour") {
			t.Errorf("promised %+v", p)
		}
		k.undone(k.apply(c, wetink.Applied))
		k.want("a", "title", "first")
		k.want("a", "colour", "red")

		c = k.preview("put_record", `{"id":"b","shape":"round"}`)
		if p := k.terms(c).Undo; p.Extent != wetink.NoUndo {
			t.Errorf("promised %+v, and nothing of it can be put back", p)
		}
	})
}

func TestAsTurnsWhatIsReadIntoWhatIsWritten(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  undo: {put_record: {id, $restore: changed}}
  as: {start: json($.start), label: "$.labels.map(l, l.name)[0]"}
`, func(k *kit) {
		k.set("a", "start", map[string]any{"at": "09:00", "zone": "UTC", "n": json.Number("9007199254740993")})
		k.set("a", "label", "old")
		k.set("a", "labels", []any{map[string]any{"name": "one"}})
		k.undone(k.apply(k.preview("put_record", `{"id":"a","start":"{\"at\":\"10:00\"}","label":"new"}`), wetink.Applied))
		k.want("a", "start", `{"at":"09:00","n":9007199254740993,"zone":"UTC"}`)
		k.want("a", "label", "one")
	})
}

func TestAtAndWatchSayWhatAnApprovalIsBoundTo(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  at: inner
  watch: [title, owner.name]
  undo: {put_record: {id, title: $before.title, note: $before.owner.name}}
`, func(k *kit) {
		k.Render = func(v any) json.RawMessage {
			r, ok := v.(map[string]any)
			if !ok {
				return plainText("ok")
			}
			return structured(map[string]any{"inner": map[string]any{"title": r["title"], "note": r["note"], "owner": map[string]any{"name": "ana", "seen": r["seen"]}}})
		}
		c := k.preview("put_record", `{"id":"a","title":"x"}`)
		if got := string(c.Before[0].Body); got != `{"owner.name":"ana","title":"first"}` {
			t.Errorf("bound to %s", got)
		}
		k.set("a", "note", "moved by somebody")
		k.set("a", "seen", "moves by itself")
		k.undone(k.apply(c, wetink.Applied))
		k.want("a", "title", "first")
		k.want("a", "note", "ana")
	})
}

func TestWhatMovesByItselfIsNamed(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		n := 0
		k.OnCall = func(tool string, args map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error) {
			n++
			k.set("a", "accessed", json.Number(strings.Repeat("1", n)))
			return do(), true, nil
		}
		k.refused("put_record", `{"id":"a","title":"x"}`, "accessed moved between two reads")
		k.refused("put_record", `{"id":"a","title":"x"}`, "watch: [id, note, size, title]")
	})
}

// A server that orders keys anew with each answer has not changed anything.
func TestAnotherOrderIsNoChange(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		n := 0
		k.Render = func(v any) json.RawMessage {
			n++
			r, ok := v.(map[string]any)
			if !ok || r["title"] != "first" {
				return structured(v)
			}
			if n%2 == 0 {
				return plainText(`{"title":"first","id":"a"}`)
			}
			return plainText(`{ "id":"a", "title":"first" }`)
		}
		k.apply(k.preview("put_record", `{"id":"a","title":"x"}`), wetink.Applied)
	})
}

func TestPickTakesAValueOutOfAText(t *testing.T) {
	const rules = `
write_file:
  read: {read_file: {path}}
  WATCH
  pick: {sha: "SHA: ([0-9a-f]+)"}
  bind: {sha: $before.sha}
  undo: {write_file: {path, sha: "$before.sha ~ /^(..)/"}}
`
	for watch, body := range map[string]string{"absent: ENOENT": `{"sha":"0abc","text":"one (SHA: 0abc)"}`, "watch: []": `{"sha":"0abc"}`} {
		life(t, strings.Replace(rules, "WATCH", watch, 1), func(k *kit) {
			k.Render = func(any) json.RawMessage { return plainText("one (SHA: 0abc)") }
			c := k.preview("write_file", `{"path":"/notes/a.txt","content":"x"}`)
			if got := string(c.Before[0].Body); got != body {
				t.Errorf("bound to %s", got)
			}
			if got := string(k.terms(c).Ops[0].Payload); !strings.Contains(got, `"sha":"0abc"}`) {
				t.Errorf("sent would be %s", got)
			}
			k.Render = func(any) json.RawMessage { return plainText("one, and no sum of it") }
			k.refused("write_file", `{"path":"/notes/a.txt","content":"x"}`, "sha is not in what it returns")
		})
	}
}

func TestPreviewShowsTheServersOwnDryRun(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  preview: {try_record: {id, dry: true, title: $args.title}}
`, func(k *kit) {
		c := k.preview("put_record", `{"id":"a","title":"x"}`)
		diff := k.target.Diff(k.terms(c).Ops[0], c.Before[0])
		if len(diff) != 2 || string(diff[1].After) != `"would set [dry id title]"` {
			t.Errorf("diff %+v", diff)
		}
		k.OnCall = func(tool string, _ map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error) {
			if tool == "try_record" {
				return failed("no such field"), true, nil
			}
			return do(), true, nil
		}
		k.refused("put_record", `{"id":"a","title":"x"}`, "no such field")
		k.OnCall = func(tool string, _ map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error) {
			if tool == "try_record" {
				k.set("a", "title", "x")
			}
			return do(), true, nil
		}
		k.refused("put_record", `{"id":"a","title":"x"}`, "was no dry run and wrote")
	})
}

func TestOfSeveralRulesTheFirstThatHoldsCounts(t *testing.T) {
	life(t, `
put_record:
  - when: args.method == "update"
    read: {get_record: {id}}
    undo: {put_record: {id, $restore: changed}}
  - when: args.method == "create"
    ask: deny
  - undo_note: nobody knows
    undo: none
`, func(k *kit) {
		if got := k.terms(k.preview("put_record", `{"id":"a","method":"update","title":"x"}`)).Ops[0].Object; got == "" {
			t.Error("the first rule reads")
		}
		k.refused("put_record", `{"id":"a","method":"create"}`, "not allowed")
		if p := k.terms(k.preview("put_record", `{"id":"a","method":"other"}`)).Undo; p.Extent != wetink.NoUndo || p.Notes[0] != "nobody knows" {
			t.Errorf("%+v", p)
		}
		k.refused("put_record", `{"id":"a"}`, "cannot be judged")
		k.preview("put_record", `{"id":"a","method":7}`) // a number is no text: none of the two holds, and the third is asked
	})
}

func TestRisksAreToldAndAlsoThoseThatCannotBeRuledOut(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  risk:
    tells guests: size(before.guests) > 0
    is long: size(args.title) > 5
    is short: size(args.title) < 2
`, func(k *kit) {
		k.set("a", "guests", []any{"x"})
		warned := func(args string) string { return strings.Join(k.terms(k.preview("put_record", args)).Warnings, "; ") }
		if got := warned(`{"id":"a","title":"longer"}`); got != "tells guests; is long" {
			t.Errorf("%q", got)
		}
		if got := warned(`{"id":"b","title":"x"}`); got != "tells guests: it cannot be ruled out (no such key: guests); is short" {
			t.Errorf("%q", got)
		}
	})
}

func TestWhatIsAskedAndTyped(t *testing.T) {
	for word, want := range map[string]struct {
		level  wetink.Level
		people int
		typed  string
	}{
		"never": {wetink.Auto, 1, ""}, "agent": {wetink.Agent, 1, ""}, "card": {wetink.Host, 1, ""}, "page": {wetink.Session, 1, ""},
		"inbox": {wetink.Session, 1, ""}, "typed": {wetink.Session, 1, "put_record"}, "reauth": {wetink.Reauth, 1, ""},
		"passkey": {wetink.Passkey, 1, ""}, "two": {wetink.Session, 2, ""},
		"agent\n  typed_when: args.title == 'x'": {wetink.Session, 1, "put_record"},
		"agent\n  typed_when: args.title == 'y'": {wetink.Agent, 1, ""},
		"agent\n  typed_when: args.gone == 'y'":  {wetink.Session, 1, "put_record"}, // not known: as if it held
	} {
		target := upstream.New("demo", newServer(), parse(t, "put_record:\n  read: {get_record: {id}}\n  ask: "+word), nil)
		p, err := target.Prepare(ctx, request("put_record", `{"id":"a","title":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		terms := wetink.Terms{Ops: p.Ops}
		d, err := target.Requires(terms, p.Before)
		if err != nil || d.Require.Level != want.level || d.Require.People != want.people || d.Deny != "" {
			t.Errorf("%s: %+v %v", word, d, err)
		}
		if got := typed(terms, p.Before); got != want.typed {
			t.Errorf("%s: %q has to be typed", word, got)
		}
	}
}

func TestWithoutAWordThePageIsAsked(t *testing.T) {
	target := upstream.New("demo", newServer(), parse(t, "put_record:"), nil)
	for _, tool := range []string{"put_record", "unlisted"} {
		p, err := target.Prepare(ctx, request(tool, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := target.Requires(wetink.Terms{Ops: p.Ops}, p.Before); err != nil || d.Require.Level != wetink.Session {
			t.Errorf("%s: %+v %v", tool, d, err)
		}
		if p.Undo.Extent != wetink.NoUndo || len(p.Warnings) == 0 {
			t.Errorf("%s: undo %+v, warnings %q", tool, p.Undo, p.Warnings)
		}
	}
}

func TestLimitCountsAppliedChangesOfADay(t *testing.T) {
	life(t, `
put_record:
  read: {get_record: {id}}
  limit: 1
  undo: {put_record: {id, $restore: changed}}
`, func(k *kit) {
		second := k.preview("put_record", `{"id":"b","title":"x"}`)
		first := k.apply(k.preview("put_record", `{"id":"a","title":"x"}`), wetink.Applied)
		ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: second.ticket}
		if got, _, err := k.Apply(ctx, by, second.ID, &ev); err == nil {
			t.Errorf("a second one is %s", got.Status)
		}
		k.undone(first) // taking back is not counted
		time.Sleep(24 * time.Hour)
		k.apply(k.preview("put_record", `{"id":"b","title":"y"}`), wetink.Applied)
	})
}

func TestNothingWouldChangeIsSaidAndNotAsked(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		k.refused("put_record", `{"id":"a","title":"first"}`, "nothing would change")
		k.refused("put_record", `{"id":"a","size":9007199254740993.0}`, "nothing would change")
		k.preview("put_record", `{"id":"a","size":9007199254740992}`)
	})
}

// A server that answers failures as successes says so in words; the rule knows by which.
func TestAFailureThatIsAnsweredAsASuccessIsNone(t *testing.T) {
	for rule, want := range map[string]wetink.Status{"put_record: {failed: 'Error:'}": wetink.InDoubt, "put_record: {failed: 'Error:', read: {get_record: {id}}}": wetink.Failed} {
		life(t, rule, func(k *kit) {
			c := k.preview("put_record", `{"id":"a","title":"x"}`)
			k.broken(func(func() json.RawMessage) (json.RawMessage, bool, error) {
				return plainText("Error: no such column"), true, nil
			})
			k.apply(c, want)
		})
	}
}

// Without a rule that reads, the server's word is all there is; the record says so.
func TestWhatNothingReadsIsRecordedAsTheServersWord(t *testing.T) {
	life(t, "put_record: {undo: {put_record: {id, title: was}}}", func(k *kit) {
		c := k.preview("put_record", `{"id":"a","title":"x"}`)
		if p := k.terms(c).Undo; p.Extent != wetink.PartialUndo || len(p.Notes) != 1 {
			t.Errorf("%+v", p)
		}
		c = k.apply(c, wetink.Applied)
		if c.Compared() {
			t.Error("it says that it was compared")
		}
		k.undone(c)
		k.want("a", "title", "was")

		lost := k.preview("put_record", `{"id":"a","title":"y"}`)
		k.broken(func(do func() json.RawMessage) (json.RawMessage, bool, error) { return failed("no"), true, nil })
		k.apply(lost, wetink.InDoubt)
	})
}
