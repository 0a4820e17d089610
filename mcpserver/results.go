package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
)

// Field is one changed field, before and after.
type Field struct {
	Field  string `json:"field"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// ObjectDiff is the diff of one object among several.
type ObjectDiff struct {
	Index  int     `json:"index"`
	Event  string  `json:"event_id,omitempty"`
	Object string  `json:"object,omitempty"` // of what is no event
	Label  string  `json:"label,omitempty"`
	Diff   []Field `json:"diff"`
}

// UndoPromise says before approval how far an undo can go.
type UndoPromise struct {
	Extent string   `json:"extent"` // full, partial, none
	Notes  []string `json:"notes,omitempty"`
	For    string   `json:"for,omitempty"`
}

// Approval says what a change needs.
type Approval struct {
	Level  string `json:"level"`
	People int    `json:"people,omitempty"`
	How    string `json:"how"`
	URL    string `json:"url,omitempty"`
}

// Previewed is the answer of a preview. Exactly one of Diff and Diffs is set.
type Previewed struct {
	Status            string       `json:"status"` // "preview"
	PreviewID         string       `json:"preview_id"`
	ConfirmationToken string       `json:"confirmation_token,omitempty"`
	ExpiresAt         string       `json:"expires_at"`
	Action            string       `json:"action,omitempty"`
	Event             string       `json:"event_id,omitempty"` // of the one object, with Diff
	Object            string       `json:"object,omitempty"`
	Label             string       `json:"label,omitempty"`
	Diff              []Field      `json:"diff,omitempty"`
	Diffs             []ObjectDiff `json:"diffs,omitempty"`
	Warnings          []string     `json:"warnings,omitempty"`
	Undo              UndoPromise  `json:"undo"`
	Approval          Approval     `json:"approval"`
	NextStep          string       `json:"next_step"`
}

// ObjectOutcome is what became of one object.
type ObjectOutcome struct {
	Index   int    `json:"index"`
	Event   string `json:"event_id,omitempty"`
	Object  string `json:"object,omitempty"`
	Label   string `json:"label,omitempty"`
	Action  string `json:"action"`
	Outcome string `json:"outcome"` // took_effect, differs, no_effect, unknown, not_sent
	Why     string `json:"why,omitempty"`
}

// Outcome is the answer of apply, undo and status.
type Outcome struct {
	Status        string          `json:"status"`
	OperationID   string          `json:"operation_id"`
	Action        string          `json:"action,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	Events        []ObjectOutcome `json:"events"`
	UndoToken     string          `json:"undo_token,omitempty"`
	UndoExpiresAt string          `json:"undo_expires_at,omitempty"`
	UndoID        string          `json:"undo_id,omitempty"`
	UndoReason    string          `json:"undo_reason,omitempty"`
	UndoEvents    []ObjectOutcome `json:"undo_events,omitempty"` // what became of each object; a re-created one has a new id
	NotRestored   []string        `json:"not_restored,omitempty"`
	ExpiresAt     string          `json:"expires_at,omitempty"`
	Approved      []string        `json:"approved,omitempty"` // what the record may say of each approval
	Undo          *Previewed      `json:"undo,omitempty"`
	NextStep      string          `json:"next_step"`
}

