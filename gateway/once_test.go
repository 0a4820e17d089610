package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink/gateway"
)

// An upstream that acts, and then says that it does not know the session.
func TestACallThatAnUpstreamDisownsIsNotSentAgain(t *testing.T) {
	var acted, greeted atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(b, &m)
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", greeted.Add(1)))
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"u","version":"1"}}`)
		case m.Method == "server/discover":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		case m.Method == "tools/list" && bytes.Contains([]byte(r.Header.Get("Mcp-Session-Id")), []byte("s")):
			answer(`{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call":
			acted.Add(1)
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer up.Close()
	g, err := gateway.New([]gateway.Upstream{{Name: "u", URL: up.URL}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Upstream("u").Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, sent, err := g.Upstream("u").Call(t.Context(), "pay", nil); err == nil || !sent {
		t.Errorf("sent: %t, %v", sent, err)
	}
	if n := acted.Load(); n != 1 {
		t.Errorf("it acted %d times", n)
	}
}
