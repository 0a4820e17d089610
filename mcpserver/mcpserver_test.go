package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/wetinktest"
)

var update = flag.Bool("update", false, "rewrite the committed copies in testdata")

var ctx = context.Background()

func surface() mcpserver.Surface {
	return mcpserver.Surface{
		Name: "test", Version: "v0", Target: "test", Noun: "event", Action: "action",
		Input:    &jsonschema.Schema{Type: "object"},
		Describe: "Prepares a change.",
		Reads: []mcpserver.Read{{Name: "get_thing", Description: "Reads a thing.", Input: &jsonschema.Schema{Type: "object"},
			Call: func(context.Context, json.RawMessage) (any, error) { return map[string]string{"a": "<b>"}, nil }}},
	}
}

type client struct {
	*mcp.ClientSession
	t   *testing.T
	kit *wetinktest.Kit
}

func connect(t *testing.T, o *wetink.Options) *client {
	t.Helper()
	k := wetinktest.New(t, o)
	k.Target.Put("a", `{"n":1,"x":"kept"}`)
	here, there := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(k.Engine, surface(), nil).Connect(ctx, there, nil); err != nil {
		t.Fatal(err)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &client{s, t, k}
}

func agentLevel() *wetink.Options {
	return &wetink.Options{Policy: wetink.Floor{Level: wetink.Agent, People: 1}}
}

// call returns the structured result, which must stand in content as well.
func (c *client) call(name string, args string) (map[string]any, *mcp.CallToolResult) {
	c.t.Helper()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		return map[string]any{"error": text}, res
	}
	var m, structured map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		c.t.Fatalf("content is not JSON: %s", text)
	}
	b, _ := json.Marshal(res.StructuredContent)
	if err := json.Unmarshal(b, &structured); err != nil || len(structured) != len(m) {
		c.t.Errorf("content and structuredContent differ:\n%s\n%s", text, b)
	}
	return m, res
}

const setN2 = `{"action":"update","ops":[{"action":"update","object":"a","set":{"n":2}}]}`

func TestTheArticlesResponseShape(t *testing.T) {
	c := connect(t, agentLevel())
	p, _ := c.call("preview_event_change", setN2)
	for _, field := range []string{"status", "preview_id", "confirmation_token", "expires_at", "action", "diff", "undo", "approval", "next_step"} {
		if p[field] == nil {
			t.Errorf("no %s in %v", field, p)
		}
	}
	diff := p["diff"].([]any)[0].(map[string]any)
	if p["status"] != "preview" || p["action"] != "update" || diff["field"] != "n" || diff["before"] != 1.0 || diff["after"] != 2.0 {
		t.Errorf("%v", p)
	}
	if s := p["confirmation_token"].(string); !strings.HasPrefix(s, "confirm_") || !strings.HasPrefix(p["preview_id"].(string), "chg_") {
		t.Errorf("%v", p)
	}

	a, _ := c.call("apply_event_change", `{"preview_id":"`+p["preview_id"].(string)+`","confirmation_token":"`+p["confirmation_token"].(string)+`"}`)
	if a["status"] != "applied" || a["operation_id"] != p["preview_id"] || !strings.HasPrefix(a["undo_token"].(string), "undo_") || a["undo_expires_at"] == nil {
		t.Errorf("%v", a)
	}
	s, _ := c.call("get_event_change_status", `{"operation_id":"`+p["preview_id"].(string)+`","wait_seconds":1}`)
	if s["status"] != "applied" || s["undo_token"] != nil {
		t.Errorf("%v", s)
	}
	u, _ := c.call("undo_event_change", `{"operation_id":"`+p["preview_id"].(string)+`","undo_token":"`+a["undo_token"].(string)+`"}`)
	if u["status"] != "undone" {
		t.Errorf("%v", u)
	}
	if n := len(c.kit.Target.Journal()); n != 2 {
		t.Errorf("%d effects", n)
	}
}

