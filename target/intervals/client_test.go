package intervals

import (
	"context"
	"crypto/tls"
	"encoding/json"
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

// A service that offers HTTP/2, as most do: the write connections speak HTTP/1.1 and must not offer more.
func TestWritesOverTLSReachAServiceThatSpeaksHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"proto":"`+r.Proto+`"}`)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := NewClient(s.URL, NewKey("k"), "0")
	for _, h := range []*http.Client{c.reads, c.writes} {
		tr := h.Transport.(*http.Transport)
		if tr.TLSClientConfig == nil {
			tr.TLSClientConfig = &tls.Config{}
		}
		tr.TLSClientConfig.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	var v map[string]any
	if err := c.get(context.Background(), "/x", nil, &v); err != nil {
		t.Errorf("read: %v", err)
	}
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
		if b, err := c.write(context.Background(), method, "/x", []byte("{}")); err != nil {
			t.Errorf("%s: %s %v", method, b, err)
		}
	}
}

// RFC 9110 section 15.5.9: the server did not get a complete request in the time that it waits. What a proxy means
// by it is anybody's guess.
func TestA408ProvesNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestTimeout) }))
	defer s.Close()
	if _, err := NewClient(s.URL, NewKey("k"), "0").write(context.Background(), http.MethodPut, "/x", []byte("{}")); err == nil || errors.Is(err, wetink.ErrNotApplied) {
		t.Errorf("%v", err)
	}
}

// A field of tomorrow's schema may hold an object.
func TestUnmovedComparesFieldsOfAnyShape(t *testing.T) {
	snapshot := func(body string) wetink.Snapshot { return wetink.Snapshot{Object: "1", Body: json.RawMessage(body)} }
	var target *Target
	if same, moved := target.Unmoved(snapshot(`{"race":{"a":1}}`), snapshot(`{"race":{"a":2}}`)); same || len(moved) != 1 {
		t.Errorf("%t %v", same, moved)
	}
	if same, moved := target.Unmoved(snapshot(`{"race":{"a":1,"b":[1]}}`), snapshot(`{"race":{"b":[1],"a":1}}`)); !same {
		t.Errorf("%v", moved)
	}
}
