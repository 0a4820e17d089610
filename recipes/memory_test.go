//go:build services

package recipes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wetink/wetink"
)

func graph(t *testing.T) (*guarded, func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	g := guard(t, "memory", "@modelcontextprotocol/server-memory/dist/index.js", nil, "MEMORY_FILE_PATH="+path)
	return g, func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func ana() map[string]any {
	return map[string]any{"entities": []any{map[string]any{"name": "Ana", "entityType": "person", "observations": []string{"rides"}}}}
}

func TestMemoryEntityIsCreatedDeletedAndBroughtBack(t *testing.T) {
	g, file := graph(t)
	created := g.apply(g.preview("create_entities", ana()), wetink.Applied)
	if !strings.Contains(file(), "rides") {
		t.Fatalf("the graph is %s", file())
	}
	g.undone(created)
	if strings.Contains(file(), "Ana") {
		t.Errorf("the graph is %s", file())
	}
	g.apply(g.preview("create_entities", ana()), wetink.Applied)
	deleted := g.apply(g.preview("delete_entities", map[string]any{"entityNames": []string{"Ana"}}), wetink.Applied)
	if strings.Contains(file(), "Ana") {
		t.Errorf("the graph is %s", file())
	}
	g.undone(deleted)
	if !strings.Contains(file(), "rides") {
		t.Errorf("the graph is %s", file())
	}
}

func TestMemoryRelationIsMadeAndTakenBack(t *testing.T) {
	g, file := graph(t)
	relation := map[string]any{"relations": []any{map[string]any{"from": "Ana", "to": "Bo", "relationType": "knows"}}}
	made := g.apply(g.preview("create_relations", relation), wetink.Applied)
	g.undone(made)
	if strings.Contains(file(), "knows") {
		t.Errorf("the graph is %s", file())
	}
	g.apply(g.preview("create_relations", relation), wetink.Applied)
	gone := g.apply(g.preview("delete_relations", relation), wetink.Applied)
	g.undone(gone)
	if !strings.Contains(file(), "knows") {
		t.Errorf("the graph is %s", file())
	}
}

// The server passes over an entity that is there, and answers with success. Nothing is claimed of it, and undoing nothing
// must not delete what somebody else made.
func TestMemoryEntityThatWasThereIsNotClaimed(t *testing.T) {
	g, file := graph(t)
	g.apply(g.preview("create_entities", ana()), wetink.Applied)
	other := map[string]any{"entities": []any{map[string]any{"name": "Ana", "entityType": "person", "observations": []string{"swims"}}}}
	c := g.apply(g.preview("create_entities", other), wetink.InDoubt)
	if _, err := g.undo(c); err == nil || !strings.Contains(file(), "Ana") {
		t.Errorf("undo: %v; the graph is %s", err, file())
	}
}

func TestMemoryChangedBeforeApplyIsStale(t *testing.T) {
	g, _ := graph(t)
	g.apply(g.preview("create_entities", ana()), wetink.Applied)
	waits := g.preview("delete_entities", map[string]any{"entityNames": []string{"Ana"}})
	g.apply(g.preview("add_observations", map[string]any{"observations": []any{map[string]any{"entityName": "Ana", "contents": []string{"runs"}}}}), wetink.Applied)
	g.stale(waits)
}