func TestSeveralObjectsAreDiffs(t *testing.T) {
	c := connect(t, agentLevel())
	p, _ := c.call("preview_event_change", `{"ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"delete","object":"a"}]}`)
	diffs := p["diffs"].([]any)
	first := diffs[0].(map[string]any)["diff"].([]any)[0].(map[string]any)
	second := diffs[1].(map[string]any)["diff"].([]any)[0].(map[string]any)
	if len(diffs) != 2 || p["diff"] != nil || first["before"] != nil || first["after"] != 1.0 || second["after"] != nil || second["before"] != 1.0 {
		t.Errorf("%v", p)
	}
}

func TestAboveLevelAgentNoTokenIsGivenAndApplyClaimsNothing(t *testing.T) {
	c := connect(t, nil)
	p, res := c.call("preview_event_change", setN2)
	b, _ := json.Marshal(res)
	if p["confirmation_token"] != nil || strings.Contains(string(b), "confirm_") {
		t.Errorf("a token: %s", b)
	}
	if !strings.Contains(p["next_step"].(string), "wetink approve "+p["preview_id"].(string)) {
		t.Errorf("next_step: %s", p["next_step"])
	}
	for _, args := range []string{`{"preview_id":"ID"}`, `{"preview_id":"ID","confirmation_token":"confirm_guess"}`} {
		a, _ := c.call("apply_event_change", strings.Replace(args, "ID", p["preview_id"].(string), 1))
		if a["status"] != "pending" || !strings.Contains(a["next_step"].(string), "wetink approve") {
			t.Errorf("%v", a)
		}
	}
	if n := len(c.kit.Target.Journal()); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// Every state, and every error, is searched for secrets and hashes.
func TestNoStatusErrorOrLogHoldsATokenOrHash(t *testing.T) {
	var log bytes.Buffer
	o := agentLevel()
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := connect(t, o)
	p, _ := c.call("preview_event_change", setN2)
	id, token := p["preview_id"].(string), p["confirmation_token"].(string)
	change, err := c.kit.Ledger.Get(ctx, "", wetink.ChangeID(id))
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{token, change.Tickets[0].Hash.String(), change.Statement.Digest().String()}
	look := func(what string) {
		t.Helper()
		_, res := c.call("get_event_change_status", `{"operation_id":"`+id+`"}`)
		b, _ := json.Marshal(res)
		for _, s := range secrets {
			if bytes.Contains(b, []byte(s)) || strings.Contains(log.String(), s) {
				t.Errorf("%s: %s", what, b)
			}
		}
	}
	look("pending")
	_, res := c.call("apply_event_change", `{"preview_id":"`+id+`","confirmation_token":"confirm_wrong","x":"`+token+`"}`)
	if b, _ := json.Marshal(res); bytes.Contains(b, []byte(token)) || bytes.Contains(b, []byte("confirm_wrong")) {
		t.Errorf("an error repeats a token: %s", b)
	}
	a, _ := c.call("apply_event_change", `{"preview_id":"`+id+`","confirmation_token":"`+token+`"}`)
	secrets = append(secrets, a["undo_token"].(string))
	look("applied")
	c.call("undo_event_change", `{"operation_id":"`+id+`","undo_token":"`+a["undo_token"].(string)+`"}`)
	look("undone")
}

func TestWritesOffIsSaidInThePreviewAndRefusesApply(t *testing.T) {
	o := agentLevel()
	o.Mode = wetink.ModeOff
	c := connect(t, o)
	p, _ := c.call("preview_event_change", setN2)
	if !strings.Contains(strings.Join(texts(p["warnings"]), " "), "turned off") {
		t.Errorf("%v", p)
	}
	args := `{"preview_id":"` + p["preview_id"].(string) + `","confirmation_token":"` + p["confirmation_token"].(string) + `"}`
	a, res := c.call("apply_event_change", args)
	if !res.IsError || !strings.Contains(a["error"].(string), "wetink mode guarded") {
		t.Errorf("%v", a)
	}
	if err := c.kit.Ledger.SetMode(ctx, wetink.ModeGuarded, "op"); err != nil {
		t.Fatal(err)
	}
	if a, _ := c.call("apply_event_change", args); a["status"] != "applied" {
		t.Errorf("the refusal burned something: %v", a)
	}
}

func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, s := range list {
		out = append(out, s.(string))
	}
	return out
}

