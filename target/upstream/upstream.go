// Package upstream sees a pair of tools of any MCP server, one that reads and one that writes, as a
// wetink.Target. It is the thin proof that the contract fits a gateway; the gateway will build on it.
//
// What the read tool returns is the snapshot; the arguments of the write tool are the payload, sent as they
// stand. An undo writes back what was read before. An object that was absent has no way back here.
//
// BUG(wetink): a read tool's error is taken for absence, whatever it says; the gateway's grammar will ask for a
// pattern. Tool definitions are pinned by digest when the Target is made, and looked at again before each claim.
package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Pair binds a write tool to the tool that reads what it writes.
type Pair struct {
	Write  string // the guarded tool
	Read   string // reads the object, given its argument alone
	Object string // name of the argument that both have: it says which object
	Value  string // name of the write tool's argument that the read tool returns
}

// Target implements wetink.Target, Judge and Undoer on a client's session.
type Target struct {
	session *mcp.ClientSession
	pair    Pair
	account wetink.Account
}

// New returns the guarded pair. account names whose data it is, as the operator knows it: MCP has no such call.
func New(s *mcp.ClientSession, account wetink.Account, p Pair) *Target { return &Target{s, p, account} }

// Account implements wetink.Target. The version is the digest of both tool definitions: a server that changes
// what a tool means after an approval is refused.
func (t *Target) Account(ctx context.Context) (wetink.Account, string, error) {
	h := sha256.New()
	found := 0
	for tool, err := range t.session.Tools(ctx, nil) {
		if err != nil {
			return "", "", fmt.Errorf("list the upstream's tools: %w", err)
		}
		if tool.Name != t.pair.Read && tool.Name != t.pair.Write {
			continue
		}
		b, err := json.Marshal(tool)
		if err != nil {
			return "", "", err
		}
		found++
		fmt.Fprintf(h, "%d\x00", len(b))
		h.Write(b)
	}
	if found != 2 {
		return "", "", fmt.Errorf("the upstream does not offer both %s and %s", t.pair.Read, t.pair.Write)
	}
	return t.account, "upstream/" + hex.EncodeToString(h.Sum(nil)), nil
}

// Prepare implements wetink.Target: the arguments of the agent's call are the payload.
func (t *Target) Prepare(ctx context.Context, req wetink.Request) (wetink.Prepared, error) {
	payload, err := strictjson.Compact(req.Args)
	if err != nil {
		return wetink.Prepared{}, &wetink.RequestError{Reason: err.Error()}
	}
	object, err := t.text(payload, t.pair.Object)
	if err != nil {
		return wetink.Prepared{}, err
	}
	op := wetink.Op{Action: t.pair.Write, Object: object, Payload: payload}
	before, err := t.Observe(ctx, t.account, op)
	if err != nil {
		return wetink.Prepared{}, err
	}
	p := wetink.Prepared{Account: t.account, Ops: []wetink.Op{op}, Before: []wetink.Snapshot{before},
		Undo: wetink.Promise{Extent: wetink.FullUndo, Until: 24 * time.Hour}}
	if before.Absent {
		p.Undo = wetink.Promise{Extent: wetink.NoUndo, Notes: []string{"it does not exist yet, and no tool is known that removes it"}}
	}
	return p, nil
}

func (t *Target) text(args json.RawMessage, name string) (string, error) {
	members, err := strictjson.Members(args)
	if err != nil {
		return "", &wetink.RequestError{Reason: err.Error()}
	}
	i := slices.IndexFunc(members, func(m strictjson.Member) bool { return m.Name == name })
	var s string
	if i < 0 || json.Unmarshal(members[i].Value, &s) != nil || s == "" {
		return "", &wetink.RequestError{Field: name, Reason: "it is missing or no text", Fix: "add it"}
	}
	return s, nil
}

// Observe implements wetink.Target.
func (t *Target) Observe(ctx context.Context, _ wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	res, err := t.session.CallTool(ctx, &mcp.CallToolParams{Name: t.pair.Read, Arguments: map[string]string{t.pair.Object: op.Object}})
	if err != nil {
		return wetink.Snapshot{}, fmt.Errorf("read %s: %w", op.Object, err)
	}
	s := wetink.Snapshot{Object: op.Object, At: time.Now().UTC()}
	if res.IsError {
		s.Absent = true
		return s, nil
	}
	s.Body, err = quoted(textOf(res))
	return s, err
}

// Execute implements wetink.Target. A tool that answers an error may have done half of it: nothing is proved.
func (t *Target) Execute(ctx context.Context, _ wetink.Account, op wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return wetink.Receipt{}, fmt.Errorf("%w: %w", err, wetink.ErrNotApplied)
	}
	res, err := t.session.CallTool(ctx, &mcp.CallToolParams{Name: op.Action, Arguments: op.Payload})
	if err != nil {
		return wetink.Receipt{}, fmt.Errorf("call %s: %w", op.Action, err)
	}
	if res.IsError {
		return wetink.Receipt{}, fmt.Errorf("%s answered an error: %.200s", op.Action, textOf(res))
	}
	return wetink.Receipt{Object: op.Object}, nil
}

// Flight implements wetink.Judge: nothing is known of how long an upstream may go on, so a person resolves.
func (t *Target) Flight() time.Duration { return 0 }

// Judge implements wetink.Judge.
func (t *Target) Judge(op wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	value, err := t.text(op.Payload, t.pair.Value)
	want, err2 := quoted(value)
	switch {
	case err == nil && err2 == nil && !now.Absent && bytes.Equal(now.Body, want):
		return wetink.AsApproved, ""
	case now.Digest() == before.Digest():
		return wetink.Untouched, ""
	}
	return wetink.Foreign, "it reads otherwise"
}

// Invert implements wetink.Undoer.
func (t *Target) Invert(ops []wetink.Op, before []wetink.Snapshot, _ []wetink.Step) (wetink.Request, wetink.Promise, error) {
	if len(ops) != 1 || before[0].Absent {
		return wetink.Request{}, wetink.Promise{}, wetink.ErrNoUndo
	}
	object, err := quoted(ops[0].Object)
	if err != nil {
		return wetink.Request{}, wetink.Promise{}, err
	}
	args := fmt.Sprintf(`{%q:%s,%q:%s}`, t.pair.Object, object, t.pair.Value, before[0].Body)
	return wetink.Request{Args: json.RawMessage(args)}, wetink.Promise{Extent: wetink.FullUndo}, nil
}

// Unmoved implements wetink.Undoer.
func (t *Target) Unmoved(after, now wetink.Snapshot) (bool, []string) {
	return after.Digest() == now.Digest(), []string{"content"}
}

func textOf(res *mcp.CallToolResult) string {
	var b bytes.Buffer
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// quoted is the JSON string of s, without HTML escaping.
func quoted(s string) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
