package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/policy/rules"
)

var page = wetink.Require{Level: wetink.Session, People: 1}

func parse(t testing.TB, src string) *rules.Rules {
	t.Helper()
	r, err := rules.Parse("rules.yaml", []byte(src), page)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// terms of one Op an action, on objects of their own.
func terms(actions ...string) (wetink.Terms, []wetink.Snapshot) {
	t := wetink.Terms{Change: "chg_1", Target: "intervals", Client: "agent", Requester: "ana", Account: "i1",
		Undo: wetink.Promise{Extent: wetink.FullUndo, Until: time.Hour}}
	var before []wetink.Snapshot
	for i, a := range actions {
		op := wetink.Op{Action: a, Object: fmt.Sprint(i)}
		if a != "delete" {
			op.Payload = json.RawMessage(`{"name":"Tempo","load":62,"big":9007199254740993,"half":0.5,"start_date_local":"2026-07-17T08:00:00"}`)
		}
		t.Ops = append(t.Ops, op)
		s := wetink.Snapshot{Object: op.Object, Absent: a == "create"}
		if !s.Absent {
			s.Body = json.RawMessage(`{"name":"Before","category":"RACE_A"}`)
		}
		before = append(before, s)
	}
	return t, before
}

func decide(t testing.TB, r wetink.Policy, actions ...string) wetink.Decision {
	t.Helper()
	tt, before := terms(actions...)
	d, err := r.Decide(context.Background(), tt, before)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rule is a file of one rule that denies.
func rule(when string) string {
	return "version: 1\nrules:\n  - name: x\n    deny: no\n    when: |\n      " + strings.ReplaceAll(when, "\n", "\n      ") + "\n"
}

const some = `version: 1
rules:
  - name: many
    when: risk.objects > 3
    ttl: 5m
    cap: {name: bulk, max: 3}
  - name: deletes
    when: ops.exists(o, o.action == "delete")
    require: passkey
    why: They come back with other ids.
  - name: races
    when: before.exists(b, !b.absent && b.body.category.startsWith("RACE"))
    require: reauth
    people: 2
    other: true
  - name: exact numbers
    when: ops.exists(o, o.payload != null && has(o.payload.big) && o.payload.big == 9007199254740993)
    ttl: 10m
    cap: {name: bulk, max: 5}
  - name: never
    when: change.target == "prod"
    deny: Not from here.
`

func TestTheStrictestOfAllThatMatchWins(t *testing.T) {
	r := parse(t, some)
	four := wetink.Require{Level: wetink.Passkey, People: 2, Other: true}
	for _, tc := range []struct {
		actions []string
		require wetink.Require
		ttl     time.Duration
		cap     int
		why     []string
	}{
		{[]string{"create"}, page, 10 * time.Minute, 5, []string{"exact numbers."}},
		{[]string{"update"}, wetink.Require{Level: wetink.Reauth, People: 2, Other: true}, 10 * time.Minute, 5, []string{"races.", "exact numbers."}},
		{[]string{"delete"}, four, 0, 0, []string{"deletes. They come back with other ids.", "races."}},
		{[]string{"delete", "update", "update", "update"}, four, 5 * time.Minute, 3,
			[]string{"deletes. They come back with other ids.", "races.", "many.", "exact numbers."}},
	} {
		d := decide(t, r, tc.actions...)
		most := 0
		if d.Cap != nil {
			most = d.Cap.Max
		}
		if d.Require != tc.require || d.TTL != tc.ttl || most != tc.cap || d.Deny != "" || !reflect.DeepEqual(d.Why, tc.why) || d.Version != r.Version() {
			t.Errorf("%s: %+v", tc.actions, d)
		}
	}
	tt, before := terms("create")
	tt.Target = "prod"
	if d, err := r.Decide(t.Context(), tt, before); err != nil || d.Deny != "Not from here." || d.Why[0] != "never. Not from here." {
		t.Errorf("%+v %v", d, err)
	}
}

func TestTheFirstDenyOfTheFileGivesTheReason(t *testing.T) {
	d := decide(t, parse(t, "version: 1\nrules: [{name: a, deny: first}, {name: b, deny: second, require: passkey}]\n"), "create")
	if d.Deny != "first" {
		t.Errorf("%+v", d)
	}
}

func TestConditionsSeeAllThatTheyAreToldOf(t *testing.T) {
	tt, before := terms("create", "update", "delete", "delete")
	tt.Tenant, tt.Undoes, tt.Replaces, tt.OnFailure, tt.Warnings = "club", []wetink.Undone{{Change: "chg_2", Effects: 1}}, "chg_3", wetink.UndoOnFailure, []string{"w"}
	tt.Ops[0].Key, tt.Ops[0].Blobs = "k", []wetink.Blob{{Digest: wetink.Digest{0xab}, Size: 7, Type: "image/png"}}
	tt.Ops[3].Object = tt.Ops[2].Object
	for when, want := range map[string]bool{
		`change.id == "chg_1" && change.target == "intervals" && change.client == "agent" && change.requester == "ana"`:                    true,
		`change.tenant == "club" && change.account == "i1" && account == "i1" && change.undoes == ["chg_2"] && change.replaces == "chg_3"`: true,
		`change.on_failure == "undo" && change.warnings == ["w"] && risk.warnings == 1`:                                                    true,
		`change.undo.extent == "full" && change.undo.for == duration("1h")`:                                                                true,
		`change.undo.for < duration("1h")`:                                                                    false,
		`size(ops) == 4 && size(before) == 4 && ops[0].object == before[0].object`:                            true,
		`ops[0].key == "k" && ops[0].blobs[0].size == 7 && ops[0].blobs.all(b, b.type.startsWith("image/"))`:  true,
		`ops[0].blobs[0].sha256.startsWith("ab00")`:                                                           true,
		`ops[2].payload == null && before[0].absent && before[0].body == null && before[1].body.name != ""`:   true,
		`risk.creates == 1 && risk.updates == 1 && risk.deletes == 2 && risk.objects == 3`:                    true,
		`risk.irreversible || risk.partial_undo`:                                                              false,
		`has(ops[0].payload.nothing)`:                                                                         false,
		`ops[0].payload.load > 61.5 && ops[0].payload.load < 63 && ops[0].payload.half < 1`:                   true,
		`ops[0].payload.big == 9007199254740992`:                                                              false, // would be equal as doubles
		`ops[0].payload.start_date_local < "2026-07-18"`:                                                      true,
		`timestamp(ops[0].payload.start_date_local + "Z").getDayOfWeek() == 5`:                                true,
		"ops.exists(o,\n  o.action == \"delete\") // comments, and several lines\n && risk.deletes\n    >= 2": true,
		`"name" in ops[0].payload && ops[0].payload["name"] == "Tempo"`:                                       true,
		`ops[0].payload.map(k, k) == ["big", "half", "load", "name", "start_date_local"]`:                     true,
		`ops.exists_one(o, o.action == "create") && ops.filter(o, o.action == "delete").size() == 2`:          true,
	} {
		r, err := rules.Parse("rules.yaml", []byte(rule(when)), page)
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		found, err := r.Match(t.Context(), tt, before)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(found) == 1; got != want || got && found[0].Err != nil {
			t.Errorf("%s: %t, want %t (%v)", when, got, want, found)
		}
	}
}

func TestNumbersAreExactWithin64BitsAndDoublesBeyond(t *testing.T) {
	for _, tc := range []struct {
		number, when string
		want         bool
	}{
		{"9223372036854775807", "ops[0].payload == 9223372036854775807", true},
		{"9223372036854775806", "ops[0].payload == 9223372036854775807", false},
		{"-9223372036854775808", "ops[0].payload == -9223372036854775808", true},
		{"9223372036854775809", "ops[0].payload > 9223372036854770000", true},
		{"1e400", "ops[0].payload > 1000000.0", true},
		{"1.0", "ops[0].payload == 1", true},
		{"-0", "ops[0].payload == 0", true},
	} {
		tt, before := terms("create")
		tt.Ops[0].Payload = json.RawMessage(tc.number)
		d, err := parse(t, rule(tc.when)).Decide(t.Context(), tt, before)
		if err != nil || (d.Deny != "") != tc.want {
			t.Errorf("%s, %s: %+v %v", tc.number, tc.when, d, err)
		}
	}
}

func TestWhatCannotBeUndoneNeedsMoreWhateverTheFileSays(t *testing.T) {
	for extent, want := range map[wetink.Extent]wetink.Level{wetink.NoUndo: wetink.Reauth, wetink.PartialUndo: wetink.Session, wetink.FullUndo: wetink.Session} {
		tt, before := terms("create")
		tt.Undo.Extent = extent
		if d, err := parse(t, "version: 1\n").Decide(t.Context(), tt, before); err != nil || d.Require.Level != want {
			t.Errorf("%q: %+v %v", extent, d, err)
		}
	}
	tt, before := terms("delete")
	tt.Undo.Extent = wetink.NoUndo
	d, err := parse(t, some).Decide(t.Context(), tt, before)
	if want := []string{"deletes. They come back with other ids.", "races.", "It cannot be undone."}; err != nil || !reflect.DeepEqual(d.Why, want) {
		t.Errorf("%q %v", d.Why, err)
	}
}

func TestARuleNeverLowersTheFloor(t *testing.T) {
	for _, floor := range []wetink.Require{page, {Level: wetink.Passkey, People: 2, Other: true}, {Level: wetink.Host}} {
		r, err := rules.Parse("rules.yaml", []byte("version: 1\nrules: [{name: lax, require: auto, people: 1}]\n"), floor)
		if err != nil {
			t.Fatal(err)
		}
		want := floor
		want.People = max(want.People, 1)
		if d := decide(t, r, "create"); d.Require != want {
			t.Errorf("%+v: %+v", floor, d)
		}
	}
}

func TestTheVersionNamesTheBytesAndTheFloor(t *testing.T) {
	seen := map[string]string{}
	for _, src := range []string{"version: 1\n", "version: 1 \n", some} {
		for _, floor := range []wetink.Require{page, {Level: wetink.Session, People: 2}, {Level: wetink.Session, People: 1, Other: true}, {Level: wetink.Passkey, People: 1}} {
			r, err := rules.Parse("rules.yaml", []byte(src), floor)
			if err != nil {
				t.Fatal(err)
			}
			if other, twice := seen[r.Version()]; twice {
				t.Errorf("%q is the version of two: %s", r.Version(), other)
			}
			seen[r.Version()] = src
		}
	}
	if _, ok := seen["rules/09bfcc6a14b83e21+session"]; !ok { // printf 'version: 1\n' | sha256sum
		t.Errorf("versions: %q", slices.Sorted(maps.Keys(seen)))
	}
}

func TestTheSmallestCapOfTheNameThatComesFirstCounts(t *testing.T) {
	r := parse(t, "version: 1\nrules:\n  - {name: a, cap: {name: bulk, max: 5}}\n  - {name: b, require: passkey, cap: {name: all, max: 1}}\n  - {name: c, cap: {name: bulk, max: 2}}\n")
	if d := decide(t, r, "create"); d.Cap == nil || *d.Cap != (wetink.Cap{Name: "bulk", Max: 2}) {
		t.Errorf("%+v", d.Cap)
	}
	if n := r.Notes(); len(n) != 1 || !strings.Contains(n[0], "2 names (bulk, all)") {
		t.Errorf("notes: %q", n)
	}
	if n := parse(t, "version: 1\nrules: [{name: a, require: card}]\n").Notes(); len(n) != 1 || !strings.Contains(n[0], "line 2: require card has no effect: every change needs page already") {
		t.Errorf("notes: %q", n)
	}
	if n := parse(t, some).Notes(); n != nil {
		t.Errorf("notes: %q", n)
	}
}

// A condition that nobody can evaluate must not be a way around it.
func TestAConditionThatCannotBeEvaluatedHolds(t *testing.T) {
	for name, when := range map[string]string{
		"a member that is not there": "ops[0].payload.nothing == 1", "another type": "ops[0].payload.name > 3", "out of range": "ops[77].action == 'x'",
		"division by zero": "1 / (risk.objects - risk.objects) == 1", "not a truth": "ops[0].payload.name", "a member of null": "before[0].body.name == 'x'",
		"not a date": "timestamp(ops[0].payload.name) < timestamp(0)", "overflow": "ops[0].payload.big * 10000 == 1", "no pattern": "account.matches(ops[0].payload.name + '(')",
	} {
		r := parse(t, rule(when))
		d := decide(t, r, "create", "create")
		if d.Deny != `no (rule "x" could not be evaluated, so it counts)` || len(d.Why) != 1 || !strings.Contains(d.Why[0], "(Its condition could not be evaluated, so it counts: ") {
			t.Errorf("%s: %+v", name, d)
		}
		r = parse(t, strings.Replace(rule(when), "deny: no", "require: passkey", 1))
		if d := decide(t, r, "create"); d.Require.Level != wetink.Passkey {
			t.Errorf("%s: it does not require: %+v", name, d)
		}
	}
}

// The payload is the agent's, and so is how long a condition over it takes.
func TestACostlyPayloadCannotKeepAConditionBusy(t *testing.T) {
	letters := strings.Repeat("a", 1<<10)
	many, err := json.Marshal(map[string]any{"list": make([]int, 5000), "text": strings.Repeat(letters, 900), "keys": keys(5000)})
	if err != nil {
		t.Fatal(err)
	}
	for name, when := range map[string]string{
		"loops":    "ops[0].payload.list.all(a, ops[0].payload.list.all(b, ops[0].payload.list.all(c, a + b + c == 0)))",
		"patterns": "ops[0].payload.list.all(a, !ops[0].payload.text.matches('(a|aa)+$b'))",
		"pattern":  "!ops[0].payload.text.matches('" + strings.Repeat("ab", 125) + "')",
		"growing":  "ops[0].payload.list.all(a, size(ops[0].payload.text + ops[0].payload.text) > 0)",
		"keys":     "ops[0].payload.keys.all(k, ops[0].payload.keys.all(l, k + l != ''))",
		"equality": "ops[0].payload.list.all(a, ops[0].payload == ops[0].payload)",
		"search":   "ops[0].payload.list.all(a, !ops[0].payload.text.contains(ops[0].payload.text + 'b'))",
		"members":  "ops[0].payload.list.all(a, ops[0].payload in [a, ops[0].payload])",
		"made":     "ops[0].payload.list.all(a, [[ops[0].payload]] == [[ops[0].payload]])",
	} {
		tt, before := terms("create")
		tt.Ops[0].Payload = many
		began := time.Now()
		d, err := parse(t, rule(when)).Decide(t.Context(), tt, before)
		took := time.Since(began)
		if err != nil || d.Deny == "" || !strings.Contains(d.Why[0], "cost limit exceeded") {
			t.Errorf("%s: it does not hold: %q %q %v", name, d.Deny, d.Why, err)
		}
		if took > 30*time.Second { // far more than it takes on a busy machine, far less than without a limit
			t.Errorf("%s took %s", name, took)
		}
	}
}

func keys(n int) map[string]int {
	m := map[string]int{}
	for i := range n {
		m[fmt.Sprint(i)] = i
	}
	return m
}

// Which answer it was must not depend on who lost patience.
func TestADecisionThatWasInterruptedIsNone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tt, before := terms("create")
	if d, err := parse(t, rule("ops.all(o, o.action != '')")).Decide(ctx, tt, before); !errors.Is(err, context.Canceled) || d.Version != "" {
		t.Errorf("%+v %v", d, err)
	}
}

func TestWhatIsNoChangeIsNotDecided(t *testing.T) {
	r := parse(t, some)
	tt, before := terms("create", "update")
	if _, err := r.Decide(t.Context(), tt, before[:1]); !errors.Is(err, rules.ErrRules) {
		t.Errorf("a snapshot is missing: %v", err)
	}
	for _, raw := range []string{`{"a":`, `{} {}`, "x"} {
		tt.Ops[0].Payload = json.RawMessage(raw)
		if _, err := r.Decide(t.Context(), tt, before); !errors.Is(err, rules.ErrRules) {
			t.Errorf("payload %s: %v", raw, err)
		}
	}
}

func TestEveryMistakeHasItsLineAndColumn(t *testing.T) {
	const head = "version: 1\nrules:\n  - name: a\n"
	for src, want := range map[string]string{
		"":                                                     "rules.yaml:1:1: version is missing",
		"# nothing\n":                                          "rules.yaml:1:1: version is missing",
		"rules: []\n":                                          ": version is missing",
		"version: 2\n":                                         "rules.yaml:1:10: version is 2: want 1",
		"version: one\n":                                       "rules.yaml:1:10: version: want a whole number",
		"version: 1\nversion: 1\n":                             "rules.yaml:2:1: ",
		"version: 1\n---\nversion: 1\n":                        ":2:1: a second document",
		"version: 1\nrule: []\n":                               `rules.yaml:2:1: unknown word "rule": did you mean rules?`,
		"version: 1\nrules: {name: a}\n":                       "rules.yaml:2:",
		"version: 1\nrules:\n  - page\n":                       "rules.yaml:3:5: a rule: want keys and values",
		"version: 1\nrules:\n  - deny: x\n":                    "rules.yaml:3:5: rule 1 has no name",
		"rules: [":                                             "rules.yaml:1:",
		head:                                                   "rules.yaml:3:5: rule 1 demands nothing",
		head + "    other: false\n":                            "rules.yaml:3:5: rule 1 demands nothing",
		head + "    requires: page\n":                          `rules.yaml:4:5: unknown word "requires": did you mean require?`,
		head + "    colour: page\n":                            `rules.yaml:4:5: unknown word "colour": want one of name, when, require, people, other, ttl, cap, deny, why`,
		head + "    require: human\n":                          `rules.yaml:4:14: require is "human": want auto, agent, card, page, reauth or passkey`,
		head + "    require: [page]\n":                         "rules.yaml:4:14: require: want text",
		head + "    require: session\n":                        `rules.yaml:4:14: require is "session"`,
		head + "    deny:\n":                                   "rules.yaml:4:5: deny is empty",
		head + "    deny: ' '\n":                               "rules.yaml:4:11: deny is empty",
		head + "    deny: x\n    deny: y\n":                    "rules.yaml:5:5: ",
		head + "    deny: x\n    when: ''\n":                   "rules.yaml:5:11: when is empty",
		head + "    deny: x\n    when:\n":                      "rules.yaml:5:5: when is empty",
		head + "    deny: &x no\n":                             "rules.yaml:4:11: deny: want text",
		head + "    deny: !!str no\n":                          "rules.yaml:4:11: deny: want text",
		head + "    <<: {deny: no}\n":                          "rules.yaml:4:5: a rule: a key is a word",
		head + "    people: 99\n":                              "rules.yaml:4:13: people is 99: want 1 to 10",
		head + "    people: 0\n":                               "rules.yaml:4:13: people is 0: want 1 to 10",
		head + "    people: '2'\n":                             "rules.yaml:4:13: people: want a whole number",
		head + "    people: 2.5\n":                             "rules.yaml:4:13: people: want a whole number",
		head + "    other: yes\n":                              "rules.yaml:4:12: other: want true or false",
		head + "    ttl: 90m\n":                                `rules.yaml:4:10: ttl is "90m": want a duration from 1m to 60m`,
		head + "    ttl: 10\n":                                 "rules.yaml:4:10: ttl: want text",
		head + "    cap: {name: x}\n":                          "rules.yaml:4:10: a cap has a name and a max",
		head + "    cap: {name: x, max: 0}\n":                  "rules.yaml:4:25: max is 0: want 1 or more",
		head + "    cap: {name: x, maxx: 1, max: 1}\n":         `rules.yaml:4:20: unknown word "maxx": did you mean max?`,
		head + "    cap: 3\n":                                  "rules.yaml:4:10: cap: want keys and values, of name, max",
		head + "    deny: x\n  - name: a\n    deny: x\n":       `rules.yaml:5:11: another rule is named "a"`,
		head + "    deny: x\n    when: opps.exists(o, true)\n": `rules.yaml:5:11: unknown word "opps": did you mean ops?`,
		head + "    deny: x\n    when: ops.exists(o, o.acton == '')\n":           `rules.yaml:5:26: unknown word "acton": did you mean action?`,
		head + "    deny: x\n    when: \"change.taget == ''\"\n":                 `rules.yaml:5:18: unknown word "taget": did you mean target?`,
		head + "    deny: x\n    when: |\n      true &&\n      nobody\n":         `rules.yaml:7:7: unknown word "nobody": want one of account, before, change, ops, risk`,
		head + "    deny: x\n    when: >\n      true &&\n      nobody\n":         `: unknown word "nobody"`,
		head + "    deny: x\n    when: risk.objects > 'x'\n":                     "rules.yaml:5:24: the condition: found no matching overload",
		head + "    deny: x\n    when: ops.exist(o, true)\n":                     `unknown word "exist": did you mean exists?`,
		head + "    deny: x\n    when: now > timestamp(0)\n":                     `rules.yaml:5:11: unknown word "now"`,
		head + "    deny: x\n    when: \"1 + 1\"\n":                              "rules.yaml:5:11: the condition is of type int: want true or false",
		head + "    deny: x\n    when: (true\n":                                  "rules.yaml:5:",
		head + "    deny: x\n    when: \"{'a': true}[account]\"\n":               "rules.yaml:5:12: a condition cannot make maps",
		head + "    deny: x\n    when: \"wetink.Op{action: 'x'} == ops[0]\"\n":   "a condition cannot make maps or messages",
		head + "    deny: \"\\x\"\n":                                             "rules.yaml:4:",
		"version: 1\nrules:\n" + strings.Repeat("  - {name: a, deny: b}\n", 501): "501 rules: want at most 500",
		strings.Repeat("#", 1<<20+1):                                             "rules.yaml:1:1: the file has more than 1024 KiB",
	} {
		_, err := rules.Parse("rules.yaml", []byte(src), page)
		var e *rules.Error
		if !errors.Is(err, rules.ErrRules) || !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200q: %v, want %q", src, err, want)
			continue
		}
		for _, p := range e.Problems {
			if p.Line < 1 || p.Line > strings.Count(src, "\n")+1 || p.Column < 1 || p.Says == "" {
				t.Errorf("%.200q: %+v is nowhere", src, p)
			}
		}
	}
}

