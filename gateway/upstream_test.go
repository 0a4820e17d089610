package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink/gateway"
)

// The test binary is also the upstreams: what the variable says is played instead of the tests.
const play = "GATEWAY_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	switch role := os.Getenv(play); role {
	case "":
		os.Exit(m.Run())
	case "sdk":
		if err := newServer(os.Getenv("SERVER_NAME")).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "raw":
		rawServer(os.Stdin, os.Stdout)
	}
}

// upstreamOf is this binary in a role.
func upstreamOf(name, role string) gateway.Upstream {
	return gateway.Upstream{Name: name, Command: []string{os.Args[0]}, Env: append(os.Environ(), play+"="+role, "SERVER_NAME="+name)}
}

type text struct {
	Text string `json:"text"`
}

func say(t string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
}

// newServer can all that passes a gateway.
func newServer(name string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		Instructions:       "be careful with " + name,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{name + ":" + r.Params.Argument.Value}}}, nil
		},
		PageSize: 2,
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "says it again"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return say(name + ": " + in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return say(fmt.Sprint(os.Getpid())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		if in.Text != "" {
			os.WriteFile(in.Text, []byte("cancelled"), 0o600)
		}
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
			if err != nil {
				return nil, nil, err
			}
		}
		return say("worked"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if r.Params.InputResponses != nil {
			if got, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
				return say("answered: " + got.Action), nil, nil
			}
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "really?"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.AddTool(&mcp.Tool{Name: "grown", InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("grown"), nil })
		return say("ok"), nil, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greeting"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "of " + name}, nil
	})
	for i := range 3 {
		uri := fmt.Sprintf("test://%s/%d", name, i)
		s.AddResource(&mcp.Resource{Name: uri, URI: uri}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name}}}, nil
		})
	}
	return s
}

// rawServer answers each request with its params as they came, and does what some methods tell.
func rawServer(in io.Reader, out io.Writer) {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		b, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		b = bytes.TrimRight(b, "\n")
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			fmt.Fprintf(os.Stderr, "not JSON: %v\n", err)
			return
		}
		switch m.Method {
		case "die":
			os.Exit(3)
		case "say": // the text of params.text as it is
			var p struct{ Text []byte }
			json.Unmarshal(m.Params, &p)
			out.Write(append(bytes.ReplaceAll(p.Text, []byte("$ID"), m.ID), '\n'))
		case "flood":
			for i := range 100_000 {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"n":%d}}`+"\n", i)
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
		case "environment":
			env, _ := json.Marshal(os.Environ())
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"env":%s}}`+"\n", m.ID, env)
		case "hang":
		default:
			if m.ID == nil {
				continue
			}
			params := m.Params
			if params == nil {
				params = json.RawMessage("{}")
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, params)
		}
	}
}

// logged collects what a gateway logs and what its upstreams print.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newGateway(t testing.TB, guard gateway.Guard, o *gateway.Options, ups ...gateway.Upstream) (*gateway.Gateway, *logged) {
	t.Helper()
	var log logged
	if o == nil {
		o = &gateway.Options{}
	}
	o.Stderr, o.Log = &log, slog.New(slog.NewTextHandler(&log, nil))
	g, err := gateway.New(ups, guard, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, &log
}

// wire is a client that writes and reads lines.
type wire struct {
	t    testing.TB
	in   *io.PipeWriter
	out  *io.PipeReader
	r    *bufio.Reader
	done chan error
}

func serve(t testing.TB, g *gateway.Gateway) *wire {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t, inW, outR, bufio.NewReaderSize(outR, 1<<20), make(chan error, 1)}
	go func() { w.done <- g.ServeStdio(context.Background(), inR, outW) }()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		select {
		case <-w.done:
		case <-time.After(20 * time.Second):
			t.Error("ServeStdio did not end")
		}
	})
	return w
}

func (w *wire) send(lines ...string) {
	w.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(w.in, l+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *wire) read() string {
	w.t.Helper()
	late := time.AfterFunc(15*time.Second, func() { w.out.CloseWithError(errors.New("nothing came")) })
	defer late.Stop()
	b, err := w.r.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSuffix(b, "\n")
}

// until reads up to the message that holds the text.
func (w *wire) until(part string) string {
	w.t.Helper()
	for {
		if b := w.read(); strings.Contains(b, part) {
			return b
		}
	}
}

// connect is the SDK's client in front of a gateway on stdio.
func connect(t testing.TB, g *gateway.Gateway, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- g.ServeStdio(context.Background(), inR, outW) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, o)
	s, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		inW.Close()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("ServeStdio did not end")
		}
	})
	return s
}

func call(t testing.TB, s *mcp.ClientSession, tool string, args any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return said(t, r)
}

func said(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) == 0 {
		t.Fatalf("no content: %+v", r)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func errOf(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want an error that says %q", err, part)
	}
}
