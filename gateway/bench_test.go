package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// canned is a request and an answer without a client or a server behind the measurement.
type canned struct {
	h      http.Header
	status int
	n      int
}

func (c *canned) Header() http.Header         { return c.h }
func (c *canned) WriteHeader(status int)      { c.status = status }
func (c *canned) Write(b []byte) (int, error) { c.n += len(b); return len(b), nil }

func BenchmarkPassOverHTTP(b *testing.B) {
	up := overHandler(b, "one", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`)
	}))
	g, _ := newGateway(b, &guard{}, nil, up)
	h := g.Handler()
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", nil)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	in := bytes.NewReader(body)
	r.Body = io.NopCloser(in)
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(body)
		w := canned{h: http.Header{}}
		h.ServeHTTP(&w, r)
		if w.status != 200 || w.n == 0 {
			b.Fatal(w)
		}
	}
}
