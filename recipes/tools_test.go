package recipes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
)

// A tool as tools/record-tools.mjs recorded it.
type tool struct {
	Name      string   `json:"name"`
	Arguments []string `json:"arguments"`
	ReadOnly  *bool    `json:"readOnly"`
}

func recordedTools(t *testing.T, recipe string) (tools map[string]tool, complete bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "tools", recipe+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Complete bool   `json:"complete"`
		Tools    []tool `json:"tools"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	tools = map[string]tool{}
	for _, one := range list.Tools {
		tools[one.Name] = one
	}
	return tools, list.Complete
}

// What a recipe names is there, at the version that it was written for.
func TestEveryToolAndArgumentOfARecipeIsTheServers(t *testing.T) {
	for _, r := range recipes.All() {
		tools, complete := recordedTools(t, r.Name)
		rules, _ := r.Rules()
		for name, list := range rules {
			if _, there := tools[name]; !there {
				t.Errorf("%s guards %s, and the server has no such tool", r.Name, name)
			}
			for _, rule := range list {
				for _, call := range []*upstream.Template{rule.Read, rule.Preview, rule.Undo, rule.Created} {
					if call == nil {
						continue
					}
					of, there := tools[call.Tool]
					if !there {
						t.Errorf("%s.yaml:%d calls %s, and the server has no such tool", r.Name, call.Line, call.Tool)
					}
					for _, a := range call.Arguments() {
						if !slices.Contains(of.Arguments, a) {
							t.Errorf("%s.yaml:%d: %s has no argument %s, but %q", r.Name, call.Line, call.Tool, a, of.Arguments)
						}
					}
				}
			}
		}
		if !complete {
			continue
		}
		for name := range tools {
			if _, guarded := rules[name]; !guarded && !upstream.Passes(r.Pass, name) {
				t.Errorf("%s says nothing of %s", r.Name, name)
			}
		}
	}
}

// Nothing passes unasked of which the server does not itself say that it only reads, but for what is known of it here.
func TestWhatPassesOnlyReads(t *testing.T) {
	known := map[string][]string{
		"caldav":   {"list-calendars", "list-events", "list-todos"},                                                // the server says nothing of any tool
		"postgres": {"list_schemas", "list_objects", "get_object_details", "get_top_queries", "analyze_db_health"}, // read in its source
		"notion":   {"API-post-search", "API-query-data-source"},                                                   // it takes POST for a sign of writing
	}
	for _, r := range recipes.All() {
		tools, _ := recordedTools(t, r.Name)
		for name, one := range tools {
			if upstream.Passes(r.Pass, name) && (one.ReadOnly == nil || !*one.ReadOnly) && !slices.Contains(known[r.Name], name) {
				t.Errorf("%s lets %s pass, and the server does not say that it only reads", r.Name, name)
			}
		}
	}
}