func TestErrorsSayWhatToDo(t *testing.T) {
	c := connect(t, agentLevel())
	p, _ := c.call("preview_event_change", setN2)
	id := p["preview_id"].(string)
	for _, e := range []struct{ tool, args, says string }{
		{"apply_event_change", `{"preview_id":"` + id + `","confirmation_token":"confirm_x"}`, "Nothing was used up"},
		{"apply_event_change", `{"preview_id":"chg_none","confirmation_token":"confirm_x"}`, "Check the id"},
		{"apply_event_change", `{"preview_id":"` + id + `","event":{}}`, "unknown member"},
		{"apply_event_change", `{"preview_id":"` + id + `","preview_id":"` + id + `"}`, "twice"},
		{"undo_event_change", `{"operation_id":"` + id + `","undo_token":"undo_x"}`, "Nothing was used up"},
		{"undo_event_change", `{"operation_id":"` + id + `"}`, "approve it first"},
		{"get_event_change_status", `{"operation_id":"` + id + `","wait_seconds":51}`, "0 to 50"},
		{"preview_event_change", `{"ops":[{"action":"create","object":"a"}]}`, "object"},
	} {
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: e.tool, Arguments: json.RawMessage(e.args)})
		if err != nil {
			t.Errorf("%s %s: %v", e.tool, e.args, err)
			continue
		}
		if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || !strings.Contains(text, e.says) {
			t.Errorf("%s %s: %s, want %q", e.tool, e.args, text, e.says)
		}
	}
}

func TestWordsThatNobodyWouldReadAreRefusedAtPreview(t *testing.T) {
	c := connect(t, agentLevel())
	args := func(n int) string {
		return `{"ops":[{"action":"update","object":"a","set":{"n":2}}],"reason":"` + strings.Repeat("w", n) + `"}`
	}
	if _, res := c.call("preview_event_change", args(render.Limit)); res.IsError {
		t.Errorf("at the limit: %v", res.Content)
	}
	m, res := c.call("preview_event_change", args(render.Limit+1))
	if got := m["error"].(string); !res.IsError || !strings.Contains(got, "65537 bytes") || !strings.Contains(got, "shorten it") {
		t.Errorf("over it: %v", m)
	}
}

// The tool list is a security boundary: a change of it must be seen in review.
func TestToolListIsTheCommittedOne(t *testing.T) {
	c := connect(t, nil)
	list, err := c.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(list.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "tools.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("the tools differ from %s (%v); look at the difference, then run with -update", path, err)
	}
	for _, tool := range list.Tools {
		destructive := tool.Annotations.DestructiveHint != nil && *tool.Annotations.DestructiveHint
		if want := slices.Contains([]string{"apply_event_change", "undo_event_change"}, tool.Name); destructive != want {
			t.Errorf("%s: destructive %t", tool.Name, destructive)
		}
	}
	if b, err := json.Marshal(c.InitializeResult().Capabilities); err != nil || strings.Contains(string(b), "logging") {
		t.Errorf("logging is advertised: %s %v", b, err)
	}
}

func serve(t *testing.T) (*wetinktest.Kit, string) {
	t.Helper()
	k := wetinktest.New(t, agentLevel())
	k.Target.Put("a", `{"n":1}`)
	s := httptest.NewServer(mcpserver.HTTP(mcpserver.New(k.Engine, surface(), nil), mcpserver.HTTPOptions{Bearer: "sesame", Origins: []string{"https://app.example"}}))
	t.Cleanup(s.Close)
	return k, s.URL
}

