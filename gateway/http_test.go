package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink/gateway"
)

// overHTTP is an upstream by URL, built on the SDK. Stateless is what serves revision 2026-07-28.
func overHTTP(t testing.TB, name string, stateless bool) gateway.Upstream {
	t.Helper()
	s := newServer(name)
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	return gateway.Upstream{Name: name, URL: h.URL}
}

func listen(t testing.TB, g *gateway.Gateway) string {
	t.Helper()
	h := httptest.NewServer(g.Handler())
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	return h.URL
}

// dial is the SDK's client in front of a gateway over HTTP.
func dial(t testing.TB, url, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, o)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestEverythingPassesBetweenAllTransportsInBothEras(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		for _, front := range []string{"stdio", "http"} {
			for _, back := range []string{"stdio", "http"} {
				if front == "stdio" && back == "stdio" {
					continue // TestEverythingPassesOnStdioInBothEras
				}
				t.Run(version+" "+front+" to "+back, func(t *testing.T) {
					t.Parallel()
					up := upstreamOf("one", "sdk")
					if back == "http" {
						up = overHTTP(t, "one", version == modern)
					}
					g, _ := newGateway(t, nil, nil, up)
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
					exercise(t, s, "", "one", progress, changed)
				})
			}
		}
	}
}

func TestTheGuardDecidesOverHTTP(t *testing.T) {
	cancelled := make(chan bool, 1)
	gd := &guard{own: []json.RawMessage{[]byte(`{"name":"change_status","inputSchema":{"type":"object"}}`)},
		tools: func(_ string, list []json.RawMessage) ([]json.RawMessage, error) {
			if len(list) != 7 {
				return nil, fmt.Errorf("%d tools", len(list))
			}
			return list[:3], nil
		},
		passes: func(_, tool string) bool { return tool == "echo" }}
	gd.call = func(ctx context.Context, s gateway.Session, upstream, tool string, params json.RawMessage) (json.RawMessage, error) {
		if tool == "wait" {
			<-ctx.Done()
			cancelled <- true
			return nil, ctx.Err()
		}
		answer := s.Client() + " " + s.Header("X-Test") + " " + tool
		if !s.Modern() {
			r, err := s.Ask(ctx, "elicitation/create", []byte(`{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}`))
			if err != nil {
				return nil, err
			}
			answer += string(r)
		}
		b, _ := json.Marshal(answer)
		return []byte(`{"content":[{"type":"text","text":` + string(b) + `}]}`), nil
	}
	for _, version := range []string{legacy, modern} {
		for _, back := range []string{"stdio", "http"} {
			t.Run(version+" "+back, func(t *testing.T) {
				up := upstreamOf("one", "sdk")
				if back == "http" {
					up = overHTTP(t, "one", version == modern)
				}
				g, _ := newGateway(t, gd, nil, up)
				s := dial(t, listen(t, g), version, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "cancel"}, nil
				}})
				r, err := s.ListTools(t.Context(), nil)
				if err != nil || len(r.Tools) != 4 || r.NextCursor != "" || r.Tools[3].Name != "change_status" {
					t.Errorf("listed %+v, %v", r, err)
				}
				if got := call(t, s, "echo", text{"hi"}); got != "one: hi" {
					t.Errorf("what passes said %q", got)
				}
				if got := call(t, s, "pid", nil); !strings.HasPrefix(got, "tester  pid") || (version == legacy) != strings.Contains(got, "cancel") {
					t.Errorf("what is guarded said %q", got)
				}
				result, sent, err := g.Upstream("one").Call(t.Context(), "echo", []byte(`{"text":"mine"}`))
				if err != nil || !sent || !strings.Contains(string(result), "one: mine") {
					t.Errorf("the guard's own call: %s, %v, %v", result, sent, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
				select {
				case <-cancelled:
				case <-time.After(10 * time.Second):
					t.Error("the guard was not told that the call was cancelled")
				}
			})
		}
	}
}

