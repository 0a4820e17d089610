package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Members of params._meta in revision 2026-07-28, whose requests stand for themselves.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"

	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25"
)

// session is a client, and the connections to the upstreams that are its own. The hub is all clients whose requests
// stand for themselves: it has no memory of any of them.
type session struct {
	g     *Gateway
	id    string // over HTTP
	hub   bool
	write func(b []byte) // on stdio; nil: streams

	ctx   context.Context
	stop  context.CancelFunc
	links []*link

	mu      sync.Mutex
	closed  bool
	open    map[string]*exchange    // by the client's id; not of the hub, where ids of several clients meet
	asks    map[string]chan message // requests of the guard to the client
	asked   map[string]asked        // requests of upstreams to the client, by the id that it was shown
	n       uint64
	calls   int                       // that the guard answers at the moment
	hello   []byte                    // params of initialize
	streams []*stream                 // over HTTP; the newest last
	listen  *stream                   // the stream of GET
	lists   map[listKey]*changed      // that were told a moment ago
	owners  map[string]*link          // who listed a URI
	used    atomic.Pointer[time.Time] // the last request
}

// asked is a request of an upstream to the client.
type asked struct {
	l  *link
	id []byte
}

type listKey struct {
	l      *link
	method string
}

// exchange is a request of a client that was not answered yet.
type exchange struct {
	s       *session
	id      []byte // as it came
	method  string
	version string // the revision that the request itself tells, "" for those of a session
	token   []byte // its progress token
	stream  *stream
	client  *client
	cancel  context.CancelFunc // of a call that the guard answers

	mu     sync.Mutex
	calls  []linked
	room   [1]linked // for the usual one
	ended  bool
	awaits int  // answers that it takes, of a subscription at several upstreams
	acked  bool // the client was told that the subscription stands
}

type linked struct {
	l *link
	c *call
}

func (x *exchange) add(l *link, c *call) {
	x.mu.Lock()
	if x.calls == nil {
		x.calls = x.room[:0]
	}
	x.calls = append(x.calls, linked{l, c})
	x.mu.Unlock()
}

// acknowledged reports whether the client was told before: several upstreams say it of one subscription.
func (x *exchange) acknowledged() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.acked
	x.acked = true
	return before
}

func (g *Gateway) newSession(write func([]byte), hub bool) *session {
	s := &session{g: g, hub: hub, write: write, open: map[string]*exchange{}, asks: map[string]chan message{},
		asked: map[string]asked{}, lists: map[listKey]*changed{}, owners: map[string]*link{}}
	s.ctx, s.stop = context.WithCancel(g.ctx)
	s.id = rand.Text()
	for _, u := range g.ups {
		s.links = append(s.links, g.newLink(u, s, hub))
	}
	return s
}

func (s *session) close() {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	for _, c := range s.lists {
		c.timer.Stop()
	}
	streams := s.streams
	if s.listen != nil {
		streams = append(streams, s.listen)
	}
	s.mu.Unlock()
	s.stop()
	if already {
		return
	}
	var wg sync.WaitGroup
	for _, l := range s.links {
		wg.Go(l.close)
	}
	wg.Wait()
	for _, st := range streams {
		st.cut()
	}
}

func (s *session) greeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello != nil
}

// receive takes one message of the client. st is where its answer goes over HTTP, header what it came with.
func (s *session) receive(m message, st *stream, header http.Header) {
	switch {
	case m.response():
		s.reply(m)
	case !m.id.ok():
		s.notification(m)
	default:
		s.request(m, st, header)
	}
}

// reply is a client's answer to a request that the guard or an upstream made.
func (s *session) reply(m message) {
	id := m.id.of(m.raw)
	s.mu.Lock()
	ask, ours := s.asks[string(id)]
	delete(s.asks, string(id))
	to, known := s.asked[string(id)]
	delete(s.asked, string(id))
	s.mu.Unlock()
	switch {
	case ours:
		ask <- m
	case known:
		to.l.notify(splice(m.raw, edit{m.id, to.id}), "", "")
	case s.passesIDs():
		s.links[0].notify(m.raw, "", "")
	default:
		s.g.opt.Log.Warn("dropped a client's answer that nobody waits for")
	}
}

// passesIDs: one client and one upstream need no ids of ours between them.
func (s *session) passesIDs() bool { return s.write != nil && len(s.links) == 1 }

