package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// remote is an upstream by URL for one session: each message is a POST, and what the upstream says by itself comes on
// a stream of GET.
type remote struct {
	l      *link
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	room   chan struct{} // requests that may be under way

	mu      sync.Mutex
	session string
	version string // that initialize agreed on
}

func newRemote(l *link) *remote {
	r := &remote{l: l, room: make(chan struct{}, l.g.opt.InFlight)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

func (r *remote) close() {
	r.cancel()
	r.wg.Wait()
	if session, _ := r.known(); session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), r.l.g.opt.Grace)
		defer cancel()
		if resp, _, err := r.l.g.post(ctx, r.l.up, http.MethodDelete, r.header(outgoing{}), nil); err == nil {
			resp.Body.Close()
		}
	}
}

func (r *remote) known() (session, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.version
}

func (r *remote) header(out outgoing) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	session, version := r.known()
	if session != "" && out.method != "initialize" && out.version == "" {
		h["Mcp-Session-Id"] = []string{session}
	}
	switch {
	case out.version != "":
		h["Mcp-Protocol-Version"] = []string{out.version}
		h["Mcp-Method"] = []string{headerText(out.method)}
		if out.name != "" {
			h["Mcp-Name"] = []string{headerText(out.name)}
		}
	case version != "" && out.method != "initialize":
		h["Mcp-Protocol-Version"] = []string{version}
	}
	return h
}

// headerText writes what a header cannot hold in base64, as revision 2026-07-28 says.
func headerText(t string) string {
	plain := strings.TrimSpace(t) == t && !strings.HasPrefix(t, "=?base64?")
	for _, c := range []byte(t) {
		plain = plain && c >= ' ' && c <= '~'
	}
	if plain {
		return t
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(t)) + "?="
}

func plainHeader(h string) string {
	if coded, ok := strings.CutPrefix(h, "=?base64?"); ok {
		if coded, ok = strings.CutSuffix(coded, "?="); ok {
			if b, err := base64.StdEncoding.DecodeString(coded); err == nil {
				return string(b)
			}
		}
	}
	return h
}

func (r *remote) send(_ context.Context, out outgoing) error {
	if r.ctx.Err() != nil {
		return errors.New("the session ended")
	}
	select {
	case r.room <- struct{}{}:
	default:
		return errors.New("too many requests are under way")
	}
	ctx, cancel := context.WithCancel(r.ctx)
	if out.call != nil {
		r.l.mu.Lock()
		out.call.cancel = cancel
		r.l.mu.Unlock()
	}
	work := func() {
		defer cancel()
		defer func() { <-r.room }()
		if out.call == nil {
			r.tell(ctx, out)
		} else {
			r.ask(ctx, out, true)
		}
	}
	if out.method == "notifications/initialized" { // what follows must find the session open
		work()
		r.wg.Go(r.listen)
		return nil
	}
	r.wg.Go(work)
	return nil
}

// tell sends what awaits no answer.
func (r *remote) tell(ctx context.Context, out outgoing) {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	resp, _, err := r.l.g.post(ctx, r.l.up, http.MethodPost, r.header(out), out.b)
	if err == nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			err = fmt.Errorf("HTTP %d", resp.StatusCode)
		}
	}
	if err != nil && ctx.Err() == nil {
		r.l.g.opt.Log.Warn("not delivered", "upstream", r.l.up.Name, "method", out.method, "err", err)
	}
}

