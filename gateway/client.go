package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// client is the [Session] of one call.
type client struct {
	s      *session
	x      *exchange
	meta   []byte // params._meta
	header http.Header
	hello  []byte                                                                                    // params of initialize, where they are not the session's
	asker  func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) // instead of s
}

func (c *client) Client() string {
	info := c.metaValue(metaClient)
	if info == nil {
		hello := c.greeting()
		at, _ := member(hello, whole(hello), "clientInfo")
		info = at.of(hello)
	}
	at, _ := member(info, whole(info), "name")
	name, _ := text(info, at)
	return name
}

func (c *client) Capabilities() json.RawMessage {
	if caps := c.metaValue(metaCapabilities); caps != nil {
		return caps
	}
	hello := c.greeting()
	if at, _ := member(hello, whole(hello), "capabilities"); at.ok() {
		return at.of(hello)
	}
	return nil
}

func (c *client) greeting() []byte {
	if c.hello == nil && c.s != nil {
		return c.s.helloParams()
	}
	return c.hello
}

func (c *client) Modern() bool { return c.metaValue(metaVersion) != nil }

func (c *client) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch {
	case c.Modern():
		return nil, errors.New("a client of revision 2026-07-28 is not asked but answered input_required")
	case c.asker != nil:
		return c.asker(ctx, method, params)
	case c.s == nil || c.s.ctx == nil:
		return nil, errors.New("there is no client to ask")
	}
	return c.s.ask(ctx, c.x, method, params)
}

func (c *client) Header(name string) string { return c.header.Get(name) }

func (c *client) metaValue(key string) json.RawMessage {
	at, _ := member(c.meta, whole(c.meta), key)
	if !at.ok() {
		return nil
	}
	return at.of(c.meta)
}
