package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
)

// Tools are the tools of a Surface without a server of the SDK: for the gateway, which speaks MCP by itself.
type Tools struct{ guard *guard }

// NewTools returns the tools of s on e.
func NewTools(e *wetink.Engine, s Surface, o *Options) *Tools { return &Tools{newGuard(e, s, o)} }

// Definitions are the tools as tools/list answers them.
func (t *Tools) Definitions() ([]json.RawMessage, error) {
	var list []json.RawMessage
	for _, d := range t.guard.tools() {
		b, err := encode(d.tool)
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", d.tool.Name, err)
		}
		list = append(list, b)
	}
	return list, nil
}

// Call answers a call of one of them.
func (t *Tools) Call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, d := range t.guard.tools() {
		if d.tool.Name == req.Params.Name {
			return d.handle(ctx, req)
		}
	}
	return nil, fmt.Errorf("unknown tool %q", req.Params.Name)
}

// Prepare makes a Change of a request, and answers what would change.
func (t *Tools) Prepare(ctx context.Context, req wetink.Request) (*Previewed, *mcp.CallToolResult) {
	c, ticket, err := t.guard.Preview(ctx, t.guard.Target, req)
	if err != nil {
		return nil, failed(err)
	}
	p, err := t.guard.previewed(ctx, c, ticket)
	if err != nil {
		return nil, failed(err)
	}
	return p, answer(p)
}

// Failed is a tool error that tells a model what to do about it.
func Failed(err error) *mcp.CallToolResult { return failed(err) }

// Answer is a tool result with v, as text and as structured content.
func Answer(v any) *mcp.CallToolResult { return answer(v) }
