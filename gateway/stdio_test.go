package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink/gateway"
)

const legacy, modern = "2025-11-25", "2026-07-28"

// guard passes what it is told to, and answers the rest.
type guard struct {
	own    []json.RawMessage
	tools  func(upstream string, list []json.RawMessage) ([]json.RawMessage, error)
	passes func(upstream, tool string) bool
	call   func(ctx context.Context, s gateway.Session, upstream, tool string, params json.RawMessage) (json.RawMessage, error)
}

func (g *guard) Tools(_ context.Context, upstream string, list []json.RawMessage) ([]json.RawMessage, error) {
	if g.tools == nil {
		return list, nil
	}
	return g.tools(upstream, list)
}
func (g *guard) Own(gateway.Session) []json.RawMessage { return g.own }
func (g *guard) Passes(upstream, tool string) bool {
	return g.passes == nil || g.passes(upstream, tool)
}
func (g *guard) Call(ctx context.Context, s gateway.Session, upstream, tool string, params json.RawMessage) (json.RawMessage, error) {
	return g.call(ctx, s, upstream, tool, params)
}

func TestEverythingPassesOnStdioInBothEras(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, _ := newGateway(t, nil, nil, upstreamOf("one", "sdk"))
			progress := make(chan float64, 8)
			changed := make(chan bool, 8)
			s := connect(t, g, version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
				ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
			})
			exercise(t, s, "", "one", progress, changed)
		})
	}
}

// exercise uses all that a server built by newServer can.
func exercise(t *testing.T, s *mcp.ClientSession, prefix, name string, progress chan float64, changed chan bool) {
	t.Helper()
	ctx := t.Context()
	if got := call(t, s, prefix+"echo", text{"hi"}); got != name+": hi" {
		t.Errorf("echo said %q", got)
	}
	var tools []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool.Name)
	}
	if !slices.Contains(tools, prefix+"work") || !slices.Contains(tools, prefix+"ask") {
		t.Errorf("listed %q", tools)
	}
	params := &mcp.CallToolParams{Name: prefix + "work"}
	params.SetProgressToken("tok")
	if _, err := s.CallTool(ctx, params); err != nil {
		t.Error(err)
	}
	for i := range 3 {
		select {
		case p := <-progress:
			if p != float64(i) {
				t.Errorf("progress %v, want %d", p, i)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no progress")
		}
	}
	if got := call(t, s, prefix+"ask", nil); got != "answered: decline" {
		t.Errorf("ask said %q", got)
	}
	p, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + "greeting"})
	if err != nil || p.Description != "of "+name {
		t.Errorf("prompt %+v, %v", p, err)
	}
	n := 0
	for _, err := range s.Resources(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 3 {
		t.Errorf("%d resources", n)
	}
	r, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://" + name + "/1"})
	if err != nil || r.Contents[0].Text != name {
		t.Errorf("resource %+v, %v", r, err)
	}
	c, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prefix + "greeting"},
		Argument: mcp.CompleteParamsArgument{Name: "a", Value: "x"}})
	if err != nil || c.Completion.Values[0] != name+":x" {
		t.Errorf("completion %+v, %v", c, err)
	}
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: prefix + "nothing"}); err == nil {
		t.Error("an unknown tool was called")
	}
	call(t, s, prefix+"grow", nil)
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Error("the client was not told that the tools changed")
	}
}

func TestACancelledCallIsCancelledUpstream(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, _ := newGateway(t, nil, nil, upstreamOf("one", "sdk"))
			s := connect(t, g, version, nil)
			mark := filepath.Join(t.TempDir(), "cancelled")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: text{mark}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, "the upstream was not told")
			call(t, s, "echo", text{"still there"})
		})
	}
}

// eventually waits for what another process does.
func eventually(t testing.TB, done func() bool, what string) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.After(15 * time.Second)
	for !done() {
		select {
		case <-look.C:
		case <-late:
			t.Fatal(what)
		}
	}
}

