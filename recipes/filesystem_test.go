//go:build services

package recipes_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/recipes"
)

func folder(t *testing.T) (*guarded, func(name string) string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return guard(t, "filesystem", "@modelcontextprotocol/server-filesystem/dist/index.js", []string{dir}),
		func(name string) string { return filepath.Join(dir, name) }
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s is %q (%v), want %q", filepath.Base(path), b, err, want)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", filepath.Base(path), err)
	}
}

type file = map[string]any

func TestFilesystemWriteIsPreviewedAppliedAndUndone(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "old <b>\n")
	c := g.preview("write_file", file{"path": at("a.txt"), "content": "new & <i> é\n"})
	wantFile(t, at("a.txt"), "old <b>\n")
	c = g.apply(c, wetink.Applied)
	wantFile(t, at("a.txt"), "new & <i> é\n")
	if !c.Compared() {
		t.Errorf("it was not compared: %+v", c.Steps)
	}
	u := g.undone(c)
	wantFile(t, at("a.txt"), "old <b>\n")
	redo, ticket, err := g.UndoAll(t.Context(), by, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	g.apply(change{redo, ticket}, wetink.Applied)
	wantFile(t, at("a.txt"), "new & <i> é\n")
}

func TestFilesystemEditShowsTheServersOwnDryRunAndIsUndone(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "one\ntwo\n")
	args := file{"path": at("a.txt"), "edits": []file{{"oldText": "two", "newText": "three"}}}
	c := g.preview("edit_file", args)
	wantFile(t, at("a.txt"), "one\ntwo\n")
	if payload := string(terms(t, c).Ops[0].Payload); !strings.Contains(payload, "-two") || !strings.Contains(payload, "+three") {
		t.Errorf("the dry run is not shown: %s", payload)
	}
	c = g.apply(c, wetink.Applied)
	wantFile(t, at("a.txt"), "one\nthree\n")
	g.undone(c)
	wantFile(t, at("a.txt"), "one\ntwo\n")
}

func terms(t *testing.T, c change) wetink.Terms {
	t.Helper()
	terms, err := c.Terms()
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// Reading a file changes when it was accessed, and the server tells that: it is not watched.
func TestFilesystemMoveIsUndone(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "one\n")
	c := g.preview("move_file", file{"source": at("a.txt"), "destination": at("b.txt")})
	if _, err := os.ReadFile(at("a.txt")); err != nil {
		t.Fatal(err)
	}
	c = g.apply(c, wetink.Applied)
	wantGone(t, at("a.txt"))
	wantFile(t, at("b.txt"), "one\n")
	g.undone(c)
	wantFile(t, at("a.txt"), "one\n")
	wantGone(t, at("b.txt"))
}

// There is no tool that deletes: what was created is put aside.
func TestFilesystemCreationIsPutAside(t *testing.T) {
	g, at := folder(t)
	c := g.apply(g.preview("write_file", file{"path": at("new.txt"), "content": "new\n"}), wetink.Applied)
	wantFile(t, at("new.txt"), "new\n")
	g.undone(c)
	wantGone(t, at("new.txt"))
	wantFile(t, at("new.txt~"+string(c.ID)), "new\n")
}

// The same with a folder of the operator's: a recipe is copied and changed.
func TestFilesystemCreationIsMovedIntoATrashFolder(t *testing.T) {
	g, at := folder(t)
	if err := os.Mkdir(at(".trash"), 0o700); err != nil {
		t.Fatal(err)
	}
	src := recipes.Find([]string{"mcp-server-filesystem"}).Source
	own, problems := recipes.Parse("own", bytes.ReplaceAll(src, []byte("$args.path~$id"), []byte(at(".trash/$id"))))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	rules, problems := own.Rules()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g = guardWith(t, own, rules, g.server.session)
	c := g.apply(g.preview("write_file", file{"path": at("new.txt"), "content": "new\n"}), wetink.Applied)
	g.undone(c)
	wantGone(t, at("new.txt"))
	wantFile(t, at(".trash/"+string(c.ID)), "new\n")
}

func TestFilesystemEditedBeforeApplyIsNotOverwritten(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "old\n")
	write(t, at("b.txt"), "old\n")
	write(t, at("c.txt"), "old\n")
	list := []change{
		g.preview("write_file", file{"path": at("a.txt"), "content": "new\n"}),
		g.preview("edit_file", file{"path": at("b.txt"), "edits": []file{{"oldText": "old", "newText": "new"}}}),
		g.preview("move_file", file{"source": at("c.txt"), "destination": at("d.txt")}),
		g.preview("write_file", file{"path": at("new.txt"), "content": "new\n"}),
	}
	for _, name := range []string{"a.txt", "b.txt", "c.txt", "new.txt"} {
		write(t, at(name), "mine: old\n")
	}
	// The server tells when a file was changed in whole seconds only.
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(at("c.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		g.stale(c)
	}
	for _, name := range []string{"a.txt", "b.txt", "c.txt", "new.txt"} {
		wantFile(t, at(name), "mine: old\n")
	}
	wantGone(t, at("d.txt"))
}

func TestFilesystemEditedAfterApplyIsNotUndone(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "old\n")
	changed := g.apply(g.preview("write_file", file{"path": at("a.txt"), "content": "new\n"}), wetink.Applied)
	created := g.apply(g.preview("write_file", file{"path": at("b.txt"), "content": "new\n"}), wetink.Applied)
	for name, c := range map[string]change{"a.txt": changed, "b.txt": created} {
		write(t, at(name), "mine\n")
		if _, err := g.undo(c); !errors.Is(err, wetink.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
		wantFile(t, at(name), "mine\n")
	}
}

func TestFilesystemWriteWhoseAnswerIsLostIsReconciled(t *testing.T) {
	g, at := folder(t)
	write(t, at("a.txt"), "old\n")
	for _, name := range []string{"a.txt", "new.txt"} {
		c := g.preview("write_file", file{"path": at(name), "content": "new\n"})
		g.server.lose.Store(true)
		c = g.apply(c, wetink.Applied)
		if c.Steps[0].How != "reconciled" {
			t.Errorf("%s: %+v", name, c.Steps)
		}
		g.undone(c)
	}
	wantFile(t, at("a.txt"), "old\n")
	wantGone(t, at("new.txt"))
}

// The server's own fence answers first; had it not, nothing could be read there either.
func TestFilesystemOutsideItsFolderNothingIsEvenPrepared(t *testing.T) {
	g, _ := folder(t)
	outside := filepath.Join(t.TempDir(), "x.txt")
	req := file{"path": outside, "content": "x"}
	raw := mustJSON(t, req)
	if _, _, err := g.Preview(t.Context(), "x", call(t, "write_file", raw)); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("preview: %v", err)
	}
	wantGone(t, outside)
}
