package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
	"github.com/wetink/wetink/mcpserver"
)

// The guard's own tools: those of mcpserver under names without a noun, and two more.

const (
	listChanges  = "list_changes"
	rejectChange = "reject_change"
	applyChange  = "apply_change"
)

var ownDefinitions = []json.RawMessage{
	json.RawMessage(`{"name":"` + listChanges + `","description":"Lists the changes that were prepared here, newest first: what waits for a person, and what became of the others.",` +
		`"inputSchema":{"type":"object","properties":{"status":{"type":"string","description":"pending, approved, applying, applied, failed, partial, in_doubt, expired, rejected or superseded; none: all"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":50}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}`),
	json.RawMessage(`{"name":"` + rejectChange + `","description":"Withdraws a change that was prepared and not started. Nothing is sent.",` +
		`"inputSchema":{"type":"object","properties":{"operation_id":{"type":"string","description":"the preview_id of the prepared change"},"reason":{"type":"string"}},` +
		`"required":["operation_id"],"additionalProperties":false},"annotations":{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`),
}

// Own implements Guard. apply_change is shown only where an agent's token can approve anything; elsewhere a person does,
// and an approved change starts by itself.
func (g *Guarded) Own(Session) []json.RawMessage {
	list := slices.Clone(ownDefinitions)
	s := g.any()
	if s == nil {
		return list
	}
	defs, err := s.tools.Definitions()
	if err != nil {
		g.opt.Log.Error("own tools", "err", err)
	}
	for _, def := range defs {
		if name, err := definedName(def); err == nil && (g.byAgent || name != applyChange) {
			list = append(list, def)
		}
	}
	return list
}

func (g *Guarded) any() *guarded {
	for _, name := range g.order {
		if s := g.servers[name]; s.tools != nil {
			return s
		}
	}
	return nil
}

func (g *Guarded) own(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	by := principal(req.Extra)
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	switch req.Params.Name {
	case listChanges:
		return g.list(ctx, by, args), nil
	case rejectChange:
		var in struct {
			ID     wetink.ChangeID `json:"operation_id"`
			Reason string          `json:"reason"`
		}
		if err := strictjson.Decode(args, &in, strictjson.Default); err != nil {
			return mcpserver.Failed(err), nil
		}
		if in.Reason = "withdrawn by the agent: " + in.Reason; len(in.Reason) > 2000 {
			return mcpserver.Failed(&wetink.RequestError{Field: "reason", Reason: "it is too long", Fix: "use 2,000 bytes at most"}), nil
		}
		if _, err := g.engine.Reject(ctx, by, in.ID, in.Reason); err != nil {
			return mcpserver.Failed(err), nil
		}
		return mcpserver.Answer(map[string]any{"operation_id": in.ID, "status": "rejected", "next_step": "Tell the person that it was withdrawn and that nothing was changed."}), nil
	}
	// The others are about one change, whose server tells how it is shown.
	s := g.any()
	var id struct {
		Preview   wetink.ChangeID `json:"preview_id"`
		Operation wetink.ChangeID `json:"operation_id"`
	}
	if json.Unmarshal(args, &id) == nil {
		if id.Operation == "" {
			id.Operation = id.Preview
		}
		if c, _, err := g.engine.Status(ctx, by, id.Operation, 0); err == nil && g.servers[c.Target] != nil {
			s = g.servers[c.Target]
		}
	}
	if s == nil {
		return nil, fmt.Errorf("no server is guarded")
	}
	return s.tools.Call(ctx, req)
}

func (g *Guarded) list(ctx context.Context, by wetink.Principal, args json.RawMessage) *mcp.CallToolResult {
	in := struct {
		Status string `json:"status"`
		Limit  int    `json:"limit"`
	}{Limit: 20}
	if err := strictjson.Decode(args, &in, strictjson.Default); err != nil {
		return mcpserver.Failed(err)
	}
	f := wetink.Filter{Tenant: by.Tenant, Limit: min(max(in.Limit, 1), maxListed)}
	if in.Status != "" {
		if !slices.Contains(wetink.Statuses(), wetink.Status(in.Status)) {
			return mcpserver.Failed(&wetink.RequestError{Field: "status", Reason: fmt.Sprintf("%q is none", in.Status), Fix: "use pending, applied, in_doubt or another of the schema"})
		}
		f.Status = []wetink.Status{wetink.Status(in.Status)}
	}
	out := []listed{}
	for c, err := range g.ledger.List(ctx, f) {
		if err != nil {
			return mcpserver.Failed(err)
		}
		l := listed{ID: c.ID, Status: wetink.Shown(c, nil), Server: c.Target, Created: c.Created}
		if _, undo, err := g.engine.Status(ctx, by, c.ID, 0); err == nil {
			l.Status = wetink.Shown(c, undo)
		}
		if g.opt.Headline != nil {
			if l.Headline, err = g.opt.Headline(c); err != nil {
				l.Headline = "it cannot be read: " + err.Error()
			}
		}
		out = append(out, l)
	}
	return mcpserver.Answer(map[string]any{"changes": out})
}
