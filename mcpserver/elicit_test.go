package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/wetinktest"
)

const page = "http://localhost:7433/c/"

func linked() *mcpserver.Options {
	return &mcpserver.Options{Link: func(c wetink.Change) string { return page + string(c.ID) }}
}

// asked is a client that opens links. opens says what its user does, and what the client reports.
func asked(t *testing.T, revision string, caps *mcp.ElicitationCapabilities, opens func(k *wetinktest.Kit, id wetink.ChangeID) string) (*client, *int) {
	t.Helper()
	k := wetinktest.New(t, nil)
	k.Target.Put("a", `{"n":1,"x":"kept"}`)
	here, there := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(k.Engine, surface(), linked()).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	questions := 0
	o := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Elicitation: caps}}
	if caps != nil {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			questions++
			id := wetink.ChangeID(strings.TrimPrefix(r.Params.URL, page))
			if r.Params.Mode != "url" || r.Params.RequestedSchema != nil {
				t.Errorf("asked by %q with %v", r.Params.Mode, r.Params.RequestedSchema)
			}
			return &mcp.ElicitResult{Action: opens(k, id)}, nil
		}
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, o).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &client{s, t, k}, &questions
}

var opensLinks = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}

// revisions of the protocol: the newer one answers with input_required, the older one asks the client in a request of
// its own.
var revisions = []string{"2026-07-28", "2025-11-25"}

func TestAClientThatOpensLinksIsAskedToAndHearsWhatThePageSaid(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) { asksAndHears(t, revision) })
	}
}

func asksAndHears(t *testing.T, revision string) {
	c, questions := asked(t, revision, opensLinks, func(k *wetinktest.Kit, id wetink.ChangeID) string {
		change, err := k.Ledger.Get(ctx, "", id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Approve(ctx, wetinktest.By, id, wetinktest.Vouch(change, wetink.Session, "bo")); err != nil {
			t.Error(err)
		}
		if _, _, err := k.Apply(ctx, wetinktest.By, id, nil); err != nil {
			t.Error(err)
		}
		return "accept"
	})
	p, _ := c.call("preview_event_change", setN2)
	if !strings.Contains(p["next_step"].(string), page) {
		t.Errorf("the link is not in the text: %v", p["next_step"])
	}
	a, _ := c.call("apply_event_change", `{"preview_id":"`+string(id(p))+`"}`)
	if a["status"] != "applied" || *questions != 1 {
		t.Errorf("%v after %d questions", a, *questions)
	}
}

// What a client says of its user proves nothing: hooks and flags answer, too.
func TestNoAnswerToAQuestionIsAnApproval(t *testing.T) {
	for i, action := range []string{"accept", "accept", "decline", "cancel"} {
		synctest.Test(t, func(t *testing.T) {
			c, questions := asked(t, revisions[i%2], opensLinks, func(*wetinktest.Kit, wetink.ChangeID) string { return action })
			p, _ := c.call("preview_event_change", setN2)
			began := time.Now()
			a, _ := c.call("apply_event_change", `{"preview_id":"`+string(id(p))+`"}`)
			if a["status"] != "pending" || *questions != 1 || !strings.Contains(a["next_step"].(string), page) {
				t.Errorf("%s: %v after %d questions", action, a, *questions)
			}
			if waited := time.Since(began); (action == "accept") != (waited >= 50*time.Second) || waited > 51*time.Second {
				t.Errorf("%s: it waited %s", action, waited)
			}
			if n := len(c.kit.Target.Journal()); n != 0 {
				t.Errorf("%s: %d effects", action, n)
			}
		})
	}
}

func TestAClientThatDeclaredNoLinksIsNotAsked(t *testing.T) {
	for name, caps := range map[string]*mcp.ElicitationCapabilities{
		"nothing": nil, "no mode": {}, "forms": {Form: &mcp.FormElicitationCapabilities{}},
	} {
		t.Run(name, func(t *testing.T) {
			c, questions := asked(t, revisions[0], caps, func(*wetinktest.Kit, wetink.ChangeID) string { return "accept" })
			p, _ := c.call("preview_event_change", setN2)
			a, _ := c.call("apply_event_change", `{"preview_id":"`+string(id(p))+`"}`)
			if a["status"] != "pending" || *questions != 0 || !strings.Contains(a["next_step"].(string), page) {
				t.Errorf("%v after %d questions", a, *questions)
			}
		})
	}
}

// On the wire of revision 2026-07-28, where anyone who can post a call can post an answer with it.
func TestAnAnswerNeedsTheQuestionThatItAnswers(t *testing.T) {
	k := wetinktest.New(t, nil)
	k.Target.Put("a", `{"n":1,"x":"kept"}`)
	h := httptest.NewServer(mcpserver.HTTP(mcpserver.New(k.Engine, surface(), linked()), mcpserver.HTTPOptions{Bearer: "sesame"}))
	defer h.Close()
	call := func(name, args, more string) (result map[string]any) {
		t.Helper()
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}},"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"2"}}`
		header := map[string]string{"Authorization": "Bearer sesame", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
		code, body := post(t, h.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`,`+more+meta+`}}`, header)
		var answer struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 {
			t.Fatalf("%d %s %v", code, body, err)
		}
		return answer.Result
	}
	preview := func() string {
		return call("preview_event_change", setN2, "")["structuredContent"].(map[string]any)["preview_id"].(string)
	}
	first, second := preview(), preview()
	apply := func(id, more string) map[string]any {
		return call("apply_event_change", `{"preview_id":"`+id+`"}`, more)
	}

	q := apply(first, "")
	b, _ := json.Marshal(q["inputRequests"])
	if q["resultType"] != "input_required" || !strings.Contains(string(b), `"url":"`+page+first+`"`) || !strings.Contains(string(b), `"method":"elicitation/create"`) {
		t.Fatalf("%v", q)
	}
	if strings.Contains(string(b), "confirm_") || q["content"] != nil {
		t.Errorf("%v", q)
	}
	state := q["requestState"].(string)
	answered := func(state string) string {
		return `"inputResponses":{"approval":{"action":"decline"}},"requestState":"` + state + `",`
	}
	if r := apply(first, answered(state)); r["isError"] == true {
		t.Errorf("the right answer: %v", r)
	}
	for name, more := range map[string]struct{ id, state string }{
		"none": {first, ""}, "another change's": {second, state}, "a changed one": {first, "B" + state[1:]}, "garbage": {first, "%%"},
		"a shorter one": {first, state[:20]},
	} {
		if r := apply(more.id, answered(more.state)); r["isError"] != true {
			t.Errorf("state %s was taken: %v", name, r)
		}
	}
	if n := len(k.Target.Journal()); n != 0 {
		t.Errorf("%d effects", n)
	}
}
