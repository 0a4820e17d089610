//go:build crashpoint

package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/crashpoint"
	"github.com/wetink/wetink/ledger/sqlite"
	"github.com/wetink/wetink/wetinktest"
)

// The process that dies holds the ledger and the engine. The outside system lives here and counts what arrives and
// what takes effect, by the key of each operation, whoever dies.
//
// The life: preview of three operations with the order to undo on failure; approval; claim; two are sent and take
// effect, the third is refused; the settling bears the ordered undo, which is claimed and sent in turn. A crash at
// every hit of every point of it, and then another process, on a clock that is past lease and flight, finishes what
// it finds.

const (
	urlEnv  = "WETINK_TEST_REMOTE"
	life    = `{"on_failure":"undo","ops":[{"action":"update","object":"a","set":{"n":2}},{"action":"update","object":"b","set":{"n":2}},{"action":"update","object":"refused","set":{"n":2}}]}`
	again   = `{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`
	healing = 5 * time.Minute
)

func init() {
	roles["life"] = func() { liveOnce(life, false) }
	roles["claimed too late"] = func() { liveOnce(again, true) }
}

func TestACrashAtAnyPointNeverSendsTwiceAndLeavesAnHonestRecord(t *testing.T) {
	for _, p := range crashpoint.All() {
		deaths := 0
		for n := 1; ; n++ {
			w := newWorld(t)
			if !w.crash("life", p, n) {
				break
			}
			deaths++
			t.Run(fmt.Sprintf("%s:%d", p, n), func(t *testing.T) {
				for _, problem := range append(w.look(t, false), w.heal(t)...) {
					t.Error(problem)
				}
			})
		}
		if deaths == 0 {
			t.Errorf("nobody died at %s", p)
		}
		t.Logf("%s: %d deaths", p, deaths)
	}
}

// The control: sent before the claim was durable. If this is not found, the test above shows nothing.
func TestAClaimAfterTheSendIsFoundToSendTwice(t *testing.T) {
	w := newWorld(t)
	if !w.crash("claimed too late", crashpoint.BeforeClaim, 1) {
		t.Fatal("it did not die")
	}
	w.target.Put("a", `{"n":1}`) // somebody puts it back, so that only the claim could keep it from a second effect
	problems := strings.Join(w.heal(t), "\n")
	if !strings.Contains(problems, "was sent 2 times") || !strings.Contains(problems, "took effect 2 times") {
		t.Errorf("found only %q", problems)
	}
}

type world struct {
	t      *testing.T
	path   string
	target *wetinktest.Target
	url    string

	mu            sync.Mutex
	sent, effects map[string]int // by Op.Key
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, path: newPath(t), target: wetinktest.NewTarget(), sent: map[string]int{}, effects: map[string]int{}}
	for _, object := range []string{"a", "b", "refused"} {
		w.target.Put(object, `{"n":1}`)
	}
	w.target.OnExecute = func(_ int, op wetink.Op, do func() error) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent[op.Key]++
		if op.Object == "refused" {
			return fmt.Errorf("not this one: %w", wetink.ErrNotApplied)
		}
		err := do()
		if err == nil {
			w.effects[op.Key]++
		}
		return err
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// crash runs a child and reports whether it died at the point; false: it came to its end alive.
func (w *world) crash(name string, p crashpoint.Point, n int) bool {
	w.t.Helper()
	cmd := role(w.t, name, urlEnv+"="+w.url, pathEnv+"="+w.path, fmt.Sprintf("%s=%s:%d", crashpoint.Env, p, n))
	err := cmd.Run()
	state := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case state.Signaled() && state.Signal() == syscall.SIGKILL:
		return true
	case err == nil:
		return false
	}
	w.t.Fatalf("%s at %s:%d: %v", name, p, n, err)
	return false
}

// look holds what the ledger says against what happened. With whole, nothing may be open any more.
func (w *world) look(t *testing.T, whole bool) (problems []string) {
	t.Helper()
	l, err := sqlite.Open(w.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, n := range w.sent {
		if n > 1 {
			problems = append(problems, fmt.Sprintf("%s was sent %d times", key, n))
		}
		if m := w.effects[key]; m > 1 {
			problems = append(problems, fmt.Sprintf("%s took effect %d times", key, m))
		}
	}
	known := map[string]bool{}
	for c, err := range l.List(context.Background(), wetink.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		terms, err := c.Terms()
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, w.dishonest(c, terms, whole)...)
		for _, op := range terms.Ops {
			known[op.Key] = true
		}
	}
	for key := range w.sent {
		if !known[key] {
			problems = append(problems, key+" was sent and no change knows of it")
		}
	}
	return problems
}

func (w *world) dishonest(c wetink.Change, terms wetink.Terms, whole bool) (problems []string) {
	sent, effects := 0, 0
	for i, op := range terms.Ops {
		sent, effects = sent+w.sent[op.Key], effects+w.effects[op.Key]
		if s, ok := c.StepOf(i); ok && (s.Outcome == wetink.TookEffect && w.effects[op.Key] == 0 || s.Outcome == wetink.NoEffect && w.effects[op.Key] > 0) {
			problems = append(problems, fmt.Sprintf("operation %d of %s is recorded as %s, and took effect %d times", i, c.ID, s.Outcome, w.effects[op.Key]))
		}
	}
	says := func(holds bool, what string) {
		if !holds {
			problems = append(problems, fmt.Sprintf("%s is %s, and %s: %d sent, %d effects of %d", c.ID, c.Status, what, sent, effects, len(terms.Ops)))
		}
	}
	switch c.Status {
	case wetink.Pending, wetink.Expired, wetink.Rejected, wetink.Superseded:
		says(sent == 0, "something was sent")
	case wetink.Approved:
		says(sent == 0, "something was sent")
		says(!whole, "nobody started it")
	case wetink.Applying, wetink.InDoubt:
		says(!whole, "the truth could have been found out")
	case wetink.Applied:
		says(effects == len(terms.Ops), "not all took effect")
	case wetink.Failed:
		says(effects == 0, "something took effect")
	case wetink.Partial:
		says(effects > 0 && effects < len(terms.Ops), "that is not partial")
	}
	return problems
}

