package gateway

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// bodyWait is how long a client may take to send one message.
const bodyWait = 30 * time.Second

// Handler serves clients over Streamable HTTP, those of a session and those whose requests stand for themselves.
//
// It checks Host and Origin, and authenticates nobody: whoever reaches it uses the upstreams with the operator's
// credentials, so that something in front of it has to, on any address but loopback.
//
// In front of a single upstream by URL, sessions are the upstream's and bytes are passed on as they come. Otherwise
// each session has upstream processes of its own, and requests that stand for themselves share one of each.
func (g *Gateway) Handler() http.Handler {
	cross := http.NewCrossOriginProtection()
	for _, o := range g.opt.Origins {
		if err := cross.AddTrustedOrigin(o); err != nil {
			g.opt.Log.Error("an origin that is none is not allowed", "origin", o, "err", err)
		}
	}
	go g.sweep()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.allowsHost(r.Host) {
			http.Error(w, "this host is not served", http.StatusForbidden)
			return
		}
		origin := r.Header.Get("Origin")
		trusted := slices.Contains(g.opt.Origins, origin)
		if origin != "" && !trusted && origin != "http://"+r.Host && origin != "https://"+r.Host {
			http.Error(w, "pages of this origin may not call", http.StatusForbidden)
			return
		}
		if trusted {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version")
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
				h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-Id, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if err := cross.Check(r); err != nil {
			http.Error(w, "pages of another origin may not call", http.StatusForbidden)
			return
		}
		switch r.Method {
		case http.MethodPost:
			g.servePost(w, r)
		case http.MethodGet, http.MethodDelete:
			if g.reverses() {
				g.pass(w, r, g.passedHeader(r.Header), nil)
				return
			}
			g.serveSession(w, r)
		default:
			w.Header().Set("Allow", "POST, GET, DELETE")
			http.Error(w, "POST a message", http.StatusMethodNotAllowed)
		}
	})
}

func (g *Gateway) allowsHost(host string) bool {
	if known := g.host.Load(); known != nil && *known == host {
		return true
	}
	if !g.hostAllowed(host) {
		return false
	}
	last := host
	g.host.Store(&last)
	return true
}

func (g *Gateway) hostAllowed(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return slices.ContainsFunc(g.opt.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

func writeJSON(w http.ResponseWriter, status int, b []byte) {
	w.Header()["Content-Type"] = []string{"application/json"}
	w.WriteHeader(status)
	w.Write(b)
}

func (g *Gateway) servePost(w http.ResponseWriter, r *http.Request) {
	kind := r.Header.Get("Content-Type")
	if kind != "application/json" {
		kind, _, _ = mime.ParseMediaType(kind)
	}
	if kind != "application/json" || r.Header.Get("Content-Encoding") != "" {
		http.Error(w, "POST application/json, not encoded", http.StatusUnsupportedMediaType)
		return
	}
	body, err := g.body(w, r)
	if err != nil {
		status := http.StatusBadRequest
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
			err = errTooLong
		}
		writeJSON(w, status, errorLine(nil, codeRequest, err.Error(), nil))
		return
	}
	m, err := peek(body, g.opt.Depth, true)
	if err == nil {
		err = headersMatch(&m, r.Header)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, refused(&m, err))
		return
	}
	if g.reverses() {
		g.reverse(w, r, m)
		return
	}
	g.serveMessage(w, r, m)
}

func (g *Gateway) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > int64(g.opt.ClientBytes) {
		return nil, &http.MaxBytesError{Limit: int64(g.opt.ClientBytes)}
	}
	// Not every ResponseWriter knows deadlines; net/http's does.
	c, ok := w.(interface{ SetReadDeadline(time.Time) error })
	if !ok {
		c = http.NewResponseController(w)
	}
	if c.SetReadDeadline(time.Now().Add(bodyWait)) == nil {
		defer c.SetReadDeadline(time.Time{})
	}
	if n := r.ContentLength; n >= 0 {
		b := make([]byte, n, n+1)
		_, err := io.ReadFull(r.Body, b)
		return b, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, int64(g.opt.ClientBytes)))
}

