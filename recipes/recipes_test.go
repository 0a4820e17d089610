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

// A recipe lets tools through: it must not be chosen for a server that only looks like the one that it is for.
func TestARecipeIsChosenByTheWholeNameOfAPackage(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /home/ana":                                   "filesystem",
		"npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /home/ana":                         "filesystem",
		"node ./node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /x":               "filesystem",
		`node C:\tools\node_modules\@modelcontextprotocol\server-filesystem\dist\index.js`:           "filesystem",
		"/usr/local/bin/mcp-server-filesystem /x":                                                    "filesystem",
		"npx -y @modelcontextprotocol/server-memory":                                                 "memory",
		"npx -y @cocal/google-calendar-mcp@latest":                                                   "google-calendar",
		"docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server:v1.2.3": "github",
		"docker run -i --rm -e DATABASE_URI crystaldba/postgres-mcp --access-mode=unrestricted":      "postgres",
		"npx -y mcp-sqlite /x.db":                                     "sqlite",
		"npx -y @notionhq/notion-mcp-server":                          "notion",
		"npx -y caldav-mcp":                                           "caldav",
		"npx -y @evil/server-filesystem":                              "",
		"npx -y @modelcontextprotocol/server-filesystem-plus":         "",
		"npx -y server-filesystem":                                    "",
		"npx -y @evil/@modelcontextprotocol/server-filesystem":        "",
		"npx -y other --note=@modelcontextprotocol/server-filesystem": "",
		"docker run evil.example/ghcr.io/github/github-mcp-server":    "",
		"node ./node_modules/@evil/node_modules-@modelcontextprotocol/server-filesystem/dist/index.js": "",
		"npx -y other @modelcontextprotocol/server-filesystem":                                         "",
		"docker run -e X=ghcr.io/github/github-mcp-server other":                                       "",
		"npx -p @modelcontextprotocol/server-filesystem other":                                         "",
		"npx": "",
		"":    "",
	} {
		got := ""
		if r, ok := For(strings.Fields(command)); ok {
			got = r.Name
		}
		if got != want {
			t.Errorf("%s: recipe %q, want %q", command, got, want)
		}
	}
}

func TestANameThatIsAPathFindsNoRecipe(t *testing.T) {
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