func (g *guard) previewed(ctx context.Context, c wetink.Change, ticket wetink.Ticket) (*Previewed, error) {
	t, err := c.Terms()
	if err != nil {
		return nil, err
	}
	p := &Previewed{
		Status: "preview", PreviewID: string(c.ID), ConfirmationToken: ticket.Reveal(), ExpiresAt: t.Expires.Format(time.RFC3339),
		Action: g.action(c), Warnings: t.Warnings,
		Undo:     UndoPromise{Extent: string(t.Undo.Extent), Notes: t.Undo.Notes},
		Approval: Approval{Level: t.Require.Level.String(), People: t.Require.People, How: g.howToApprove(c, t), URL: g.link(c)},
	}
	if t.Undo.Extent != wetink.NoUndo {
		p.Undo.For = t.Undo.Until.String()
	}
	for i, op := range t.Ops {
		d := ObjectDiff{Index: i, Diff: []Field{}}
		d.Event, d.Object = g.object(op.Object)
		if g.Label != nil {
			d.Label = g.Label(op, c.Before[i], wetink.Snapshot{})
		}
		for _, f := range g.Diff(op, c.Before[i]) {
			d.Diff = append(d.Diff, Field{f.Field, json.RawMessage(f.Before), json.RawMessage(f.After)})
		}
		p.Diffs = append(p.Diffs, d)
	}
	if len(p.Diffs) == 1 {
		one := p.Diffs[0]
		p.Event, p.Object, p.Label, p.Diff, p.Diffs = one.Event, one.Object, one.Label, one.Diff, nil
	}
	if m, err := g.Mode(ctx); err != nil || m != wetink.ModeGuarded {
		p.Warnings = append(p.Warnings, "writes are turned off: applying it will be refused until the operator runs `wetink mode guarded`")
	}
	if ticket.IsZero() {
		p.NextStep = fmt.Sprintf("Nothing has been changed. Show the person what would change. %s You cannot approve it. Then ask %s with wait_seconds.", p.Approval.How, g.names.status)
	} else {
		p.Approval.How = "The agent presents the token after the person said yes to this very change."
		p.NextStep = fmt.Sprintf("Nothing has been changed. Show the person this diff and wait for explicit approval. Only after explicit user approval, call %s with preview_id and confirmation_token.", g.names.apply)
	}
	return p, nil
}

// object names an object under the key that the articles' tools gave it, or under one for everything.
func (g *guard) object(id string) (event, object string) {
	if g.Noun == "event" {
		return id, ""
	}
	return "", id
}

// howToApprove leads to the page, where there is one, and to the terminal.
func (g *guard) howToApprove(c wetink.Change, t wetink.Terms) string {
	how := g.opt.HowToApprove(c.ID, t.Require.Level)
	if link := g.link(c); link != "" {
		how = fmt.Sprintf("A person sees it, and approves or declines it, at %s . Without a browser: %s", link, how)
	}
	return how
}

// action is the word that the agent used, or undo.
func (g *guard) action(c wetink.Change) string {
	if len(c.Undoes) > 0 {
		return "undo"
	}
	var args map[string]json.RawMessage
	if g.Action == "" || json.Unmarshal(c.Request.Args, &args) != nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(args[g.Action], &s) // not a string: no word
	return s
}

func (g *guard) outcome(ctx context.Context, by wetink.Principal, id wetink.ChangeID, undo wetink.Ticket) (*mcp.CallToolResult, error) {
	o, err := g.state(ctx, by, id)
	if err != nil {
		return failed(err), nil
	}
	if !undo.IsZero() {
		o.UndoToken = undo.Reveal()
		o.NextStep += fmt.Sprintf(" To undo it, and only if the person asks for that, call %s with operation_id and undo_token.", g.names.undo)
	}
	return answer(o), nil
}

// state tells where a change stands, with the undo shown under it. It holds no secret and no hash.
func (g *guard) state(ctx context.Context, by wetink.Principal, id wetink.ChangeID) (*Outcome, error) {
	c, undo, err := g.Status(ctx, by, id, 0)
	if err != nil {
		return nil, err
	}
	t, err := c.Terms()
	if err != nil {
		return nil, err
	}
	o := &Outcome{Status: wetink.Shown(c, undo), OperationID: string(c.ID), Action: g.action(c), Reason: c.Why, Events: []ObjectOutcome{}}
	for _, a := range c.Approvals {
		o.Approved = append(o.Approved, a.Sentence())
	}
	o.Events = g.outcomes(c, t)
	switch c.Status {
	case wetink.Pending:
		o.ExpiresAt = t.Expires.Format(time.RFC3339)
	case wetink.Applied, wetink.Partial:
		if !c.Due.IsZero() {
			o.UndoExpiresAt = c.Due.Format(time.RFC3339)
		}
	case wetink.Approved, wetink.Applying, wetink.Failed, wetink.InDoubt, wetink.Expired, wetink.Rejected, wetink.Superseded:
	}
	if undo != nil {
		o.UndoID, o.UndoReason = string(undo.ID), undo.Why
		if ut, err := undo.Terms(); err == nil && undo.Claim.ID != "" {
			o.UndoEvents = g.outcomes(*undo, ut)
		}
		for _, s := range undo.Steps {
			if s.Outcome == wetink.Differs {
				o.NotRestored = append(o.NotRestored, s.Why)
			}
		}
	}
	o.NextStep = g.nextStep(ctx, c, t, o.Status)
	return o, nil
}

