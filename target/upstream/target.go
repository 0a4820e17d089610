package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Server is the connection to the server that is guarded.
type Server interface {
	// Call calls a tool once. sent is false only if nothing of it left this process. An answer that is a JSON-RPC error is
	// an error that has RPCCode() int.
	Call(ctx context.Context, tool string, args json.RawMessage) (result json.RawMessage, sent bool, err error)
	// Tools are the definitions that count, by name, as they came.
	Tools(ctx context.Context) (map[string]json.RawMessage, error)
}

// Options of a Target. The zero value is the production default.
type Options struct {
	Version string        // of the rules; a part of the Target's own
	Flight  time.Duration // how long a call of ours can still have an effect after we stopped waiting; 0: a minute
	UndoFor time.Duration // after it was applied; 0: a day
	Default Ask           // of a tool that says nothing itself; without a word: the page
}

// Target implements wetink.Target, Judge, Undoer, Differ and Explainer for the tools of one server.
type Target struct {
	name   string
	server Server
	rules  Rules
	opt    Options
}

// New returns the Target for a server, under the name that the operator gave it.
func New(name string, s Server, rules Rules, o *Options) *Target {
	t := &Target{name: name, server: s, rules: rules}
	if o != nil {
		t.opt = *o
	}
	if t.opt.Flight == 0 {
		t.opt.Flight = time.Minute
	}
	if t.opt.UndoFor == 0 {
		t.opt.UndoFor = 24 * time.Hour
	}
	if t.opt.Default.Word == "" {
		t.opt.Default, _ = ParseAsk("page")
	}
	return t
}

// ToolCall is the Tool of a request that names a tool of the server and its arguments, as tools/call does. The name of
// the server's tool is no Request.Tool: a server may well have a tool that is named undo.
const ToolCall = "tools/call"

// Call makes the request for a call.
func Call(by wetink.Principal, tool string, args json.RawMessage) (wetink.Request, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	b, err := canonical(struct { // no HTML escapes: what is shown is what the agent wrote
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{tool, args})
	if err != nil {
		return wetink.Request{}, &wetink.RequestError{Field: "arguments", Reason: err.Error(), Fix: "send a JSON object"}
	}
	return wetink.Request{By: by, Tool: ToolCall, Args: b}, nil
}

// payload of an Op: the call, as it is sent, and what is needed to show and read it.
type payload struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	DryRun    string          `json:"dry_run,omitempty"` // what the server says that it would do
	Via       string          `json:"via,omitempty"`     // the tool whose Rule reads the object; "": its own
	Draw      *draw           `json:"draw,omitempty"`
	Again     *again          `json:"again,omitempty"` // of an undo: the call that it takes back, which a redo makes again
}

type again struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// draw is what the Rule says of how the call is shown. It is signed with it, so that every process draws it alike, also one
// that has no rules.
type draw struct {
	Verb     string   `json:"verb,omitempty"` // "": call … on
	Show     string   `json:"show,omitempty"`
	Identity []string `json:"identity,omitempty"` // arguments that say which object is meant
	Type     string   `json:"type,omitempty"`     // what has to be typed
}

// op is an Op with its call and Rule.
type op struct {
	payload
	args map[string]any
	rule *Rule // own
	read *Rule // the one that reads it; nil: nothing does
}

func (t *Target) open(raw json.RawMessage) (o op, err error) {
	if err := strictjson.Decode(raw, &o.payload, strictjson.Default); err != nil {
		return o, fmt.Errorf("stored call: %w", err)
	}
	return o, t.understand(&o)
}

func (t *Target) understand(o *op) error {
	v, err := decode(o.Arguments)
	if err != nil {
		return &wetink.RequestError{Field: "arguments", Reason: err.Error(), Fix: "send an object"}
	}
	var ok bool
	if o.args, ok = v.(map[string]any); !ok {
		return &wetink.RequestError{Field: "arguments", Reason: "they are no JSON object", Fix: "send an object"}
	}
	if o.rule, err = t.rules.match(o.Name, o.args); err != nil {
		return err
	}
	if o.read = t.rules.reader(o.rule); o.Via != "" {
		o.read = nil
		for _, rule := range t.rules[o.Via] {
			if rule.Read != nil {
				o.read = rule
				break
			}
		}
	}
	return nil
}