func (s *session) notification(m message) {
	version := m.version()
	switch m.method {
	case "notifications/cancelled":
		at, _ := member(m.raw, m.params, "requestId")
		if !at.ok() || s.hub {
			return
		}
		s.mu.Lock()
		x := s.open[string(at.of(m.raw))]
		s.mu.Unlock()
		if x == nil {
			return
		}
		x.mu.Lock()
		calls := x.calls
		x.mu.Unlock()
		for _, in := range calls {
			if in.c.wire == string(at.of(m.raw)) && (in.l.up.url == nil || x.version == "") {
				in.l.notify(m.raw, m.method, version) // its own bytes, with the client's reason
				in.l.drop(in.c)
			} else if in.l.drop(in.c) {
				in.l.cancelled(in.c, x.version)
			}
		}
		s.end(x)
	case "notifications/initialized":
		for _, l := range s.links {
			if e, hello := l.state(); e == eraLegacy && hello != nil {
				l.notify(m.raw, m.method, version)
			}
		}
	default:
		if s.g.guard != nil && !strings.HasPrefix(m.method, "notifications/") {
			s.g.opt.Log.Warn("dropped a request without an id", "method", m.method) // a careless upstream would act on it
			return
		}
		for _, l := range s.links {
			l.notify(m.raw, m.method, version)
		}
	}
}

// version is the revision that a request tells in its _meta, "" if it is one of a session.
func (m *message) version() string {
	if !m.meta.ok() {
		return ""
	}
	at, _ := member(m.raw, m.meta, metaVersion)
	v, _ := text(m.raw, at)
	return v
}

func (s *session) request(m message, st *stream, header http.Header) *exchange {
	x := &exchange{s: s, id: m.id.of(m.raw), method: m.method, stream: st, version: m.version()}
	x.client = &client{s: s, x: x, header: header}
	if m.meta.ok() {
		x.client.meta = m.meta.of(m.raw)
		if at, _ := member(m.raw, m.meta, "progressToken"); at.ok() {
			x.token = at.of(m.raw)
		}
	}
	if !s.hub {
		s.mu.Lock()
		_, twice := s.open[string(x.id)]
		full := len(s.open) >= s.g.opt.InFlight
		if !twice && !full {
			s.open[string(x.id)] = x
		}
		s.mu.Unlock()
		switch {
		case twice:
			s.say(x, errorLine(x.id, codeRequest, "a request with this id is still open", nil))
			return x
		case full:
			s.say(x, errorLine(x.id, codeInternal, "too many requests are open at once; this one was not sent", notSent))
			return x
		}
	}
	s.dispatch(x, m)
	return x
}

// dispatch decides where a request goes.
func (s *session) dispatch(x *exchange, m message) {
	g := s.g
	switch m.method {
	case "tools/call":
		s.callTool(x, m)
		return
	case "tools/list":
		if g.guard != nil || g.several() {
			go s.listTools(x, m)
			return
		}
	case "initialize":
		s.mu.Lock()
		s.hello = bytes.Clone(m.params.of(m.raw))
		s.mu.Unlock()
	}
	if !g.several() {
		s.links[0].forward(s.ctx, x, &m)
		return
	}
	s.dispatchSeveral(x, m)
}

// answered is what an upstream made of a client's request.
func (s *session) answered(l *link, c *call, a answer) {
	x := c.ex
	x.mu.Lock()
	x.awaits--
	more := x.awaits > 0
	x.mu.Unlock()
	if more {
		return // the subscription lives on at another upstream
	}
	if a.err != nil {
		s.finish(x, failure(x.id, a))
		return
	}
	s.finish(x, s.edited(l, c, a.m))
}

// edited gives the answer its client's id again, and says that lists of tools may change: the guard can change them.
func (s *session) edited(l *link, c *call, m message) []byte {
	x := c.ex
	var edits []edit
	if c.wire != string(x.id) {
		edits = append(edits, edit{m.id, x.id})
		if c.method == "subscriptions/listen" {
			edits = append(edits, subscription(m.raw, m.result, c)...)
		}
	}
	switch {
	case c.method != "initialize" && c.method != "server/discover" || !m.result.ok():
	case c.method == "initialize":
		l.greetedWith(s.helloParams())
		fallthrough
	default:
		edits = append(edits, s.g.toolsMayChange(m.raw, m.result)...)
	}
	if len(edits) == 0 {
		return m.raw
	}
	return splice(m.raw, edits...)
}

func (s *session) helloParams() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}

