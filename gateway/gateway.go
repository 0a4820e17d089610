package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Upstream is one MCP server that is guarded: a program that talks over its standard streams, or an address.
type Upstream struct {
	// Name is what its tools are prefixed with where there are several. a-z, 0-9, - and single _.
	Name string

	// Command and its arguments; no shell reads them.
	Command []string
	// Env is all of its environment; nil is that of this process without WETINK_…, which is not the upstream's.
	Env []string
	Dir string

	// URL of a Streamable HTTP endpoint, instead of Command.
	URL string
	// Header is sent with each request: the credentials of the operator. Those of clients are not passed on.
	Header http.Header
}

// Options of a Gateway. Fields that are zero have the defaults named here.
type Options struct {
	ClientBytes   int // longest message of a client; 4 MiB
	UpstreamBytes int // longest message of an upstream; 64 MiB
	Depth         int // how deep messages may nest; 512
	InFlight      int // requests of one client that may be open; 1024
	Calls         int // of those, calls that the guard may be answering; 64

	Sessions int           // clients over HTTP that may hold an upstream process of their own; 500
	Idle     time.Duration // after that long without a request such a session ends; 30 min
	// StartWait is how long a request waits for an upstream that is just starting again; 10 s.
	StartWait time.Duration
	// Grace is what an upstream process has to end by itself, and then again after TERM; 3 s.
	Grace time.Duration

	// Hosts that a request over HTTP may be sent to, as host or host:port, besides loopback ones. Checked always: a
	// page in a browser reaches a loopback port under a host name of its own (DNS rebinding).
	Hosts []string
	// Origins of pages that may call, such as https://app.example. Same-origin calls are allowed, no others are.
	Origins []string

	// Stderr gets what upstream processes print, each line behind the upstream's name; nil discards it.
	Stderr io.Writer
	Log    *slog.Logger // nil: discarded. No message content is logged.
	// Transport for upstreams by URL. nil: connections of our own to http addresses, a default one to https.
	Transport http.RoundTripper
}

func (o *Options) orDefault() Options {
	var d Options
	if o != nil {
		d = *o
	}
	or := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	or(&d.ClientBytes, 4<<20)
	or(&d.UpstreamBytes, 64<<20)
	or(&d.Depth, 512)
	or(&d.InFlight, 1024)
	or(&d.Calls, 64)
	or(&d.Sessions, 500)
	wait := func(t *time.Duration, v time.Duration) {
		if *t == 0 {
			*t = v
		}
	}
	wait(&d.Idle, 30*time.Minute)
	wait(&d.StartWait, 10*time.Second)
	wait(&d.Grace, 3*time.Second)
	if d.Stderr == nil {
		d.Stderr = io.Discard
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Transport == nil {
		d.Transport = &http.Transport{
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		}
	}
	return d
}

// Gateway forwards between clients and upstreams. Its methods are safe for concurrent use.
type Gateway struct {
	ups   []*upstream
	guard Guard // nil: everything passes
	opt   Options

	taken  atomic.Pointer[map[string]bool] // names of the guard's own tools; replaced, never changed
	hellos hellos                          // of clients whose session is the upstream's
	alone  chan struct{}                   // requests that stand for themselves and are open
	host   atomic.Pointer[string]          // the last one that was allowed: usually there is one
	calls  chan struct{}                   // of such clients, that the guard is answering

	mu      sync.Mutex
	stdio   *session // the client at our standard streams
	hub     *session // requests over HTTP that stand for themselves
	web     map[string]*session
	asks    map[string]*pendingAsk // requests of the guard to clients whose session is the upstream's
	guarded map[guardedKey]context.CancelFunc
	closed  bool
	ctx     context.Context
	stop    context.CancelFunc
}

// upstream is an Upstream in use.
type upstream struct {
	Upstream
	i        int
	url      *url.URL
	conns    *conns // nil: the transport's
	restarts atomic.Int64
	caller   *Caller
}

var upstreamName = regexp.MustCompile(`^[a-z0-9](?:_?[a-z0-9-])*$`)

// New checks the upstreams and starts nothing yet. Without a guard everything passes. Close it at the end.
func New(ups []Upstream, guard Guard, o *Options) (*Gateway, error) {
	if len(ups) == 0 {
		return nil, errors.New("no upstream: name a command or an address")
	}
	g := &Gateway{guard: guard, opt: o.orDefault(), web: map[string]*session{}, asks: map[string]*pendingAsk{}}
	g.guarded = map[guardedKey]context.CancelFunc{}
	g.calls, g.alone = make(chan struct{}, 16*g.opt.Calls), make(chan struct{}, 4*g.opt.InFlight)
	g.ctx, g.stop = context.WithCancel(context.Background())
	seen := map[string]bool{}
	for i, u := range ups {
		switch {
		case !upstreamName.MatchString(u.Name):
			return nil, fmt.Errorf("upstream %q: a name is a-z, 0-9, - and single _", u.Name)
		case seen[u.Name]:
			return nil, fmt.Errorf("upstream %q stands twice: their tools could not be told apart", u.Name)
		case (len(u.Command) == 0) == (u.URL == ""):
			return nil, fmt.Errorf("upstream %q: give either a command or an address", u.Name)
		}
		seen[u.Name] = true
		up := &upstream{Upstream: u, i: i}
		if u.URL != "" {
			at, err := url.Parse(u.URL)
			if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
				return nil, fmt.Errorf("upstream %q: its address is not an http or https URL without credentials", u.Name)
			}
			up.url = at
			if at.Scheme == "http" && (o == nil || o.Transport == nil) {
				up.conns = newConns(at)
			}
		}
		up.caller = &Caller{g: g, up: up}
		g.ups = append(g.ups, up)
	}
	if guard != nil {
		g.take(guard.Own(&client{s: &session{g: g}}))
	}
	return g, nil
}