// Account implements wetink.Target. MCP has no way to ask whose credentials a server has: it is the operator's name for
// the server. The version covers the rules and the definitions of all tools that they name, so that a server which changes
// what a tool means after an approval is refused.
func (t *Target) Account(ctx context.Context) (wetink.Account, string, error) {
	defs, err := t.server.Tools(ctx)
	if err != nil {
		return "", "", fmt.Errorf("list the tools of %s: %w", t.name, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "wetink/upstream/v1\x00%s\x00", t.opt.Version)
	for _, name := range t.rules.tools() {
		fmt.Fprintf(h, "%d %s%d %s", len(name), name, len(defs[name]), defs[name])
	}
	return wetink.Account(t.name), "upstream/" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (t *Target) is(acct wetink.Account) error {
	if acct != wetink.Account(t.name) {
		return fmt.Errorf("%w: it was previewed for %q, and this is %q", wetink.ErrAccount, acct, t.name)
	}
	return nil
}

// observe reads an object; once is the snapshot, text all that the result says.
func (t *Target) observe(ctx context.Context, rule *Rule, c call) (wetink.Snapshot, error) {
	s := wetink.Snapshot{Object: c.String(), At: time.Now().UTC()}
	raw, _, err := t.server.Call(ctx, c.Tool, c.Args)
	if err != nil {
		return s, fmt.Errorf("read with %s: %w", c.Tool, err)
	}
	r, err := parseResult(raw)
	if err != nil {
		return s, err
	}
	if r.failed(rule) {
		if rule.Absent != "" && strings.Contains(r.text(), rule.Absent) {
			s.Absent = true
			return s, nil
		}
		return s, &noObject{r.text(), wetink.RequestError{Reason: fmt.Sprintf("%s answers %q", c.Tool, short(r.text())),
			Fix: "name something that is there; if this error means that it does not exist, the rule needs `absent`"}}
	}
	body, err := rule.body(r)
	if err != nil {
		return s, fmt.Errorf("read with %s: %w", c.Tool, err)
	}
	if s.Body, err = canonical(body); err == nil && len(s.Body) > maxRead {
		return s, &wetink.RequestError{Reason: fmt.Sprintf("%s returns %d KiB, more than the %d that a person could be shown and an approval bound to", c.Tool, len(s.Body)>>10, maxRead>>10),
			Fix: "the operator lists what counts of it: watch: [...]"}
	}
	return s, err
}

// maxRead bytes of what is read of one object are kept.
const maxRead = 1 << 20

// body is what an approval is bound to.
func (rule *Rule) body(r result) (map[string]any, error) {
	v, ok := look(r.value(), rule.At)
	if !ok {
		return nil, fmt.Errorf("nothing stands at %s in what it returns", strings.Join(rule.At, "."))
	}
	body := map[string]any{}
	switch {
	case rule.Only:
		for _, path := range rule.Watch {
			if e, ok := look(v, path); ok {
				body[strings.Join(path, ".")] = e
			}
		}
	case isObject(v):
		maps.Copy(body, v.(map[string]any))
	default:
		if s, ok := v.(string); ok {
			body["text"] = s
			if file, ok := r.embedded(); ok {
				body["content"] = file
			}
		} else {
			body["value"] = v
		}
	}
	for _, p := range rule.Pick {
		m := p.Pattern.FindStringSubmatch(r.text())
		if m == nil {
			return nil, fmt.Errorf("%s is not in what it returns", p.Name)
		}
		body[p.Name] = m[len(m)-1]
	}
	return body, nil
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

// nothing is the snapshot of what cannot be read.
func nothing(object string) wetink.Snapshot {
	return wetink.Snapshot{Object: object, Body: json.RawMessage("{}"), At: time.Now().UTC()}
}

// fields of a snapshot; none if it is absent.
func fields(s wetink.Snapshot) map[string]any {
	if v, err := decode(s.Body); err == nil && isObject(v) {
		return v.(map[string]any)
	}
	return map[string]any{}
}

// Observe implements wetink.Target. The object of a creation that was not answered is not known: nothing can be read then.
func (t *Target) Observe(ctx context.Context, acct wetink.Account, o wetink.Op) (wetink.Snapshot, error) {
	if err := t.is(acct); err != nil {
		return wetink.Snapshot{}, err
	}
	own, err := t.open(o.Payload)
	if err != nil {
		return wetink.Snapshot{}, err
	}
	c, ok := parseCall(o.Object)
	if own.read == nil || !ok {
		return nothing(o.Object), nil
	}
	s, err := t.observe(ctx, own.read, c)
	var no *noObject
	if errors.As(err, &no) && own.namesOnly() {
		// Of a call that names no more than the object, as those that delete do, this is most likely what it is to leave. It is
		// kept as what was seen, and proves nothing: see Judge.
		s.Body, err = canonical(map[string]string{"error": no.text})
	}
	return s, err
}

// noObject is what the reading tool answered instead of the object.
type noObject struct {
	text string
	wetink.RequestError
}

// Unwrap lets callers see the RequestError.
func (u *noObject) Unwrap() error { return &u.RequestError }

// namesOnly reports a call without any argument but those that say which object is meant.
func (o op) namesOnly() bool {
	identity := o.read.identity()
	for name := range o.args {
		if !slices.Contains(identity, name) {
			return false
		}
	}
	return true
}

// Execute implements wetink.Target: the stored call, once.
//
// What proves that nothing was written: it did not leave this process; the server refused the request itself (JSON-RPC);
// it answered that the tool failed, and what it would have written reads as before. Without something to read, a failed
// tool may have done half of its work.
func (t *Target) Execute(ctx context.Context, acct wetink.Account, o wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	own, err := t.open(o.Payload)
	if err == nil {
		err = t.is(acct)
	}
	if err != nil {
		return wetink.Receipt{}, fmt.Errorf("%w: %w", wetink.ErrNotApplied, err)
	}
	raw, sent, err := t.server.Call(ctx, own.Name, own.Arguments)
	receipt := wetink.Receipt{Object: o.Object}
	var refused interface{ RPCCode() int }
	switch {
	case err != nil && !sent:
		return receipt, fmt.Errorf("%w: it was not sent: %w", wetink.ErrNotApplied, err)
	case errors.As(err, &refused) && slices.Contains([]int{-32700, -32600, -32601, -32602}, refused.RPCCode()):
		err = fmt.Errorf("%s refuses the call: %w", t.name, err)
		if moved, known := t.movedSince(ctx, own, o); known && moved { // a server may say so after half of the work
			return receipt, err
		}
		return receipt, fmt.Errorf("%w: %w", wetink.ErrNotApplied, err)
	case err != nil:
		return receipt, fmt.Errorf("%s: %w", own.Name, err)
	}
	r, err := parseResult(raw)
	if err != nil {
		return receipt, err
	}
	if len(raw) <= maxKept && json.Valid(raw) {
		receipt.Raw = raw
	}
	if r.failed(own.rule) {
		err := fmt.Errorf("%s answers that it failed: %q", own.Name, short(r.text()))
		if moved, known := t.movedSince(ctx, own, o); known && !moved {
			return receipt, fmt.Errorf("%w: %w", wetink.ErrNotApplied, err)
		}
		return receipt, err
	}
	back := own.rule.wayBack(o.Before == wetink.Digest{} || own.rule.Read == nil)
	if back == nil {
		return receipt, nil
	}
	k := known{args: own.args, result: r.value()}
	for _, ref := range back.references() { // without them there is no way back, which was promised: this is another server's answer
		if _, err := ref.resolve(k); ref.root == "result" && err != nil {
			return receipt, fmt.Errorf("%s answers, but not as the rule in line %d says: %w", own.Name, own.rule.Line, err)
		}
	}
	if receipt.Object == "" && own.read != nil { // a creation: where it can be read is known now
		if c, err := t.readOf(back, own, k); err == nil {
			receipt.Object = c.String()
		}
	}
	return receipt, nil
}

// movedSince reports whether o's object is not as it was seen before. known is false if that cannot be read.
func (t *Target) movedSince(ctx context.Context, own op, o wetink.Op) (moved, known bool) {
	c, ok := parseCall(o.Object)
	if !ok || own.read == nil {
		return false, false
	}
	now, err := t.observe(ctx, own.read, c)
	return err == nil && now.Digest() != o.Before, err == nil
}

// maxKept bytes of an answer; a longer one is not needed to undo.
const maxKept = 256 << 10

// readOf is the call that reads what back would take away.
func (t *Target) readOf(back *Template, own op, k known) (call, error) {
	inverse, err := back.fill(k)
	if err != nil {
		return call{}, err
	}
	v, err := decode(inverse.Args)
	if err != nil {
		return call{}, err
	}
	args, _ := v.(map[string]any)
	return own.read.Read.fill(known{args: args})
}

func short(s string) string {
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return s
}
