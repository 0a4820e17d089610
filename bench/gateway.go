package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink/gateway"
)

// The gateway's part: one upstream built on the SDK, asked directly, through the gateway without a guard (a proxy of
// bytes), through the gateway with one that passes the call, and through a plain proxy on the SDK. Each is a process
// of its own, which tells what it spent. This binary plays them, as the variable says.
const roleVar, roleAddr = "BENCH_ROLE", "BENCH_ADDR"

// spent is what a process tells of itself.
type spent struct {
	Mallocs uint64
	CPU     time.Duration
	RSS     int64 // bytes
}

type echoArgs struct {
	Text string `json:"text"`
}

func echoServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	return s
}

// sdkProxy is the plain way: a server whose tool calls the tool of a client.
func sdkProxy(ctx context.Context, t mcp.Transport) (*mcp.Server, error) {
	up, err := mcp.NewClient(&mcp.Implementation{Name: "proxy", Version: "1"}, nil).Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	list, err := up.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	for _, tool := range list.Tools {
		s.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return up.CallTool(ctx, &mcp.CallToolParams{Meta: r.Params.Meta, Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	return s, nil
}

// passing is a guard with a tool of its own, that passes the upstream's.
type passing struct{}

func (passing) Tools(_ context.Context, _ string, list []json.RawMessage) ([]json.RawMessage, error) {
	return list, nil
}
func (passing) Own(gateway.Session) []json.RawMessage {
	return []json.RawMessage{[]byte(`{"name":"change_status","inputSchema":{"type":"object"}}`)}
}
func (passing) Passes(_, tool string) bool { return tool == "echo" }
func (passing) Call(context.Context, gateway.Session, string, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("nothing is guarded here")
}

// play is a process of the benchmark: "server", "bytes", "guard" or "sdk", over "stdio" or "http" behind it.
func play(role string) error {
	ctx := context.Background()
	what, over, _ := strings.Cut(role, " ")
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(control, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gc" {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		statm, _ := os.ReadFile("/proc/self/statm")
		pages := 0
		if f := strings.Fields(string(statm)); len(f) > 1 {
			pages, _ = strconv.Atoi(f[1])
		}
		json.NewEncoder(w).Encode(spent{m.Mallocs, cpuTime(), int64(pages) * int64(os.Getpagesize())})
	}))
	tell := func(front string) error {
		path := os.Getenv(roleAddr)
		if err := os.WriteFile(path+".new", []byte(front+"\n"+control.Addr().String()), 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	var guard gateway.Guard
	if what == "guard" {
		guard = passing{}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), roleVar+"=server stdio", roleAddr+"="+os.Getenv(roleAddr)+".server")
	if over == "stdio" {
		if err := tell("-"); err != nil {
			return err
		}
		switch what {
		case "server":
			return echoServer().Run(ctx, &mcp.StdioTransport{})
		case "sdk":
			cmd := exec.Command(self)
			cmd.Env = env
			s, err := sdkProxy(ctx, &mcp.CommandTransport{Command: cmd})
			if err != nil {
				return err
			}
			return s.Run(ctx, &mcp.StdioTransport{})
		}
		g, err := gateway.New([]gateway.Upstream{{Name: "echo", Command: []string{self}, Env: env}}, guard, nil)
		if err != nil {
			return err
		}
		defer g.Close()
		return g.ServeStdio(ctx, os.Stdin, os.Stdout)
	}
	upstream := os.Getenv("BENCH_UPSTREAM")
	var h http.Handler
	stateless := &mcp.StreamableHTTPOptions{Stateless: over == "http", JSONResponse: true}
	switch what {
	case "server":
		one := echoServer()
		h = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, stateless)
	case "sdk":
		s, err := sdkProxy(ctx, &mcp.StreamableClientTransport{Endpoint: upstream, DisableStandaloneSSE: true})
		if err != nil {
			return err
		}
		h = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, stateless)
	default:
		g, err := gateway.New([]gateway.Upstream{{Name: "echo", URL: upstream}}, guard, nil)
		if err != nil {
			return err
		}
		defer g.Close()
		h = g.Handler()
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := tell("http://" + front.Addr().String()); err != nil {
		return err
	}
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // ends with who started it
	return http.Serve(front, h)
}

// part is such a process, and a way to call it.
type part struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	front   string
	control string
	client  *http.Client
	took    []time.Duration
	used    spent
	calls   int
}

