package recipes

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryRecipeHoldsAgainstItsCases(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no recipes")
	}
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			tried := map[string]bool{}
			for _, c := range r.Cases {
				tried[c.Tool] = true
				for _, p := range Replay(context.Background(), r, c) {
					t.Errorf("line %d, %s: %s", c.Line, c.Says, p)
				}
			}
			for tool := range r.rules {
				if !tried[tool] {
					t.Errorf("%s is guarded, and no case shows how", tool)
				}
			}
		})
	}
}

func TestACaseThatDoesNotHoldIsTold(t *testing.T) {
	const file = `version: 1
for: [x]
server: x 1
pass: [get]
guard: {put: {read: {get: {id}}, ask: card, undo: {put: {id, v: $before.v}}}}
cases:
  - says: x
    tool: put
    args: {id: 1, v: new}
    answers: [{tool: get, args: {id: 1}, json: {v: old}}]
    expect: {verb: change, ask: card, undo: full}
    then: {text: ok, undo: {put: {id: 1, v: old}}}
`
	for _, tc := range []struct{ from, to, says string }{
		{"", "", ""},
		{"verb: change", "verb: delete", "verb: got change"},
		{"ask: card, undo: full", "ask: page, undo: full", "ask:"},
		{"undo: full", "undo: none", "undo: got full"},
		{"undo: full}", "undo: full, warnings: [it burns]}", "it burns"},
		{"{put: {id: 1, v: old}}}", "{put: {id: 1, v: older}}}", "want put"},
		{"undo: {put: {id: 1, v: old}}}", "undo: none}", "there should be none"},
		{"{tool: get, args: {id: 1}", "{tool: get, args: {id: 2}", "no answer of get"},
		{"expect: {verb: change, ask: card, undo: full}", "expect: {refused: no}", "should be refused"},
		{"tool: put", "tool: get", "stands in `pass`"},
	} {
		src := strings.Replace(file, tc.from, tc.to, 1)
		r, err := Read("x.yaml", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", tc.to, err)
			continue
		}
		got := Replay(context.Background(), r, r.Cases[0])
		if tc.says == "" && len(got) > 0 || tc.says != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.says) }) {
			t.Errorf("%s: got %q, want one that says %q", tc.to, got, tc.says)
		}
	}
}

func TestTheRecipeOfACommandIsFoundByItsPackage(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /home/ana":                          "filesystem",
		"npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /home/ana":                "filesystem",
		"node /opt/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /n":   "filesystem",
		"/usr/bin/mcp-server-memory":                                                        "memory",
		"npx -y @someone/server-filesystem /home/ana":                                       "",
		"npx -y @modelcontextprotocol/server-filesystem-plus /home/ana":                     "",
		"sh -c @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory": "",
		"": "",
	} {
		r, ok := For(strings.Fields(line))
		if r.Name != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", line, r.Name, want)
		}
	}
	if _, ok := Named("../recipes/memory"); ok {
		t.Error("a name that is a path finds a file")
	}
}

func TestEveryRecipeIsInTheDocs(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !strings.Contains(string(b), "| `"+name+"` |") {
			t.Errorf("docs/recipes.md says nothing of %s", name)
		}
	}
}
