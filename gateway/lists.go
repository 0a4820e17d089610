package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Bounds of one list of one upstream.
const (
	mostPages = 1000
	mostItems = 100_000
)

// sender asks an upstream something, in a session or without one.
type sender func(ctx context.Context, params []byte) answer

// collect asks for all pages of a list. first is the first page as it came.
func (g *Gateway) collect(ctx context.Context, key string, params []byte, send sender) (first message, items []json.RawMessage, err error) {
	params = withCursor(params, nil)
	size := 0
	for page := 0; ; page++ {
		a := send(ctx, params)
		if _, err := a.result(); err != nil {
			return a.m, nil, err
		}
		m := a.m
		if page == 0 {
			first = m
		}
		at, _ := member(m.raw, m.result, key)
		items = append(items, elements(m.raw, at)...)
		next, _ := member(m.raw, m.result, "nextCursor")
		if !next.ok() || m.raw[next.from] != '"' || string(next.of(m.raw)) == `""` {
			return first, items, nil
		}
		size += len(m.raw)
		if page == mostPages || len(items) > mostItems || size > g.opt.UpstreamBytes {
			return first, nil, errors.New("its list does not end")
		}
		params = withCursor(params, next.of(m.raw))
	}
}

// withCursor are the params with another cursor, nil for none.
func withCursor(params, cursor []byte) []byte {
	if params == nil {
		params = []byte("{}")
	}
	at := whole(params)
	value, all := member(params, at, "cursor")
	switch {
	case value.ok() && cursor == nil:
		return splice(params, without(params, all))
	case value.ok():
		return splice(params, edit{value, cursor})
	case cursor == nil:
		return params
	}
	return splice(params, into(params, at, "cursor", string(cursor)))
}

// tools asks for the tools of one upstream and then the guard: what it shows of them, and the first page.
func (g *Gateway) tools(ctx context.Context, u *upstream, params []byte, send sender) (message, []json.RawMessage, error) {
	first, list, err := g.collect(ctx, "tools", params, send)
	if err != nil {
		return first, nil, err
	}
	if g.guard != nil {
		if list, err = g.guard.Tools(ctx, u.Name, list); err != nil {
			return first, nil, fmt.Errorf("the tools of %s: %w", u.Name, err)
		}
	}
	return first, g.shown(u, list), nil
}

// shown renames the tools of one of several upstreams, and takes out those whose name is taken.
func (g *Gateway) shown(u *upstream, list []json.RawMessage) []json.RawMessage {
	seen := map[string]bool{}
	out := make([]json.RawMessage, 0, len(list))
	for _, def := range list {
		at, _ := member(def, whole(def), "name")
		name, err := text(def, at)
		shown := g.named(u, name)
		switch {
		case !at.ok() || err != nil:
			g.opt.Log.Warn("a tool without a name is not shown", "upstream", u.Name)
			continue
		case g.isOwn(shown) || seen[shown]:
			g.opt.Log.Warn("a tool whose name is taken is not shown", "upstream", u.Name, "tool", name)
			continue
		}
		seen[shown] = true
		if shown != name {
			def = splice(def, edit{at, quoted(shown)})
		}
		out = append(out, def)
	}
	return out
}

// listTools answers with the tools of all upstreams and the guard's own, whole: what the guard has not seen is not
// shown, so that there are no pages.
func (s *session) listTools(x *exchange, m message) {
	g := s.g
	if g.guard != nil {
		g.take(g.guard.Own(x.client))
	}
	var own []json.RawMessage
	if g.guard != nil {
		own = g.guard.Own(x.client)
	}
	s.listAll(x, m, "tools", own, func(l *link, send sender) (message, []json.RawMessage, error) {
		return g.tools(s.ctx, l.up, m.params.of(m.raw), send)
	})
}

// listAll answers a list of all upstreams. One that does not answer is left out, as long as another does.
func (s *session) listAll(x *exchange, m message, key string, more []json.RawMessage, from func(*link, sender) (message, []json.RawMessage, error)) {
	if cursor, _ := member(m.raw, m.params, "cursor"); cursor.ok() {
		s.finish(x, errorLine(x.id, codeParams, "there is no such page: the list is whole", nil))
		return
	}
	type part struct {
		first message
		items []json.RawMessage
		err   error
	}
	parts := make([]part, len(s.links))
	done := make(chan int, len(s.links))
	for i, l := range s.links {
		go func() {
			send := func(ctx context.Context, params []byte) answer {
				return l.request(ctx, m.method, "", x.version, params)
			}
			parts[i].first, parts[i].items, parts[i].err = from(l, send)
			done <- i
		}()
	}
	for range s.links {
		<-done
	}
	var base *message
	var list []json.RawMessage
	for i := range parts {
		p := &parts[i]
		if p.err != nil {
			if len(parts) > 1 && !nothingThere(p.err) {
				s.g.opt.Log.Warn("an upstream is left out of a list", "upstream", s.links[i].up.Name, "list", key, "err", p.err)
			}
			continue
		}
		if base == nil {
			base = &p.first
		}
		list = append(list, p.items...)
	}
	if base == nil && !nothingThere(parts[0].err) {
		s.finish(x, failure(x.id, answer{err: parts[0].err, sent: true}))
		return
	}
	list = append(list, more...)
	if base == nil { // no upstream has any, and says that it knows no such method
		result := `{"` + key + `":` + string(array(list))
		if x.version != "" {
			result += `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`
		}
		s.finish(x, resultLine(x.id, []byte(result+"}")))
		return
	}
	s.finish(x, relisted(base, x.id, key, list))
}

// nothingThere is an upstream that knows no such list.
func nothingThere(err error) bool {
	var e *RPCError
	return errors.As(err, &e) && e.Code == codeMethod
}

// relisted is a page with another list in it: all of it, so that no cursor follows. Other members stay.
func relisted(page *message, id []byte, key string, list []json.RawMessage) []byte {
	b := page.raw
	edits := []edit{{page.id, id}}
	if at, _ := member(b, page.result, key); at.ok() {
		edits = append(edits, edit{at, array(list)})
	} else {
		edits = append(edits, into(b, page.result, key, string(array(list))))
	}
	b = splice(b, edits...)
	m, err := peek(b, len(b), false)
	if err != nil {
		return errorLine(id, codeInternal, "the list cannot be put together", nil)
	}
	if _, all := member(b, m.result, "nextCursor"); all.ok() {
		b = splice(b, without(b, all))
	}
	return oneLine(b)
}

// merged joins the members of one object that several upstreams answered; the first one wins.
func merged(objects [][]byte) []byte {
	var out bytes.Buffer
	seen := map[string]bool{}
	out.WriteByte('{')
	for _, b := range objects {
		var fields map[string]json.RawMessage
		if json.Unmarshal(b, &fields) != nil {
			continue
		}
		for key, value := range fields {
			if seen[key] {
				continue
			}
			seen[key] = true
			if out.Len() > 1 {
				out.WriteByte(',')
			}
			out.Write(quoted(key))
			out.WriteByte(':')
			out.Write(value)
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}
