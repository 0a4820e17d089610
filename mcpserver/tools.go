package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
	"github.com/wetink/wetink/render"
)

// maxWait of a status call: hosts give up on a tool after a minute.
const maxWait = 50

type tool struct {
	tool   *mcp.Tool
	handle mcp.ToolHandler
}

// tools are the four, in order of life. The list is a security boundary: it is held against a committed copy.
func (g *guard) tools() []tool {
	preview, apply, undo, status := g.names.preview, g.names.apply, g.names.undo, g.names.status
	list := []tool{
		{&mcp.Tool{
			Name: preview,
			Description: g.Describe + " Nothing is changed yet: it answers what would change, field by field. Show that to the person. " +
				"If it answers a confirmation_token, call " + apply + " only after the person has explicitly approved this very change; " +
				"otherwise tell the person what next_step says. Never approve on the person's behalf.",
			InputSchema: g.Input, OutputSchema: outputSchema[Previewed](),
			Annotations: &mcp.ToolAnnotations{DestructiveHint: ptr(false), OpenWorldHint: ptr(true)},
		}, g.preview},
		{&mcp.Tool{
			Name: apply,
			Description: "Applies exactly the change that was previewed, at most once, if nothing it touches has changed since. " +
				"Wait for explicit approval before calling it. Calling it again with the same token does no harm and answers what happened.",
			InputSchema:  object(`{"preview_id":{"type":"string","description":"from the preview"},"confirmation_token":{"type":"string","description":"from the preview, if it gave one"}}`, "preview_id"),
			OutputSchema: outputSchema[Outcome](),
			Annotations:  &mcp.ToolAnnotations{DestructiveHint: ptr(true), IdempotentHint: true, OpenWorldHint: ptr(true)},
		}, g.apply},
		{&mcp.Tool{
			Name: undo,
			Description: "Undoes an applied change, if nothing was changed since. With the undo_token it does so at once: wait for explicit approval before calling it. " +
				"Without one it prepares the undo, which a person approves like any change.",
			InputSchema:  object(`{"operation_id":{"type":"string","description":"from apply"},"undo_token":{"type":"string","description":"from apply, if it gave one"}}`, "operation_id"),
			OutputSchema: outputSchema[Outcome](),
			Annotations:  &mcp.ToolAnnotations{DestructiveHint: ptr(true), IdempotentHint: true, OpenWorldHint: ptr(true)},
		}, g.undo},
		{&mcp.Tool{
			Name:         status,
			Description:  "Tells where a change stands. With wait_seconds it answers as soon as something moved, or after that time.",
			InputSchema:  object(`{"operation_id":{"type":"string","description":"the preview_id or operation_id"},"wait_seconds":{"type":"integer","minimum":0,"maximum":50}}`, "operation_id"),
			OutputSchema: outputSchema[Outcome](),
			Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: ptr(false)},
		}, g.status},
	}
	if preview == "" {
		return list[1:]
	}
	return list
}

func (g *guard) preview(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	by := g.principal(req)
	if _, long := render.Reason(arguments(req)); long != (render.Excess{}) { // shown beside the change, and nothing there is cut
		return failed(&wetink.RequestError{Field: long.Field, Reason: fmt.Sprintf("%d bytes, and more than %d nobody reads", long.Size, long.Most), Fix: "shorten it"}), nil
	}
	c, ticket, err := g.Preview(ctx, g.Target, wetink.Request{By: by, Tool: req.Params.Name, Args: arguments(req)})
	if err != nil {
		return failed(err), nil
	}
	p, err := g.previewed(ctx, c, ticket)
	if err != nil {
		return failed(err), nil
	}
	return answer(p), nil
}

func (g *guard) apply(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		ID    wetink.ChangeID `json:"preview_id"`
		Token string          `json:"confirmation_token"`
	}
	if err := strictjson.Decode(arguments(req), &in, strictjson.Default); err != nil {
		return failed(err), nil
	}
	by := g.principal(req)
	c, _, err := g.Status(ctx, by, in.ID, 0)
	if err != nil {
		return failed(err), nil
	}
	if !ticketed(c) { // nothing that the agent holds decides here: answer the state and the next step
		if len(req.Params.InputResponses) > 0 {
			return g.opened(ctx, req, by, c)
		}
		if ask := g.askToOpen(req, by, c); ask != nil {
			return ask, nil
		}
		return g.outcome(ctx, by, in.ID, wetink.Ticket{})
	}
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Client: by.Client, Ticket: wetink.PresentedTicket(in.Token)}
	wait, cancel := context.WithTimeout(ctx, maxWait*time.Second)
	defer cancel()
	_, undo, err := g.Apply(wait, by, in.ID, &ev)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // it goes on; hosts give up on a tool after a minute
		return g.outcome(ctx, by, in.ID, wetink.Ticket{})
	}
	if err != nil {
		return failed(err), nil
	}
	return g.outcome(ctx, by, in.ID, undo)
}

func (g *guard) undo(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		ID    wetink.ChangeID `json:"operation_id"`
		Token string          `json:"undo_token"`
	}
	if err := strictjson.Decode(arguments(req), &in, strictjson.Default); err != nil {
		return failed(err), nil
	}
	by := g.principal(req)
	if in.Token != "" {
		ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Client: by.Client, Ticket: wetink.PresentedTicket(in.Token)}
		if _, _, err := g.Undo(ctx, by, in.ID, &ev); err != nil {
			return failed(err), nil
		}
		return g.outcome(ctx, by, in.ID, wetink.Ticket{})
	}
	u, ticket, err := g.Undo(ctx, by, in.ID, nil)
	if err != nil {
		return failed(err), nil
	}
	if u.Status != wetink.Pending {
		return g.outcome(ctx, by, in.ID, wetink.Ticket{})
	}
	p, err := g.previewed(ctx, u, ticket)
	if err != nil {
		return failed(err), nil
	}
	o, err := g.state(ctx, by, in.ID)
	if err != nil {
		return failed(err), nil
	}
	o.Status, o.Undo, o.NextStep = p.Status, p, p.NextStep
	return answer(o), nil
}

func (g *guard) status(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		ID   wetink.ChangeID `json:"operation_id"`
		Wait int             `json:"wait_seconds"`
	}
	if err := strictjson.Decode(arguments(req), &in, strictjson.Default); err != nil {
		return failed(err), nil
	}
	if in.Wait < 0 || in.Wait > maxWait {
		return failed(&wetink.RequestError{Field: "wait_seconds", Reason: fmt.Sprint(in.Wait), Fix: fmt.Sprintf("use 0 to %d, and ask again", maxWait)}), nil
	}
	by := g.principal(req)
	if _, _, err := g.Status(ctx, by, in.ID, time.Duration(in.Wait)*time.Second); err != nil {
		return failed(err), nil
	}
	return g.outcome(ctx, by, in.ID, wetink.Ticket{})
}

// ticketed reports whether some token that an agent can hold decides about c.
func ticketed(c wetink.Change) bool {
	for _, s := range c.Tickets {
		if s.Verb == wetink.VerbApply {
			return true
		}
	}
	return false
}

func object(properties string, required ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Required: required, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	if err := json.Unmarshal([]byte(properties), &s.Properties); err != nil {
		panic(fmt.Sprintf("mcpserver: schema: %v", err)) // a literal of this file
	}
	return s
}

func outputSchema[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcpserver: output schema: %v", err)) // of a type of this package
	}
	s.AdditionalProperties = nil // a later version may say more
	return s
}
