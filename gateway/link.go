package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// pipe carries messages to one upstream. What comes back is told to its link.
type pipe interface {
	// send hands one message over. With an error nothing of it left this process. What happens afterwards to a message
	// that awaits an answer is told by link.fail.
	send(ctx context.Context, out outgoing) error
	close()
}

// A process does not run at the moment, or its program could not even be started.
var (
	errDown    = errors.New("it is not running")
	errNoStart = errors.New("it cannot be started")
)

// outgoing is a message for an upstream.
type outgoing struct {
	b       []byte
	method  string // "" for a response
	name    string // tool, prompt or URI, for the header Mcp-Name
	version string // of a request that stands for itself (2026-07-28), "" otherwise
	call    *call  // nil: no answer is awaited
}

// owner is whom a link tells of messages that answer nothing.
type owner interface {
	fromUpstream(l *link, m message)
	again(l *link) // the upstream was started again, and knows nothing of before
}

// link is a connection to one upstream.
type link struct {
	g     *Gateway
	up    *upstream
	owner owner
	pipe  pipe
	// shared: requests of several clients meet here, so that their ids and progress tokens are replaced.
	shared bool

	prefix string // of ids of our own: nobody else can guess one
	mu     sync.Mutex
	n      uint64
	calls  map[string]*call // by the id on the wire
	tokens map[string]*call // by the progress token on the wire, where it was replaced
	era    era
	hello  []byte // params of the initialize that the upstream accepted
}

// era of the protocol that a link is known to speak.
type era int

const (
	eraUnknown era = iota
	eraLegacy      // initialize
	eraModern      // 2026-07-28
)

// call is a request that an upstream has not answered yet.
type call struct {
	method   string
	wire     string      // its id on the wire, as JSON
	token    string      // its progress token on the wire, if it was replaced
	original []byte      // the client's token
	ex       *exchange   // the client's request, or
	own      chan answer // where one of our own waits
	cancel   func()      // ends the request on a transport where that is possible
	onWire   bool        // it may have left this process
}

// answer to a call. sent is false only if nothing left this process.
type answer struct {
	m    message
	err  error
	sent bool
}

func (g *Gateway) newLink(u *upstream, o owner, shared bool) *link {
	l := &link{g: g, up: u, owner: o, shared: shared, prefix: "wetink-" + rand.Text() + "-", calls: map[string]*call{}, tokens: map[string]*call{}}
	if u.url != nil {
		l.pipe = newRemote(l)
	} else {
		l.pipe = startChild(l)
	}
	return l
}

func (l *link) close() {
	l.pipe.close()
	l.lost(errors.New("the session ended"))
}

// ownID is called with mu held.
func (l *link) ownID() string {
	l.n++
	b := append(append(make([]byte, 0, len(l.prefix)+12), '"'), l.prefix...)
	return string(append(strconv.AppendUint(b, l.n, 10), '"'))
}

// forward sends a client's request on. Its bytes stay, but for the edits, and for an id or a progress token that the
// upstream could not give back as it is.
func (l *link) forward(ctx context.Context, ex *exchange, m *message, edits ...edit) {
	id := m.id.of(m.raw)
	c := &call{method: m.method, ex: ex}
	out := outgoing{method: m.method, name: m.name, call: c, version: ex.version}
	if m.uri.ok() && m.method == "resources/read" {
		out.name, _ = text(m.raw, m.uri)
	}
	l.mu.Lock()
	if ex.version != "" && l.era == eraUnknown {
		l.era = eraModern
	}
	if l.shared || !plainID(id) {
		c.wire = l.ownID()
		edits = append(edits, edit{m.id, []byte(c.wire)})
	} else {
		c.wire = string(id)
	}
	if l.shared && m.meta.ok() {
		if at, _ := member(m.raw, m.meta, "progressToken"); at.ok() {
			c.token, c.original = l.ownID(), at.of(m.raw)
			l.tokens[c.token] = c
			edits = append(edits, edit{at, []byte(c.token)})
		}
	}
	_, twice := l.calls[c.wire]
	if !twice {
		l.calls[c.wire] = c
	}
	l.mu.Unlock()
	if twice {
		ex.s.finish(ex, errorLine(ex.id, codeRequest, "a request with this id is still open", nil))
		return
	}
	ex.add(l, c)
	out.b = m.raw
	if len(edits) > 0 {
		out.b = splice(m.raw, edits...)
	}
	l.dispatch(ctx, out)
}

// dispatch sends, and waits in a goroutine of its own for an upstream that is just starting.
func (l *link) dispatch(ctx context.Context, out outgoing) {
	err := l.put(ctx, out)
	if errors.Is(err, errDown) && !errors.Is(err, errNoStart) {
		if c, ok := l.pipe.(*child); ok {
			go func() {
				err := c.wait(ctx)
				if out.call != nil && !l.waits(out.call) {
					return // cancelled meanwhile
				}
				if err == nil {
					err = l.put(ctx, out)
				}
				if err != nil {
					l.fail(out.call, err, false)
				}
			}()
			return
		}
	}
	if err != nil {
		l.fail(out.call, err, false)
	}
}

