package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// Surface names the tools of one target.
type Surface struct {
	Name, Version string // of the server, as clients show it
	Instructions  string // for the model
	Target        string // the engine's name of it
	Noun          string // "event": preview_event_change, apply_event_change, …; "": apply_change, …, and no preview of its own
	Action        string // name of the argument that says what to do, for results; "" if there is none
	Input         *jsonschema.Schema
	Describe      string // of the preview tool: what it can prepare
	Reads         []Read
	Diff          func(op wetink.Op, before wetink.Snapshot) []wetink.FieldChange // nil: wetink.Diff
	Label         func(op wetink.Op, before, after wetink.Snapshot) string        // names an object; nil: its id
}

// Read is a tool without any effect.
type Read struct {
	Name, Description string
	Input             *jsonschema.Schema
	Call              func(ctx context.Context, args json.RawMessage) (any, error)
}

// Options of New.
type Options struct {
	Log *slog.Logger
	// HowToApprove tells a person, through the agent, how to approve a change of that level: one sentence.
	HowToApprove func(wetink.ChangeID, wetink.Level) string
	// Link is the page where a person sees the change and decides; nil or "": none is served. It must carry no power.
	Link func(wetink.Change) string
	// StateKey seals what a client hands back to us; zero: random, which is right for a single process.
	StateKey secret.Bytes
	// Principal says who is at the other end; nil: the operator's own process, with the name that the client claims.
	Principal func(req *mcp.CallToolRequest) wetink.Principal
}

// guard holds what the tools need.
type guard struct {
	*wetink.Engine
	Surface
	opt   Options
	names names
}

// names of the tools.
type names struct{ preview, apply, undo, status string }

func (s Surface) names() names {
	if s.Noun == "" {
		return names{"", "apply_change", "undo_change", "change_status"}
	}
	return names{"preview_" + s.Noun + "_change", "apply_" + s.Noun + "_change", "undo_" + s.Noun + "_change", "get_" + s.Noun + "_change_status"}
}

// New returns an MCP server with the tools of s on e.
func New(e *wetink.Engine, s Surface, o *Options) *mcp.Server {
	g := newGuard(e, s, o)
	server := mcp.NewServer(&mcp.Implementation{Name: s.Name, Version: s.Version}, &mcp.ServerOptions{
		Instructions: s.Instructions,
		Logger:       o.log(),
		Capabilities: &mcp.ServerCapabilities{}, // nil would advertise logging
		// Lists and reads belong to one account; the SDK's default would let shared caches keep them.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	for _, t := range g.tools() {
		server.AddTool(t.tool, t.handle)
	}
	for _, r := range s.Reads {
		server.AddTool(&mcp.Tool{
			Name: r.Name, Description: r.Description, InputSchema: r.Input,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: ptr(true)},
		}, g.read(r))
	}
	return server
}

func newGuard(e *wetink.Engine, s Surface, o *Options) *guard {
	g := &guard{Engine: e, Surface: s, names: s.names()}
	if o != nil {
		g.opt = *o
	}
	if g.opt.StateKey.IsZero() {
		key := make([]byte, 32)
		rand.Read(key)
		g.opt.StateKey = secret.New(key)
	}
	if g.Diff == nil {
		g.Diff = wetink.Diff
	}
	if g.opt.HowToApprove == nil {
		g.opt.HowToApprove = func(id wetink.ChangeID, _ wetink.Level) string {
			return fmt.Sprintf("A person approves or declines it in a terminal with `wetink approve %s`.", id)
		}
	}
	return g
}

func (o *Options) log() *slog.Logger {
	if o == nil {
		return nil
	}
	return o.Log
}

func (g *guard) read(r Read) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		v, err := r.Call(ctx, arguments(req))
		if err != nil {
			return failed(err), nil
		}
		b, err := encode(v)
		if err != nil {
			return failed(err), nil
		}
		res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}
		if len(b) > 0 && b[0] == '{' { // clients older than 2026-07-28 take only an object
			res.StructuredContent = json.RawMessage(b)
		}
		return res, nil
	}
}

func (g *guard) principal(req *mcp.CallToolRequest) wetink.Principal {
	if g.opt.Principal != nil {
		return g.opt.Principal(req)
	}
	p := wetink.Principal{Client: "unknown client"}
	if c := req.ClientInfo(); c != nil {
		p.Client = "claims to be " + c.Name + " " + c.Version
	}
	return p
}

// arguments are the bytes that arrived; no arguments are an empty object.
func arguments(req *mcp.CallToolRequest) json.RawMessage {
	if len(req.Params.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	return req.Params.Arguments
}

// encode writes JSON without HTML escaping: a model reads < as <.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func answer(v any) *mcp.CallToolResult {
	b, err := encode(v)
	if err != nil {
		return failed(err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(b)}},
		StructuredContent: json.RawMessage(b),
	}
}

func ptr[T any](v T) *T { return &v }