// toolsMayChange are the edits that declare tools with listChanged in the result of initialize or server/discover.
func (g *Gateway) toolsMayChange(b []byte, result span) []edit {
	if g.guard == nil {
		return nil
	}
	caps, _ := member(b, result, "capabilities")
	if !caps.ok() {
		return []edit{into(b, result, "capabilities", `{"tools":{"listChanged":true}}`)}
	}
	tools, _ := member(b, caps, "tools")
	if !tools.ok() {
		return []edit{into(b, caps, "tools", `{"listChanged":true}`)}
	}
	changed, _ := member(b, tools, "listChanged")
	switch {
	case !changed.ok() && b[tools.from] == '{':
		return []edit{into(b, tools, "listChanged", "true")}
	case changed.ok() && string(changed.of(b)) != "true":
		return []edit{{changed, []byte("true")}}
	}
	return nil
}

// What the data of an error of ours says about the request.
var (
	notSent        = []byte(`{"outcome":"not_sent"}`)
	outcomeUnknown = []byte(`{"outcome":"unknown"}`)
)

// failure is an error answer that says whether the upstream may have acted.
func failure(id []byte, a answer) []byte {
	var e *RPCError
	switch {
	case errors.As(a.err, &e):
		var data []byte
		if len(e.Data) > 0 {
			data = oneLine(e.Data)
		}
		return errorLine(id, e.Code, e.Message, data)
	case a.sent:
		return errorLine(id, codeInternal, a.err.Error()+"; whether the request took effect is not known", outcomeUnknown)
	}
	return errorLine(id, codeInternal, a.err.Error()+"; nothing was sent", notSent)
}

// end forgets a request and reports whether it was still open.
func (s *session) end(x *exchange) bool {
	x.mu.Lock()
	ended := x.ended
	x.ended = true
	cancel := x.cancel
	x.mu.Unlock()
	if ended {
		return false
	}
	if cancel != nil {
		cancel()
	}
	if !s.hub {
		s.mu.Lock()
		if s.open[string(x.id)] == x {
			delete(s.open, string(x.id))
		}
		s.mu.Unlock()
	}
	return true
}

// abandon is a client that went away from a request that stands for itself, which is how it cancels it.
func (s *session) abandon(x *exchange) {
	if !s.end(x) {
		return
	}
	x.mu.Lock()
	calls := x.calls
	x.mu.Unlock()
	for _, in := range calls {
		if in.l.drop(in.c) {
			in.l.cancelled(in.c, x.version)
		}
	}
}

// finish answers a request, once.
func (s *session) finish(x *exchange, b []byte) {
	if s.end(x) {
		s.say(x, b)
	}
}

func (s *session) say(x *exchange, b []byte) {
	if s.write != nil {
		s.write(b)
		return
	}
	x.stream.finish(b)
}

// deliver sends a message that answers nothing: to the stream of the request that it belongs to, if that is known.
func (s *session) deliver(x *exchange, b []byte) bool {
	if s.write != nil {
		s.write(b)
		return true
	}
	if x != nil {
		return x.stream.push(b)
	}
	s.mu.Lock()
	to := s.listen
	if to == nil && len(s.streams) > 0 {
		to = s.streams[len(s.streams)-1]
	}
	s.mu.Unlock()
	return to != nil && to.push(b)
}

// fromUpstream takes what an upstream says or asks.
func (s *session) fromUpstream(l *link, m message) {
	if m.id.ok() {
		s.asksClient(l, m)
		return
	}
	switch m.method {
	case "notifications/progress":
		s.progress(l, m)
		return
	case "notifications/cancelled":
		s.upstreamCancels(l, m)
		return
	}
	meta, _ := member(m.raw, m.params, "_meta")
	if at, _ := member(m.raw, meta, metaSubscription); at.ok() {
		if c := l.open(at.of(m.raw)); c != nil && c.ex != nil {
			if m.method == "notifications/subscriptions/acknowledged" && c.ex.acknowledged() {
				return
			}
			b := m.raw
			if c.wire != string(c.ex.id) {
				b = splice(b, edit{at, c.ex.id})
			}
			s.deliver(c.ex, b)
			return
		}
	}
	switch m.method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.listChanged(l, m)
		return
	}
	if s.hub {
		return // of a request that stands for itself nothing else can be told
	}
	s.deliver(nil, m.raw)
}

// subscription are the edits that give a subscription its client's id again.
func subscription(b []byte, in span, c *call) []edit {
	meta, _ := member(b, in, "_meta")
	at, _ := member(b, meta, metaSubscription)
	if !at.ok() || string(at.of(b)) != c.wire {
		return nil
	}
	return []edit{{at, c.ex.id}}
}

