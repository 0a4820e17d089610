package intervals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/wetink/wetink"
)

// net/http sends a request again, without telling, when a kept connection breaks and the request can be
// replayed: no body, or a GetBody. Neither may hold for a write.
func TestWritesAreNeverReplayable(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	c := NewClient("https://calendar.example", NewKey("k"), "")
	c.writes.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
		return nil, net.ErrClosed
	})
	for _, body := range [][]byte{[]byte(`{}`), nil} {
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			_, _ = c.write(context.Background(), method, "/x", body)
		}
	}
	for _, r := range seen {
		if r.GetBody != nil || r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != "" {
			t.Errorf("%s can be replayed", r.Method)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d requests", len(seen))
	}
	if tr := NewClient("https://calendar.example", NewKey("k"), "").writes.Transport.(*http.Transport); !tr.DisableKeepAlives {
		t.Error("write connections are kept")
	}
}

// The effect, and then the end of the connection: one request in the journal.
func TestAWriteWhoseConnectionIsCutIsSentOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	count := make(chan string, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(count)
				return
			}
			buf := make([]byte, 4096)
			n, _ := conn.Read(buf)
			count <- string(buf[:n])
			_ = conn.Close()
		}
	}()
	c := NewClient("http://"+l.Addr().String(), NewKey("k"), "")
	for _, body := range [][]byte{[]byte(`{"a":1}`), nil} {
		if _, err := c.write(context.Background(), http.MethodPut, "/x", body); err == nil {
			t.Error("no error")
		}
	}
	_ = l.Close()
	n := 0
	for range count {
		n++
	}
	if n != 2 {
		t.Errorf("%d requests for 2 writes", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return f(r)
}

func TestTheKeyPrintsAsRedacted(t *testing.T) {
	k := NewKey("secret-key")
	for _, s := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s %q", k, k, struct{ K Key }{k}, k, k)} {
		if strings.Contains(s, "secret-key") {
			t.Error(s)
		}
	}
	if s := fmt.Sprintf("%+v", NewClient("https://calendar.example", k, "")); strings.Contains(s, "secret-key") {
		t.Error(s)
	}
}

// Following one would send the request, and the key, wherever an answer points.
func TestARedirectIsNotFollowed(t *testing.T) {
	followed := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		followed++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer elsewhere.Close()
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	defer here.Close()
	c := NewClient(here.URL, NewKey("k"), "")
	var into any
	var ae *AnswerError
	if err := c.get(context.Background(), "/x", nil, &into); !errors.As(err, &ae) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.write(context.Background(), http.MethodPut, "/x", []byte("{}")); !errors.As(err, &ae) || errors.Is(err, wetink.ErrNotApplied) {
		t.Errorf("write: %v", err)
	}
	if followed != 0 {
		t.Errorf("%d redirects were followed", followed)
	}
}
