//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notebook is a stage with a server of notes that `wetink wrap` guards.
type notebook struct {
	*stage
	folder, file string
}

const notesRules = `
    pass: [get_*]
    guard:
      update_note: {read: {get_note: {id}}, undo: {update_note: {id, $restore: changed}}}
      delete_note: {read: {get_note: {id}}}
      create_note: {undo: {delete_note: {id: $result.id}}}
`

func newNotebook(t *testing.T, rules string, env ...string) *notebook {
	t.Helper()
	d := &notebook{stage: newStage(t, env...), folder: t.TempDir()}
	d.file = filepath.Join(t.TempDir(), "wetink.yaml")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("version: 1\nservers:\n  notes:\n    run: [%q]\n    env: {%s: %q, %s: \"${%[4]s}\", %[5]s: \"${%[5]s}\", %[6]s: \"${%[6]s}\"}%s",
		self, notesFolder, d.folder, notesSays, notesDies, notesExtra, rules)
	if err := os.WriteFile(d.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.put("a", `{"id":"a","title":"old","body":"kept"}`)
	return d
}

func (d *notebook) put(id, body string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.folder, id+".json"), []byte(body), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *notebook) note(id string) string {
	b, err := os.ReadFile(filepath.Join(d.folder, id+".json"))
	if err != nil {
		return ""
	}
	return string(b)
}

func (d *notebook) wrap(vars ...string) *server {
	d.t.Helper()
	set := map[string]string{notesSays: "", notesDies: "", notesExtra: ""}
	for _, v := range vars {
		k, val, _ := strings.Cut(v, "=")
		set[k] = val
	}
	cmd := d.command("wrap", "--config", d.file)
	for k, v := range set {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	sv := &server{t: d.t, cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = sv.stderr
	var err error
	sv.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(context.Background(),
		&mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, nil)
	if err != nil {
		d.t.Fatalf("start: %v\n%s", err, sv.stderr)
	}
	d.t.Cleanup(func() { _ = sv.Close() })
	return sv
}

func (s *server) names() (list []string) {
	s.t.Helper()
	res, err := s.ListTools(context.Background(), nil)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.stderr)
	}
	for _, t := range res.Tools {
		list = append(list, t.Name)
	}
	slices.Sort(list)
	return list
}

// structured calls a tool and reads its structured content.
func (s *server) structured(tool string, args map[string]any) map[string]any {
	s.t.Helper()
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, s.stderr)
	}
	if res.IsError {
		s.t.Fatalf("%s: %s\n%s", tool, res.Content[0].(*mcp.TextContent).Text, s.stderr)
	}
	b, err := json.Marshal(res.StructuredContent)
	var m map[string]any
	if err != nil || json.Unmarshal(b, &m) != nil || m == nil {
		s.t.Fatalf("%s: %s (%v)", tool, b, err)
	}
	return m
}

