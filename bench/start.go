package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// start measures the stdio server from its exec to the answer of the first tools/list.
type start struct {
	binary string
	sim    *intervalssim.Sim
	url    string
	stop   context.CancelFunc
}

func newStart(ctx context.Context, dir string) (*start, error) {
	s := &start{binary: filepath.Join(dir, "wetink"), sim: intervalssim.New(&intervalssim.Options{Seed: "demo"})}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.binary, "./cmd/wetink")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the server (run this from the module's root): %w\n%s", err, out)
	}
	ctx, s.stop = context.WithCancel(ctx)
	var err error
	s.url, err = s.sim.Serve(ctx, "127.0.0.1:0")
	return s, err
}

func (s *start) close() { s.stop(); s.sim.Close() }

func (s *start) first(ctx context.Context, home string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, s.binary, "calendar")
	cmd.Env = append(os.Environ(), "WETINK_HOME="+home, "INTERVALS_URL="+s.url, "INTERVALS_API_KEY="+s.sim.APIKey())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	} {
		if _, err := fmt.Fprintln(in, line); err != nil {
			return 0, err
		}
	}
	r := bufio.NewReaderSize(out, 1<<20)
	var took time.Duration
	for took == 0 {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("the server ended before it answered: %w\n%s", err, stderr.String())
		}
		if strings.Contains(line, `"id":2`) && strings.Contains(line, "preview_event_change") {
			took = time.Since(from)
		}
	}
	if err := in.Close(); err != nil {
		return 0, err
	}
	return took, cmd.Wait()
}
