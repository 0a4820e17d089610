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
func sloppy(t *testing.T, serve func(n int64, c net.Conn, r *http.Request) (again bool)) (up gateway.Upstream, requests, closed *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n, over atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer over.Add(1)
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
	return gateway.Upstream{Name: "one", URL: "http://" + l.Addr().String()}, &n, &over
}

const answer1 = `{"jsonrpc":"2.0","id":1,"result":{}}`

func TestAConnectionThatWasClosedInBetweenIsNotMissed(t *testing.T) {
	up, n, closed := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"+answer1)
		return false // without having said so
	})
	g, _ := newGateway(t, nil, nil, up)
	url := listen(t, g)
	for i := range 20 {
		if status, got, _ := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 200 || got != answer1 {
			t.Fatalf("request %d: HTTP %d: %s", i, status, got)
		}
		eventually(t, func() bool { return closed.Load() == int64(i)+1 }, "it is not closed")
	}
	if n.Load() != 20 {
		t.Errorf("%d requests were sent for 20", n.Load())
	}
}

func TestARequestThatWasSentIsNeverSentAgain(t *testing.T) {
	up, n, _ := sloppy(t, func(n int64, c net.Conn, _ *http.Request) bool {
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
	up, _, _ := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for range 4000 {
			if _, err := io.WriteString(c, "X: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return false
			}
		}
		io.WriteString(c, "Content-Length: 36\r\n\r\n"+answer1)
		return false
	})
	g, _ := newGateway(t, nil, nil, up)
	if status, got, _ := post(t, listen(t, g), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusBadGateway || !strings.Contains(got, "too long") {
		t.Errorf("HTTP %d: %.200s", status, got)
	}
}

func TestAnswersThatCouldBeTakenForOthersAreRefused(t *testing.T) {
	for _, head := range []string{
		"Content-Length: 36\r\nContent-Length: 36", "Content-Length: 36\r\nTransfer-Encoding: chunked", "Content-Length: -1", "Content-Length: +36", "Content-Length: 0x24",
		"Transfer-Encoding: gzip, chunked", "Content-Length : 36", " Content-Length: 36", "no field",
	} {
		up, _, _ := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+head+"\r\n\r\n"+answer1)
			return true
		})
		g, _ := newGateway(t, nil, nil, up)
		if status, got, _ := post(t, listen(t, g), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusBadGateway || !strings.Contains(got, "unknown") {
			t.Errorf("%q: HTTP %d: %s", head, status, got)
		}
	}
}

func TestAnswersOfAnyFramingAreRead(t *testing.T) {
	for _, rest := range []string{
		"Content-Length: 36\r\n\r\n" + answer1,
		"transfer-encoding:  Chunked\r\n\r\n10\r\n" + answer1[:16] + "\r\n14;x=y\r\n" + answer1[16:] + "\r\n0\r\nTrailer: x\r\n\r\n",
		"Connection: close\r\n\r\n" + answer1,
	} {
		up, n, _ := sloppy(t, func(_ int64, c net.Conn, _ *http.Request) bool {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\ncontent-type: application/json\r\n"+rest)
			return !strings.HasPrefix(rest, "Connection")
		})
		g, _ := newGateway(t, nil, nil, up)
		url := listen(t, g)
		for range 3 {
			if status, got, h := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusOK || got != answer1 || h.Get("Content-Type") != "application/json" {
				t.Errorf("%q: HTTP %d: %s", rest, status, got)
			}
		}
		if n.Load() != 3 {
			t.Errorf("%d requests", n.Load())
		}
	}
}
