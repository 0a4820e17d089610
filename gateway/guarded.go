package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
	"github.com/wetink/wetink/mcpserver"
	target "github.com/wetink/wetink/target/upstream"
)

// GuardedOptions are what the guard's answers need. The zero value is the production default.
type GuardedOptions struct {
	Log *slog.Logger
	// HowToApprove and Link lead a person to the change, as in mcpserver.Options.
	HowToApprove func(wetink.ChangeID, wetink.Level) string
	Link         func(wetink.Change) string
	// Headline names a change in one line.
	Headline func(wetink.Change) (string, error)
}

// Guarded is the Guard that makes a Change of each call that could write.
//
// It is made in three steps, because each needs the one before: NewGuarded gives the Targets for the engine; Serve gives
// it the engine; Connect gives it the Gateway whose connections the Targets use.
type Guarded struct {
	opt     GuardedOptions
	engine  *wetink.Engine
	ledger  wetink.Ledger
	servers map[string]*guarded
	order   []string
	gateway *Gateway
	policy  wetink.Policy
	byAgent bool // some tool can be approved by the agent's token
}

// guarded is one server.
type guarded struct {
	Server
	g        *Guarded
	target   *target.Target
	tools    *mcpserver.Tools
	pins     *Pins
	watching chan struct{}

	mu      sync.Mutex
	listed  bool
	defs    map[string]json.RawMessage // those that count
	refused map[string]string          // why a tool is refused, by name
}

// NewGuarded returns the Guard of all servers of cfg. What their tools were when they were looked at is kept in the folder.
func NewGuarded(cfg *Config, folder string, o *GuardedOptions) *Guarded {
	g := &Guarded{servers: map[string]*guarded{}}
	if o != nil {
		g.opt = *o
	}
	if g.opt.Log == nil {
		g.opt.Log = slog.New(slog.DiscardHandler)
	}
	ask := cfg.Ask
	if ask.Word == "" { // what the policy demands of every change is enough
		ask, _ = target.ParseAsk("auto")
	}
	for _, s := range cfg.Servers {
		srv := &guarded{Server: s, g: g, pins: OpenPins(folder, s.Name), watching: make(chan struct{}, maxWatched)}
		srv.target = target.New(s.Name, srv, s.Rules, &target.Options{Version: s.Version, Flight: s.Flight, UndoFor: cfg.UndoFor, Default: ask})
		g.servers[s.Name], g.order = srv, append(g.order, s.Name)
		for _, list := range s.Rules {
			for _, r := range list {
				g.byAgent = g.byAgent || r.Ask.Word == "agent"
			}
		}
	}
	g.byAgent = g.byAgent || cfg.Ask.Word == "agent"
	return g
}

// Targets are those of the servers, by their names.
func (g *Guarded) Targets() map[string]wetink.Target {
	out := map[string]wetink.Target{}
	for name, s := range g.servers {
		out[name] = s.target
	}
	return out
}

// Policy demands what the rules of a server demand, or what base demands if that is stricter. A rule that asks for less
// than base has no effect.
func (g *Guarded) Policy(base wetink.Policy) wetink.Policy {
	g.policy = policy{g, base}
	return g.policy
}

type policy struct {
	g    *Guarded
	base wetink.Policy
}

// Decide implements wetink.Policy.
func (p policy) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	d := wetink.Decision{Require: wetink.Require{Level: wetink.Auto, People: 1}}
	var err error
	if p.base != nil {
		if d, err = p.base.Decide(ctx, t, before); err != nil || d.Deny != "" {
			return d, err
		}
	}
	s := p.g.servers[t.Target]
	if s == nil {
		return d, nil
	}
	own, err := s.target.Requires(t, before)
	if err != nil {
		return d, err
	}
	d.Deny, d.Require, d.Why = own.Deny, wetink.Stricter(d.Require, own.Require), append(d.Why, own.Why...)
	if d.Version += " " + own.Version; d.Cap == nil {
		d.Cap = own.Cap
	}
	return d, nil
}

