package recipes_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
)

var ctx = context.Background()

func page(t *testing.T) upstream.Ask {
	t.Helper()
	ask, ok := upstream.ParseAsk("page")
	if !ok {
		t.Fatal("page is no word")
	}
	return ask
}

func TestEveryRecipeIsReadAndItsCasesReplay(t *testing.T) {
	list := recipes.All()
	if len(list) < 8 {
		t.Errorf("%d recipes", len(list))
	}
	for _, r := range list {
		rules, problems := r.Rules()
		for _, p := range problems {
			t.Errorf("%s.yaml:%d:%d: %s", r.Name, p.Line, p.Column, p.Says)
		}
		if len(r.Cases) < 3 || len(r.For) == 0 {
			t.Errorf("%s: %d cases, known by %q", r.Name, len(r.Cases), r.For)
		}
		for _, c := range r.Cases {
			for _, wrong := range c.Replay(ctx, rules, page(t)) {
				t.Errorf("%s.yaml:%d: %s: %s", r.Name, c.Line, c.Tool, wrong)
			}
		}
	}
}

// A case that says something else is found, or the test above shows nothing.
func TestACaseThatIsNotSoIsFound(t *testing.T) {
	for _, r := range recipes.All() {
		rules, _ := r.Rules()
		for _, c := range r.Cases {
			if c.Refused != "" {
				continue
			}
			for what, spoil := range map[string]func(*recipes.Case){
				"headline": func(c *recipes.Case) { c.Headline += "s" }, "risk": func(c *recipes.Case) { c.Risk = append(slices.Clone(c.Risk), "none") },
				"ask": func(c *recipes.Case) { c.Ask = "nobody" }, "undo": func(c *recipes.Case) { c.Undo = "whole" }, "refused": func(c *recipes.Case) { c.Refused = "no" },
			} {
				spoiled := c
				spoil(&spoiled)
				if wrong := spoiled.Replay(ctx, rules, page(t)); len(wrong) != 1 || !strings.Contains(wrong[0], what) {
					t.Errorf("%s.yaml:%d with another %s: %q", r.Name, c.Line, what, wrong)
				}
			}
		}
	}
}

// A recipe lets tools through: it must not be chosen for a server that only looks like the one that it is for.
func TestARecipeIsChosenByTheWholeNameOfAPackage(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /home/ana":                                     "filesystem",
		"npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /home/ana":                           "filesystem",
		"node ./node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /x":                 "filesystem",
		`node C:\tools\node_modules\@modelcontextprotocol\server-filesystem\dist\index.js`:             "filesystem",
		"/usr/local/bin/mcp-server-filesystem /x":                                                      "filesystem",
		"npx -y @modelcontextprotocol/server-memory":                                                   "memory",
		"npx -y @cocal/google-calendar-mcp@latest":                                                     "google-calendar",
		"docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server:v1.2.3":   "github",
		"docker run -i --rm -e DATABASE_URI crystaldba/postgres-mcp --access-mode=unrestricted":        "postgres",
		"npx @bytebase/dbhub --transport stdio --dsn sqlite:///x.db":                                   "sqlite",
		"npx -y @notionhq/notion-mcp-server":                                                           "notion",
		"npx -y caldav-mcp":                                                                            "caldav",
		"npx -y @evil/server-filesystem":                                                               "",
		"npx -y @modelcontextprotocol/server-filesystem-plus":                                          "",
		"npx -y server-filesystem":                                                                     "",
		"npx -y @evil/@modelcontextprotocol/server-filesystem":                                         "",
		"npx -y other --note=@modelcontextprotocol/server-filesystem":                                  "",
		"docker run evil.example/ghcr.io/github/github-mcp-server":                                     "",
		"node ./node_modules/@evil/node_modules-@modelcontextprotocol/server-filesystem/dist/index.js": "",
		"npx -y other @modelcontextprotocol/server-filesystem":                                         "",
		"docker run -e X=ghcr.io/github/github-mcp-server other":                                       "",
		"npx -p @modelcontextprotocol/server-filesystem other":                                         "",
		"npx": "",
		"":    "",
	} {
		got := ""
		if r := recipes.Find(strings.Fields(command)); r != nil {
			got = r.Name
		}
		if got != want {
			t.Errorf("%s: recipe %q, want %q", command, got, want)
		}
	}
}