// headersMatch: what a middlebox read in the headers is what the body says. Revisions before 2026-07-28 have no such
// headers.
func headersMatch(m *message, h http.Header) error {
	mismatch := func(reason string) error { return &refusal{codeHeaderMismatch, reason, -1} }
	for _, key := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"} {
		if len(h[key]) > 1 {
			return mismatch("the header " + key + " stands twice")
		}
	}
	inBody, inHeader := m.version(), h.Get("Mcp-Protocol-Version")
	if inBody == "" && inHeader < modernVersion {
		return nil
	}
	if inBody != "" && inBody != inHeader {
		return mismatch("the header MCP-Protocol-Version is not the version in _meta")
	}
	if m.method == "" {
		return nil
	}
	if h.Get("Mcp-Method") != m.method {
		return mismatch("the header Mcp-Method is not the method")
	}
	name, wanted := m.name, m.method == "tools/call" || m.method == "prompts/get"
	if m.method == "resources/read" {
		name, _ = text(m.raw, m.uri)
		wanted = true
	}
	if wanted && (len(h["Mcp-Name"]) == 0 && name != "" || plainHeader(h.Get("Mcp-Name")) != name) {
		return mismatch("the header Mcp-Name is not the name in params")
	}
	return nil
}

// statusOf is the HTTP status of an answer to a request that stands for itself.
func statusOf(b []byte) int {
	m, err := peek(b, len(b), false)
	if err != nil || !m.err.ok() {
		return http.StatusOK
	}
	at, _ := member(b, m.err, "code")
	switch string(at.of(b)) {
	case "-32601":
		return http.StatusNotFound
	case "-32020", "-32021", "-32022", "-32600", "-32700":
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func always200([]byte) int { return http.StatusOK }

// serveMessage gives a message to the session that it belongs to.
func (g *Gateway) serveMessage(w http.ResponseWriter, r *http.Request, m message) {
	if m.version() != "" || r.Header.Get("Mcp-Protocol-Version") >= modernVersion {
		if caps, _ := member(m.raw, m.meta, metaCapabilities); m.request() && (m.version() == "" || !caps.ok()) {
			// Over stdio the upstream could take it for a request of a session.
			writeJSON(w, http.StatusBadRequest, refused(&m, &refusal{codeParams, "_meta lacks the protocol version or the client's capabilities", -1}))
			return
		}
		g.serveAlone(w, r, m)
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	var s *session
	switch {
	case m.method == "initialize" && m.id.ok():
		if id != "" {
			writeJSON(w, http.StatusBadRequest, errorLine(m.id.of(m.raw), codeRequest, "a session is initialized once", nil))
			return
		}
		if s = g.openSession(); s == nil {
			w.Header().Set("Retry-After", "60")
			writeJSON(w, http.StatusServiceUnavailable, errorLine(m.id.of(m.raw), codeInternal, "too many sessions are open; nothing was sent", notSent))
			return
		}
		w.Header()["Mcp-Session-Id"] = []string{s.id}
	case id == "":
		writeJSON(w, http.StatusBadRequest, refused(&m, &refusal{codeRequest, "the header Mcp-Session-Id is missing: initialize first", -1}))
		return
	default:
		if s = g.session(id); s == nil {
			writeJSON(w, http.StatusNotFound, refused(&m, &refusal{codeRequest, "the session ended: initialize again", -1}))
			return
		}
	}
	if !m.request() {
		s.receive(m, nil, r.Header)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	st := newStream()
	s.attach(st)
	defer s.detach(st)
	s.receive(m, st, r.Header)
	st.serve(w, r, always200, false)
	if m.method == "initialize" && !s.accepted() {
		g.mu.Lock()
		delete(g.web, s.id)
		g.mu.Unlock()
		s.close()
	}
}

// serveAlone answers a request that stands for itself. Its client cancels it by going away.
func (g *Gateway) serveAlone(w http.ResponseWriter, r *http.Request, m message) {
	if !m.request() {
		w.WriteHeader(http.StatusAccepted) // there is no session that it could mean anything to
		return
	}
	g.mu.Lock()
	if g.hub == nil && !g.closed {
		g.hub = g.newSession(nil, true)
	}
	hub := g.hub
	g.mu.Unlock()
	if hub == nil {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	select {
	case g.alone <- struct{}{}:
		defer func() { <-g.alone }()
	default:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, errorLine(m.id.of(m.raw), codeInternal, "too many requests are open at once; this one was not sent", notSent))
		return
	}
	st := newStream()
	x := hub.request(m, st, r.Header)
	if !st.serve(w, r, statusOf, m.method == "subscriptions/listen") {
		hub.abandon(x)
	}
}

// full is called with mu held.
func (g *Gateway) full() bool { return g.closed || len(g.web) >= g.opt.Sessions }

func (g *Gateway) openSession() *session {
	g.mu.Lock()
	full := g.full()
	g.mu.Unlock()
	if full {
		return nil
	}
	s := g.newSession(nil, false)
	s.touch()
	g.mu.Lock()
	full = g.full()
	if !full {
		g.web[s.id] = s
	}
	g.mu.Unlock()
	if full {
		s.close()
		return nil
	}
	return s
}

func (g *Gateway) session(id string) *session {
	g.mu.Lock()
	s := g.web[id]
	g.mu.Unlock()
	if s != nil {
		s.touch()
	}
	return s
}

// accepted reports whether an upstream accepted the session's greeting.
func (s *session) accepted() bool {
	for _, l := range s.links {
		if e, _ := l.state(); e == eraLegacy {
			return true
		}
	}
	return false
}

func (s *session) touch() {
	now := time.Now()
	s.used.Store(&now)
}

// sweep ends sessions that nobody used for a while.
func (g *Gateway) sweep() {
	t := time.NewTicker(max(g.opt.Idle/10, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-g.ctx.Done():
			return
		}
		var idle []*session
		g.mu.Lock()
		for id, s := range g.web {
			s.mu.Lock()
			busy := len(s.open) > 0 || s.listen != nil
			s.mu.Unlock()
			if !busy && time.Since(*s.used.Load()) > g.opt.Idle {
				delete(g.web, id)
				idle = append(idle, s)
			}
		}
		g.mu.Unlock()
		for _, s := range idle {
			go s.close()
		}
	}
}

// serveSession is GET, the stream of what upstreams say by themselves, and DELETE, the end.
func (g *Gateway) serveSession(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		w.Header().Set("Allow", "POST")
		http.Error(w, "only a session has that", http.StatusMethodNotAllowed)
		return
	}
	s := g.session(id)
	if s == nil {
		http.Error(w, "the session ended", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodDelete {
		g.mu.Lock()
		delete(g.web, id)
		g.mu.Unlock()
		s.close()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	st := newStream()
	s.mu.Lock()
	if s.listen != nil || s.closed {
		s.mu.Unlock()
		http.Error(w, "the session has such a stream already", http.StatusConflict)
		return
	}
	s.listen = st
	s.mu.Unlock()
	st.serve(w, r, always200, true)
	s.mu.Lock()
	s.listen = nil
	s.mu.Unlock()
	s.touch()
}

func (s *session) attach(st *stream) {
	s.mu.Lock()
	s.streams = append(s.streams, st)
	s.mu.Unlock()
}

func (s *session) detach(st *stream) {
	s.mu.Lock()
	s.streams = slices.DeleteFunc(s.streams, func(o *stream) bool { return o == st })
	s.mu.Unlock()
	st.cut()
}