func post(t testing.TB, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Timeout: 15 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	g, _ := newGateway(t, nil, &gateway.Options{Hosts: []string{"mcp.example", "other.example:444"}, Origins: []string{"https://app.example"}}, upstreamOf("one", "sdk"))
	url := listen(t, g)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tc := range []struct {
		host, origin, site string
		allowed            bool
	}{
		{"localhost", "", "", true}, {"localhost:8080", "", "", true}, {"LOCALHOST", "", "", true}, {"127.0.0.1:1", "", "", true}, {"[::1]:80", "", "", true}, {"[::1]", "", "", true},
		{"mcp.example", "", "", true}, {"mcp.example:443", "", "", true}, {"other.example:444", "", "", true}, {"other.example", "", "", false}, {"other.example:1", "", "", false},
		{"evil.example", "", "", false}, {"localhost.", "", "", false}, {"0.0.0.0", "", "", false}, {"127.0.0.1.evil.example", "", "", false}, {"[::]:80", "", "", false}, {"127.1", "", "", false},
		{"localhost", "http://localhost", "", true}, {"localhost:8080", "http://localhost:8080", "", true}, {"localhost", "https://app.example", "", true}, {"localhost", "https://app.example", "cross-site", true},
		{"localhost", "http://evil.example", "", false}, {"localhost", "null", "", false}, {"localhost:8080", "http://localhost:9090", "", false}, {"localhost", "https://app.example.evil.example", "", false},
		{"localhost", "", "cross-site", false}, {"localhost", "", "same-origin", true}, {"localhost", "", "none", true}, {"localhost", "", "same-site", false},
		{"evil.example", "http://evil.example", "same-origin", false},
	} {
		h := []string{"Host", tc.host}
		if tc.origin != "" {
			h = append(h, "Origin", tc.origin)
		}
		if tc.site != "" {
			h = append(h, "Sec-Fetch-Site", tc.site)
		}
		status, _, _ := post(t, url, ping, h...)
		if (status != http.StatusForbidden) != tc.allowed {
			t.Errorf("host %q, origin %q, %q: HTTP %d", tc.host, tc.origin, tc.site, status)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Origin", "http://evil.example")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("GET of another origin: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestHeadersMustMatchTheBody(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "sdk"))
	url := listen(t, g)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"é"},` + meta + `}}`
	good := []string{"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "echo"}
	if status, got, _ := post(t, url, body, good...); status != 200 || !strings.Contains(got, "one: é") {
		t.Fatalf("HTTP %d: %s", status, got)
	}
	for name, h := range map[string][]string{
		"no version": {"Mcp-Method", "tools/call", "Mcp-Name", "echo"}, "other version": {"Mcp-Protocol-Version", legacy, "Mcp-Method", "tools/call", "Mcp-Name", "echo"},
		"no method": {"Mcp-Protocol-Version", modern, "Mcp-Name", "echo"}, "other method": {"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/list", "Mcp-Name", "echo"},
		"no name": {"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call"}, "other name": {"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "pid"},
		"coded other name": {"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?cGlk?="},
	} {
		if status, got, _ := post(t, url, body, h...); status != 400 || !strings.Contains(got, `"code":-32020`) {
			t.Errorf("%s: HTTP %d: %s", name, status, got)
		}
	}
	if status, got, _ := post(t, url, body, "Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?ZWNobw==?="); status != 200 {
		t.Errorf("coded name: HTTP %d: %s", status, got)
	}
}

func TestBodiesThatAreNoMessageAreRefused(t *testing.T) {
	g, _ := newGateway(t, nil, &gateway.Options{ClientBytes: 1000}, upstreamOf("one", "sdk"))
	url := listen(t, g)
	long := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 1000) + `"}`
	for _, tc := range []struct {
		body   string
		header []string
		status int
	}{
		{`[]`, nil, 400}, {``, nil, 400}, {`{`, nil, 400}, {long, nil, 413}, {`{}`, []string{"Content-Type", "text/plain"}, 415},
		{`{}`, []string{"Content-Encoding", "gzip"}, 415}, {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Content-Type", "application/json; charset=utf-8"}, 400},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Mcp-Session-Id", "unknown"}, 404},
	} {
		if status, got, _ := post(t, url, tc.body, tc.header...); status != tc.status {
			t.Errorf("%.40s %q: HTTP %d, want %d: %s", tc.body, tc.header, status, tc.status, got)
		}
	}
	r, _ := http.NewRequest(http.MethodPost, url, io.MultiReader(strings.NewReader(long))) // of no known length
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 413 {
		t.Errorf("%v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestCredentialsOfAClientNeverReachAnUpstream(t *testing.T) {
	seen := make(chan http.Header, 100)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "upstream=1")
		w.Header().Set("WWW-Authenticate", "Bearer")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
	}))
	t.Cleanup(up.Close)
	gd := &guard{passes: func(string, string) bool { return true }}
	g, _ := newGateway(t, gd, nil, gateway.Upstream{Name: "one", URL: up.URL, Header: http.Header{"Authorization": {"Bearer operator"}}})
	url := listen(t, g)
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/x"}`} {
		_, _, h := post(t, url, body, "Authorization", "Bearer client-secret", "Cookie", "session=client-secret", "Proxy-Authorization", "client-secret", "X-Forwarded-For", "client-secret", "X-Api-Key", "client-secret")
		if h.Get("Set-Cookie") != "" || h.Get("WWW-Authenticate") != "" {
			t.Errorf("the client was shown %v", h)
		}
		got := <-seen
		var b bytes.Buffer
		got.Write(&b)
		if strings.Contains(b.String(), "client-secret") || got.Get("Authorization") != "Bearer operator" {
			t.Errorf("%s: the upstream saw %s", body, b.String())
		}
	}
	r, _ := http.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Authorization", "Bearer client-secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-seen; got.Get("Authorization") != "Bearer operator" {
		t.Errorf("GET: the upstream saw %v", got)
	}
}

