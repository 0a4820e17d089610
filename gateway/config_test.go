package gateway

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

func parse(src string) (*Config, error) {
	env := map[string]string{"TOKEN": "t0k", "EMPTY": ""}
	return ParseConfig("wetink.yaml", []byte(src), func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		func(name string, command []string) (*Recipe, error) {
			switch {
			case name == "known" || name == "" && slices.Contains(command, "known-server"):
				return &Recipe{Name: "known", Pass: []string{"get_*"}, Src: []byte("recipe")}, nil
			case name != "":
				return nil, errors.New("there is no recipe " + name)
			}
			return nil, nil
		})
}

const wholeFile = `version: 1
defaults: {ask: page, expires: 10m, undo_for: 2h, unlisted: all}
servers:
  notes:
    run: npx -y notes-server ${TOKEN}
    env: {NOTES_TOKEN: "${TOKEN}"}
    dir: /srv
    mode: observe
    ui: true
    flight: 30s
    prepared_as_error: true
    pass: [get_*, list_notes]
    guard:
      update_note: {read: {get_note: {id}}, undo: {update_note: {id, $restore: changed}}, ask: passkey}
      drop_note:
        - when: args.soft == true
          ask: card
        - ask: deny
      odd_one:
  far:
    url: https://mcp.example/mcp
    headers: {Authorization: "Bearer ${TOKEN}"}
    recipe: known
    unlisted: deny
`

func TestAConfigSaysWhatIsGuarded(t *testing.T) {
	c, err := parse(wholeFile)
	if err != nil {
		t.Fatal(err)
	}
	n, f := c.Servers[0], c.Servers[1]
	if strings.Join(n.Command, "|") != "npx|-y|notes-server|t0k" || n.Extra[0] != "NOTES_TOKEN=t0k" || !n.Observe || !n.UI || !n.PreparedAsError ||
		n.Unlisted != UnlistedAll || len(n.Rules["drop_note"]) != 2 || n.Rules["odd_one"] == nil || n.Recipe != "" {
		t.Errorf("%+v", n)
	}
	if f.URL != "https://mcp.example/mcp" || f.Header.Get("Authorization") != "Bearer t0k" || f.Recipe != "known" || f.Pass[0] != "get_*" || f.Unlisted != UnlistedDeny {
		t.Errorf("%+v", f)
	}
	again, err := parse(strings.Replace(wholeFile, "get_*", "get_n*", 1))
	if err != nil || again.Servers[0].Version == n.Version {
		t.Errorf("the version of an edited file is the same (%v)", err)
	}
}