// outcomes tells of each object what became of it.
func (g *guard) outcomes(c wetink.Change, t wetink.Terms) []ObjectOutcome {
	out := []ObjectOutcome{}
	for i, op := range t.Ops {
		e := ObjectOutcome{Index: i, Action: op.Action, Outcome: "not_sent"}
		e.Event, e.Object = g.object(op.Object)
		s, recorded := c.StepOf(i)
		switch {
		case recorded:
			e.Outcome, e.Why = string(s.Outcome), s.Why
			if s.Receipt.Object != "" {
				e.Event, e.Object = g.object(s.Receipt.Object)
			}
		case c.Status == wetink.Applying || c.Status == wetink.InDoubt:
			e.Outcome = string(wetink.Unknown)
		}
		if g.Label != nil {
			e.Label = g.Label(op, c.Before[i], s.Receipt.After)
		}
		out = append(out, e)
	}
	return out
}

// nextStep is what to tell the person, and what not to do.
func (g *guard) nextStep(ctx context.Context, c wetink.Change, t wetink.Terms, shown string) string {
	switch shown {
	case "pending":
		if ticketed(c) && t.Require.Level <= wetink.Agent {
			return fmt.Sprintf("Nothing has been changed. Wait for explicit approval, then call %s.", g.names.apply)
		}
		return "Nothing has been changed. " + g.howToApprove(c, t) + " You cannot approve it."
	case "approved":
		if m, err := g.Mode(ctx); err != nil || m != wetink.ModeGuarded {
			return "It is approved, and writes are turned off: it starts when the operator runs `wetink mode guarded`, or expires. Nothing has been changed."
		}
		return "It is approved and will start by itself; ask for the status again."
	case "applying", "undoing":
		return "It is being carried out; ask for the status again."
	case "applied":
		if !c.Compared() {
			return "Tell the person that it was sent once and answered as done, and that its result could not be compared with what was approved."
		}
		return "Tell the person that it was applied and read back as approved."
	case "undone":
		return "Tell the person that it was undone."
	case "apply_failed":
		return "Tell the person that nothing of it is in effect, and why. To try again, make a fresh preview, which needs a fresh approval."
	case "apply_partial", "undo_partial":
		return "Tell the person exactly which parts took effect and which did not."
	case "apply_in_doubt", "undo_in_doubt":
		return "Whether it took effect is not known yet. Do not send it again. It is being looked up; ask for the status again, or look at the target. A person can settle it with `wetink resolve`."
	case "undo_failed":
		return "Tell the person that nothing was undone, and why."
	case "expired":
		return "Nobody approved and started it in time: nothing was changed, and it was not declined. Make a fresh preview if the person still wants it."
	case "rejected":
		return "A person declined it: nothing was changed. Do not prepare it again unless asked."
	case "superseded":
		return "A newer change replaces it (" + c.Why + "): nothing was changed by this one."
	}
	return "Ask for the status again."
}

// failed is a tool error: the model sees it, and what to do about it.
func failed(err error) *mcp.CallToolResult {
	text := strings.TrimSpace(err.Error())
	if step := remedy(err); step != "" {
		text += ". " + step
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