// Serve gives the engine that has the Targets and the Policy, and its ledger, which lists changes.
func (g *Guarded) Serve(e *wetink.Engine, l wetink.Ledger) {
	g.engine, g.ledger = e, l
	for _, s := range g.servers {
		s.tools = mcpserver.NewTools(e, mcpserver.Surface{Target: s.Name, Diff: s.target.Diff}, &mcpserver.Options{
			Log: g.opt.Log, HowToApprove: g.opt.HowToApprove, Link: g.opt.Link,
			Principal: func(req *mcp.CallToolRequest) wetink.Principal { return principal(req.Extra) },
		})
	}
}

// Connect gives the Gateway through which the Targets reach their servers.
func (g *Guarded) Connect(gw *Gateway) { g.gateway = gw }

// Call implements upstream.Server.
func (s *guarded) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	return s.g.gateway.Upstream(s.Name).Call(ctx, tool, args)
}

// Tools implements upstream.Server: it asks the server anew, so that a definition that changed since it was looked at is
// found before each claim.
func (s *guarded) Tools(ctx context.Context) (map[string]json.RawMessage, error) {
	list, err := s.g.gateway.Upstream(s.Name).Tools(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.look(list); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.defs), nil
}

// look holds a list against the pins, and notes what is refused and why.
func (s *guarded) look(list []json.RawMessage) (good []json.RawMessage, err error) {
	good, changed, first, err := s.pins.Check(list)
	if err != nil {
		return nil, fmt.Errorf("tools of %s: %w", s.Name, err)
	}
	if first {
		s.g.opt.Log.Info("these tools are pinned as they are now; a later change of one has to be accepted", "server", s.Name, "tools", len(list))
	}
	refused := map[string]string{}
	for _, c := range changed {
		if c.Is == nil {
			continue
		}
		what := "is new"
		if c.Was != nil {
			what = "is not what it was"
		}
		refused[c.Tool] = fmt.Sprintf("the tool %s of %s %s since an operator looked at it: run `wetink pins %s` to see the difference, and --accept to accept it", c.Tool, s.Name, what, s.Name)
	}
	defs := map[string]json.RawMessage{}
	for _, def := range good {
		name, err := definedName(def)
		if err != nil {
			return nil, err
		}
		defs[name] = def
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, why := range refused {
		if s.refused[name] != why {
			s.g.opt.Log.Warn(why)
		}
	}
	s.listed, s.defs, s.refused = true, defs, refused
	return good, nil
}

// Tools implements Guard. A guarded tool keeps its name and its input schema; its output schema goes, because what it
// answers now is what would change.
func (g *Guarded) Tools(_ context.Context, name string, list []json.RawMessage) ([]json.RawMessage, error) {
	s := g.servers[name]
	if s == nil {
		return nil, fmt.Errorf("no server is named %q", name)
	}
	good, err := s.look(list)
	if err != nil {
		return nil, err
	}
	if s.Observe { // nothing is to be noticed of it
		return list, nil
	}
	var out []json.RawMessage
	for _, def := range good {
		tool, err := definedName(def)
		if err != nil {
			return nil, err
		}
		if s.denies(tool) {
			continue
		}
		if def, err = s.shown(def, s.Passes(tool)); err != nil {
			g.opt.Log.Warn("a tool is not shown", "server", s.Name, "tool", tool, "err", err)
			continue
		}
		out = append(out, def)
	}
	return out, nil
}

const preparesOnly = " (Guarded: calling it only prepares this change and answers what it would do. A person approves exactly that; then it is done once. Ask change_status.)"

// shown is a definition as clients see it. What stays the same stays to the byte.
func (s *guarded) shown(def json.RawMessage, passes bool) (json.RawMessage, error) {
	members, err := strictjson.Members(def)
	if err != nil {
		return nil, err
	}
	changed := false
	var out []strictjson.Member
	for _, m := range members {
		switch {
		case m.Name == "_meta" && !s.UI:
			v, cut, err := withoutUI(m.Value)
			if err != nil {
				return nil, err
			}
			changed, m.Value = changed || cut, v
		case m.Name == "outputSchema" && !passes:
			changed = true
			continue
		case m.Name == "description" && !passes:
			var text string
			if err := json.Unmarshal(m.Value, &text); err != nil {
				return nil, err
			}
			if m.Value, err = plainJSON(text + preparesOnly); err != nil {
				return nil, err
			}
			changed = true
		}
		out = append(out, m)
	}
	if !changed {
		return def, nil
	}
	return joined(out)
}

// withoutUI takes away what would have a host draw the server's own pages beside ours: they could look like an approval.
func withoutUI(meta json.RawMessage) (json.RawMessage, bool, error) {
	members, err := strictjson.Members(meta)
	if err != nil {
		return nil, false, err
	}
	n := len(members)
	members = slices.DeleteFunc(members, func(m strictjson.Member) bool {
		return m.Name == "ui" || strings.HasPrefix(m.Name, "ui/") || strings.HasPrefix(m.Name, "openai/")
	})
	if len(members) == n {
		return meta, false, nil
	}
	out, err := joined(members)
	return out, true, err
}

func joined(members []strictjson.Member) (json.RawMessage, error) {
	b := []byte{'{'}
	for i, m := range members {
		name, err := plainJSON(m.Name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), m.Value...)
	}
	return append(b, '}'), nil
}

