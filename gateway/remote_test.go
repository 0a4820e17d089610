package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestASessionThatAnUpstreamForgotIsOpenedAgain(t *testing.T) {
	sdk := func() http.Handler {
		s := newServer("one")
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	var now atomic.Pointer[http.Handler]
	h := sdk()
	now.Store(&h)
	up := overHandler(t, "one", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	g, _ := newGateway(t, nil, nil, up)
	s := connect(t, g, legacy, nil)
	call(t, s, "echo", text{"x"})
	h2 := sdk() // it was started again
	now.Store(&h2)
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: text{"lost"}}); err == nil {
		t.Error("the call that found the session gone was sent again")
	}
	if got := call(t, s, "echo", text{"hi"}); got != "one: hi" {
		t.Errorf("got %q", got)
	}
	h3 := sdk()
	now.Store(&h3)
	if _, err := s.ListTools(t.Context(), nil); err != nil { // what only reads is asked again
		t.Error(err)
	}
	if g.Restarts("one") != 2 {
		t.Errorf("%d restarts", g.Restarts("one"))
	}
}

func TestABrokenStreamIsReadOn(t *testing.T) {
	var posts atomic.Int64
	up := overHandler(t, "one", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") == "e1":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"late\":1.0}}\n\n")
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(string(body), "initialize"):
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "s")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		case r.Header.Get("Mcp-Session-Id") != "s" || r.Header.Get("Mcp-Protocol-Version") != legacy:
			w.WriteHeader(http.StatusBadRequest)
		default:
			posts.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e1\nretry: 1\ndata: \n\n")
		}
	}))
	g, _ := newGateway(t, nil, nil, up)
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.read()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	if got := w.read(); got != `{"jsonrpc":"2.0","id":1,"result":{"late":1.0}}` || posts.Load() != 1 {
		t.Errorf("after %d posts: %s", posts.Load(), got)
	}
}

func TestAStreamThatEndsWithoutAnAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	up := overHandler(t, "one", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
	}))
	g, _ := newGateway(t, nil, nil, up)
	w := serve(t, g)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	if got := w.until(`"id":1`); !strings.Contains(got, `"outcome":"unknown"`) {
		t.Errorf("got %s", got)
	}
}