func TestAllMistakesAreListedInTheOrderOfTheFile(t *testing.T) {
	_, err := rules.Parse("rules.yaml", []byte("version: 3\nrules:\n  - name: a\n    when: nothing\n    require: human\n    colour: x\n  - deny: y\n"), page)
	var at []string
	for line := range strings.Lines(err.Error()) {
		at = append(at, strings.Join(strings.Split(line, ":")[1:3], ":"))
	}
	if want := []string{" rules.yaml:1", " rules.yaml:4", " rules.yaml:5", " rules.yaml:6", " rules.yaml:7"}; !reflect.DeepEqual(at, want) {
		t.Errorf("%q\n%v", at, err)
	}
}

func TestRulesWithoutAnyAreGood(t *testing.T) {
	for _, src := range []string{"version: 1\n", "version: 1\nrules:\n", "version: 1\nrules: []\n", "---\nversion: 1\n", "version: 1\r\nrules:\r\n  - name: a\r\n    deny: b\r\n"} {
		if _, err := rules.Parse("x", []byte(src), page); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func TestWordsSayAllThatARuleDoes(t *testing.T) {
	r := parse(t, "version: 1\nrules:\n  - {name: a, require: page, people: 2, other: true, ttl: 10m, cap: {name: publish, max: 3}}\n  - name: b\n    deny: Never.\n    when: |\n      risk.deletes\n        > 3\n")
	want := []string{"require page, 2 people, other than who asked, valid for 10m, at most 3 a day (publish), always", "deny: Never., when risk.deletes > 3"}
	for i, rule := range r.List() {
		if rule.Words() != want[i] || rule.Line != 3+i {
			t.Errorf("%d: %q", rule.Line, rule.Words())
		}
	}
}

// Adding a rule never makes anything easier, and the same question has the same answer.
func TestAddingARuleNeverLowersWhatIsDemanded(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) string {
		when := rapid.SampledFrom([]string{"", "ops.exists(o, o.action == 'delete')", "risk.objects > 1", "change.client == 'x'", "ops[3].action == 'create'"}).Draw(t, "when")
		require := rapid.SampledFrom([]string{"auto", "agent", "card", "page", "reauth", "passkey"}).Draw(t, "require")
		s := fmt.Sprintf("require: %s, people: %d, other: %t", require, rapid.IntRange(1, 3).Draw(t, "people"), rapid.Bool().Draw(t, "other"))
		if when != "" {
			s += `, when: "` + when + `"`
		}
		if m := rapid.IntRange(0, 9).Draw(t, "ttl"); m > 0 {
			s += fmt.Sprintf(", ttl: %dm", m)
		}
		if m := rapid.IntRange(0, 9).Draw(t, "cap"); m > 0 {
			s += fmt.Sprintf(", cap: {name: bulk, max: %d}", m)
		}
		if rapid.IntRange(0, 9).Draw(t, "deny") == 0 {
			s += ", deny: no"
		}
		return s
	})
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rule, 1, 6).Draw(rt, "rules")
		actions := rapid.SliceOfN(rapid.SampledFrom([]string{"create", "update", "delete"}), 1, 4).Draw(rt, "actions")
		src := "version: 1\nrules:\n"
		last := wetink.Decision{Require: page}
		for i, r := range list {
			// At either end: the order decides which words are shown, not what is demanded.
			line := fmt.Sprintf("  - {name: r%d, %s}\n", i, r)
			if rapid.Bool().Draw(rt, "at the end") {
				src += line
			} else {
				src = "version: 1\nrules:\n" + line + strings.TrimPrefix(src, "version: 1\nrules:\n")
			}
			p := parse(t, src)
			d := decide(t, p, actions...)
			switch {
			case wetink.Stricter(d.Require, last.Require) != d.Require, last.Deny != "" && d.Deny == "",
				last.TTL > 0 && (d.TTL == 0 || d.TTL > last.TTL), last.Cap != nil && (d.Cap == nil || d.Cap.Max > last.Cap.Max):
				rt.Fatalf("%s\nfrom %+v to %+v", src, last, d)
			}
			if again := decide(t, parse(t, src), actions...); !reflect.DeepEqual(again, d) {
				rt.Fatalf("it is not pure: %+v and %+v", d, again)
			}
			last = d
		}
	})
}