// plainJSON writes without HTML escaping: a model reads < as <.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Passes implements Guard. A tool that changed since it was looked at does not, whatever its name.
func (g *Guarded) Passes(server, tool string) bool {
	s := g.servers[server]
	return s != nil && (s.Passes(tool) || s.Observe)
}

// NamedAsReading reports whether the name of a tool says that it only reads.
func NamedAsReading(tool string) bool { return reading.MatchString(tool) }

// Watches implements Watcher.
func (g *Guarded) Watches(server string) bool {
	s := g.servers[server]
	return s != nil && s.Observe
}

// maxWatched calls are looked at beside one another; what comes on top is counted only.
const maxWatched = 4

// Watch implements Watcher: what would have been asked is worked out beside the call, from what the server reads then, and
// logged. Nothing is stored, and the call does not wait.
func (g *Guarded) Watch(c Session, server, tool string, params json.RawMessage) {
	s := g.servers[server]
	if s.Passes(tool) {
		return
	}
	req, err := request(c, bytes.Clone(params))
	if err != nil {
		return
	}
	select {
	case s.watching <- struct{}{}:
	default:
		g.opt.Log.Info("would have been guarded; too many at once to say more", "server", server, "tool", tool)
		return
	}
	go func() {
		defer func() { <-s.watching }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		by := principal(req.Extra)
		r, err := target.Call(by, tool, req.Params.Arguments)
		if err == nil {
			err = s.would(ctx, r)
		}
		if err != nil {
			// Also where the call was faster than our reading, and what is there is what it asked for.
			g.opt.Log.Info("would have been guarded; what it would have asked is not known", "server", server, "tool", tool, "client", by.Client, "why", err)
		}
	}()
}

// would logs what a request would have asked.
func (s *guarded) would(ctx context.Context, r wetink.Request) error {
	p, err := s.target.Prepare(ctx, r)
	if err != nil {
		return err
	}
	t := wetink.Terms{Target: s.Name, Account: p.Account, Ops: p.Ops, Undo: p.Undo, Warnings: p.Warnings}
	d, err := s.g.policy.Decide(ctx, t, p.Before)
	if err != nil {
		return err
	}
	if d.Deny != "" {
		return fmt.Errorf("%w: %s", wetink.ErrDenied, d.Deny)
	}
	s.g.opt.Log.Info("would have been asked", "server", s.Name, "tool", p.Ops[0].Action, "object", p.Ops[0].Object, "client", r.By.Client,
		"level", d.Require.Level.String(), "people", d.Require.People, "undo", string(p.Undo.Extent), "warnings", strings.Join(p.Warnings, "; "))
	return nil
}

// reading is how the names of tools begin that say that they read.
var reading = regexp.MustCompile(`^(get|list|read|search|find|describe|fetch|show|view|count|query|lookup|status|check)([^a-z]|$)`)

// Passes reports whether a call goes through as it is: the operator's patterns say so, or nothing is said of the tool and
// both its hint and its name say that it only reads.
func (s *guarded) Passes(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed || s.refused[tool] != "" {
		return false
	}
	if target.Passes(s.Pass, tool) {
		return true
	}
	if _, ruled := s.Rules[tool]; ruled || s.Unlisted != UnlistedAsk {
		return false
	}
	var def struct {
		Annotations struct {
			ReadOnly    bool `json:"readOnlyHint"`
			Destructive bool `json:"destructiveHint"`
		} `json:"annotations"`
	}
	if json.Unmarshal(s.defs[tool], &def) != nil {
		return false
	}
	return def.Annotations.ReadOnly && !def.Annotations.Destructive && reading.MatchString(tool)
}