func TestACallInFlightWhenTheUpstreamDiesIsAnsweredAsUnknown(t *testing.T) {
	g, log := newGateway(t, nil, nil, upstreamOf("one", "sdk"))
	s := connect(t, g, legacy, nil)
	before := call(t, s, "pid", nil)
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "die"})
	var e *jsonrpc.Error
	if !errors.As(err, &e) || string(e.Data) != `{"outcome":"unknown"}` || !strings.Contains(e.Message, "not known") {
		t.Errorf("got %v", err)
	}
	// The session lives on in a new process, which was greeted as the first was.
	if after := call(t, s, "pid", nil); after == before {
		t.Error("the process did not die")
	}
	if n := g.Restarts("one"); n != 1 {
		t.Errorf("%d restarts", n)
	}
	if !strings.Contains(log.String(), "exit status 3") {
		t.Errorf("the log does not say why: %s", log)
	}
}

func TestAnUpstreamThatCannotBeStartedIsNamed(t *testing.T) {
	g, _ := newGateway(t, nil, nil, gateway.Upstream{Name: "one", Command: []string{"/nowhere/at all; touch x"}})
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if got := w.read(); !strings.Contains(got, "upstream one") || !strings.Contains(got, `"outcome":"not_sent"`) {
		t.Errorf("got %s", got)
	}
}

func TestAnUpstreamDoesNotInheritOurOwnSettings(t *testing.T) {
	t.Setenv("WETINK_SECRET", "s3cret")
	t.Setenv(play, "raw")
	g, _ := newGateway(t, nil, nil, gateway.Upstream{Name: "one", Command: []string{os.Args[0]}})
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"environment"}`)
	if got := w.read(); strings.Contains(got, "s3cret") || !strings.Contains(got, play) {
		t.Errorf("got %s", got)
	}
}

func TestAFloodOfChangedListsIsBounded(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "raw"))
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"flood"}`)
	told := 0
	began := time.Now()
	for !strings.Contains(w.read(), `"id":1`) {
		told++
	}
	most := 2 + int(time.Since(began)/(200*time.Millisecond))
	if told == 0 || told > most {
		t.Errorf("told %d times in %v, want 1 to %d", told, time.Since(began), most)
	}
}