func startPart(dir, role, upstream string) (*part, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := filepath.Join(dir, strings.ReplaceAll(role, " ", "-"))
	p := &part{cmd: exec.Command(self), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
	p.cmd.Env = append(os.Environ(), roleVar+"="+role, roleAddr+"="+addr, "BENCH_UPSTREAM="+upstream)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 1000 {
		if b, err := os.ReadFile(addr); err == nil {
			front, control, _ := strings.Cut(string(b), "\n")
			p.front, p.control = front, control
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if p.control == "" {
		p.close()
		return nil, fmt.Errorf("%s did not start", role)
	}
	if p.front != "-" {
		return p, nil
	}
	hello := `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}` + "\n"
	if _, err := io.WriteString(p.in, hello); err != nil {
		return nil, err
	}
	if _, err := p.out.ReadSlice('\n'); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	_, err = io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return p, err
}

func (p *part) close() {
	p.in.Close()
	p.cmd.Wait()
}

func (p *part) spent(path string) (s spent, err error) {
	r, err := http.Get("http://" + p.control + path)
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	return s, json.NewDecoder(r.Body).Decode(&s)
}

// slice calls n times.
func (p *part) slice(n int) error {
	before, err := p.spent("/")
	if err != nil {
		return err
	}
	for range n {
		p.calls++
		body := []byte(`{"jsonrpc":"2.0","id":` + strconv.Itoa(p.calls) + `,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a text of some length, as calls have"}}}` + "\n")
		from := time.Now()
		answer, err := p.call(body)
		p.took = append(p.took, time.Since(from))
		if err != nil || !bytes.Contains(answer, []byte("of some length")) {
			return fmt.Errorf("%q: %w", answer, errors.Join(err, errors.New("not the answer")))
		}
	}
	after, err := p.spent("/")
	p.used.Mallocs += after.Mallocs - before.Mallocs
	p.used.CPU += after.CPU - before.CPU
	return err
}

func (p *part) call(body []byte) ([]byte, error) {
	if p.front == "-" {
		if _, err := p.in.Write(body); err != nil {
			return nil, err
		}
		return p.out.ReadSlice('\n')
	}
	r, err := http.NewRequest(http.MethodPost, p.front, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"}}
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func gatewayFigures(dir string, rounds int) ([]figure, error) {
	var out []figure
	for _, over := range []string{"stdio", "http"} {
		fmt.Fprintf(os.Stderr, "gateway over %s\n", over)
		parts := map[string]*part{}
		names := []string{"server", "bytes", "guard", "sdk"}
		upstream := ""
		for _, name := range names {
			p, err := startPart(dir, name+" "+over, upstream)
			if err != nil {
				return nil, err
			}
			defer p.close()
			parts[name] = p
			if name == "server" {
				upstream = p.front
			}
		}
		const calls, slices = 100, 10
		for round := range rounds*slices + 1 {
			for i := range names {
				p := parts[names[(i+round)%len(names)]]
				if round == 1 { // the first slice is warm-up
					p.took, p.used, p.calls = p.took[:0], spent{}, 0
				}
				if err := p.slice(calls); err != nil {
					return nil, fmt.Errorf("%s over %s: %w", names[(i+round)%len(names)], over, err)
				}
			}
		}
		direct := median(parts["server"].took)
		for _, name := range names[1:] {
			what, p := map[string]string{"bytes": "gateway without a guard", "guard": "gateway", "sdk": "plain SDK proxy"}[name], parts[name]
			added := median(p.took) - direct
			beside := fmt.Sprintf("%.3g ms direct", direct.Seconds()*1e3)
			goal := func(limit float64, unit string) string {
				if name == "sdk" {
					return ""
				}
				return fmt.Sprintf("≤ %g %s", limit, unit)
			}
			ms, cpu, allocs := added.Seconds()*1e3, p.used.CPU.Seconds()*1e3/float64(p.calls), float64(p.used.Mallocs)/float64(p.calls)
			out = append(out,
				figure{what + ", " + over + ": added p50", ms, "ms", beside, median(p.took).Seconds() / direct.Seconds(), goal(0.15, "ms"), ms <= 0.15},
				figure{what + ", " + over + ": CPU per call", cpu, "ms", "", 0, goal(0.10, "ms"), cpu <= 0.10},
				figure{what + ", " + over + ": allocations per call", allocs, "", "", 0, goal(40, ""), allocs <= 40})
		}
	}
	rss, err := manySessions(dir, 500)
	if err != nil {
		return nil, err
	}
	out = append(out, figure{"gateway: RSS, 500 sessions HTTP to HTTP", float64(rss) / (1 << 20), "MiB", "", 0, "≤ 256 MiB", rss <= 256<<20})
	return out, nil
}

// manySessions opens sessions, each with its stream, calls in each, and returns what the gateway's process holds.
func manySessions(dir string, n int) (int64, error) {
	fmt.Fprintf(os.Stderr, "%d sessions\n", n)
	server, err := startPart(dir, "server sessions", "")
	if err != nil {
		return 0, err
	}
	defer server.close()
	g, err := startPart(dir, "guard sessions", server.front)
	if err != nil {
		return 0, err
	}
	defer g.close()
	send := func(method, session, body string) (*http.Response, error) {
		r, err := http.NewRequest(method, g.front, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			r.Header["Mcp-Session-Id"] = []string{session}
		}
		return g.client.Do(r)
	}
	var wg sync.WaitGroup
	errs := make(chan error, n)
	limit := make(chan bool, 16)
	for range n {
		wg.Go(func() {
			limit <- true
			defer func() { <-limit }()
			resp, err := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`)
			if err != nil {
				errs <- err
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			session := resp.Header.Get("Mcp-Session-Id")
			stream, err := send(http.MethodGet, session, "")
			if err != nil || stream.StatusCode != http.StatusOK || session == "" {
				errs <- fmt.Errorf("no stream in session %q: %w", session, errors.Join(err, errors.New("HTTP "+fmt.Sprint(stream))))
				return
			}
			for i := range 5 {
				resp, err := send(http.MethodPost, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`, i+1))
				if err != nil {
					errs <- err
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	s, err := g.spent("/")
	return s.RSS, err
}