// heal is the next process: a fresh engine on the file, past the lease and the time of flight. It starts, reconciles
// and cleans up until nothing is open, and a person who had not said yes says it now.
func (w *world) heal(t *testing.T) []string {
	t.Helper()
	l, err := sqlite.Open(w.path, &sqlite.Options{Now: func() time.Time { return time.Now().Add(healing) }})
	if err != nil {
		t.Fatal(err)
	}
	k := wetinktest.On(l, w.target, &wetink.Options{Sweep: 10 * time.Millisecond,
		Verifiers: map[string]wetink.Verifier{sealKind: signer}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	running := make(chan error)
	go func() { running <- k.Run(ctx) }()
	for open := true; open; {
		events := l.Events(ctx, wetink.Newest, true)
		open = false
		for c, err := range l.List(ctx, wetink.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Status == wetink.Pending {
				if _, err := k.Approve(ctx, wetinktest.By, c.ID, signed(c)); err != nil {
					t.Fatal(err)
				}
			}
			open = open || !c.Status.Settled()
		}
		if !open {
			break
		}
		for _, err := range events { // until something moves
			if err != nil {
				t.Errorf("a minute later something is still open: %v", err)
				open = false
			}
			break
		}
	}
	cancel()
	<-running
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return w.look(t, true)
}

// liveOnce is the child.
func liveOnce(request string, wrong bool) {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	l, err := sqlite.Open(os.Getenv(pathEnv), nil)
	must(err)
	target := remote{wetinktest.NewTarget(), os.Getenv(urlEnv)}
	e := wetink.New(l, map[string]wetink.Target{"test": target}, &wetink.Options{Mode: wetink.ModeGuarded, Owner: "the child",
		Verifiers: map[string]wetink.Verifier{sealKind: signer}})
	c, _, err := e.Preview(ctx, "test", wetink.Request{By: wetinktest.By, Args: []byte(request)})
	must(err)
	c, err = e.Approve(ctx, wetinktest.By, c.ID, signed(c))
	must(err)
	if wrong {
		terms, err := c.Terms()
		must(err)
		_, err = target.Execute(ctx, c.Account, terms.Ops[0], nil)
		must(err)
	}
	_, _, err = e.Apply(ctx, wetinktest.By, c.ID, nil)
	must(err)
	must(l.Close())
}

// remote is the outside system as the child sees it: what is pure it asks a target of its own.
type remote struct {
	*wetinktest.Target
	url string
}

type callOf struct {
	Account wetink.Account
	Request wetink.Request
	Op      wetink.Op
}

type answerOf struct {
	Account    wetink.Account
	Version    string
	Prepared   wetink.Prepared
	Snapshot   wetink.Snapshot
	Receipt    wetink.Receipt
	Error      string
	NotApplied bool
}

func (r remote) call(ctx context.Context, method string, c callOf) (a answerOf, err error) {
	b, err := json.Marshal(c)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/"+method, bytes.NewReader(b))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	switch {
	case a.NotApplied:
		return a, fmt.Errorf("%s: %w", a.Error, wetink.ErrNotApplied)
	case a.Error != "":
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (r remote) Account(ctx context.Context) (wetink.Account, string, error) {
	a, err := r.call(ctx, "account", callOf{})
	return a.Account, a.Version, err
}

func (r remote) Prepare(ctx context.Context, req wetink.Request) (wetink.Prepared, error) {
	a, err := r.call(ctx, "prepare", callOf{Request: req})
	return a.Prepared, err
}

func (r remote) Observe(ctx context.Context, acct wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	a, err := r.call(ctx, "observe", callOf{Account: acct, Op: op})
	return a.Snapshot, err
}

func (r remote) Execute(ctx context.Context, acct wetink.Account, op wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	a, err := r.call(ctx, "execute", callOf{Account: acct, Op: op})
	return a.Receipt, err
}

func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var c callOf
	var a answerOf
	err := json.NewDecoder(in.Body).Decode(&c)
	ctx := context.WithoutCancel(in.Context()) // what arrived happens, also when the caller is dead
	switch method := strings.TrimPrefix(in.URL.Path, "/"); {
	case err != nil:
	case method == "account":
		a.Account, a.Version, err = w.target.Account(ctx)
	case method == "prepare":
		a.Prepared, err = w.target.Prepare(ctx, c.Request)
	case method == "observe":
		a.Snapshot, err = w.target.Observe(ctx, c.Account, c.Op)
	case method == "execute":
		a.Receipt, err = w.target.Execute(ctx, c.Account, c.Op, nil)
	default:
		err = errors.New("no method " + method)
	}
	if err != nil {
		a.Error, a.NotApplied = err.Error(), errors.Is(err, wetink.ErrNotApplied)
	}
	json.NewEncoder(out).Encode(a)
}