// ask sends a request and reads what comes until its answer did.
func (r *remote) ask(ctx context.Context, out outgoing, again bool) {
	session, _ := r.known()
	resp, sent, err := r.l.g.post(ctx, r.l.up, http.MethodPost, r.header(out), out.b)
	if err != nil {
		r.l.fail(out.call, err, sent)
		return
	}
	defer resp.Body.Close()
	// A session that the upstream forgot is opened again, and what only reads is asked again. A call of a tool is not: that
	// an upstream acted on nothing is its word only, and a second call could act twice.
	if resp.StatusCode == http.StatusNotFound && session != "" && out.version == "" && out.method != "initialize" && again {
		if err := r.regreet(ctx, session); err != nil {
			r.l.fail(out.call, fmt.Errorf("its session ended, and it opens no other: %w", err), out.method == "tools/call")
			return
		}
		if out.method == "tools/call" {
			r.l.fail(out.call, errors.New("its session had ended, and another is open now; the call was not sent again"), true)
			return
		}
		r.ask(ctx, out, false)
		return
	}
	if out.method == "initialize" {
		r.mu.Lock()
		r.session = resp.Header.Get("Mcp-Session-Id")
		r.mu.Unlock()
	}
	if !isSSE(resp.Header) {
		b, err := r.l.g.answerOf(resp, []byte(out.call.wire))
		if err != nil {
			r.l.fail(out.call, err, true)
			return
		}
		r.took(out, b)
		return
	}
	last, wait, err := r.stream(resp.Body, out)
	for r.l.waits(out.call) && last != "" && out.version == "" && ctx.Err() == nil {
		// Revisions before 2026-07-28 let a broken stream be read on.
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		h := r.header(out)
		h["Accept"], h["Last-Event-Id"] = []string{"text/event-stream"}, []string{last}
		var more *http.Response
		if more, _, err = r.l.g.post(ctx, r.l.up, http.MethodGet, h, nil); err != nil {
			break
		}
		if more.StatusCode != http.StatusOK || !isSSE(more.Header) {
			more.Body.Close()
			break
		}
		before := last
		last, wait, err = r.stream(more.Body, out)
		more.Body.Close()
		if last == before {
			break
		}
	}
	if err == nil {
		err = errors.New("its stream ended without an answer")
	}
	r.l.fail(out.call, err, true)
}

// stream reads events until the answer to out came, or all of them without one.
func (r *remote) stream(body io.Reader, out outgoing) (last string, wait time.Duration, err error) {
	wait = time.Second
	err = r.l.g.events(body, func(e event) bool {
		last = e.id
		if ms, err := strconv.Atoi(e.retry); err == nil && ms >= 0 {
			wait = min(time.Duration(ms)*time.Millisecond, lastWait)
		}
		if len(e.data) > 0 {
			r.took(out, e.data)
		}
		return out.call == nil || r.l.waits(out.call)
	})
	return last, wait, err
}

func (r *remote) took(out outgoing, b []byte) {
	if out.method == "initialize" {
		if m, err := peek(b, r.l.g.opt.Depth, false); err == nil && m.result.ok() {
			at, _ := member(b, m.result, "protocolVersion")
			v, _ := text(b, at)
			r.mu.Lock()
			r.version = v
			r.mu.Unlock()
		}
	}
	r.l.received(b)
}

// regreet opens a new session in place of an old one, once for all requests that found it gone.
func (r *remote) regreet(ctx context.Context, old string) error {
	_, hello := r.l.state()
	session, _ := r.known()
	if hello == nil {
		return errors.New("it was not greeted")
	}
	if session != old {
		return nil
	}
	a := r.l.request(ctx, "initialize", "", "", hello)
	if _, err := a.result(); err != nil {
		return err
	}
	r.tell(ctx, outgoing{b: requestLine(nil, "notifications/initialized", nil), method: "notifications/initialized"})
	r.l.up.restarts.Add(1)
	r.l.owner.again(r.l)
	return nil
}

// listen reads what the upstream says by itself, as long as it offers that.
func (r *remote) listen() {
	wait, last := firstWait, ""
	for r.ctx.Err() == nil {
		h := r.header(outgoing{})
		h["Accept"] = []string{"text/event-stream"}
		if last != "" {
			h["Last-Event-Id"] = []string{last}
		}
		resp, _, err := r.l.g.post(r.ctx, r.l.up, http.MethodGet, h, nil)
		if err == nil {
			if resp.StatusCode != http.StatusOK || !isSSE(resp.Header) {
				resp.Body.Close()
				return
			}
			began := time.Now()
			if id, _, _ := r.stream(resp.Body, outgoing{}); id != "" {
				last = id
			}
			resp.Body.Close()
			if time.Since(began) > time.Minute {
				wait = firstWait
			}
		}
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return
		}
		wait = min(2*wait, lastWait)
	}
}