// asksClient passes a request of an upstream on to the client: sampling, elicitation, roots, ping.
func (s *session) asksClient(l *link, m message) {
	id := m.id.of(m.raw)
	switch {
	case s.passesIDs():
		s.deliver(nil, m.raw)
		return
	case s.hub && m.method == "ping":
		l.notify(resultLine(id, []byte("{}")), "", "")
		return
	case s.hub:
		l.notify(errorLine(id, codeMethod, "this client cannot be asked: its requests stand for themselves", nil), "", "")
		return
	}
	s.mu.Lock()
	if len(s.asked) >= s.g.opt.InFlight {
		s.mu.Unlock()
		l.notify(errorLine(id, codeInternal, "too many requests to the client are open", nil), "", "")
		return
	}
	s.n++
	own := strconv.AppendUint([]byte(`"`+s.id+"-"), s.n, 10)
	own = append(own, '"')
	s.asked[string(own)] = asked{l, id}
	s.mu.Unlock()
	if !s.deliver(nil, splice(m.raw, edit{m.id, own})) {
		s.mu.Lock()
		delete(s.asked, string(own))
		s.mu.Unlock()
		l.notify(errorLine(id, codeInternal, "the client has no stream open on which it could be asked", nil), "", "")
	}
}

func (s *session) upstreamCancels(l *link, m message) {
	at, _ := member(m.raw, m.params, "requestId")
	if s.passesIDs() || !at.ok() {
		s.deliver(nil, m.raw)
		return
	}
	s.mu.Lock()
	own := ""
	for id, a := range s.asked {
		if a.l == l && string(a.id) == string(at.of(m.raw)) {
			own = id
			delete(s.asked, id)
		}
	}
	s.mu.Unlock()
	if own != "" {
		s.deliver(nil, splice(m.raw, edit{at, []byte(own)}))
	}
}

// progress goes to the request whose token it tells.
func (s *session) progress(l *link, m message) {
	if s.write != nil && !l.shared {
		s.write(m.raw)
		return
	}
	at, _ := member(m.raw, m.params, "progressToken")
	if !at.ok() {
		return
	}
	token := at.of(m.raw)
	l.mu.Lock()
	c := l.tokens[string(token)]
	l.mu.Unlock()
	if c != nil && c.ex != nil {
		s.deliver(c.ex, splice(m.raw, edit{at, c.original}))
		return
	}
	if s.hub {
		return
	}
	s.mu.Lock()
	var to *exchange
	for _, x := range s.open {
		if x.token != nil && string(x.token) == string(token) {
			to = x
			break
		}
	}
	s.mu.Unlock()
	s.deliver(to, m.raw)
}

// listPause is how often a client is told at most that a list has changed.
const listPause = 250 * time.Millisecond

// changed is a list of which the client was told a moment ago that it changed.
type changed struct {
	timer *time.Timer
	again []byte // it changed again since
}

// listChanged tells the first of a flood at once, and then one a pause: in between nothing new is said.
func (s *session) listChanged(l *link, m message) {
	key := listKey{l, m.method}
	s.mu.Lock()
	if c := s.lists[key]; c != nil || s.closed {
		if c != nil {
			c.again = m.raw
		}
		s.mu.Unlock()
		return
	}
	c := &changed{}
	c.timer = time.AfterFunc(listPause, func() {
		s.mu.Lock()
		b := c.again
		c.again = nil
		switch {
		case s.closed:
			b = nil
		case b == nil:
			delete(s.lists, key)
		default:
			c.timer.Reset(listPause)
		}
		s.mu.Unlock()
		if b != nil {
			s.deliver(nil, b)
		}
	})
	s.lists[key] = c
	s.mu.Unlock()
	s.deliver(nil, m.raw)
}

// again: the upstream has forgotten all it was told, and its lists may be others.
func (s *session) again(l *link) {
	for _, kind := range []string{"tools", "prompts", "resources"} {
		m := message{method: "notifications/" + kind + "/list_changed"}
		m.raw = requestLine(nil, m.method, nil)
		s.listChanged(l, m)
	}
}

// ask sends a request of the guard to the client.
func (s *session) ask(ctx context.Context, x *exchange, method string, params json.RawMessage) (json.RawMessage, error) {
	if s.hub {
		return nil, errors.New("this client cannot be asked: its requests stand for themselves")
	}
	id, got := secretID(), make(chan message, 1)
	s.mu.Lock()
	s.asks[id] = got
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asks, id)
		s.mu.Unlock()
	}()
	if !s.deliver(x, requestLine([]byte(id), method, params)) {
		return nil, errors.New("the client has no stream open on which it could be asked")
	}
	select {
	case m := <-got:
		a := answer{m: m}
		return a.result()
	case <-ctx.Done():
		s.deliver(x, requestLine(nil, "notifications/cancelled", []byte(`{"requestId":`+id+`}`)))
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, errors.New("the session ended")
	}
}
