package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conns are connections to one upstream over plain HTTP/1.1, which is what serves on this machine. They know what
// left this process, they never send a request twice, and they cost less than http.Transport does.
type conns struct {
	addr, start string // start is the part of the request line behind the method

	mu     sync.Mutex
	idle   []*conn // the last used is last
	closed bool
}

// Servers close connections that are idle for some seconds (Node after 5). One that is closed the moment we write
// would leave an outcome unknown, so that we are faster.
const (
	mostIdle   = 3 * time.Second
	mostConns  = 64
	mostHeader = 1 << 20
)

type conn struct {
	net.Conn
	all   *conns
	r     *bufio.Reader
	w     []byte
	since time.Time
	quiet func() bool // the other side has neither closed it nor written to it
	abort func()      // whoever waits for it waits no longer
}

func newConns(u *url.URL) *conns {
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	return &conns{addr: addr, start: " " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n"}
}

// take returns a connection that lives, as far as can be seen without using it.
func (p *conns) take() *conn {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if time.Since(c.since) < mostIdle && c.r.Buffered() == 0 && c.quiet() {
			return c
		}
		c.Close()
	}
}

func (p *conns) give(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < mostConns
	var old *conn
	if keep {
		// The oldest are first; one a time is enough to keep none for ever.
		if len(p.idle) > 0 && time.Since(p.idle[0].since) > mostIdle {
			old = p.idle[0]
			p.idle = append(p.idle[:0], p.idle[1:]...)
		}
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
	if old != nil {
		old.Close()
	}
}

func (p *conns) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// do sends a request. sent is false only if nothing of it left this process.
func (p *conns) do(ctx context.Context, method string, header http.Header, body []byte) (resp *http.Response, sent bool, err error) {
	c := p.take()
	for {
		fresh := c == nil
		if fresh {
			d := net.Dialer{Timeout: 10 * time.Second}
			nc, err := d.DialContext(ctx, "tcp", p.addr)
			if err != nil {
				return nil, false, err
			}
			c = &conn{Conn: nc, all: p, quiet: quiet(nc), abort: func() { nc.SetDeadline(time.Unix(1, 0)) }}
			c.r = bufio.NewReaderSize(nc, 8<<10)
		}
		resp, sent, err = c.do(ctx, method, header, body)
		if err == nil || sent || fresh || ctx.Err() != nil {
			return resp, sent, err
		}
		c = nil // it was closed, and took nothing
	}
}

func (c *conn) do(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, bool, error) {
	b := append(append(c.w[:0], method...), c.all.start...)
	for key, values := range header {
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") {
				c.Close()
				return nil, false, fmt.Errorf("the header %s holds a line break", key)
			}
			b = append(append(append(append(b, key...), ": "...), v...), '\r', '\n')
		}
	}
	if body != nil {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10), '\r', '\n')
	}
	b = append(append(b, '\r', '\n'), body...)
	if c.w = b; len(b) > 64<<10 {
		c.w = nil
	}
	stop := context.AfterFunc(ctx, c.abort)
	if n, err := c.Write(b); err != nil {
		stop()
		c.Close()
		return nil, n > 0, err
	}
	for {
		resp, body, err := c.head()
		if err != nil {
			stop()
			c.Close()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return nil, true, err
		}
		if resp.StatusCode >= 200 {
			body.stop = stop
			resp.Body = body
			return resp, true, nil
		}
	}
}

// head reads the head of an answer (RFC 9112). Of the fields only those are kept that are used. A length that is told
// in two ways is refused: what follows could be taken for another answer.
func (c *conn) head() (*http.Response, *connBody, error) {
	b, err := c.line()
	if err != nil {
		return nil, nil, err
	}
	version, rest, _ := bytes.Cut(b, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	status, err := strconv.Atoi(string(code))
	if err != nil || len(code) != 3 || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return nil, nil, errors.New("it does not answer in HTTP/1.1")
	}
	// One piece of memory for all of it: this is the way of every message.
	all := &struct {
		resp http.Response
		body connBody
		text [4]string
	}{resp: http.Response{StatusCode: status, Header: make(http.Header, 2), ContentLength: -1}, body: connBody{c: c, keep: string(version) == "HTTP/1.1", left: -1}}
	resp, body, values := &all.resp, &all.body, all.text[:0]
	chunked := false
	for size := 0; ; {
		b, err := c.line()
		if err != nil {
			return nil, nil, err
		}
		if len(b) == 0 {
			break
		}
		if size += len(b); size > mostHeader {
			return nil, nil, errors.New("its header is too long")
		}
		name, value, ok := bytes.Cut(b, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return nil, nil, errors.New("a header field of its answer is none")
		}
		value = bytes.Trim(value, " \t")
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(value), 10, 62)
			if err != nil || resp.ContentLength >= 0 {
				return nil, nil, errors.New("the length of its answer is none")
			}
			resp.ContentLength = int64(n)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			if chunked || !bytes.EqualFold(value, []byte("chunked")) {
				return nil, nil, errors.New("its answer is in an encoding that was not asked for")
			}
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			body.keep = body.keep && !bytes.EqualFold(value, []byte("close"))
		default:
			for _, key := range headersDown {
				if len(name) == len(key) && bytes.EqualFold(name, []byte(key)) {
					text := "application/json" // nearly always, and a constant costs no memory
					if string(value) != text {
						text = string(value)
					}
					values = append(values, text)
					resp.Header[key] = values[len(values)-1 : len(values) : len(values)]
				}
			}
		}
	}
	switch {
	case chunked && resp.ContentLength >= 0:
		return nil, nil, errors.New("the length of its answer is told in two ways")
	case status < 200 || status == http.StatusNoContent || status == http.StatusNotModified:
		body.left, resp.ContentLength = 0, 0
	case chunked:
		body.chunks = httputil.NewChunkedReader(c.r)
	case resp.ContentLength >= 0:
		body.left = resp.ContentLength
	default:
		body.keep = false // until it is closed
	}
	return resp, body, nil
}

func (c *conn) line() ([]byte, error) {
	b, err := c.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errors.New("its header is too long")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b[:len(b)-1], []byte("\r")), nil
}

// connBody gives its connection back when it was read to the end.
type connBody struct {
	c      *conn
	chunks io.Reader // nil: not in chunks
	left   int64     // -1: until it is closed
	stop   func() bool
	keep   bool
	over   bool
}

func (b *connBody) Read(p []byte) (int, error) {
	if b.over {
		return 0, io.EOF
	}
	n, err := b.read(p)
	if b.left == 0 || errors.Is(err, io.EOF) {
		b.over, err = true, io.EOF
		if b.stop() && b.keep {
			b.c.all.give(b.c)
		} else {
			b.c.Close()
		}
	}
	return n, err
}

func (b *connBody) read(p []byte) (n int, err error) {
	switch {
	case b.chunks != nil:
		n, err = b.chunks.Read(p)
		for size := 0; errors.Is(err, io.EOF); {
			field, bad := b.c.line() // behind the last chunk
			if size += len(field); bad != nil || size > mostHeader {
				return n, io.ErrUnexpectedEOF
			}
			if len(field) == 0 {
				return n, io.EOF
			}
		}
	case b.left < 0:
		n, err = b.c.r.Read(p)
	case b.left > 0:
		n, err = b.c.r.Read(p[:min(int64(len(p)), b.left)])
		if b.left -= int64(n); errors.Is(err, io.EOF) && b.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (b *connBody) Close() error {
	if b.over {
		return nil
	}
	b.over = true
	b.stop()
	return b.c.Close()
}
