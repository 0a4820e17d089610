package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink/gateway"
)

// sloppy is an HTTP server that closes connections when it likes.
func sloppy(t *testing.T, serve func(n int64, c net.Conn, r *http.Request) (again bool)) (gateway.Upstream, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if !serve(n.Add(1), c, r) {
						return
					}
				}
			}()
		}
	}()
	return gateway.Upstream{Name: "one", URL: "http://" + l.Addr().String()}, &n
}

const answer1 = `{"jsonrpc":"2.0","id":1,"result":{}}`

func TestAConnectionThatWasClosedInBetweenIsNotMissed(t *testing.T) {
	up, n := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"+answer1)
		return false // without having said so
	})
	g, _ := newGateway(t, nil, nil, up)
	url := listen(t, g)
	for i := range 20 {
		if status, got, _ := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 200 || got != answer1 {
			t.Fatalf("request %d: HTTP %d: %s", i, status, got)
		}
	}
	if n.Load() != 20 {
		t.Errorf("%d requests were sent for 20", n.Load())
	}
}

func TestARequestThatWasSentIsNeverSentAgain(t *testing.T) {
	up, n := sloppy(t, func(n int64, c net.Conn, _ *http.Request) bool {
		if n == 1 { // so that the second goes over a connection that was used
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"+answer1)
		}
		return n == 1
	})
	g, _ := newGateway(t, nil, nil, up)
	url := listen(t, g)
	post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	status, got, _ := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if status != http.StatusBadGateway || !strings.Contains(got, `"outcome":"unknown"`) || n.Load() != 2 {
		t.Errorf("HTTP %d after %d requests: %s", status, n.Load(), got)
	}
}

func TestAHeaderWithoutEndIsRefused(t *testing.T) {
	up, _ := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "X: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return false
			}
		}
	})
	g, _ := newGateway(t, nil, nil, up)
	if status, got, _ := post(t, listen(t, g), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusBadGateway || !strings.Contains(got, "too long") {
		t.Errorf("HTTP %d: %.200s", status, got)
	}
}
