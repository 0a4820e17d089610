package gateway

import (
	"context"
	"errors"
	"fmt"
)

// callTool forwards a call that the guard passes, and lets it answer the others.
func (s *session) callTool(x *exchange, m message) {
	g := s.g
	if !m.nameAt.ok() {
		s.finish(x, errorLine(x.id, codeParams, "params.name is missing", nil))
		return
	}
	if g.isOwn(m.name) {
		s.guarded(x, m, "", m.name)
		return
	}
	up, tool, ok := g.route(m.name)
	if !ok {
		s.finish(x, errorLine(x.id, codeParams, fmt.Sprintf("unknown tool %q", m.name), nil))
		return
	}
	if g.guard != nil && !g.guard.Passes(up.Name, tool) {
		s.guarded(x, m, up.Name, tool)
		return
	}
	if w, ok := g.guard.(Watcher); ok && w.Watches(up.Name) {
		w.Watch(x.client, up.Name, tool, m.params.of(m.raw))
	}
	if g.several() {
		s.forwardNamed(x, m, up, tool)
		return
	}
	s.links[0].forward(s.ctx, x, &m)
}

// forwardNamed forwards under the upstream's own name.
func (s *session) forwardNamed(x *exchange, m message, up *upstream, name string) {
	m.name = name
	s.links[up.i].forward(s.ctx, x, &m, edit{m.nameAt, quoted(name)})
}

func (g *Gateway) isOwn(name string) bool {
	taken := g.taken.Load()
	return taken != nil && (*taken)[name]
}

// guarded lets the guard answer. The call ends with the client's cancellation and with the session.
func (s *session) guarded(x *exchange, m message, up, tool string) {
	s.mu.Lock()
	full := s.calls >= s.g.opt.Calls
	if !full {
		s.calls++
	}
	s.mu.Unlock()
	if full {
		s.finish(x, errorLine(x.id, codeInternal, "too many guarded calls are open at once; nothing was sent", notSent))
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	x.mu.Lock()
	x.cancel = cancel
	if x.ended {
		cancel()
	}
	x.mu.Unlock()
	go func() {
		defer func() {
			cancel()
			s.mu.Lock()
			s.calls--
			s.mu.Unlock()
		}()
		s.finish(x, s.g.askGuard(ctx, x.client, x.id, up, tool, m.params.of(m.raw)))
	}()
}

// askGuard is the guard's answer as a message.
func (g *Gateway) askGuard(ctx context.Context, c *client, id []byte, up, tool string, params []byte) []byte {
	result, err := g.guard.Call(ctx, c, up, tool, params)
	if err != nil {
		var e *RPCError
		if errors.As(err, &e) {
			return failure(id, answer{err: e})
		}
		return errorLine(id, codeInternal, err.Error(), nil)
	}
	s := scanner{b: result, max: g.opt.Depth}
	s.space()
	at := s.i
	if s.i == len(result) || result[s.i] != '{' || s.value() != nil {
		return errorLine(id, codeInternal, "the guard answered no JSON object", nil)
	}
	if c.Modern() {
		if kind, _ := member(result, span{at, s.i}, "resultType"); !kind.ok() {
			result = splice(result, into(result, span{at, s.i}, "resultType", `"complete"`))
		}
	}
	return resultLine(id, result)
}
