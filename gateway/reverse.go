package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Between HTTP and a single upstream by URL, sessions and streams are the upstream's: what needs no decision is copied
// in both directions as bytes, event ids and all.

func (g *Gateway) reverses() bool { return !g.several() && g.ups[0].url != nil }

// pendingAsk is a request of the guard to a client, whose answer comes as a POST.
type pendingAsk struct {
	session string
	got     chan message
}

func (g *Gateway) reverse(w http.ResponseWriter, r *http.Request, m message) {
	header := g.passedHeader(r.Header)
	switch {
	case m.response() && g.answersAsk(r, m), m.method == "notifications/cancelled" && g.cancels(r, m):
		w.WriteHeader(http.StatusAccepted)
	case g.guard == nil || !m.request():
		// tools/call without an id is a notification, and still a call to a careless upstream.
		if m.method == "tools/call" && g.guard != nil {
			writeJSON(w, http.StatusBadRequest, errorLine(nil, codeRequest, "tools/call has no id", nil))
			return
		}
		g.pass(w, r, header, m.raw)
	case m.method == "tools/list":
		g.reverseTools(w, r, m, header)
	case m.method == "tools/call":
		g.reverseCall(w, r, m, header)
	case m.method == "initialize" || m.method == "server/discover":
		g.reverseGreeting(w, r, m, header)
	default:
		g.pass(w, r, header, m.raw)
	}
}

func (g *Gateway) passedHeader(in http.Header) http.Header {
	out := headers.Get().(http.Header)
	clear(out)
	for _, key := range headersUp {
		if v := in[key]; v != nil {
			out[key] = v
		}
	}
	for key, v := range in {
		if strings.HasPrefix(key, paramHeader) {
			out[key] = v
		}
	}
	if in.Get("Mcp-Protocol-Version") < modernVersion { // nobody compared them with the body
		delete(out, "Mcp-Method")
		delete(out, "Mcp-Name")
	}
	return out
}

// pass copies a request and its answer.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, header http.Header, body []byte) {
	if r.Method == http.MethodDelete {
		g.hellos.Delete(r.Header.Get("Mcp-Session-Id"))
	}
	resp, sent, err := g.post(r.Context(), g.ups[0], r.Method, header, body)
	if g.ups[0].conns != nil {
		headers.Put(header) // it was written; a transport of somebody else's may still look at it
	}
	if err != nil {
		g.unreachable(w, body, answer{err: err, sent: sent})
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		g.unreachable(w, body, answer{err: errors.New("it refuses the credentials that it is configured with"), sent: true})
		return
	}
	copyHeader(w, resp)
	w.WriteHeader(resp.StatusCode)
	copyBody(w, resp)
}

func copyHeader(w http.ResponseWriter, resp *http.Response) {
	h := w.Header()
	for _, key := range headersDown {
		if v := resp.Header[key]; v != nil {
			h[key] = v
		}
	}
	if resp.ContentLength > 512 { // shorter ones net/http counts itself
		h["Content-Length"] = []string{strconv.FormatInt(resp.ContentLength, 10)}
	}
}

// copyBody writes what comes as it comes. An answer of known length needs no flush in between.
func copyBody(w http.ResponseWriter, resp *http.Response) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var out *http.ResponseController
	if resp.ContentLength < 0 {
		out = http.NewResponseController(w)
		out.Flush()
	}
	for {
		n, err := resp.Body.Read(*buf)
		if n > 0 {
			if _, err := w.Write((*buf)[:n]); err != nil {
				return
			}
			if out != nil && out.Flush() != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				panic(http.ErrAbortHandler) // so that the client does not take a half for the whole
			}
			return
		}
	}
}

// unreachable answers for an upstream that did not.
func (g *Gateway) unreachable(w http.ResponseWriter, body []byte, a answer) {
	var id []byte
	if m, err := peek(body, g.opt.Depth, true); err == nil && m.id.ok() {
		id = m.id.of(body)
	}
	a.err = errors.New("upstream " + g.ups[0].Name + ": " + a.err.Error())
	writeJSON(w, http.StatusBadGateway, failure(id, a))
}

// once asks the upstream in the session of a client's request, and reads its one answer.
func (g *Gateway) once(ctx context.Context, header http.Header, id, body []byte) (b []byte, resp *http.Response, a answer) {
	header = header.Clone()
	resp, sent, err := g.post(ctx, g.ups[0], http.MethodPost, header, body)
	if err != nil {
		return nil, nil, answer{err: err, sent: sent}
	}
	defer resp.Body.Close()
	if !isSSE(resp.Header) {
		b, err = g.answerOf(resp, id)
	} else {
		err = g.events(resp.Body, func(e event) bool {
			m, err := peek(e.data, g.opt.Depth, false)
			if err == nil && m.response() && string(m.id.of(e.data)) == string(id) {
				b = e.data
			}
			return b == nil
		})
		if err == nil && b == nil {
			err = errors.New("its stream ended without an answer")
		}
	}
	if err != nil {
		return nil, resp, answer{err: err, sent: true}
	}
	m, err := peek(b, g.opt.Depth, false)
	return b, resp, answer{m: m, err: err, sent: true}
}