// take notes the names of the guard's own tools: from then on they are no upstream's.
func (g *Gateway) take(own []json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, now := g.taken.Load(), map[string]bool{}
	if old != nil {
		now = maps.Clone(*old)
	}
	for _, def := range own {
		if name, ok := toolName(def); ok {
			now[name] = true
		}
	}
	if old == nil || len(now) > len(*old) {
		g.taken.Store(&now)
	}
}

// Restarts is how often a process of that upstream was started again after it had died.
func (g *Gateway) Restarts(name string) int64 {
	for _, u := range g.ups {
		if u.Name == name {
			return u.restarts.Load()
		}
	}
	return 0
}

// ToolsChanged tells the clients that hold a session that the list of tools is another one now.
func (g *Gateway) ToolsChanged() {
	g.mu.Lock()
	list := []*session{g.stdio}
	for _, s := range g.web {
		list = append(list, s)
	}
	g.mu.Unlock()
	for _, s := range list {
		if s != nil && s.greeted() {
			s.deliver(nil, requestLine(nil, "notifications/tools/list_changed", nil))
		}
	}
}

// Close ends all sessions and the upstreams that were started, and waits for that.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	list := []*session{g.stdio, g.hub}
	for _, s := range g.web {
		list = append(list, s)
	}
	g.mu.Unlock()
	g.stop()
	var wg sync.WaitGroup
	for _, s := range list {
		if s != nil {
			wg.Go(s.close)
		}
	}
	for _, u := range g.ups {
		wg.Go(u.caller.close)
	}
	wg.Wait()
	for _, u := range g.ups {
		if u.conns != nil {
			u.conns.close()
		}
	}
	if t, ok := g.opt.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// several reports whether names have to tell which upstream they belong to.
func (g *Gateway) several() bool { return len(g.ups) > 1 }

// named is what a client is shown of an upstream's name.
func (g *Gateway) named(u *upstream, name string) string {
	if g.several() {
		return u.Name + "__" + name
	}
	return name
}

// route is the way back. No name of an upstream holds "__", so the first one ends it.
func (g *Gateway) route(shown string) (*upstream, string, bool) {
	if !g.several() {
		return g.ups[0], shown, true
	}
	prefix, name, ok := strings.Cut(shown, "__")
	for _, u := range g.ups {
		if ok && u.Name == prefix {
			return u, name, true
		}
	}
	return nil, "", false
}

func toolName(def json.RawMessage) (string, bool) {
	at, _ := member(def, whole(def), "name")
	if !at.ok() {
		return "", false
	}
	name, err := text(def, at)
	return name, err == nil
}

// secretID is a JSON string that nobody can guess.
func secretID() string { return `"wetink-` + rand.Text() + `"` }
