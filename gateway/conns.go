package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conns are connections to one upstream over plain HTTP/1.1, which is what serves on this machine. They know what
// left this process, they never send a request twice, and they cost a third of what http.Transport does.
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
	room  int // bytes of a header that may still come; -1: it was read
	since time.Time
	req   http.Request
}

// Read bounds the header: what reads it would keep as much as comes.
func (c *conn) Read(b []byte) (int, error) {
	if c.room == 0 {
		return 0, errors.New("its header is too long")
	}
	if c.room > 0 && len(b) > c.room {
		b = b[:c.room]
	}
	n, err := c.Conn.Read(b)
	if c.room > 0 {
		c.room -= n
	}
	return n, err
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
		if time.Since(c.since) < mostIdle && c.r.Buffered() == 0 && quiet(c.Conn) {
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
			c = &conn{Conn: nc, all: p}
			c.r = bufio.NewReaderSize(c, 4<<10)
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
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	if n, err := c.Write(b); err != nil {
		stop()
		c.Close()
		return nil, n > 0, err
	}
	c.req.Method = method
	for {
		c.room = mostHeader
		resp, err := http.ReadResponse(c.r, &c.req)
		c.room = -1
		if err != nil {
			stop()
			c.Close()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return nil, true, err
		}
		if resp.StatusCode >= 200 {
			resp.Body = &connBody{c: c, body: resp.Body, stop: stop, keep: !resp.Close}
			return resp, true, nil
		}
	}
}

// connBody gives its connection back when it was read to the end.
type connBody struct {
	c    *conn
	body io.ReadCloser
	stop func() bool
	keep bool
	over bool
}

func (b *connBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) && !b.over {
		b.over = true
		if b.stop() && b.keep {
			b.c.all.give(b.c)
		} else {
			b.c.Close()
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