// Go walks its maps in another order each time. Neither an answer nor a limit of cost may depend on it.
func TestTheOrderOfAMapNeverShows(t *testing.T) {
	tt, before := terms("create")
	tt.Ops[0].Payload = json.RawMessage(`{"q":1,"w":2,"e":3,"r":{"z":1,"y":2,"x":"text","v":4},"t":5,"y":6,"u":7}`)
	for _, when := range []string{
		`ops[0].payload.map(k, k)[0] == "e"`,
		`ops[0].payload.r.map(k, k) == ["v", "x", "y", "z"]`,
		`ops[0].payload.r.exists(k, ops[0].payload.r[k] > 3 || ops[0].payload.nothing)`,
		`ops[0].payload.map(k, ops[0].payload[k] < 5)[0]`,
	} {
		r := parse(t, rule(when))
		first, err := r.Decide(t.Context(), tt, before)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if d, err := r.Decide(t.Context(), tt, before); err != nil || !reflect.DeepEqual(d, first) {
				t.Fatalf("%s: %+v, then %+v (%v)", when, first, d, err)
			}
		}
	}
}

func TestRulesAreSafeForConcurrentUse(t *testing.T) {
	r := parse(t, some)
	want := decide(t, r, "delete", "update")
	done := make(chan wetink.Decision)
	for range 8 {
		go func() {
			tt, before := terms("delete", "update")
			d, _ := r.Decide(context.Background(), tt, before)
			done <- d
		}()
	}
	for range 8 {
		if d := <-done; !reflect.DeepEqual(d, want) {
			t.Errorf("%+v", d)
		}
	}
}