func (s *guarded) denies(tool string) bool {
	if list, ruled := s.Rules[tool]; ruled {
		return slices.ContainsFunc(list, func(r *target.Rule) bool { return r.Ask.Deny && r.When == nil })
	}
	return s.Unlisted == UnlistedDeny && !target.Passes(s.Pass, tool)
}

// Call implements Guard: a call of a server's tool becomes a Change.
func (g *Guarded) Call(ctx context.Context, c Session, server, tool string, params json.RawMessage) (json.RawMessage, error) {
	req, err := request(c, params)
	if err != nil {
		return nil, err
	}
	if server == "" {
		return answered(g.own(ctx, req))
	}
	s := g.servers[server]
	if s == nil {
		return nil, fmt.Errorf("no server is named %q", server)
	}
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if !listed { // a client that calls without having asked for the list
		if _, err := s.Tools(ctx); err != nil {
			return answered(mcpserver.Failed(err), nil)
		}
		if g.Passes(server, tool) {
			result, _, err := s.Call(ctx, tool, req.Params.Arguments)
			return result, err
		}
	}
	return answered(s.prepare(ctx, req, tool), nil)
}

func (s *guarded) prepare(ctx context.Context, req *mcp.CallToolRequest, tool string) *mcp.CallToolResult {
	s.mu.Lock()
	why := s.refused[tool]
	_, known := s.defs[tool]
	s.mu.Unlock()
	switch {
	case why != "":
		return mcpserver.Failed(errors.New(why))
	case !known:
		return mcpserver.Failed(&wetink.RequestError{Field: "name", Reason: fmt.Sprintf("%s has no tool %q", s.Name, tool), Fix: "ask for the list of tools"})
	case s.denies(tool):
		return mcpserver.Failed(fmt.Errorf("%w: %s is not allowed on %s", wetink.ErrDenied, tool, s.Name))
	}
	r, err := target.Call(principal(req.Extra), tool, req.Params.Arguments)
	if err != nil {
		return mcpserver.Failed(err)
	}
	p, result := s.tools.Prepare(ctx, r)
	if p == nil {
		return result
	}
	p.Status = "prepared"
	result = mcpserver.Answer(p)
	result.Content = slices.Insert(result.Content, 0, mcp.Content(&mcp.TextContent{Text: "PREPARED, nothing has been changed yet. " + strings.TrimPrefix(p.NextStep, "Nothing has been changed. ")}))
	result.IsError = s.PreparedAsError
	return result
}

// request makes the SDK's request of a call's params, with what the client said of itself where the SDK looks for it.
func request(c Session, params json.RawMessage) (*mcp.CallToolRequest, error) {
	p := &mcp.CallToolParamsRaw{}
	if err := json.Unmarshal(params, p); err != nil {
		return nil, fmt.Errorf("the call cannot be read: %w", err)
	}
	return &mcp.CallToolRequest{Params: p, Extra: &mcp.RequestExtra{Header: map[string][]string{clientKey: {c.Client()}}}}, nil
}

// clientKey is where the name of the client stands on its way through mcpserver. No header of HTTP has such a name.
const clientKey = "\x00client"

func principal(extra *mcp.RequestExtra) wetink.Principal {
	p := wetink.Principal{Client: "unknown client"}
	if extra != nil && len(extra.Header[clientKey]) == 1 && extra.Header[clientKey][0] != "" {
		p.Client = "claims to be " + extra.Header[clientKey][0]
	}
	return p
}

// answered is a result as it is sent.
func answered(r *mcp.CallToolResult, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return plainJSON(r)
}

// maxListed changes of one answer.
const maxListed = 50

type listed struct {
	ID       wetink.ChangeID `json:"operation_id"`
	Status   string          `json:"status"`
	Headline string          `json:"headline"`
	Server   string          `json:"server"`
	Created  time.Time       `json:"created_at"`
}