// put notes that a call may be on the wire before it is, never after.
func (l *link) put(ctx context.Context, out outgoing) error {
	l.mark(out.call, true)
	err := l.pipe.send(ctx, out)
	if err != nil {
		l.mark(out.call, false)
	}
	return err
}

func (l *link) mark(c *call, onWire bool) {
	if c != nil {
		l.mu.Lock()
		c.onWire = onWire
		l.mu.Unlock()
	}
}

// notify sends what awaits no answer; if the upstream does not run, nobody misses it.
func (l *link) notify(b []byte, method, version string) {
	if err := l.pipe.send(l.g.ctx, outgoing{b: b, method: method, version: version}); err != nil {
		l.g.opt.Log.Debug("not sent", "upstream", l.up.Name, "method", method, "err", err)
	}
}

// request asks the upstream something of our own. version is "" for a session that was initialized.
func (l *link) request(ctx context.Context, method, name, version string, params []byte) answer {
	c := &call{method: method, own: make(chan answer, 1)}
	l.mu.Lock()
	c.wire = l.ownID()
	l.calls[c.wire] = c
	l.mu.Unlock()
	l.dispatch(ctx, outgoing{b: requestLine([]byte(c.wire), method, params), method: method, name: name, version: version, call: c})
	select {
	case a := <-c.own:
		return a
	case <-ctx.Done():
	}
	if !l.drop(c) {
		return <-c.own // it came at the same moment
	}
	l.cancelled(c, version)
	return answer{err: ctx.Err(), sent: true}
}

// cancelled tells the upstream that nobody waits for a call any more.
func (l *link) cancelled(c *call, version string) {
	if c.cancel != nil {
		c.cancel()
	}
	if l.up.url != nil && version != "" {
		return // over HTTP the end of the stream says it
	}
	if c.method != "initialize" {
		l.notify(requestLine(nil, "notifications/cancelled", append(append([]byte(`{"requestId":`), c.wire...), '}')), "notifications/cancelled", version)
	}
}

// drop forgets a call and reports whether it was still open.
func (l *link) drop(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[c.wire] != c {
		return false
	}
	delete(l.calls, c.wire)
	if c.token != "" {
		delete(l.tokens, c.token)
	}
	return true
}

func (l *link) waits(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[c.wire] == c
}

// fail answers a call with an error of ours.
func (l *link) fail(c *call, err error, sent bool) {
	if c != nil && l.drop(c) {
		l.finish(c, answer{err: fmt.Errorf("upstream %s: %w", l.up.Name, err), sent: sent})
	}
}

// lost answers all calls that went out: what the upstream made of them is not known. The others still wait.
func (l *link) lost(err error) {
	l.mu.Lock()
	list := make([]*call, 0, len(l.calls))
	for _, c := range l.calls {
		if c.onWire {
			list = append(list, c)
		}
	}
	l.mu.Unlock()
	for _, c := range list {
		l.fail(c, err, true)
	}
}

func (l *link) finish(c *call, a answer) {
	if c.own != nil {
		c.own <- a
		return
	}
	c.ex.s.answered(l, c, a)
}

// received takes a message of the upstream.
func (l *link) received(b []byte) {
	m, err := peek(b, max(l.g.opt.Depth, 512), false)
	if err != nil {
		l.g.opt.Log.Warn("dropped a message that is not one", "upstream", l.up.Name, "err", err)
		// One that answers something must not leave the client waiting.
		if id := m.id; id.ok() {
			if c := l.open(id.of(b)); c != nil {
				l.fail(c, fmt.Errorf("its answer cannot be forwarded: %w", err), true)
			}
		}
		return
	}
	if !m.response() {
		l.owner.fromUpstream(l, m)
		return
	}
	c := l.open(m.id.of(b))
	if c == nil || !l.drop(c) {
		l.g.opt.Log.Warn("dropped an answer that nobody waits for", "upstream", l.up.Name)
		return
	}
	l.finish(c, answer{m: m, sent: true})
}

func (l *link) open(id []byte) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[string(id)]
}

// greetedWith notes that the upstream accepted an initialize.
func (l *link) greetedWith(params []byte) {
	l.mu.Lock()
	l.era, l.hello = eraLegacy, params
	l.mu.Unlock()
}

func (l *link) state() (era, []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era, l.hello
}

// plainID reports an id that every upstream gives back as it came: languages write 1.0, 2^53+1 and "\u0061" anew.
func plainID(id []byte) bool {
	if id[0] == '"' {
		for _, c := range id[1 : len(id)-1] {
			if c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&' || c == '\'' || c == '/' {
				return false
			}
		}
		return len(id) <= 256
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n <= 1<<53-1 && n >= -(1<<53-1) && string(id) != "-0"
}

// RPCError is an error that an upstream answered.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func (a *answer) result() (json.RawMessage, error) {
	if a.err != nil {
		return nil, a.err
	}
	if a.m.err.ok() {
		e := &RPCError{}
		if err := json.Unmarshal(a.m.err.of(a.m.raw), e); err != nil {
			return nil, &RPCError{Code: codeInternal, Message: "an error that cannot be read"}
		}
		return nil, e
	}
	return a.m.result.of(a.m.raw), nil
}
