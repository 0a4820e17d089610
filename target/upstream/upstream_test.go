//go:build services

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

var ctx = context.Background()

// filesystem starts the published npm server, guarded, on a fresh folder. `make test` installs it.
func filesystem(t *testing.T) (*wetink.Engine, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join("..", "..", "tools", "npm", "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	s, err := mcp.NewClient(&mcp.Implementation{Name: "wetink", Version: "test"}, nil).Connect(ctx,
		&mcp.CommandTransport{Command: exec.Command("node", server, dir)}, nil)
	if err != nil {
		t.Fatalf("start the filesystem server (`make setup` installs it): %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	target := upstream.New(s, wetink.Account("folder "+dir), upstream.Pair{Write: "write_file", Read: "read_text_file", Object: "path", Value: "content"})
	return wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"files": target},
		&wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeGuarded}), dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAToolOfAPublishedServerIsPreviewedAppliedOnceAndUndone(t *testing.T) {
	e, dir := filesystem(t)
	path := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(path, []byte("old <b>"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, ticket, err := e.Preview(ctx, "files", wetink.Request{Tool: "write_file", Args: fmt.Appendf(nil, `{"path":%q, "content":"new & <i> \u00e9"}`, path)})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "old <b>" {
		t.Errorf("the preview wrote %q", got)
	}
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}
	c, undo, err := e.Apply(ctx, wetink.Principal{}, c.ID, &ev)
	if err != nil || c.Status != wetink.Applied {
		t.Fatal(err, c.Status, c.Why)
	}
	if got := read(t, path); got != "new & <i> é" {
		t.Errorf("after apply %q", got)
	}
	ev.Ticket = undo
	u, _, err := e.Undo(ctx, wetink.Principal{}, c.ID, &ev)
	if err != nil || u.Status != wetink.Applied {
		t.Fatal(err, u.Status, u.Why)
	}
	if got := read(t, path); got != "old <b>" {
		t.Errorf("after undo %q", got)
	}
}

func TestAFileEditedSinceThePreviewIsNotOverwritten(t *testing.T) {
	e, dir := filesystem(t)
	path := filepath.Join(dir, "notes.txt")
	for _, was := range []string{"old", ""} { // there before, and absent before
		if was != "" {
			if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		c, ticket, err := e.Preview(ctx, "files", wetink.Request{Tool: "write_file", Args: fmt.Appendf(nil, `{"path":%q,"content":"new"}`, path)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}
		c, _, err = e.Apply(ctx, wetink.Principal{}, c.ID, &ev)
		if err != nil || c.Status != wetink.Failed {
			t.Errorf("apply: %v %s", err, c.Status)
		}
		if got := read(t, path); got != "mine" {
			t.Errorf("overwritten with %q", got)
		}
	}
}

func TestOutsideTheServersFolderNothingIsWritten(t *testing.T) {
	e, _ := filesystem(t)
	path := filepath.Join(t.TempDir(), "elsewhere.txt")
	c, ticket, err := e.Preview(ctx, "files", wetink.Request{Tool: "write_file", Args: fmt.Appendf(nil, `{"path":%q,"content":"x"}`, path)})
	if err != nil {
		t.Fatal(err)
	}
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}
	c, _, err = e.Apply(ctx, wetink.Principal{}, c.ID, &ev)
	if err != nil || c.Status != wetink.InDoubt { // the server's refusal proves nothing to us: a person resolves
		t.Errorf("apply: %v %s %s", err, c.Status, c.Why)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}