func TestARecipeIsUsedWhereTheEntrySaysNothingElse(t *testing.T) {
	for entry, want := range map[string]string{
		"run: [npx, known-server]":                   "known",
		"run: [npx, other]":                          "",
		"run: [npx, known-server]\n    pass: a":      "",
		"run: [npx, known-server]\n    guard: {a: }": "",
		"run: [npx, other]\n    recipe: known":       "known",
		"run: [npx, known-server]\n    recipe: none": "",
	} {
		c, err := parse("version: 1\nservers:\n  s:\n    " + entry + "\n")
		if err != nil || c.Servers[0].Recipe != want {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestEveryMistakeOfAConfigIsToldWithItsLine(t *testing.T) {
	server := func(s string) string { return "version: 1\nservers:\n  s:\n    " + s + "\n" }
	for src, want := range map[string]string{
		"servers: {s: {run: a}}":                                      "version is missing",
		"version: 2\nservers: {s: {run: a}}":                          "version is 2",
		"version: 1":                                                  "servers is missing",
		"version: 1\nserver: {}":                                      "did you mean servers",
		"version: 1\nservers: {s: {run: a}}\n---\nversion: 1":         "second document",
		"version: 1\nservers: {A__b: {run: a}}":                       "a server is named",
		"version: 1\nservers: {s: {run: a}, s: {run: b}}":             "already defined",
		server("pass: [a]"):                                           "either `run`",
		server("run: a\n    url: https://x"):                          "either `run`",
		server("run: sh -c 'a | b'"):                                  "no shell",
		server("run: a ${NOPE}"):                                      "NOPE is not set",
		server("url: http://example.com/mcp"):                         "want https",
		server("url: https://user@example.com/mcp"):                   "want https://HOST",
		server("url: https://x/mcp\n    env: {A: b}"):                 "want headers",
		server("run: a\n    headers: {A: b}"):                         "want env",
		server("run: a\n    mode: shadow"):                            "guarded or observe",
		server("run: a\n    ui: yes please"):                          "want true or false",
		server("run: a\n    dir: here"):                               "absolute",
		server("run: a\n    flight: soon"):                            "want a duration",
		server("run: a\n    unlisted: pass"):                          "want ask, all or deny",
		server("run: a\n    pass: ['[']"):                             "no pattern",
		server("run: a\n    recipe: nope"):                            "no recipe nope",
		server("run: a\n    guard: {t: {reed: {g: {id}}}}"):           "did you mean read",
		server("run: a\n    guard: {t: {read: {get_t: {id}}}}"):       "put it into `pass`",
		server("run: a\n    pass: t\n    guard: {t: }"):               "say one or the other",
		server("run: &a b"):                                           "text",
		"version: 1\ndefaults: {ask: maybe}\nservers: {s: {run: a}}":  "want never",
		"version: 1\ndefaults: {expires: 2h}\nservers: {s: {run: a}}": "from 1m0s to 1h0m0s",
	} {
		_, err := parse(src)
		var bad *ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
			continue
		}
		for _, p := range bad.Problems {
			if p.Line < 1 || p.Line > strings.Count(src, "\n")+1 {
				t.Errorf("%q: line %d", src, p.Line)
			}
		}
	}
}

func TestTheSchemaKnowsTheWordsOfTheFile(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(src string) (v any) {
		if err := yaml.Unmarshal([]byte(src), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := r.Validate(value(wholeFile)); err != nil {
		t.Errorf("the schema refuses what we take: %v", err)
	}
	for _, bad := range []string{"version: 2\nservers: {s: {run: a}}", "version: 1\nservers: {s: {run: a, gard: {}}}", "version: 1\nservers: {s: {pass: [a]}}",
		"version: 1\nservers: {s: {run: a, guard: {t: {ask: maybe}}}}"} {
		if r.Validate(value(bad)) == nil {
			t.Errorf("the schema takes %q", bad)
		}
	}
	// What it says of servers and rules is what the readers say.
	for def, words := range map[string][]string{
		"server": {"run", "env", "dir", "url", "headers", "recipe", "mode", "ui", "unlisted", "flight", "prepared_as_error", "pass", "guard"},
		"rule":   {"when", "read", "at", "watch", "absent", "pick", "show", "preview", "risk", "ask", "typed_when", "bind", "undo", "undo_create", "undo_note", "as", "limit"},
	} {
		for _, w := range words {
			if s.Defs[def].Properties[w] == nil {
				t.Errorf("the schema of a %s lacks %s", def, w)
			}
		}
		if len(s.Defs[def].Properties) != len(words) {
			t.Errorf("the schema of a %s has other words, too", def)
		}
	}
}

func TestTheConfigsOfTheDocsAreTaken(t *testing.T) {
	n := 0
	for _, file := range []string{"gateway.md", "guard-grammar.md"} {
		b, err := os.ReadFile(filepath.Join("..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		for i, src := range strings.Split(string(b), "```") { // every second piece stands between fences
			_, src, _ = strings.Cut(src, "\n")
			if i%2 == 0 {
				continue
			}
			if !strings.Contains(src, "servers:") {
				continue
			}
			if !strings.HasPrefix(src, "version:") {
				src = "version: 1\n" + src
			}
			if _, err := ParseConfig(file, []byte(src), func(string) (string, bool) { return "x", true }, nil); err != nil {
				t.Errorf("%v in\n%s", err, src)
			}
			n++
		}
	}
	if n < 2 {
		t.Errorf("only %d were found", n)
	}
}