func TestASlowReaderHoldsItsOwnUpstreamOnly(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "raw"))
	w := serve(t, g)
	big := strings.Repeat("x", 1<<20)
	go func() { // does not read while it writes more than any pipe holds
		for i := range 20 {
			fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"big":"%s"}}`+"\n", i, big)
		}
	}()
	for i := range 20 {
		if got := w.read(); !strings.Contains(got, fmt.Sprintf(`"id":%d,`, i)) || len(got) < len(big) {
			t.Fatalf("answer %d is %d bytes", i, len(got))
		}
	}
}

func TestOddIDsComeBackToTheByte(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "sdk"))
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	w.read()
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, id := range []string{`1`, `1.0`, `1e2`, `-0`, `9007199254740993`, `"a"`, `"1"`, `"a\u0062"`, `"<é>"`, `"\ud800"`, `123456789012345678901234567890`} {
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if got := w.read(); !strings.Contains(got, `"id":`+id+`,`) {
			t.Errorf("%s came back as %s", id, got)
		}
	}
}

func TestTheGuardDecidesAboutEachTool(t *testing.T) {
	cancelled := make(chan bool, 1)
	gd := &guard{
		own: []json.RawMessage{[]byte(`{"name":"change_status","inputSchema":{"type":"object"}}`), []byte(`{"name":"pid","inputSchema":{"type":"object"}}`)},
		tools: func(upstream string, list []json.RawMessage) ([]json.RawMessage, error) {
			if len(list) != 7 { // all pages
				return nil, fmt.Errorf("%d tools", len(list))
			}
			return slices.DeleteFunc(list, func(d json.RawMessage) bool { return strings.Contains(string(d), `"die"`) }), nil
		},
		passes: func(_, tool string) bool { return tool == "echo" || tool == "pid" },
	}
	gd.call = func(ctx context.Context, s gateway.Session, upstream, tool string, params json.RawMessage) (json.RawMessage, error) {
		switch tool {
		case "wait":
			<-ctx.Done()
			cancelled <- true
			return nil, ctx.Err()
		case "ask":
			if s.Modern() {
				return []byte(`{"content":[{"type":"text","text":"modern"}]}`), nil
			}
			r, err := s.Ask(ctx, "elicitation/create", []byte(`{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}`))
			if err != nil {
				return nil, err
			}
			t, _ := json.Marshal(string(r))
			return []byte(`{"content":[{"type":"text","text":` + string(t) + `}]}`), nil
		case "die":
			return nil, errors.New("not today")
		}
		t, _ := json.Marshal(fmt.Sprintf("guarded %s/%s by %s: %s", upstream, tool, s.Client(), params))
		return []byte(`{"content":[{"type":"text","text":` + string(t) + `}]}`), nil
	}
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			g, _ := newGateway(t, gd, nil, upstreamOf("one", "sdk"))
			s := connect(t, g, version, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "cancel"}, nil
			}})
			var tools []string
			for tool, err := range s.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				tools = append(tools, tool.Name)
			}
			slices.Sort(tools)
			if want := []string{"ask", "change_status", "echo", "grow", "pid", "wait", "work"}; !slices.Equal(tools, want) {
				t.Errorf("listed %q, want %q", tools, want)
			}
			if got := call(t, s, "echo", text{"hi"}); got != "one: hi" {
				t.Errorf("what passes said %q", got)
			}
			if got := call(t, s, "work", map[string]any{"n": 1}); !strings.HasPrefix(got, "guarded one/work by tester: ") || !strings.Contains(got, `"arguments":{"n":1}`) {
				t.Errorf("what is guarded said %q", got)
			}
			if got := call(t, s, "pid", nil); !strings.HasPrefix(got, "guarded /pid") {
				t.Errorf("the upstream's tool of the guard's name said %q", got)
			}
			want := `{"action":"cancel"`
			if version == modern {
				want = "modern"
			}
			if got := call(t, s, "ask", nil); !strings.HasPrefix(got, want) {
				t.Errorf("ask said %q", got)
			}
			_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "die"})
			errOf(t, err, "not today")
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
			select {
			case <-cancelled:
			case <-time.After(10 * time.Second):
				t.Error("the guard was not told that the call was cancelled")
			}
			c := g.Upstream("one")
			result, sent, err := c.Call(t.Context(), "echo", []byte(`{"text":"mine"}`))
			if err != nil || !sent || !strings.Contains(string(result), "one: mine") {
				t.Errorf("the guard's own call: %s, %v, %v", result, sent, err)
			}
			list, err := c.Tools(t.Context())
			if err != nil || len(list) != 7 {
				t.Errorf("the guard's own list: %d, %v", len(list), err)
			}
			var e *gateway.RPCError
			if _, sent, err = c.Call(t.Context(), "nothing", nil); !errors.As(err, &e) || !sent {
				t.Errorf("the guard's call of nothing: %v, %v", sent, err)
			}
		})
	}
}

func TestAGuardWithoutAClientOpensAConnectionOfItsOwn(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "sdk"), gateway.Upstream{Name: "gone", Command: []string{"/nowhere"}})
	if r, sent, err := g.Upstream("one").Call(t.Context(), "echo", []byte(`{"text":"x"}`)); err != nil || !sent {
		t.Errorf("%s, %v, %v", r, sent, err)
	}
	if _, sent, err := g.Upstream("gone").Call(t.Context(), "echo", nil); err == nil || sent {
		t.Errorf("%v, %v", sent, err)
	}
	if _, sent, err := g.Upstream("one").Call(t.Context(), "die", nil); err == nil || !sent {
		t.Errorf("a call that killed it: sent %v, %v", sent, err)
	}
	if _, _, err := g.Upstream("one").Call(t.Context(), "echo", []byte(`{"text":"x"}`)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOpenRequestsAreBounded(t *testing.T) {
	blocked := make(chan bool)
	gd := &guard{passes: func(string, string) bool { return false }}
	gd.call = func(ctx context.Context, _ gateway.Session, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-blocked
		return []byte(`{}`), nil
	}
	g, _ := newGateway(t, gd, &gateway.Options{Calls: 1, InFlight: 3}, upstreamOf("one", "raw"))
	w := serve(t, g)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`
	w.send(fmt.Sprintf(call, 1), fmt.Sprintf(call, 2))
	if got := w.read(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "too many guarded calls") {
		t.Errorf("got %s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := w.read(); !strings.Contains(got, "with this id is still open") {
		t.Errorf("got %s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"hang"}`, `{"jsonrpc":"2.0","id":4,"method":"hang"}`, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if got := w.read(); !strings.Contains(got, `"id":5`) || !strings.Contains(got, "too many requests") {
		t.Errorf("got %s", got)
	}
	close(blocked)
	if got := w.read(); !strings.Contains(got, `"id":1,"result":{}`) {
		t.Errorf("got %s", got)
	}
}