func post(t *testing.T, url, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		} else if v == "" {
			req.Header.Del(k)
		} else {
			req.Header.Set(k, v)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func TestHTTPRefusesForeignOriginsHostsAndCallersWithoutBearer(t *testing.T) {
	_, url := serve(t)
	for name, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"right":               {map[string]string{"Authorization": "Bearer sesame"}, 200},
		"loopback origin":     {map[string]string{"Authorization": "Bearer sesame", "Origin": "http://127.0.0.1:6274"}, 200},
		"allowed origin":      {map[string]string{"Authorization": "Bearer sesame", "Origin": "https://app.example"}, 200},
		"no bearer":           {nil, 401},
		"wrong bearer":        {map[string]string{"Authorization": "Bearer sesamf"}, 401},
		"basic":               {map[string]string{"Authorization": "Basic sesame"}, 401},
		"foreign origin":      {map[string]string{"Authorization": "Bearer sesame", "Origin": "https://evil.example"}, 403},
		"null origin":         {map[string]string{"Authorization": "Bearer sesame", "Origin": "null"}, 403},
		"origin like ours":    {map[string]string{"Authorization": "Bearer sesame", "Origin": "https://app.example.evil.example"}, 403},
		"origin like local":   {map[string]string{"Authorization": "Bearer sesame", "Origin": "http://localhost.evil.example"}, 403},
		"foreign host":        {map[string]string{"Authorization": "Bearer sesame", "Host": "evil.example"}, 403},
		"foreign content":     {map[string]string{"Authorization": "Bearer sesame", "Content-Type": "text/plain"}, 415},
		"https local is not ": {map[string]string{"Authorization": "Bearer sesame", "Origin": "https://localhost"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if got, body := post(t, url, initialize, c.header); got != c.want {
				t.Errorf("%d %s, want %d", got, body, c.want)
			}
		})
	}
}

func TestBothErasOfTheProtocol(t *testing.T) {
	k, url := serve(t)
	auth := map[string]string{"Authorization": "Bearer sesame"}
	if code, body := post(t, url, initialize, auth); code != 200 || !strings.Contains(body, `"protocolVersion":"2025-06-18"`) || strings.Contains(body, "logging") {
		t.Errorf("initialize: %d %s", code, body)
	}
	legacy := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"preview_event_change","arguments":` + setN2 + `}}`
	if code, body := post(t, url, legacy, auth); code != 200 || !strings.Contains(body, "confirm_") {
		t.Errorf("legacy call: %d %s", code, body)
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"2"}}`
	modern := map[string]string{"Authorization": "Bearer sesame", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
	code, body := post(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{`+meta+`}}`, modern)
	if code != 200 || !strings.Contains(body, `"cacheScope":"private"`) {
		t.Errorf("modern list: %d %s", code, body)
	}
	modern["Mcp-Method"], modern["Mcp-Name"] = "tools/call", "preview_event_change"
	code, body = post(t, url, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"preview_event_change","arguments":`+setN2+`,`+meta+`}}`, modern)
	if code != 200 || !strings.Contains(body, "confirm_") {
		t.Errorf("modern call: %d %s", code, body)
	}
	clients := map[string]bool{}
	for c, err := range k.Ledger.List(ctx, wetink.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		clients[c.Request.By.Client] = true
	}
	if !clients["claims to be modern 2"] || !clients["unknown client"] {
		t.Errorf("clients: %v", clients)
	}
}

// A number beyond 2^53 and a doubled key must reach the engine as they were sent.
func TestArgumentsAreReadFromTheBytesThatArrived(t *testing.T) {
	c := connect(t, agentLevel())
	p, _ := c.call("preview_event_change", `{"ops":[{"action":"update","object":"a","set":{"n":9007199254740993}}]}`)
	change, err := c.kit.Ledger.Get(ctx, "", wetink.ChangeID(p["preview_id"].(string)))
	if err != nil || !bytes.Contains(change.Statement, []byte("9007199254740993")) {
		t.Errorf("%v %s", err, change.Statement)
	}
	for _, twice := range []string{`{"ops":[],"ops":[{"action":"delete","object":"a"}]}`, `{"ops":[],"OPS":[]}`} {
		if r, _ := c.call("preview_event_change", twice); r["error"] == nil {
			t.Errorf("accepted %s", twice)
		}
	}
}
