package recipes

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink/target/upstream"
)

// recorded is what tools/record-tools.mjs wrote of a published server.
type recorded struct {
	Server string `json:"server"`
	Tools  []struct {
		Name      string   `json:"name"`
		Arguments []string `json:"arguments"`
		Required  []string `json:"required"`
	} `json:"tools"`
}

// A recipe that calls a tool by a name or with an argument that the server does not have would fail on the day that it counts.
func TestRecipesNameToolsAndArgumentsThatTheServersHave(t *testing.T) {
	files, err := filepath.Glob("testdata/tools/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rec recorded
			if err := json.Unmarshal(b, &rec); err != nil {
				t.Fatal(err)
			}
			r, ok := Named(name)
			if !ok {
				t.Fatal("no such recipe")
			}
			pass, rules, err := r.Parse()
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(rec.Server, "@20", " 20", 1); !strings.HasPrefix(strings.Replace(r.Server, " ", "@", 1), rec.Server) && !strings.HasPrefix(r.Server, want) {
				t.Errorf("recorded of %s, and checked against %s", rec.Server, r.Server)
			}
			tool := map[string]int{}
			for i, x := range rec.Tools {
				tool[x.Name] = i
			}
			for _, p := range pass {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(tool)), func(n string) bool { return upstream.Passes([]string{p}, n) }) {
					t.Errorf("nothing is called %s", p)
				}
			}
			for guarded, list := range rules {
				at, ok := tool[guarded]
				if !ok {
					t.Errorf("it has no tool %s", guarded)
					continue
				}
				for _, rule := range list {
					for what, call := range map[string]*upstream.Template{"read": rule.Read, "preview": rule.Preview, "undo": rule.Undo, "undo_create": rule.Created} {
						if call == nil {
							continue
						}
						i, ok := tool[call.Tool]
						if !ok {
							t.Errorf("%s of %s: it has no tool %s", what, guarded, call.Tool)
							continue
						}
						given, rest := call.Arguments(), call.Restores()
						for _, a := range given {
							if name == "google-calendar" && a == "status" {
								continue // named so that $restore leaves it out
							}
							if !slices.Contains(rec.Tools[i].Arguments, a) && !slices.Contains(rec.Tools[at].Arguments, a) {
								t.Errorf("%s of %s: %s takes no %s", what, guarded, call.Tool, a)
							}
						}
						for _, a := range rec.Tools[i].Required {
							if !rest && !slices.Contains(given, a) {
								t.Errorf("%s of %s: %s wants %s", what, guarded, call.Tool, a)
							}
						}
					}
				}
			}
			for _, x := range rec.Tools { // what the recipe says nothing of is guarded as it is; that is said here, once
				if _, ruled := rules[x.Name]; !ruled && !upstream.Passes(pass, x.Name) {
					t.Logf("%s is guarded as it is", x.Name)
				}
			}
		})
	}
}