func (s *server) refused(tool string, args map[string]any) string {
	s.t.Helper()
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error()
	}
	if !res.IsError {
		b, _ := json.Marshal(res.Content)
		s.t.Fatalf("%s was not refused: %s", tool, b)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// becomes waits until the change stands so.
func (s *server) becomes(id any, want string) map[string]any {
	s.t.Helper()
	var m map[string]any
	for range 40 {
		if m = s.structured("change_status", map[string]any{"operation_id": id, "wait_seconds": 2}); m["status"] == want {
			return m
		}
	}
	s.t.Fatalf("it is %v, want %s: %v", m["status"], want, m["reason"])
	return nil
}

func TestAnUntouchedServerIsGuarded(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	s := d.wrap()
	if got := strings.Join(s.names(), " "); got != "change_status create_note delete_note get_note list_changes reject_change undo_change update_note" {
		t.Errorf("tools: %s", got)
	}
	if read, err := s.call("get_note", map[string]any{"id": "a"}); err != nil || read["title"] != "old" {
		t.Errorf("a read: %v %v", read, err)
	}
	p := s.structured("update_note", map[string]any{"id": "a", "title": "new"})
	if p["status"] != "prepared" || !strings.Contains(fmt.Sprint(p["diff"]), "old") || !strings.Contains(fmt.Sprint(p["diff"]), "new") {
		t.Errorf("%v", p)
	}
	if !strings.Contains(d.note("a"), `"old"`) {
		t.Fatal("it was changed before anybody approved")
	}
	id := fmt.Sprint(p["preview_id"])
	d.approve(id)
	s.becomes(id, "applied")
	if d.note("a") != `{"id":"a","title":"new","body":"kept"}` {
		t.Errorf("it is %s", d.note("a"))
	}
	u := s.structured("undo_change", map[string]any{"operation_id": id})
	undo, _ := u["undo"].(map[string]any)
	d.approve(fmt.Sprint(undo["preview_id"]))
	s.becomes(id, "undone")
	if d.note("a") != `{"id":"a","title":"old","body":"kept"}` {
		t.Errorf("undone, it is %s", d.note("a"))
	}
	l := s.structured("list_changes", map[string]any{})
	if list, _ := l["changes"].([]any); len(list) != 2 {
		t.Errorf("%v", l)
	}
}

func TestACreatedNoteIsFoundAndTakenBack(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	s := d.wrap()
	p := s.structured("create_note", map[string]any{"title": "fresh", "body": "b"})
	id := fmt.Sprint(p["preview_id"])
	d.approve(id)
	s.becomes(id, "applied")
	files, _ := filepath.Glob(filepath.Join(d.folder, "n*.json"))
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
	u := s.structured("undo_change", map[string]any{"operation_id": id})
	undo, _ := u["undo"].(map[string]any)
	d.approve(fmt.Sprint(undo["preview_id"]))
	s.becomes(id, "undone")
	if files, _ = filepath.Glob(filepath.Join(d.folder, "n*.json")); len(files) != 0 {
		t.Errorf("it is still there: %v", files)
	}
}

func TestAnEditBetweenPreviewAndApplyIsKept(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	s := d.wrap()
	p := s.structured("update_note", map[string]any{"id": "a", "title": "new"})
	d.put("a", `{"id":"a","title":"old","body":"edited"}`)
	id := fmt.Sprint(p["preview_id"])
	d.approve(id)
	m := s.becomes(id, "apply_failed")
	if d.note("a") != `{"id":"a","title":"old","body":"edited"}` || !strings.Contains(fmt.Sprint(m["reason"]), "changed since") {
		t.Errorf("%s %v", d.note("a"), m["reason"])
	}
}

func TestAServerThatDiesBeforeItsAnswerIsReadAgain(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	die := filepath.Join(t.TempDir(), "die")
	s := d.wrap(notesDies + "=" + die)
	p := s.structured("update_note", map[string]any{"id": "a", "title": "new"})
	if err := os.WriteFile(die, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(p["preview_id"])
	d.approve(id)
	s.becomes(id, "applied") // by what is read
	if d.note("a") != `{"id":"a","title":"new","body":"kept"}` {
		t.Errorf("%s", d.note("a"))
	}
}

func TestAToolThatChangedSinceItWasLookedAtIsRefusedUntilAccepted(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	if err := d.wrap().Close(); err != nil {
		t.Log(err)
	}
	first := d.wrap()
	first.names()
	_ = first.Close()

	poisoned := notesSays + "=."
	s := d.wrap(poisoned)
	if slices.Contains(s.names(), "update_note") {
		t.Error("it is shown")
	}
	if why := s.refused("update_note", map[string]any{"id": "a", "title": "new"}); !strings.Contains(why, "wetink pins") {
		t.Errorf("refused with %s", why)
	}
	_ = s.Close()

	cmd := d.command("pins", "notes", "--accept", "--config", d.file)
	cmd.Env = append(cmd.Env, poisoned, notesDies+"=", notesExtra+"=")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "Changes a note..") {
		t.Fatalf("%v: %s", err, out)
	}
	if s := d.wrap(poisoned); !slices.Contains(s.names(), "update_note") {
		t.Error("it was accepted, and is not shown")
	}
}

func TestAServersToolsDoNotStandForOurs(t *testing.T) {
	for _, name := range []string{"change_status", "undo_change", "reject_change"} {
		d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
		s := d.wrap(notesExtra + "=" + name)
		if n := len(slices.DeleteFunc(s.names(), func(s string) bool { return s != name })); n != 1 {
			t.Errorf("%s stands %d times", name, n)
		}
		if why := s.refused(name, map[string]any{"operation_id": "chg_none"}); strings.Contains(why, "upstream") {
			t.Errorf("%s went to the upstream: %s", name, why)
		}
	}
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	s := d.wrap(notesExtra + "=undo")                                                             // the Request.Tool of undos
	if why := s.refused("undo", map[string]any{}); !strings.Contains(why, "needs level reauth") { // as any tool without an undo
		t.Errorf("%s", why)
	}
}

func TestAnObservedServerIsOnlyWatched(t *testing.T) {
	d := newNotebook(t, "\n    mode: observe"+notesRules, "WETINK_APPROVAL=card")
	s := d.wrap()
	if got := strings.Join(s.names(), " "); !strings.Contains(got, "update_note") {
		t.Errorf("%s", got)
	}
	list, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if strings.Contains(tool.Description, "Guarded") {
			t.Errorf("%s says that it is guarded", tool.Name)
		}
	}
	if m, err := s.call("update_note", map[string]any{"id": "a", "title": "new"}); err != nil || m["status"] != "ok" {
		t.Fatalf("%v %v", m, err)
	}
	if !strings.Contains(d.note("a"), `"new"`) {
		t.Errorf("it is %s", d.note("a"))
	}
	if l := s.structured("list_changes", map[string]any{}); len(l["changes"].([]any)) != 0 {
		t.Errorf("%v", l)
	}
	_ = s.Close()
	if !strings.Contains(s.stderr.String(), "would have been") {
		t.Errorf("it says %s", s.stderr)
	}
}

