package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// Headers of a client's request that an upstream is shown, and of its answer that a client is. No others are: not the
// client's Authorization or Cookie, and not what the upstream wants to be signed in with.
var (
	headersUp   = []string{"Accept", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id"}
	headersDown = []string{"Allow", "Cache-Control", "Content-Type", "Mcp-Protocol-Version", "Mcp-Session-Id", "Retry-After"}
)

var userAgent = []string{"wetink"}

const paramHeader = "Mcp-Param-" // arguments that a tool wants in headers, too

// post sends one request to an upstream by URL, once: redirects are not followed, and nothing is sent again. sent is
// false only if nothing of it left this process.
func (g *Gateway) post(ctx context.Context, u *upstream, method string, header http.Header, body []byte) (resp *http.Response, sent bool, err error) {
	for key, values := range u.Header {
		header[http.CanonicalHeaderKey(key)] = values
	}
	if header["User-Agent"] == nil {
		header["User-Agent"] = userAgent
	}
	if u.conns != nil {
		return u.conns.do(ctx, method, header, body)
	}
	var out atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { out.Store(true) }})
	r := (&http.Request{Method: method, URL: u.url, Host: u.url.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if body != nil {
		// Without GetBody the transport cannot send it a second time.
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	resp, err = g.opt.Transport.RoundTrip(r)
	if err != nil {
		return nil, out.Load(), err
	}
	return resp, true, nil
}

// answerOf reads the one message of a JSON answer. It may have no id, if the upstream could not read ours.
func (g *Gateway) answerOf(resp *http.Response, id []byte) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(g.opt.UpstreamBytes)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > g.opt.UpstreamBytes {
		return nil, fmt.Errorf("it answered with more than %d bytes", g.opt.UpstreamBytes)
	}
	m, err := peek(b, g.opt.Depth, false)
	switch {
	case m.err.ok() && string(m.id.of(b)) == "null":
		return splice(b, edit{m.id, id}), nil
	case m.err.ok() && !m.id.ok():
		return splice(b, into(b, whole(b), "id", string(id))), nil
	case err == nil:
		return b, nil
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("it refuses the credentials that it is configured with (HTTP %d)", resp.StatusCode)
	case resp.StatusCode >= 300:
		return nil, fmt.Errorf("HTTP %d: %.200q", resp.StatusCode, b)
	}
	return nil, err
}

func isSSE(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// event is one server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html).
type event struct {
	id, retry string
	data      []byte
}

// events reads the events of a stream until it ends or got returns false.
func (g *Gateway) events(body io.Reader, got func(event) bool) error {
	r := newLines(body, g.opt.UpstreamBytes)
	r.empty = true
	var e event
	for {
		b, err := r.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		b = bytes.TrimSuffix(b, []byte("\r"))
		if len(b) == 0 {
			if !got(e) {
				return nil
			}
			e = event{id: e.id}
			continue
		}
		key, value, _ := bytes.Cut(b, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(key) {
		case "data":
			if e.data != nil {
				e.data = append(append(e.data, '\n'), value...)
			} else {
				e.data = value
			}
			if len(e.data) > g.opt.UpstreamBytes {
				return errTooLong
			}
		case "id":
			e.id = string(value)
		case "retry":
			e.retry = string(value)
		}
	}
}
