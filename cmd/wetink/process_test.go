//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/ledger/sqlite"
	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// These tests run the real binary in processes of its own, on one home and one simulated calendar, and judge by
// the simulator's journal.

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wetink-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "wetink")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

type stage struct {
	t    *testing.T
	sim  *intervalssim.Sim
	url  string
	home string
	env  []string
}

func newStage(t *testing.T, env ...string) *stage {
	t.Helper()
	s := &stage{t: t, sim: intervalssim.New(&intervalssim.Options{Seed: "demo"}), home: filepath.Join(t.TempDir(), "home"), env: env}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	var err error
	if s.url, err = s.sim.Serve(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) command(args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append([]string{"HOME=" + s.t.TempDir(), "WETINK_HOME=" + s.home, "INTERVALS_URL=" + s.url, "INTERVALS_API_KEY=" + s.sim.APIKey(),
		"WETINK_WRITE_MODE=guarded", "WETINK_APPROVAL=agent"}, s.env...)
	return cmd
}

// server is a `wetink calendar` of its own, and a client on its stdio.
type server struct {
	*mcp.ClientSession
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

func (s *stage) serve() *server {
	s.t.Helper()
	cmd := s.command("calendar")
	sv := &server{t: s.t, cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = sv.stderr
	var err error
	sv.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(context.Background(),
		&mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}, nil)
	if err != nil {
		s.t.Fatalf("start the server: %v\n%s", err, sv.stderr)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = sv.Close()
	})
	return sv
}

func (s *server) call(tool string, args map[string]any) (map[string]any, error) {
	res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, err
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		return nil, fmt.Errorf("%s", text)
	}
	var m map[string]any
	return m, json.Unmarshal([]byte(text), &m)
}

func (s *server) must(tool string, args map[string]any) map[string]any {
	s.t.Helper()
	m, err := s.call(tool, args)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *stage) effects() (n int) {
	for _, e := range s.sim.Journal() {
		if strings.HasPrefix(e.Client, "key:") {
			n++
		}
	}
	return n
}

func (s *stage) writes() (n int) {
	for _, r := range s.sim.Requests() {
		if r.Method != "GET" {
			n++
		}
	}
	return n
}

// until asks for the status until it is one of those, within a minute.
func (s *server) until(id string, want ...string) string {
	s.t.Helper()
	got := ""
	for from := time.Now(); time.Since(from) < time.Minute; {
		got = fmt.Sprint(s.must("get_event_change_status", map[string]any{"operation_id": id, "wait_seconds": 1})["status"])
		for _, w := range want {
			if got == w {
				return got
			}
		}
	}
	s.t.Fatalf("%s is %s, want %v", id, got, want)
	return ""
}

func moveTo(day string) map[string]any {
	return map[string]any{"action": "update", "event_id": tempoID, "set": map[string]any{"start_date_local": day}}
}

// next is a day that is surely in the future.
func next(days int) string { return time.Now().AddDate(0, 0, 20+days).Format(time.DateOnly) }

func applyArgs(p map[string]any) map[string]any {
	return map[string]any{"preview_id": p["preview_id"], "confirmation_token": p["confirmation_token"]}
}

func TestTwoProcessesAndSixtyFourCallsMakeOneEffect(t *testing.T) {
	s := newStage(t)
	servers := []*server{s.serve(), s.serve()}
	p := servers[0].must("preview_event_change", moveTo(next(0)))
	var wg sync.WaitGroup
	for i := range 128 {
		wg.Go(func() {
			m, err := servers[i%2].call("apply_event_change", applyArgs(p))
			if err != nil || m["status"] != "applied" {
				t.Errorf("call %d: %v %v", i, m["status"], err)
			}
		})
	}
	wg.Wait()
	if s.effects() != 1 || s.writes() != 1 {
		t.Errorf("%d effects, %d writes", s.effects(), s.writes())
	}
}

func TestOwnerStoppedPastItsLeaseSendsNothingMore(t *testing.T) {
	s := newStage(t, "WETINK_LEASE=2s")
	owner, other := s.serve(), s.serve()
	p := owner.must("preview_event_change", map[string]any{"action": "bulk_delete", "event_ids": []int{tempoID, easyID}})
	id := p["preview_id"].(string)
	if err := s.sim.Fault("hold:release@DELETE", 1); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := owner.call("apply_event_change", applyArgs(p))
		answered <- err
	}()
	wait, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := s.sim.AwaitHeld(wait)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other.until(id, "apply_in_doubt")
	if s.effects() != 0 {
		t.Errorf("%d effects while it is held", s.effects())
	}
	if _, err := s.sim.Act("release", map[string]any{"request": request}); err != nil {
		t.Fatal(err)
	}
	other.until(id, "apply_partial") // it landed late, and the second was never sent
	if err := owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	owner.until(id, "apply_partial")
	if s.effects() != 1 || s.writes() != 1 {
		t.Errorf("%d effects, %d writes", s.effects(), s.writes())
	}
}

func TestServerKilledWithARequestOnTheWay(t *testing.T) {
	s := newStage(t, "WETINK_LEASE=2s")
	owner := s.serve()
	p := owner.must("preview_event_change", moveTo(next(0)))
	id := p["preview_id"].(string)
	if err := s.sim.Fault("hold:release@PUT", 1); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = owner.call("apply_event_change", applyArgs(p)) }()
	wait, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := s.sim.AwaitHeld(wait)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	again := s.serve()
	again.until(id, "apply_in_doubt")
	if _, err := s.sim.Act("release", map[string]any{"request": request}); err != nil {
		t.Fatal(err)
	}
	again.until(id, "applied")
	if m, err := again.call("apply_event_change", applyArgs(p)); err != nil || m["status"] != "applied" || m["undo_token"] == nil {
		t.Errorf("the right token, sent again: %v %v", m, err)
	}
	if s.effects() != 1 || s.writes() != 1 {
		t.Errorf("%d effects, %d writes", s.effects(), s.writes())
	}
}

