//go:build services

package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

// published is a server from npm, started as a client does. `make test` installs it.
type published struct {
	session *mcp.ClientSession
	lose    atomic.Bool // the answer of the next call that writes
	writes  []string    // tools that write
}

var errLost = errors.New("the connection broke")

type rpcError struct{ of *jsonrpc.Error }

func (e rpcError) Error() string { return e.of.Error() }
func (e rpcError) RPCCode() int  { return int(e.of.Code) }

func (p *published) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	r, err := p.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if slices.Contains(p.writes, tool) && p.lose.CompareAndSwap(true, false) {
		return nil, true, errLost
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return nil, true, rpcError{refused}
	}
	if err != nil {
		return nil, true, err
	}
	b, err := json.Marshal(r)
	return b, true, err
}

func (p *published) Tools(ctx context.Context) (map[string]json.RawMessage, error) {
	r, err := p.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	defs := map[string]json.RawMessage{}
	for _, tool := range r.Tools {
		if defs[tool.Name], err = json.Marshal(tool); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

// guarded is a published server behind its recipe, and what else is said of it.
type guarded struct {
	*testing.T
	*wetink.Engine
	server *published
	rules  upstream.Rules
}

var by = wetink.Principal{Person: "ana", Client: "test"}

func guard(t *testing.T, recipe string, program string, args []string, env ...string) *guarded {
	t.Helper()
	file := filepath.Join("..", "tools", "npm", "node_modules", filepath.FromSlash(program))
	cmd := exec.Command("node", append([]string{file}, args...)...)
	cmd.Env = append(cmd.Environ(), env...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "wetink", Version: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("start %s (tools/setup installs it): %v", program, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	r := recipes.Find([]string{"node", filepath.ToSlash(file)})
	if r == nil || r.Name != recipe {
		t.Fatalf("%s has no recipe %s", file, recipe)
	}
	rules, problems := r.Rules()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return guardWith(t, r, rules, session)
}

func guardWith(t *testing.T, r *recipes.Recipe, rules upstream.Rules, session *mcp.ClientSession) *guarded {
	t.Helper()
	server := &published{session: session}
	for tool := range rules {
		server.writes = append(server.writes, tool)
	}
	defs, err := server.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for tool, def := range defs { // the recipe knows each tool of this version
		if _, known := rules[tool]; !known && !upstream.Passes(r.Pass, tool) {
			t.Errorf("%s is neither guarded nor passed: %s", tool, def)
		}
	}
	for _, tool := range server.writes {
		if defs[tool] == nil {
			t.Errorf("the server has no tool %s", tool)
		}
	}
	ask, _ := upstream.ParseAsk("agent")
	target := upstream.New(r.Name, server, rules, &upstream.Options{Default: ask})
	return &guarded{t, wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"x": target},
		&wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeGuarded}), server, rules}
}

type change struct {
	wetink.Change
	ticket wetink.Ticket
}

func (g *guarded) preview(tool string, args any) change {
	g.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		g.Fatal(err)
	}
	req, err := upstream.Call(by, tool, raw)
	if err != nil {
		g.Fatal(err)
	}
	c, ticket, err := g.Preview(g.Context(), "x", req)
	if err != nil {
		g.Fatalf("preview %s %s: %v", tool, raw, err)
	}
	return change{c, ticket}
}

func (g *guarded) apply(c change, want wetink.Status) change {
	g.Helper()
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: c.ticket}
	got, ticket, err := g.Apply(g.Context(), by, c.ID, &ev)
	if err != nil || got.Status != want {
		g.Fatalf("apply: %v; it is %s (%s), want %s; %+v", err, got.Status, got.Why, want, got.Steps)
	}
	return change{got, ticket}
}

func (g *guarded) undo(c change) (change, error) {
	g.Helper()
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: c.ticket}
	u, ticket, err := g.Undo(g.Context(), by, c.ID, &ev)
	return change{u, ticket}, err
}

func (g *guarded) undone(c change) change {
	g.Helper()
	u, err := g.undo(c)
	if err != nil || u.Status != wetink.Applied {
		g.Fatalf("undo: %v %s (%s) %+v", err, u.Status, u.Why, u.Steps)
	}
	return u
}

func (g *guarded) stale(c change) {
	g.Helper()
	if got := g.apply(c, wetink.Failed); !strings.Contains(got.Why, "changed since the preview") {
		g.Errorf("it failed otherwise: %s", got.Why)
	}
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func call(t *testing.T, tool string, args json.RawMessage) wetink.Request {
	t.Helper()
	req, err := upstream.Call(by, tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return req
}
