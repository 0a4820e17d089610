package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/ledger/sqlite"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// DemoCmd plays the main job on embedded parts: a simulated calendar, a ledger in a temporary folder, the real
// server, and a real MCP client in the agent's place. Nothing outside this machine is touched.
type DemoCmd struct {
	Auto bool `help:"Play the person, too: approve everything through the terminal's own channel, without asking."`
	JSON bool `name:"json" help:"Print one line a scene: {\"scene\",\"ok\",\"status\",\"effects\"}."`
}

// Run implements the command. It fails unless every scene ended as it should.
func (c *DemoCmd) Run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "wetink-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d, err := startDemo(ctx, dir)
	if err != nil {
		return err
	}
	defer d.close()
	d.out, d.in = os.Stdout, bufio.NewReader(os.Stdin)
	if c.JSON {
		d.out = io.Discard
	}
	d.auto = c.Auto
	d.say("A simulated Intervals.icu, a ledger, the wetink server and an agent, all in this process.\n")
	if c.Auto {
		d.say("--auto: this demo also plays the person, at the terminal. No other command has that.\n")
	}
	var failed []string
	for _, s := range demoScenes {
		r := d.play(ctx, s)
		if !r.OK {
			failed = append(failed, r.Scene)
		}
		if c.JSON {
			b, err := json.Marshal(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stdout, "%s\n", b)
		}
	}
	if failed != nil {
		return fmt.Errorf("not as expected: %s", strings.Join(failed, ", "))
	}
	if c.Auto {
		return nil
	}
	d.say("\nThe server goes on. Connect your own client to it:\n\n%s\n\nand approve what it prepares with\n\n  WETINK_HOME=%s wetink approve ID\n\nStop with Ctrl-C.\n", d.clientConfig(), d.home)
	<-ctx.Done()
	return nil
}

// demo is the stage: every part is real but the calendar.
type demo struct {
	sim    *intervalssim.Sim
	ledger *sqlite.Ledger
	engine *wetink.Engine
	agent  *mcp.ClientSession
	url    string
	bearer string
	user   string
	home   string

	out  io.Writer
	in   *bufio.Reader
	auto bool
	done []func()
}

func startDemo(ctx context.Context, dir string) (_ *demo, err error) {
	d := &demo{sim: intervalssim.New(&intervalssim.Options{Seed: "demo"}), bearer: rand.Text(), home: filepath.Join(dir, "home")}
	if d.user, err = terminal.User(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	simURL, err := d.sim.Serve(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.done = append(d.done, d.sim.Close)
	if d.ledger, err = sqlite.Open(filepath.Join(d.home, "ledger.db"), nil); err != nil {
		return nil, err
	}
	d.done = append(d.done, func() { _ = d.ledger.Close() })
	client := intervals.NewClient(simURL, intervals.NewKey(d.sim.APIKey()), "0")
	d.engine = wetink.New(d.ledger, map[string]wetink.Target{"intervals": intervals.New(client, nil)}, &wetink.Options{
		Policy: wetink.Floor{Level: wetink.Host, People: 1}, Verifiers: map[string]wetink.Verifier{wetink.EvidenceTerminal: terminal.Verifier()},
		AllowTokenAtTerminal: true, Mode: wetink.ModeGuarded, Owner: "demo", Sweep: 200 * time.Millisecond,
	})
	run, stop := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- d.engine.Run(run) }()
	d.done = append(d.done, func() { stop(); <-kept })

	server := mcpserver.New(d.engine, calendarSurface(client), &mcpserver.Options{Log: slog.New(slog.DiscardHandler), HowToApprove: howToApprove})
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &http.Server{Handler: mcpserver.HTTP(server, mcpserver.HTTPOptions{Bearer: d.bearer}), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.Serve(l) }()
	d.done = append(d.done, func() { _ = h.Close() })
	d.url = "http://" + l.Addr().String() + "/mcp"

	d.agent, err = mcp.NewClient(&mcp.Implementation{Name: "demo-agent", Version: version()}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: d.url, HTTPClient: &http.Client{Transport: withBearer(d.bearer)}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return nil, err
	}
	d.done = append(d.done, func() { _ = d.agent.Close() })
	return d, nil
}

func (d *demo) close() {
	for i := len(d.done) - 1; i >= 0; i-- {
		d.done[i]()
	}
}

type withBearer string

func (b withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// call is the agent calling a tool, over HTTP like any client.
func (d *demo) call(ctx context.Context, tool string, args map[string]any) (map[string]any, error) {
	shown := maps.Clone(args)
	if _, ok := shown["confirmation_token"]; ok {
		shown["confirmation_token"] = "[redacted]"
	}
	b, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	d.say("  agent → %s %.160s\n", tool, b)
	res, err := d.agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	text := ""
	if len(res.Content) > 0 {
		if t, ok := res.Content[0].(*mcp.TextContent); ok {
			text = t.Text
		}
	}
	if res.IsError {
		return nil, fmt.Errorf("%s: %s", tool, text)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if m["status"] != nil && m["next_step"] != nil {
		d.say("  server ← %v: %v\n", m["status"], m["next_step"])
	}
	return m, nil
}

// errDeclined is the person's no: it ends a scene, and is none of its faults.
var errDeclined = errors.New("declined")

// person shows the exact change, as `wetink approve` does, and asks.
func (d *demo) person(ctx context.Context, id string) (wetink.Change, error) {
	c, _, err := d.engine.Status(ctx, wetink.Principal{}, wetink.ChangeID(id), 0)
	if err != nil {
		return c, err
	}
	d.say("\n")
	if err := render.Text(d.out, render.View{Change: c}, &render.Options{Diff: intervals.Diff, Noun: "event"}); err != nil {
		return c, err
	}
	if d.auto {
		d.say("Approve? [y/N] y (played)\n\n")
		return c, nil
	}
	d.say("Approve? [y/N] ")
	answer, err := d.in.ReadString('\n')
	if err != nil {
		return c, fmt.Errorf("nobody answers (%w): run it in a terminal, or with --auto", err)
	}
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		_, err := d.engine.Reject(ctx, wetink.Principal{Person: wetink.Person(d.user)}, c.ID, "declined in the demo")
		return c, errors.Join(errDeclined, err)
	}
	d.say("\n")
	return c, nil
}

// approve is the person's yes at the terminal: the same evidence that `wetink approve` gives.
func (d *demo) approve(ctx context.Context, id string) error {
	c, err := d.person(ctx, id)
	if err != nil {
		return err
	}
	ev, err := terminal.Approve(c, d.user, time.Now())
	if err != nil {
		return err
	}
	_, err = d.engine.Approve(ctx, wetink.Principal{}, c.ID, ev)
	return err
}

// settled is the agent waiting for what the person decided.
func (d *demo) settled(ctx context.Context, id string) (map[string]any, error) {
	for range 30 {
		m, err := d.call(ctx, "get_event_change_status", map[string]any{"operation_id": id, "wait_seconds": 5})
		if err != nil {
			return nil, err
		}
		switch m["status"] {
		case "pending", "approved", "applying", "undoing", "apply_in_doubt":
		default:
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s did not settle", id)
}

// ours counts what this server changed, by the simulator's own journal.
func (d *demo) ours() int {
	n := 0
	for _, e := range d.sim.Journal() {
		if strings.HasPrefix(e.Client, "key:") {
			n++
		}
	}
	return n
}

func (d *demo) clientConfig() string {
	b, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"wetink-demo": map[string]any{
		"type": "http", "url": d.url, "headers": map[string]string{"Authorization": "Bearer " + d.bearer},
	}}}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