func TestSessionsOverHTTPAreBoundedAndEnd(t *testing.T) {
	g, _ := newGateway(t, nil, &gateway.Options{Sessions: 2, Idle: 300 * time.Millisecond, Grace: 100 * time.Millisecond}, upstreamOf("one", "sdk"))
	url := listen(t, g)
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	var ids []string
	for range 2 {
		status, got, h := post(t, url, hello)
		if status != 200 || h.Get("Mcp-Session-Id") == "" || !strings.Contains(got, "protocolVersion") {
			t.Fatalf("HTTP %d: %s", status, got)
		}
		ids = append(ids, h.Get("Mcp-Session-Id"))
	}
	if status, _, _ := post(t, url, hello); status != http.StatusServiceUnavailable {
		t.Errorf("a third session: HTTP %d", status)
	}
	r, _ := http.NewRequest(http.MethodDelete, url, nil)
	r.Header.Set("Mcp-Session-Id", ids[0])
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("%v, %v", resp, err)
	}
	resp.Body.Close()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if status, _, _ := post(t, url, ping, "Mcp-Session-Id", ids[0]); status != http.StatusNotFound {
		t.Errorf("a session that was ended: HTTP %d", status)
	}
	if status, _, _ := post(t, url, ping, "Mcp-Session-Id", ids[1]); status != http.StatusOK {
		t.Errorf("the other one: HTTP %d", status)
	}
	if status, _, _ := post(t, url, hello); status != http.StatusOK {
		t.Errorf("a session in place of the ended one: HTTP %d", status)
	}
	eventually(t, func() bool {
		status, _, _ := post(t, url, hello)
		return status == http.StatusOK
	}, "no idle session made room")
	if status, _, _ := post(t, url, ping, "Mcp-Session-Id", ids[1]); status != http.StatusNotFound {
		t.Errorf("an idle session: HTTP %d", status)
	}
}

func TestAnUpstreamThatIsNotThereIsNamedOverHTTP(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	g, _ := newGateway(t, nil, nil, gateway.Upstream{Name: "one", URL: dead.URL})
	status, got, _ := post(t, listen(t, g), `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if status != http.StatusBadGateway || !strings.Contains(got, "upstream one") || !strings.Contains(got, "not_sent") {
		t.Errorf("HTTP %d: %s", status, got)
	}
	if _, sent, err := g.Upstream("one").Call(t.Context(), "x", nil); sent || err == nil {
		t.Errorf("%v, %v", sent, err)
	}
}

func overHandler(t testing.TB, name string, h http.Handler) gateway.Upstream {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return gateway.Upstream{Name: name, URL: s.URL}
}