func TestAFileIsFollowedAndAMistakeInItStopsDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	floor := page
	f := rules.NewFile(path, func(context.Context) (wetink.Require, error) { return floor, nil })
	none := decide(t, f, "delete")
	if none.Require != page {
		t.Errorf("without a file: %+v", none)
	}
	if _, err := rules.Load(path, page); !errors.Is(err, rules.ErrRules) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("load what is not there: %v", err)
	}
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(some)
	with := decide(t, f, "delete")
	if with.Require.Level != wetink.Passkey || with.Version == none.Version {
		t.Errorf("with it: %+v", with)
	}
	// Same length, same time: only the bytes tell.
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(strings.Replace(some, "passkey", "reauth ", 1))
	if err := os.Chtimes(path, old.ModTime(), old.ModTime()); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, f, "delete"); d.Require.Level != wetink.Reauth {
		t.Errorf("edited within the clock's grain: %+v", d)
	}
	for _, broken := range []string{some + "  - name: [\n", "", strings.Repeat("#", 1<<20+1)} {
		write(broken)
		tt, before := terms("delete")
		for range 2 {
			if d, err := f.Decide(t.Context(), tt, before); !errors.Is(err, rules.ErrRules) || !reflect.DeepEqual(d, wetink.Decision{}) {
				t.Errorf("a file with a mistake decides: %+v %v", d, err)
			}
		}
	}
	write(some)
	decide(t, f, "create")
	floor.People = 2
	if d := decide(t, f, "create"); d.Require.People != 2 {
		t.Errorf("the floor was raised: %+v", d)
	}
	floor = page
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, f, "delete"); d.Version != none.Version {
		t.Errorf("removed: %+v", d)
	}
	failing := rules.NewFile(path, func(context.Context) (wetink.Require, error) { return wetink.Require{}, os.ErrPermission })
	tt, before := terms("create")
	if _, err := failing.Decide(t.Context(), tt, before); !errors.Is(err, os.ErrPermission) {
		t.Errorf("nobody knows the floor: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some)
	f.Add("version: 1\nrules: [{name: a, when: 'true', deny: x}]")
	f.Add("version: 1\nrules:\n  - name: a\n    deny: &x |\n      no\n    when: >-\n      a\n\n      b\n  - *x\n")
	f.Add("version: 1\nrules:\n- ? {a: b}\n  : c\n- !!map {name: a}\n...\n---\n")
	f.Fuzz(func(t *testing.T, src string) {
		r, err := rules.Parse("x", []byte(src), page)
		if err != nil {
			var e *rules.Error
			if !errors.Is(err, rules.ErrRules) || !errors.As(err, &e) {
				t.Fatal(err)
			}
			for _, p := range e.Problems {
				if p.Line < 1 || p.Column < 1 || p.Says == "" {
					t.Errorf("%q: %+v is nowhere", src, p)
				}
			}
			return
		}
		d := decide(t, r, "create", "delete")
		if wetink.Stricter(d.Require, page) != d.Require {
			t.Errorf("%q lowers the floor", src)
		}
		if again := decide(t, r, "create", "delete"); !reflect.DeepEqual(again, d) {
			t.Errorf("%q: %+v and %+v", src, d, again)
		}
	})
}