func TestAtLevelAgentTheTokenOfThisChangeApplies(t *testing.T) {
	d := newNotebook(t, "\n    pass: [get_*]\n    guard:\n      update_note: {read: {get_note: {id}}, undo: {update_note: {id, $restore: changed}}, ask: agent}\n", "WETINK_APPROVAL=agent")
	s := d.wrap()
	p := s.structured("update_note", map[string]any{"id": "a", "title": "new"})
	o := s.structured("apply_change", map[string]any{"preview_id": p["preview_id"], "confirmation_token": p["confirmation_token"]})
	if o["status"] != "applied" || !strings.Contains(d.note("a"), `"new"`) {
		t.Fatalf("%v", o)
	}
	o = s.structured("undo_change", map[string]any{"operation_id": o["operation_id"], "undo_token": o["undo_token"]})
	if o["status"] != "undone" || !strings.Contains(d.note("a"), `"old"`) {
		t.Errorf("%v", o)
	}
}

func TestAGuardedServerIsServedOverHTTP(t *testing.T) {
	d := newNotebook(t, notesRules, "WETINK_APPROVAL=card")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := d.command("wrap", "--config", d.file, "--listen", address)
	cmd.Env = append(cmd.Env, notesSays+"=", notesDies+"=", notesExtra+"=")
	sv := &server{t: t, cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = sv.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for range 100 {
		sv.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(context.Background(),
			&mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp"}, nil)
		if err == nil {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, sv.stderr)
	}
	defer sv.Close()
	if got := sv.names(); !slices.Contains(got, "update_note") {
		t.Errorf("%v", got)
	}
	p := sv.structured("update_note", map[string]any{"id": "a", "title": "new"})
	id := fmt.Sprint(p["preview_id"])
	d.approve(id)
	sv.becomes(id, "applied")
	if !strings.Contains(d.note("a"), `"new"`) {
		t.Errorf("it is %s", d.note("a"))
	}
}