func TestModeFlipsRunningServersWithinASecond(t *testing.T) {
	s := newStage(t)
	sv := s.serve()
	p := sv.must("preview_event_change", moveTo(next(0)))
	for _, mode := range []string{"off", "guarded"} {
		if out, err := s.command("mode", mode).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// At once, which is within the second that is promised: the claim reads the switch in its own transaction.
		_, err := sv.call("apply_event_change", applyArgs(p))
		if off := err != nil && strings.Contains(err.Error(), "writes are off"); off != (mode == "off") {
			t.Errorf("mode %s: %v", mode, err)
		}
	}
	if s.effects() != 1 {
		t.Errorf("%d effects", s.effects())
	}
}

// approve is what `wetink approve` does after the question.
func (s *stage) approve(id string) {
	s.t.Helper()
	l, err := sqlite.Open(filepath.Join(s.home, "ledger.db"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	e := wetink.New(l, nil, &wetink.Options{Verifiers: map[string]wetink.Verifier{wetink.EvidenceTerminal: terminal.Verifier()}})
	c, _, err := e.Status(context.Background(), wetink.Principal{}, wetink.ChangeID(id), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	ev, err := terminal.Approve(c, "ana", time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := e.Approve(context.Background(), wetink.Principal{}, c.ID, ev); err != nil {
		s.t.Fatal(err)
	}
}

func TestApprovedInOneProcessIsRunByTheServerThatHoldsTheTarget(t *testing.T) {
	s := newStage(t, "WETINK_APPROVAL=card")
	sv := s.serve()
	p := sv.must("preview_event_change", moveTo(next(0)))
	if p["confirmation_token"] != nil {
		t.Error("a token at level host")
	}
	s.approve(p["preview_id"].(string))
	sv.until(p["preview_id"].(string), "applied")
	if s.effects() != 1 {
		t.Errorf("%d effects", s.effects())
	}
}

func TestNoFileOfTheHomeAndNoLogHoldsATokenOrAKey(t *testing.T) {
	s := newStage(t)
	sv := s.serve()
	p := sv.must("preview_event_change", moveTo(next(0)))
	secrets := []string{p["confirmation_token"].(string), s.sim.APIKey()}
	a := sv.must("apply_event_change", applyArgs(p))
	secrets = append(secrets, a["undo_token"].(string))
	sv.must("undo_event_change", map[string]any{"operation_id": p["preview_id"], "undo_token": a["undo_token"]})
	if err := sv.Close(); err != nil {
		t.Log(err)
	}
	files := 0
	err := filepath.WalkDir(s.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, secret := range secrets {
			for at := 0; at+12 <= len(secret); at++ { // any part that is long enough to matter
				if part := secret[at : at+12]; bytes.Contains(b, []byte(part)) {
					t.Errorf("%s holds %s… of a secret", filepath.Base(path), part[:4])
				}
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
	for _, secret := range secrets {
		if strings.Contains(sv.stderr.String(), secret) {
			t.Error("a secret in the log")
		}
	}
}

func TestDemoPlaysAllScenes(t *testing.T) {
	s := newStage(t)
	out, err := s.command("demo", "--auto", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(demoScenes) {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	for i, line := range lines {
		var r sceneResult
		if err := json.Unmarshal([]byte(line), &r); err != nil || !r.OK || r.Scene != demoScenes[i].name || r.Status != demoScenes[i].status || r.Effects != demoScenes[i].effects {
			t.Errorf("%s %v", line, err)
		}
	}
	if _, err := os.Stat(s.home); err == nil {
		t.Error("the demo touched the home")
	}
}

func TestSimPrintsOneLineAndListensOnLoopbackOnly(t *testing.T) {
	s := newStage(t)
	cmd := s.command("sim", "intervals")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var line struct {
		URL       string `json:"url"`
		AthleteID string `json:"athlete_id"`
		APIKey    string `json:"api_key"`
	}
	if err := json.NewDecoder(out).Decode(&line); err != nil || !strings.HasPrefix(line.URL, "http://127.0.0.1:") || line.AthleteID == "" || line.APIKey == "" {
		t.Errorf("%+v %v", line, err)
	}
	if b, err := s.command("sim", "intervals", "--listen", "0.0.0.0:0").CombinedOutput(); err == nil || !strings.Contains(string(b), "loopback") {
		t.Errorf("%v %s", err, b)
	}
}

func TestAPersonsShellWithoutKeyOrModeApprovesAndUndoes(t *testing.T) {
	s := newStage(t, "WETINK_APPROVAL=card")
	sv := s.serve()
	p := sv.must("preview_event_change", moveTo(next(0)))
	id := p["preview_id"].(string)
	s.approve(id)
	sv.until(id, "applied")

	l, err := sqlite.Open(filepath.Join(s.home, "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := wetink.New(l, nil, &wetink.Options{Verifiers: map[string]wetink.Verifier{wetink.EvidenceTerminal: terminal.Verifier()}})
	ses := &session{ledger: l, engine: e}
	plan, err := ses.askServer(context.Background(), []wetink.ChangeID{wetink.ChangeID(id)})
	if err != nil || plan.Status != wetink.Pending {
		t.Fatalf("%v %s", err, plan.Status)
	}
	s.approve(string(plan.ID))
	sv.until(id, "undone")
	if s.effects() != 2 {
		t.Errorf("%d effects", s.effects())
	}
}
