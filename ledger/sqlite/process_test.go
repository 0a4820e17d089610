package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/ledgertest"
	"github.com/wetink/wetink/ledger/sqlite"
)

func TestTwoProcessesOnOneFile(t *testing.T) {
	ledgertest.RunShared(t, func(t *testing.T) (a, b wetink.Ledger) {
		path := newPath(t)
		return open(t, path, nil), startProcess(t, path)
	})
}

const pathEnv = "WETINK_TEST_LEDGER"

func init() { roles["ledger"] = serveLedger }

// process is the Ledger that another process holds, over loopback HTTP.
type process struct{ url string }

func startProcess(t *testing.T, path string) *process {
	t.Helper()
	cmd := role(t, "ledger", pathEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &process{"http://" + strings.TrimSpace(address)}
}

// serveLedger is the other process. It ends when its standard input does.
func serveLedger() {
	l, err := sqlite.Open(os.Getenv(pathEnv), nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	handle(mux, "advance", func(ctx context.Context, list []wireMove) ([]wetink.Event, error) {
		moves := make([]wetink.Move, len(list))
		for i, w := range list {
			moves[i] = w.move()
		}
		return l.Advance(ctx, moves...)
	})
	handle(mux, "get", func(ctx context.Context, k wetink.Move) (wireChange, error) {
		c, err := l.Get(ctx, k.Tenant, k.ID)
		return wireOf(c), err
	})
	handle(mux, "list", func(ctx context.Context, f wetink.Filter) (list []wireChange, err error) {
		for c, err := range l.List(ctx, f) {
			if err != nil {
				return nil, err
			}
			list = append(list, wireOf(c))
		}
		return list, nil
	})
	handle(mux, "mode", func(ctx context.Context, _ string) (wetink.Mode, error) { return l.Mode(ctx) })
	handle(mux, "set", func(ctx context.Context, a [2]string) (string, error) {
		return "", l.SetMode(ctx, wetink.Mode(a[0]), wetink.Person(a[1]))
	})
	handle(mux, "now", func(ctx context.Context, _ string) (time.Time, error) { return l.Now(ctx) })
	handle(mux, "head", func(ctx context.Context, _ string) (int64, error) { return l.Head(ctx) })
	handle(mux, "id", func(context.Context, string) (string, error) { return l.ID(), nil })
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.FormValue("after"), 10, 64)
		events := l.Events(r.Context(), after, r.FormValue("follow") == "true")
		out := http.NewResponseController(w)
		w.WriteHeader(http.StatusOK) // from here on nothing is missed
		out.Flush()
		for e, err := range events {
			if err != nil {
				return
			}
			w.Write(append(e.Bytes(), '\n'))
			out.Flush()
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, mux)
	fmt.Println(listener.Addr())
	io.Copy(io.Discard, os.Stdin)
	if err := l.Close(); err != nil {
		panic(err)
	}
}

type answer[T any] struct {
	Value   T
	Refusal int // 1 + index in refusals
	Error   string
}

var refusals = []error{wetink.ErrConflict, wetink.ErrLate, wetink.ErrEarly, wetink.ErrCapped, wetink.ErrOff, wetink.ErrNotFound}

func handle[In, Out any](mux *http.ServeMux, name string, f func(context.Context, In) (Out, error)) {
	mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
		var in In
		err := json.NewDecoder(r.Body).Decode(&in)
		var a answer[Out]
		if err == nil {
			a.Value, err = f(r.Context(), in)
		}
		if err != nil {
			a.Error = err.Error()
			for i, refusal := range refusals {
				if errors.Is(err, refusal) {
					a.Refusal = i + 1
				}
			}
		}
		json.NewEncoder(w).Encode(a)
	})
}

func call[Out, In any](ctx context.Context, p *process, name string, in In) (out Out, err error) {
	b, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/"+name, bytes.NewReader(b))
	if err != nil {
		return out, err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer r.Body.Close()
	var a answer[Out]
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		return out, err
	}
	switch {
	case a.Refusal > 0:
		return a.Value, fmt.Errorf("%s: %w", a.Error, refusals[a.Refusal-1])
	case a.Error != "":
		return a.Value, errors.New(a.Error)
	}
	return a.Value, nil
}

func (p *process) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	list := make([]wireMove, len(moves))
	for i, m := range moves {
		list[i] = wireMove{Move: m}
		if m.New != nil {
			w := wireOf(*m.New)
			list[i].New, list[i].Birth = nil, &w
		}
	}
	return call[[]wetink.Event](ctx, p, "advance", list)
}

func (p *process) Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (wetink.Change, error) {
	w, err := call[wireChange](ctx, p, "get", wetink.Move{Tenant: tenant, ID: id})
	if err != nil {
		return wetink.Change{}, err
	}
	return w.change(), nil
}

func (p *process) List(ctx context.Context, f wetink.Filter) iter.Seq2[wetink.Change, error] {
	return func(yield func(wetink.Change, error) bool) {
		list, err := call[[]wireChange](ctx, p, "list", f)
		if err != nil {
			yield(wetink.Change{}, err)
			return
		}
		for _, w := range list {
			if !yield(w.change(), nil) {
				return
			}
		}
	}
}

func (p *process) Mode(ctx context.Context) (wetink.Mode, error) {
	return call[wetink.Mode](ctx, p, "mode", "")
}

func (p *process) SetMode(ctx context.Context, m wetink.Mode, by wetink.Person) error {
	_, err := call[string](ctx, p, "set", [2]string{string(m), string(by)})
	return err
}

func (p *process) Now(ctx context.Context) (time.Time, error) {
	return call[time.Time](ctx, p, "now", "")
}

func (p *process) Head(ctx context.Context) (int64, error) {
	return call[int64](ctx, p, "head", "")
}

func (p *process) ID() string {
	id, err := call[string](context.Background(), p, "id", "")
	if err != nil {
		panic(err)
	}
	return id
}

func (p *process) Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error] {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}, "follow": {strconv.FormatBool(follow)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/events?"+q.Encode(), nil)
	if err != nil {
		panic(err)
	}
	r, err := http.DefaultClient.Do(req)
	return func(yield func(wetink.Event, error) bool) {
		if err != nil {
			yield(wetink.Event{}, err)
			return
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			e, err := wetink.ParseEvent(lines.Bytes())
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(wetink.Event{}, err)
		}
	}
}

// wireChange carries the bytes that encoding/json would compact.
type wireChange struct {
	Change wetink.Change
	Raw    [][]byte
}

func wireOf(c wetink.Change) wireChange {
	c.Before, c.Steps = append([]wetink.Snapshot(nil), c.Before...), append([]wetink.Step(nil), c.Steps...)
	w := wireChange{Change: c}
	for _, r := range raws(&w.Change) {
		w.Raw = append(w.Raw, *r)
		*r = nil
	}
	return w
}

func (w wireChange) change() wetink.Change {
	for i, r := range raws(&w.Change) {
		*r = w.Raw[i]
	}
	return w.Change
}

func raws(c *wetink.Change) []*json.RawMessage {
	list := []*json.RawMessage{&c.Request.Args}
	for i := range c.Before {
		list = append(list, &c.Before[i].Body)
	}
	for i := range c.Steps {
		list = append(list, &c.Steps[i].Receipt.Raw, &c.Steps[i].Receipt.After.Body)
	}
	return list
}

type wireMove struct {
	wetink.Move
	Birth *wireChange
}

func (w wireMove) move() wetink.Move {
	if w.Birth != nil {
		c := w.Birth.change()
		w.New = &c
	}
	return w.Move
}
