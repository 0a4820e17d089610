package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Caller lets the guard itself use an upstream. On stdio it shares the client's connection once the client has
// greeted; otherwise it opens one of its own, which stays open.
type Caller struct {
	g  *Gateway
	up *upstream

	mu  sync.Mutex
	own *link
}

// Upstream is the caller of the upstream of that name, nil if there is none.
func (g *Gateway) Upstream(name string) *Caller {
	for _, u := range g.ups {
		if u.Name == name {
			return u.caller
		}
	}
	return nil
}

// Call calls a tool once and never again. sent is false only if nothing of the call left this process. An error that
// the upstream answered is an [*RPCError]; any other error of a call that was sent leaves its outcome unknown.
func (c *Caller) Call(ctx context.Context, tool string, args json.RawMessage) (result json.RawMessage, sent bool, err error) {
	if args == nil {
		args = json.RawMessage("{}")
	}
	l, err := c.link(ctx)
	if err != nil {
		return nil, false, err
	}
	a := l.ask(ctx, "tools/call", tool, append(append(append([]byte(`"name":`), quoted(tool)...), `,"arguments":`...), args...))
	result, err = a.result()
	if err != nil {
		err = fmt.Errorf("tool %s of %s: %w", tool, c.up.Name, err)
	}
	return result, a.sent, err
}

// Tools are the definitions of the upstream as they come, all pages. The guard is not asked.
func (c *Caller) Tools(ctx context.Context) ([]json.RawMessage, error) {
	l, err := c.link(ctx)
	if err != nil {
		return nil, err
	}
	_, list, err := c.g.collect(ctx, "tools", nil, func(ctx context.Context, params []byte) answer {
		at := whole(params)
		return l.ask(ctx, "tools/list", "", params[at.from+1:at.to-1])
	})
	if err != nil {
		return nil, fmt.Errorf("tools of %s: %w", c.up.Name, err)
	}
	return list, nil
}

// ownMeta is what a request of revision 2026-07-28 has to say of us.
const ownMeta = `"_meta":{"` + metaVersion + `":"` + modernVersion + `","` + metaClient + `":{"name":"wetink","version":"0"},"` + metaCapabilities + `":{}}`

// ask sends a request of the guard, with these members as its params, in the way that the connection speaks.
func (l *link) ask(ctx context.Context, method, name string, members []byte) answer {
	version := ""
	params := append([]byte{'{'}, members...)
	if e, _ := l.state(); e == eraModern {
		version = modernVersion
		if len(members) > 0 {
			params = append(params, ',')
		}
		params = append(params, ownMeta...)
	}
	return l.request(ctx, method, name, version, append(params, '}'))
}

func (c *Caller) link(ctx context.Context) (*link, error) {
	c.g.mu.Lock()
	s, closed := c.g.stdio, c.g.closed
	c.g.mu.Unlock()
	if closed {
		return nil, errors.New("the gateway is closed")
	}
	if s != nil {
		l := s.links[c.up.i]
		if e, _ := l.state(); e != eraUnknown {
			return l, nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own != nil {
		return c.own, nil
	}
	l := c.g.newLink(c.up, alone{}, false)
	if err := l.greet(ctx); err != nil {
		l.close()
		return nil, fmt.Errorf("upstream %s: %w", c.up.Name, err)
	}
	c.own = l
	return l, nil
}

// greet opens a session, or finds that the upstream wants none.
func (l *link) greet(ctx context.Context) error {
	params := []byte(`{"protocolVersion":"` + legacyVersion + `","capabilities":{},"clientInfo":{"name":"wetink","version":"0"}}`)
	a := l.request(ctx, "initialize", "", "", params)
	if a.err != nil {
		return a.err
	}
	if a.m.result.ok() {
		l.greetedWith(params)
		l.notify(requestLine(nil, "notifications/initialized", nil), "notifications/initialized", "")
		return nil
	}
	l.mu.Lock()
	l.era = eraModern
	l.mu.Unlock()
	d := l.ask(ctx, "server/discover", "", nil)
	if _, err := d.result(); err != nil {
		_, first := a.result()
		return errors.Join(first, err)
	}
	return nil
}

func (c *Caller) close() {
	c.mu.Lock()
	l := c.own
	c.own = nil
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// alone owns a connection that no client uses.
type alone struct{}

func (alone) fromUpstream(l *link, m message) {
	switch {
	case !m.id.ok():
	case m.method == "ping":
		l.notify(resultLine(m.id.of(m.raw), []byte("{}")), "", "")
	default:
		l.notify(errorLine(m.id.of(m.raw), codeMethod, "there is no client to ask", nil), "", "")
	}
}

func (alone) again(*link) {}
