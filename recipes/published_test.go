//go:build services

package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

// published is a server from npm; tools/setup installs it.
type published struct{ *mcp.ClientSession }

func start(t *testing.T, pkg string, env []string, args ...string) published {
	t.Helper()
	file := filepath.Join("..", "tools", "npm", "node_modules", filepath.FromSlash(pkg), "dist", "index.js")
	cmd := exec.Command("node", append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "wetink", Version: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("start %s (tools/setup installs it): %v", pkg, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return published{s}
}

// Call implements upstream.Server.
func (p published) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	r, err := p.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, true, err
	}
	raw, err := json.Marshal(r)
	return raw, true, err
}

// Tools implements upstream.Server.
func (p published) Tools(ctx context.Context) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for tool, err := range p.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		out[tool.Name] = raw
	}
	return out, nil
}

// folder is one that the real filesystem server serves, guarded.
type folder struct {
	*stage
	dir string
}

func filesystem(t *testing.T) folder {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return folder{guarded(t, "filesystem", start(t, "@modelcontextprotocol/server-filesystem", nil, dir)), dir}
}

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f folder) put(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// holds fails unless the file has that text; "" is for one that is not there.
func (f folder) holds(name, want string) {
	f.t.Helper()
	b, err := os.ReadFile(f.path(name))
	if errors.Is(err, os.ErrNotExist) {
		b, err = nil, nil
	}
	if err != nil || string(b) != want {
		f.t.Fatalf("%s is %q (%v), want %q", name, b, err, want)
	}
}

func (f folder) write(name, text string) map[string]any {
	return map[string]any{"path": f.path(name), "content": text}
}

func (f folder) edit(name, from, to string) map[string]any {
	return map[string]any{"path": f.path(name), "edits": []map[string]any{{"oldText": from, "newText": to}}}
}

func TestAPublishedFileIsWrittenOverAndPutBack(t *testing.T) {
	f := filesystem(t)
	f.put("a.txt", "old <b>\n")
	c := f.preview("filesystem", "write_file", f.write("a.txt", "new é\n"))
	f.holds("a.txt", "old <b>\n")
	c = f.ends(f.apply(c), wetink.Applied)
	f.holds("a.txt", "new é\n")
	f.undo(c)
	f.holds("a.txt", "old <b>\n")
}

func TestAPublishedFileThatWasCreatedIsMovedAside(t *testing.T) {
	f := filesystem(t)
	c := f.do("filesystem", "write_file", f.write("new.txt", "text"))
	f.holds("new.txt", "text")
	f.undo(c)
	f.holds("new.txt", "")
	kept, err := filepath.Glob(f.path("new.txt~undone-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %q (%v)", kept, err)
	}
	f.holds(filepath.Base(kept[0]), "text")
}

func TestAnEditShowsThePublishedServersOwnDryRun(t *testing.T) {
	f := filesystem(t)
	f.put("a.txt", "one\ntwo\n")
	c := f.preview("filesystem", "edit_file", f.edit("a.txt", "two", "three"))
	terms, err := c.Terms()
	if err != nil || !strings.Contains(string(terms.Ops[0].Payload), `-two\n+three`) {
		t.Fatalf("%s (%v)", terms.Ops[0].Payload, err)
	}
	f.holds("a.txt", "one\ntwo\n") // the dry run wrote nothing
	c = f.ends(f.apply(c), wetink.Applied)
	f.holds("a.txt", "one\nthree\n")
	f.undo(c)
	f.holds("a.txt", "one\ntwo\n")
	if _, err := f.try("filesystem", "edit_file", f.edit("a.txt", "not there", "x")); err == nil {
		t.Error("an edit that fits nowhere is prepared")
	}
}

func TestAPublishedFileIsMovedAndMovedBack(t *testing.T) {
	f := filesystem(t)
	f.put("a.txt", "text")
	move := map[string]any{"source": f.path("a.txt"), "destination": f.path("b.txt")}
	c := f.do("filesystem", "move_file", move)
	f.holds("a.txt", "")
	f.holds("b.txt", "text")
	f.undo(c)
	f.holds("a.txt", "text")
	f.holds("b.txt", "")
	f.put("b.txt", "other")
	c = f.apply(f.preview("filesystem", "move_file", move))
	f.ends(c, wetink.Failed) // the server refuses to write over it
	f.holds("b.txt", "other")
}

func TestAPublishedFileThatWasEditedSinceThePreviewIsLeftAlone(t *testing.T) {
	for _, tool := range []string{"write_file", "edit_file", "move_file", "create"} {
		f := filesystem(t)
		args := map[string]map[string]any{
			"write_file": f.write("a.txt", "new"), "create": f.write("a.txt", "new"), "edit_file": f.edit("a.txt", "old", "new"),
			"move_file": {"source": f.path("a.txt"), "destination": f.path("b.txt")},
		}[tool]
		if tool != "create" {
			f.put("a.txt", "old")
		}
		c := f.preview("filesystem", strings.Replace(tool, "create", "write_file", 1), args)
		f.put("a.txt", "old, and mine")
		if c = f.ends(f.apply(c), wetink.Failed); !strings.Contains(c.Why, "changed since") {
			t.Errorf("%s: %s", tool, c.Why)
		}
		f.holds("a.txt", "old, and mine")
		f.holds("b.txt", "")
	}
}

func TestAnUndoDoesNotWriteOverAPublishedFileThatWasEditedSince(t *testing.T) {
	f := filesystem(t)
	f.put("a.txt", "old")
	c := f.do("filesystem", "write_file", f.write("a.txt", "new"))
	f.put("a.txt", "mine")
	f.noUndo(c, wetink.ErrStale)
	f.holds("a.txt", "mine")
}

func TestALostAnswerOfAPublishedServerIsReadAgain(t *testing.T) {
	f := filesystem(t)
	f.put("a.txt", "old")
	c := f.preview("filesystem", "write_file", f.write("a.txt", "new"))
	f.wire.lose = "write_file"
	c = f.ends(f.apply(c), wetink.Applied) // by what is read, for there was no answer
	if c.Steps[0].How != "reconciled" {
		t.Errorf("known by: %s", c.Steps[0].How)
	}
	f.holds("a.txt", "new")
	f.undo(c)
	f.holds("a.txt", "old")

	move := f.preview("filesystem", "move_file", map[string]any{"source": f.path("a.txt"), "destination": f.path("b.txt")})
	f.wire.lose = "move_file"
	f.ends(f.apply(move), wetink.InDoubt) // it is gone from where it was, and whoever deleted it would leave the same
	f.put("a.txt", "old")

	edit := f.preview("filesystem", "edit_file", f.edit("a.txt", "old", "new"))
	f.wire.lose = "edit_file"
	edit = f.ends(f.apply(edit), wetink.InDoubt) // it changed, and what an edit leaves cannot be compared
	f.noUndo(edit, wetink.ErrState)
}

func TestWhatThePublishedServerRefusesIsNotCalledDone(t *testing.T) {
	f := filesystem(t)
	outside := filepath.Join(filepath.Dir(f.dir), "elsewhere.txt")
	if _, err := f.try("filesystem", "write_file", map[string]any{"path": outside, "content": "x"}); err == nil || !strings.Contains(err.Error(), "Access denied") {
		t.Errorf("got %v", err)
	}
}

func memory(t *testing.T) (*stage, func() string) {
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	s := guarded(t, "memory", start(t, "@modelcontextprotocol/server-memory", []string{"MEMORY_FILE_PATH=" + file}))
	return s, func() string {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
}

func entity(name string, observations ...string) map[string]any {
	return map[string]any{"entities": []map[string]any{{"name": name, "entityType": "person", "observations": observations}}}
}

func TestAPublishedMemoryTakesBackOnlyWhatWasNew(t *testing.T) {
	s, graph := memory(t)
	made := s.do("memory", "create_entities", entity("Ana", "runs"))
	again := s.apply(s.preview("memory", "create_entities", entity("Ana", "runs"))) // the server answers that it made none
	s.noUndo(s.ends(again, wetink.InDoubt), wetink.ErrState)

	more := s.do("memory", "add_observations", map[string]any{"observations": []map[string]any{{"entityName": "Ana", "contents": []string{"runs", "bikes"}}}})
	if !strings.Contains(graph(), "bikes") {
		t.Fatal(graph())
	}
	s.undo(more)
	if g := graph(); strings.Contains(g, "bikes") || !strings.Contains(g, "runs") {
		t.Fatal(g)
	}
	s.undo(made)
	if g := graph(); strings.Contains(g, "Ana") {
		t.Fatal(g)
	}
}

func TestAPublishedEntityThatWasDeletedComesBack(t *testing.T) {
	s, graph := memory(t)
	s.do("memory", "create_entities", entity("Ana", "runs"))
	before := graph()
	c := s.do("memory", "delete_entities", map[string]any{"entityNames": []string{"Ana"}})
	if strings.Contains(graph(), "Ana") {
		t.Fatal(graph())
	}
	s.undo(c)
	if g := graph(); g != before {
		t.Errorf("it is %s, was %s", g, before)
	}
}

func TestAnUndoDoesNotDeleteAPublishedEntityThatGrewSince(t *testing.T) {
	s, graph := memory(t)
	c := s.do("memory", "create_entities", entity("Ana", "runs"))
	s.do("memory", "add_observations", map[string]any{"observations": []map[string]any{{"entityName": "Ana", "contents": []string{"bikes"}}}})
	s.noUndo(c, wetink.ErrStale)
	if !strings.Contains(graph(), "bikes") {
		t.Error(graph())
	}
}

func TestALostAnswerOfAPublishedMemoryStaysInDoubt(t *testing.T) {
	s, graph := memory(t)
	c := s.preview("memory", "create_entities", entity("Ana", "runs"))
	s.wire.lose = "create_entities"
	c = s.ends(s.apply(c), wetink.InDoubt)
	if !strings.Contains(graph(), "Ana") {
		t.Fatal(graph())
	}
	s.reconciled(c, wetink.InDoubt) // nothing reads what it made: a person has to look
}

func (s *stage) reconciled(c wetink.Change, want wetink.Status) wetink.Change {
	s.t.Helper()
	c, _, err := s.Reconcile(s.t.Context(), wetinktest.By, c.ID)
	if err != nil {
		s.t.Fatalf("reconcile: %v", err)
	}
	return s.ends(c, want)
}
