package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
)

// A client that can open a link asks its user to, when apply is called before anybody approved: with the answer
// input_required of revision 2026-07-28, which the SDK turns into elicitation/create for an older session.
//
// Only mode url is ever used, and only when the client declared it: what a form answers, a hook, a flag or whoever
// posts the call can answer as well. That the client says "accept" proves no more than that the link was opened, and
// "decline" not even that somebody was asked; so neither decides anything. The call then waits for the page to tell.

// linkID names the one question.
const linkID = "approval"

// sealLife is how long the state of a question is good for.
const sealLife = 10 * time.Minute

// canOpenLinks reports whether the client declared elicitation by URL. A declaration without a mode means forms.
func canOpenLinks(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && caps.Elicitation.URL != nil
}

// askToOpen is the question, or nil if this client cannot be asked, or was.
func (g *guard) askToOpen(req *mcp.CallToolRequest, by wetink.Principal, c wetink.Change) *mcp.CallToolResult {
	link := g.link(c)
	if link == "" || c.Status != wetink.Pending || len(req.Params.InputResponses) > 0 || !canOpenLinks(req) {
		return nil
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{linkID: &mcp.ElicitParams{
			Mode: "url", URL: link, ElicitationID: string(c.ID),
			Message: "A change waits for you. Open the page to see it, and approve or decline it there. Nothing has been changed yet.",
		}},
		RequestState: g.seal(by, c, time.Now().Add(sealLife)),
	}
}

// opened handles the answer to the question: it waits until the page has told, and then says how the change stands.
func (g *guard) opened(ctx context.Context, req *mcp.CallToolRequest, by wetink.Principal, c wetink.Change) (*mcp.CallToolResult, error) {
	if err := g.unseal(req.Params.RequestState, by, c, time.Now()); err != nil {
		return failed(fmt.Errorf("the answer does not belong to a question of this server: %w; call it again without inputResponses", err)), nil
	}
	if r, ok := req.Params.InputResponses[linkID].(*mcp.ElicitResult); ok && r.Action == "accept" {
		wait, cancel := context.WithTimeout(ctx, maxWait*time.Second)
		defer cancel()
		for c.Status == wetink.Pending || c.Status == wetink.Approved || c.Status == wetink.Applying {
			end, _ := wait.Deadline()
			left := time.Until(end)
			if left <= 0 {
				break
			}
			var err error
			if c, _, err = g.Status(wait, by, c.ID, left); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return failed(err), nil
			}
			if ctx.Err() != nil {
				return failed(ctx.Err()), nil
			}
		}
	}
	return g.outcome(ctx, by, c.ID, wetink.Ticket{})
}

// seal binds a question to who was asked, to the change and its exact terms, and to an end. It lets nobody do anything:
// it keeps a made-up answer from holding calls open.
func (g *guard) seal(by wetink.Principal, c wetink.Change, end time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(end.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(append(b, g.mac(by, c, b)...))
}

func (g *guard) unseal(state string, by wetink.Principal, c wetink.Change, now time.Time) error {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(b) != 8+sha256.Size {
		return errors.New("its requestState is not ours")
	}
	if !hmac.Equal(b[8:], g.mac(by, c, b[:8])) {
		return errors.New("its requestState belongs to another question")
	}
	if now.After(time.UnixMilli(int64(binary.BigEndian.Uint64(b)))) {
		return errors.New("its requestState is too old")
	}
	return nil
}

func (g *guard) mac(by wetink.Principal, c wetink.Change, end []byte) []byte {
	h := hmac.New(sha256.New, g.opt.StateKey.Reveal())
	for _, part := range []string{"wetink/elicitation/v1", string(by.Tenant), string(by.Person), by.Client, "apply",
		string(c.ID), c.Statement.Digest().String(), string(end)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// link is where a person sees the change, "" if no page is served.
func (g *guard) link(c wetink.Change) string {
	if g.opt.Link == nil {
		return ""
	}
	return g.opt.Link(c)
}
