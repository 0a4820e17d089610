package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink/gateway"
)

func TestSeveralUpstreamsAreOne(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		for _, front := range []string{"stdio", "http"} {
			t.Run(version+" "+front, func(t *testing.T) {
				t.Parallel()
				g, log := newGateway(t, nil, &gateway.Options{StartWait: 1},
					upstreamOf("one", "sdk"), overHTTP(t, "two", version == modern), gateway.Upstream{Name: "gone", Command: []string{"/nowhere"}})
				progress := make(chan float64, 8)
				changed := make(chan bool, 8)
				o := &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
					ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
					ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "decline"}, nil
					},
				}
				var s *mcp.ClientSession
				if front == "http" {
					s = dial(t, listen(t, g), version, o)
				} else {
					s = connect(t, g, version, o)
				}
				exercise(t, s, "one__", "one", progress, changed)
				exercise(t, s, "two__", "two", progress, changed)
				for _, name := range []string{"echo", "three__echo", "one__two__echo", "gone__echo", "__echo"} {
					if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: text{"x"}}); err == nil {
						t.Errorf("%s was called", name)
					}
				}
				if !strings.Contains(log.String(), "upstream=gone") {
					t.Error("the log does not name the upstream that is not there")
				}
				if hello := s.InitializeResult(); hello != nil && !strings.Contains(hello.Instructions, "be careful with two") {
					t.Errorf("instructions %q", hello.Instructions)
				}
			})
		}
	}
}

func TestNamesThatCollideRefuseToStart(t *testing.T) {
	for _, ups := range [][]gateway.Upstream{
		{}, {upstreamOf("one", "raw"), upstreamOf("one", "raw")}, {upstreamOf("a__b", "raw")}, {upstreamOf("a_", "raw"), upstreamOf("b", "raw")}, {upstreamOf("A", "raw")}, {upstreamOf("", "raw")},
		{{Name: "one"}}, {{Name: "one", Command: []string{"x"}, URL: "http://localhost"}}, {{Name: "one", URL: "file:///etc/passwd"}}, {{Name: "one", URL: "http://user:secret@localhost"}},
	} {
		if g, err := gateway.New(ups, nil, nil); err == nil {
			g.Close()
			t.Errorf("%+v: started", ups)
		}
	}
}

func TestAToolWhoseNameIsTakenIsNamedInTheLogAndNotShown(t *testing.T) {
	gd := &guard{own: []json.RawMessage{[]byte(`{"name":"echo","inputSchema":{"type":"object"}}`)}, passes: func(string, string) bool { return true },
		tools: func(_ string, list []json.RawMessage) ([]json.RawMessage, error) { return append(list, list...), nil }}
	g, log := newGateway(t, gd, nil, upstreamOf("one", "sdk"))
	s := connect(t, g, legacy, nil)
	r, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
		if tool.Name == "echo" && tool.Description != "" {
			t.Error("the upstream's tool is shown in place of the guard's")
		}
	}
	slices.Sort(names)
	if len(names) != 7 || len(slices.Compact(names)) != 7 {
		t.Errorf("shown %q", names)
	}
	if !strings.Contains(log.String(), "tool=echo") {
		t.Error("the log does not name it")
	}
}

func TestAListThatDoesNotEndIsRefused(t *testing.T) {
	g, _ := newGateway(t, &guard{}, nil, upstreamOf("one", "raw"))
	w := serve(t, g)
	// The raw upstream answers with the params: the next page is always there.
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"nextCursor":"again","tools":[]}}`)
	if got := w.read(); !strings.Contains(got, "does not end") {
		t.Errorf("got %.300s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`)
	if got := w.read(); !strings.Contains(got, "no such page") {
		t.Errorf("got %.300s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"tools":[{"name":"a", "x":1e400}], "other" :1.0}}`)
	if got := w.read(); got != `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a", "x":1e400}], "other" :1.0}}` {
		t.Errorf("got %.300s", got)
	}
}

func TestARequestWithoutAnIDIsNoWayAroundTheGuard(t *testing.T) {
	gd := &guard{passes: func(string, string) bool { return false }}
	g, log := newGateway(t, gd, nil, upstreamOf("one", "raw"))
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.read()
	if !strings.Contains(log.String(), "without an id") {
		t.Error("it was forwarded")
	}
	called := make(chan bool, 1)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- true })
	up := overHandler(t, "one", h)
	g, _ = newGateway(t, gd, nil, up)
	if status, _, _ := post(t, listen(t, g), `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`); status != http.StatusBadRequest || len(called) != 0 {
		t.Errorf("HTTP %d, called %d times", status, len(called))
	}
}