func (g *Gateway) reverseTools(w http.ResponseWriter, r *http.Request, m message, header http.Header) {
	if cursor, _ := member(m.raw, m.params, "cursor"); cursor.ok() {
		writeJSON(w, http.StatusOK, errorLine(m.id.of(m.raw), codeParams, "there is no such page: the list is whole", nil))
		return
	}
	c := g.reverseClient(r, m, nil)
	own := g.guard.Own(c)
	g.take(own)
	status := http.StatusOK
	first, list, err := g.tools(r.Context(), g.ups[0], m.params.of(m.raw), func(ctx context.Context, params []byte) answer {
		id := []byte(secretID())
		_, resp, a := g.once(ctx, header, id, requestLine(id, m.method, params))
		if resp != nil {
			status = resp.StatusCode
		}
		return a
	})
	id := m.id.of(m.raw)
	if err != nil {
		var e *RPCError
		if !errors.As(err, &e) {
			status = http.StatusBadGateway
		}
		writeJSON(w, status, failure(id, answer{err: err, sent: true}))
		return
	}
	writeJSON(w, http.StatusOK, relisted(&first, id, "tools", append(list, own...)))
}

func (g *Gateway) reverseGreeting(w http.ResponseWriter, r *http.Request, m message, header http.Header) {
	id := m.id.of(m.raw)
	b, resp, a := g.once(r.Context(), header, id, m.raw)
	if a.err != nil {
		g.unreachable(w, m.raw, a)
		return
	}
	if edits := g.toolsMayChange(b, a.m.result); a.m.result.ok() && edits != nil {
		b = splice(b, edits...)
	}
	if session := resp.Header.Get("Mcp-Session-Id"); session != "" && m.method == "initialize" {
		g.hellos.Store(session, slices.Clone(m.params.of(m.raw)))
		w.Header()["Mcp-Session-Id"] = []string{session}
	}
	writeJSON(w, resp.StatusCode, b)
}

func (g *Gateway) reverseCall(w http.ResponseWriter, r *http.Request, m message, header http.Header) {
	id := m.id.of(m.raw)
	up := g.ups[0].Name
	switch {
	case !m.nameAt.ok():
		writeJSON(w, http.StatusOK, errorLine(id, codeParams, "params.name is missing", nil))
		return
	case g.isOwn(m.name):
		up = ""
	case g.guard.Passes(up, m.name):
		if w, ok := g.guard.(Watcher); ok && w.Watches(up) {
			w.Watch(g.reverseClient(r, m, nil), up, m.name, m.params.of(m.raw))
		}
		g.pass(w, r, header, m.raw)
		return
	}
	g.reverseGuarded(w, r, m, up)
}

func (g *Gateway) reverseGuarded(w http.ResponseWriter, r *http.Request, m message, up string) {
	id := m.id.of(m.raw)
	select {
	case g.calls <- struct{}{}:
	default:
		writeJSON(w, http.StatusServiceUnavailable, errorLine(id, codeInternal, "too many guarded calls are open at once; nothing was sent", notSent))
		return
	}
	st := newStream()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if session := r.Header.Get("Mcp-Session-Id"); session != "" {
		key := guardedKey{session, string(id)}
		g.mu.Lock()
		g.guarded[key] = cancel
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			delete(g.guarded, key)
			g.mu.Unlock()
		}()
	}
	done := make(chan struct{})
	go func() {
		defer func() { close(done); <-g.calls }()
		st.finish(g.askGuard(ctx, g.reverseClient(r, m, st), id, up, m.name, m.params.of(m.raw)))
	}()
	st.serve(w, r, always200, false)
	cancel()
	<-done // it reads the request's headers
}

// guardedKey is a call that the guard answers, in a session that is the upstream's.
type guardedKey struct{ session, id string }

// cancels ends a call that the guard answers; the upstream knows nothing of it.
func (g *Gateway) cancels(r *http.Request, m message) bool {
	at, _ := member(m.raw, m.params, "requestId")
	g.mu.Lock()
	cancel := g.guarded[guardedKey{r.Header.Get("Mcp-Session-Id"), string(at.of(m.raw))}]
	g.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel()
	return true
}

// reverseClient is a client whose session is the upstream's.
func (g *Gateway) reverseClient(r *http.Request, m message, st *stream) *client {
	c := &client{header: r.Header}
	if m.meta.ok() {
		c.meta = m.meta.of(m.raw)
	}
	session := r.Header.Get("Mcp-Session-Id")
	if hello, ok := g.hellos.Load(session); ok {
		c.hello = hello
	}
	if st == nil || session == "" {
		return c
	}
	c.asker = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		id, p := secretID(), &pendingAsk{session, make(chan message, 1)}
		g.mu.Lock()
		g.asks[id] = p
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			delete(g.asks, id)
			g.mu.Unlock()
		}()
		if !st.push(requestLine([]byte(id), method, params)) {
			return nil, errors.New("the client reads nothing any more")
		}
		select {
		case got := <-p.got:
			a := answer{m: got}
			return a.result()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c
}

// answersAsk takes a client's answer to a request of the guard, if it comes in the session that was asked.
func (g *Gateway) answersAsk(r *http.Request, m message) bool {
	id := string(m.id.of(m.raw))
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.asks[id]
	if p == nil || p.session != r.Header.Get("Mcp-Session-Id") {
		return false
	}
	delete(g.asks, id)
	p.got <- m
	return true
}
