package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func defs(list ...string) (out []json.RawMessage) {
	for _, d := range list {
		out = append(out, json.RawMessage(d))
	}
	return out
}

const (
	toolA = `{"name":"a","description":"Reads.","inputSchema":{"type":"object","properties":{"x":{"type":"number","maximum":9007199254740993}}},"_meta":{"n":1}}`
	toolB = `{"name":"b"}`
)

func TestPinsRefuseWhatIsNotAsItWas(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pins")
	p := OpenPins(folder, "s")
	if good, changed, first, err := p.Check(defs(toolA, toolB)); err != nil || !first || len(good) != 2 || changed != nil {
		t.Fatal(good, changed, first, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "s.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	p = OpenPins(folder, "s") // another process
	for name, c := range map[string]struct {
		a      string
		refuse bool
	}{
		"as it was":            {toolA, false},
		"other spaces":         {strings.ReplaceAll(toolA, ":", " : "), false},
		"another order":        {`{"inputSchema":{"properties":{"x":{"maximum":9007199254740993,"type":"number"}},"type":"object"},"description":"Reads.","name":"a"}`, false},
		"other _meta":          {strings.Replace(toolA, `"n":1`, `"n":2`, 1), false},
		"one byte of words":    {strings.Replace(toolA, "Reads.", "Reads!", 1), true},
		"one bit of a number":  {strings.Replace(toolA, "993", "992", 1), true},
		"a title":              {strings.Replace(toolA, `"name"`, `"title":"t","name"`, 1), true},
		"an annotation":        {strings.Replace(toolA, `"name"`, `"annotations":{"readOnlyHint":true},"name"`, 1), true},
		"an output schema":     {strings.Replace(toolA, `"name"`, `"outputSchema":{},"name"`, 1), true},
		"a hidden character":   {strings.Replace(toolA, "Reads.", "Reads.\u200b", 1), true},
		"another default only": {strings.Replace(toolA, `"type":"number"`, `"type":"number","default":1`, 1), true},
	} {
		good, changed, first, err := p.Check(defs(c.a, toolB))
		if err != nil || first || (len(good) == 1) != c.refuse || (len(changed) == 1) != c.refuse {
			t.Errorf("%s: %d good, %v, %v", name, len(good), changed, err)
		}
	}
	good, changed, _, err := p.Check(defs(toolB, `{"name":"new"}`))
	if err != nil || len(good) != 1 || len(changed) != 2 || changed[0].Tool != "new" || changed[1].Is != nil {
		t.Errorf("%v %v %v", good, changed, err)
	}
	if err := p.Accept(defs(toolB, `{"name":"new"}`)); err != nil {
		t.Fatal(err)
	}
	if good, changed, _, err := p.Check(defs(toolB, `{"name":"new"}`)); err != nil || len(good) != 2 || changed != nil {
		t.Errorf("after it was accepted: %v %v %v", good, changed, err)
	}
}

func TestDefinitionsThatCanBeReadInTwoWaysAreRefused(t *testing.T) {
	for name, list := range map[string][]json.RawMessage{
		"two of one name":  defs(toolB, toolB),
		"a name twice":     defs(`{"name":"a","name":"b"}`),
		"a name in escape": defs(`{"name":"a","n\u0061me":"b"}`),
		"no name":          defs(`{"description":"x"}`),
		"an empty name":    defs(`{"name":""}`),
		"no object":        defs(`[1]`),
	} {
		if good, _, _, err := OpenPins(t.TempDir(), "s").Check(list); err == nil {
			t.Errorf("%s: taken as %s", name, good)
		}
	}
}

func TestPinsThatCannotBeReadRefuseEverything(t *testing.T) {
	folder := t.TempDir()
	for _, content := range []string{"", "{", `{"v":2,"tools":{}}`, `{"v":1,"tools":{},"tools":{}}`} {
		if err := os.WriteFile(filepath.Join(folder, "s.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if good, _, _, err := OpenPins(folder, "s").Check(defs(toolB)); err == nil {
			t.Errorf("%q: %s", content, good)
		}
	}
}

func TestWhatDrawsPagesOfAServerIsTakenAway(t *testing.T) {
	s := &guarded{}
	def := json.RawMessage(`{"name":"a", "_meta":{"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://x","openai/outputTemplate":"x","kept":1e400},"outputSchema":{"type":"object"},"description":"d"}`)
	for passes, want := range map[bool]string{
		true:  `{"name":"a","_meta":{"kept":1e400},"outputSchema":{"type":"object"},"description":"d"}`,
		false: `{"name":"a","_meta":{"kept":1e400},"description":"d` + preparesOnly + `"}`,
	} {
		if got, err := s.shown(def, passes); err != nil || string(got) != want {
			t.Errorf("%s %v", got, err)
		}
	}
	s.UI = true
	if got, err := s.shown(def, true); err != nil || string(got) != string(def) {
		t.Errorf("%s %v", got, err)
	}
}
