package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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

func terms(actions ...string) (wetink.Terms, []wetink.Snapshot) {
	t := wetink.Terms{Target: "intervals", Client: "agent", Account: "i1", Undo: wetink.Promise{Extent: wetink.FullUndo, Until: time.Hour}}
	var before []wetink.Snapshot
	for i, a := range actions {
		op := wetink.Op{Action: a, Object: fmt.Sprint(i)}
		if a != "delete" {
			op.Payload = json.RawMessage(`{"name":"Tempo","load":62,"big":9007199254740993,"half":0.5,"start_date_local":"2026-07-17T08:00:00"}`)
		}
		t.Ops = append(t.Ops, op)
		before = append(before, wetink.Snapshot{Object: op.Object, Absent: a == "create", Body: json.RawMessage(`{"name":"Before","category":"RACE_A"}`)})
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

const some = `version: 1
rules:
  - name: deletes
    when: ops.exists(o, o.action == "delete")
    require: passkey
    why: They come back with other ids.
  - name: races
    when: before.exists(b, !b.absent && b.body.category.startsWith("RACE"))
    require: reauth
    people: 2
    other: true
  - name: many
    when: risk.objects > 3
    ttl: 5m
    cap: {name: bulk, max: 3}
  - name: exact numbers
    when: ops.exists(o, has(o.payload.big) && o.payload.big == 9007199254740993)
    ttl: 10m
    cap: {name: bulk, max: 5}
  - name: never
    when: change.target == "prod"
    deny: Not from here.
`

func TestTheStrictestOfAllThatMatchWins(t *testing.T) {
	r := parse(t, some)
	if d := decide(t, r, "create"); d.Require != page || d.Deny != "" || d.TTL != 10*time.Minute || d.Cap.Max != 5 {
		t.Errorf("create: %+v", d)
	}
	if d := decide(t, r, "update"); d.Require != (wetink.Require{Level: wetink.Reauth, People: 2, Other: true}) {
		t.Errorf("update of a race: %+v", d)
	}
	d := decide(t, r, "delete", "update", "update", "update")
	if d.Require != (wetink.Require{Level: wetink.Passkey, People: 2, Other: true}) || d.TTL != 5*time.Minute || d.Cap == nil || d.Cap.Max != 3 {
		t.Errorf("all: %+v", d)
	}
	if len(d.Why) != 4 || !strings.HasPrefix(d.Why[0], "deletes. They come back") {
		t.Errorf("why: %q", d.Why)
	}
	tt, before := terms("create")
	tt.Target = "prod"
	if d, err := r.Decide(t.Context(), tt, before); err != nil || d.Deny != "Not from here." {
		t.Errorf("%+v %v", d, err)
	}
}

func TestWhatCannotBeUndoneNeedsMoreWhateverTheFileSays(t *testing.T) {
	r := parse(t, "version: 1\n")
	tt, before := terms("create")
	tt.Undo.Extent = wetink.NoUndo
	if d, err := r.Decide(t.Context(), tt, before); err != nil || d.Require.Level != wetink.Reauth {
		t.Errorf("%+v %v", d, err)
	}
}

func TestARuleNeverLowersTheFloor(t *testing.T) {
	r := parse(t, "version: 1\nrules: [{name: lax, require: auto, people: 1}]\n")
	if d := decide(t, r, "create"); d.Require != page {
		t.Errorf("%+v", d)
	}
}

// A condition that nobody can evaluate must not be a way around it.
func TestAConditionThatCannotBeEvaluatedHolds(t *testing.T) {
	for name, when := range map[string]string{
		"a member that is not there": "ops[0].payload.nothing == 1", "another type": "ops[0].payload.name > 3", "out of range": "ops[77].action == 'x'",
		"division by zero": "1 / (risk.objects - risk.objects) == 1",
		"too dear":         "ops.all(a, ops.all(b, ops.all(c, ops.all(d, ops.all(e, ops.all(f, a.action + b.action + c.action + d.action + e.action + f.action != 'x'))))))",
	} {
		r := parse(t, "version: 1\nrules: [{name: x, when: \""+when+"\", deny: no}]\n")
		actions := strings.Fields(strings.Repeat("create ", 25))
		began := time.Now()
		if d := decide(t, r, actions...); d.Deny == "" {
			t.Errorf("%s: it does not hold", name)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func TestEveryMistakeHasItsLine(t *testing.T) {
	for src, want := range map[string]string{
		"version: 2\n": "rules.yaml:1: version is 2",
		"version: 1\nrules:\n  - name: a\n    require: human\n":                          `rules.yaml:4: require is "human"`,
		"version: 1\nrules:\n  - name: a\n    require: page\n  - name: a\n    deny: x\n": `rules.yaml:5: another rule is named "a"`,
		"version: 1\nrules:\n  - name: a\n    when: opps.exists(o, true)\n    deny: x\n": "rules.yaml:4: the condition: ",
		"version: 1\nrules:\n  - name: a\n    when: \"1 + 1\"\n    deny: x\n":            "rules.yaml:4: the condition is a int",
		"version: 1\nrules:\n  - name: a\n    deny: x\n    ttl: 90m\n":                   "rules.yaml:5: ttl is",
		"version: 1\nrules:\n  - name: a\n    people: 99\n":                              "rules.yaml:4: people is 99",
		"version: 1\nrules:\n  - name: a\n    cap: {name: x}\n":                          "rules.yaml:4: a cap has a name",
		"version: 1\nrules:\n  - name: a\n":                                              "demands nothing",
		"version: 1\nrules:\n  - deny: x\n":                                              "rules.yaml:3: rule 1 has no name",
		"version: 1\nrules:\n  - name: a\n    requires: page\n":                          "[4:5] unknown field",
		"version: 1\nversion: 1\n":                                                       "[2:1]",
		"version: one\n":                                                                 "[1:",
		"rules: [":                                                                       "[1:",
	} {
		_, err := rules.Parse("rules.yaml", []byte(src), page)
		if !errors.Is(err, rules.ErrRules) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

// Adding a rule never makes anything easier.
func TestAddingARuleNeverLowersWhatIsDemanded(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) string {
		when := rapid.SampledFrom([]string{"", "ops.exists(o, o.action == 'delete')", "risk.objects > 1", "change.client == 'x'", "ops[3].action == 'create'"}).Draw(t, "when")
		require := rapid.SampledFrom([]string{"auto", "agent", "card", "page", "reauth", "passkey"}).Draw(t, "require")
		s := fmt.Sprintf("require: %s, people: %d, other: %t", require, rapid.IntRange(0, 3).Draw(t, "people"), rapid.Bool().Draw(t, "other"))
		if when != "" {
			s += `, when: "` + when + `"`
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
			src += fmt.Sprintf("  - {name: r%d, %s}\n", i, r)
			p := parse(t, src)
			d := decide(t, p, actions...)
			if wetink.Stricter(d.Require, last.Require) != d.Require || last.Deny != "" && d.Deny == "" {
				rt.Fatalf("%s\nfrom %+v to %+v", src, last, d)
			}
			if again := decide(t, p, actions...); !reflect.DeepEqual(again, d) {
				rt.Fatalf("it is not pure: %+v and %+v", d, again)
			}
			last = d
		}
	})
}

func TestAFileIsFollowedAndAMistakeInItStopsDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	f := rules.NewFile(path, func(context.Context) (wetink.Require, error) { return page, nil })
	none := decide(t, f, "delete")
	if none.Require != page {
		t.Errorf("without a file: %+v", none)
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
	write(some + "  - name: [\n")
	tt, before := terms("delete")
	if _, err := f.Decide(t.Context(), tt, before); !errors.Is(err, rules.ErrRules) {
		t.Errorf("a file with a mistake decides: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, f, "delete"); d.Version != none.Version {
		t.Errorf("removed: %+v", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some)
	f.Add("version: 1\nrules: [{name: a, when: 'true', deny: x}]")
	f.Fuzz(func(t *testing.T, src string) {
		r, err := rules.Parse("x", []byte(src), page)
		if err != nil {
			if !errors.Is(err, rules.ErrRules) {
				t.Error(err)
			}
			return
		}
		if d := decide(t, r, "create", "delete"); d.Require.Level < page.Level {
			t.Errorf("%q lowers the floor", src)
		}
	})
}
