package wetinktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wetink/wetink"
)

// Target is a small outside system in memory: objects with fields. It is a Judge and an Undoer.
//
// A request is {"on_failure":"undo","ops":[{"action":"create","object":"a","set":{"n":1}}, …]} with the
// actions create, update and delete; a field set to null goes. Its journal holds what really changed,
// whatever was answered: tests judge by it.
type Target struct {
	// Hooks, called without a lock, may be nil. n counts the calls of that method from 1.
	OnExecute func(n int, op wetink.Op, do func() error) error // do makes the effect; an error of it proves that there was none
	OnObserve func(n int, op wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error)
	OnPrepare func(n int) error

	mu       sync.Mutex
	account  wetink.Account
	version  string
	flight   time.Duration
	promise  wetink.Promise
	objects  map[string]fields
	journal  []Effect
	executed int
	observed int
	prepared int
}

type fields = map[string]json.RawMessage

// Effect is one entry of the journal.
type Effect struct {
	Account wetink.Account
	Action  string
	Object  string
	Payload string
}

// NewTarget returns an empty one: account "acct-1", version "v1", full undo for a day, a flight of one minute.
func NewTarget() *Target {
	return &Target{account: "acct-1", version: "v1", flight: time.Minute, objects: map[string]fields{},
		promise: wetink.Promise{Extent: wetink.FullUndo, Until: 24 * time.Hour}}
}

// SetAccount switches the credentials to another account.
func (t *Target) SetAccount(a wetink.Account) { t.mu.Lock(); defer t.mu.Unlock(); t.account = a }

// SetVersion upgrades the mapping.
func (t *Target) SetVersion(v string) { t.mu.Lock(); defer t.mu.Unlock(); t.version = v }

// SetFlight sets the Judge's Flight.
func (t *Target) SetFlight(d time.Duration) { t.mu.Lock(); defer t.mu.Unlock(); t.flight = d }

// SetPromise sets how far an undo can go.
func (t *Target) SetPromise(p wetink.Promise) { t.mu.Lock(); defer t.mu.Unlock(); t.promise = p }

// Put writes an object behind everybody's back: it is no effect of ours. nil deletes.
func (t *Target) Put(object string, body string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if body == "" {
		delete(t.objects, object)
		return
	}
	f := fields{}
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		panic(err)
	}
	t.objects[object] = f
}

// Object returns an object as compact JSON with sorted keys, or "".
func (t *Target) Object(object string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.body(object))
}

// Journal returns every effect so far.
func (t *Target) Journal() []Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.journal)
}

func (t *Target) body(object string) json.RawMessage {
	f, ok := t.objects[object]
	if !ok {
		return nil
	}
	b, _ := json.Marshal(f) // of RawMessages that were decoded
	return b
}

func (t *Target) snapshot(object string) wetink.Snapshot {
	b := t.body(object)
	return wetink.Snapshot{Object: object, Absent: b == nil, Body: b, At: time.Now().UTC()}
}

// Account implements wetink.Target.
func (t *Target) Account(context.Context) (wetink.Account, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.account, t.version, nil
}

type request struct {
	OnFailure wetink.OnFailure `json:"on_failure,omitempty"`
	Ops       []requestOp      `json:"ops"`
}

type requestOp struct {
	Action string          `json:"action"`
	Object string          `json:"object"`
	Set    json.RawMessage `json:"set,omitempty"`
}

// Prepare implements wetink.Target.
func (t *Target) Prepare(_ context.Context, req wetink.Request) (p wetink.Prepared, err error) {
	t.mu.Lock()
	t.prepared++
	n := t.prepared
	t.mu.Unlock()
	if t.OnPrepare != nil {
		if err := t.OnPrepare(n); err != nil {
			return p, err
		}
	}
	var r request
	if err := json.Unmarshal(req.Args, &r); err != nil {
		return p, &wetink.RequestError{Reason: err.Error()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p = wetink.Prepared{Account: t.account, Undo: t.promise, OnFailure: r.OnFailure}
	for _, o := range r.Ops {
		before := t.snapshot(o.Object)
		if before.Absent != (o.Action == "create") {
			return p, &wetink.RequestError{Field: "object", Reason: fmt.Sprintf("%s of %q, absent: %t", o.Action, o.Object, before.Absent)}
		}
		op := wetink.Op{Action: o.Action, Object: o.Object}
		if o.Set != nil {
			var b bytes.Buffer
			if err := json.Compact(&b, o.Set); err != nil {
				return p, err
			}
			op.Payload = b.Bytes()
		}
		p.Ops, p.Before = append(p.Ops, op), append(p.Before, before)
	}
	return p, nil
}

// Observe implements wetink.Target.
func (t *Target) Observe(_ context.Context, _ wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	t.mu.Lock()
	t.observed++
	n, s := t.observed, t.snapshot(op.Object)
	t.mu.Unlock()
	if t.OnObserve != nil {
		return t.OnObserve(n, op, s)
	}
	return s, nil
}

// Execute implements wetink.Target.
func (t *Target) Execute(ctx context.Context, acct wetink.Account, op wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return wetink.Receipt{}, fmt.Errorf("%w: %w", wetink.ErrNotApplied, err)
	}
	t.mu.Lock()
	t.executed++
	n := t.executed
	t.mu.Unlock()
	do := func() error { return t.effect(acct, op) }
	var err error
	if t.OnExecute != nil {
		err = t.OnExecute(n, op, do)
	} else {
		err = do()
	}
	if err == nil {
		err = ctx.Err()
	}
	return wetink.Receipt{Object: op.Object}, err
}

// effect changes an object. It refuses what is impossible, as a real system would; it does not know who
// called before, so a second call of the same change is a second effect.
func (t *Target) effect(acct wetink.Account, op wetink.Op) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, exists := t.objects[op.Object]
	if acct != t.account || exists == (op.Action == "create") {
		return fmt.Errorf("%s of %q refused: %w", op.Action, op.Object, wetink.ErrNotApplied)
	}
	next := maps.Clone(old)
	switch op.Action {
	case "delete":
		delete(t.objects, op.Object)
	case "create", "update":
		if next == nil {
			next = fields{}
		}
		set := fields{}
		if err := json.Unmarshal(op.Payload, &set); err != nil {
			return errors.Join(err, wetink.ErrNotApplied)
		}
		for k, v := range set {
			if next[k] = v; string(v) == "null" {
				delete(next, k)
			}
		}
		t.objects[op.Object] = next
	default:
		return fmt.Errorf("action %q: %w", op.Action, wetink.ErrNotApplied)
	}
	t.journal = append(t.journal, Effect{acct, op.Action, op.Object, string(op.Payload)})
	return nil
}

// Judge implements wetink.Judge.
func (t *Target) Judge(op wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	switch {
	case now.Digest() == before.Digest():
		return wetink.Untouched, ""
	case op.Action == "delete":
		if now.Absent {
			return wetink.AsApproved, ""
		}
		return wetink.Foreign, "it is still there, and changed"
	case now.Absent:
		return wetink.Foreign, "it is gone"
	}
	var set, is, was fields
	_ = json.Unmarshal(op.Payload, &set)
	_ = json.Unmarshal(now.Body, &is)
	_ = json.Unmarshal(before.Body, &was)
	ours := 0
	for k, v := range set {
		if got, ok := is[k]; ok && bytes.Equal(got, v) || !ok && string(v) == "null" {
			ours++
		}
	}
	switch ours {
	case len(set):
		return wetink.AsApproved, ""
	case 0:
		return wetink.Foreign, "other fields changed"
	}
	return wetink.Otherwise, fmt.Sprintf("%d of %d fields", ours, len(set))
}

// Flight implements wetink.Judge.
func (t *Target) Flight() time.Duration { t.mu.Lock(); defer t.mu.Unlock(); return t.flight }

// Invert implements wetink.Undoer.
func (t *Target) Invert(ops []wetink.Op, before []wetink.Snapshot, steps []wetink.Step) (wetink.Request, wetink.Promise, error) {
	var r request
	for _, s := range slices.Backward(steps) {
		if s.Outcome != wetink.TookEffect && s.Outcome != wetink.Differs {
			continue
		}
		op := ops[s.Op]
		switch op.Action {
		case "create":
			r.Ops = append(r.Ops, requestOp{Action: "delete", Object: op.Object})
		case "delete":
			r.Ops = append(r.Ops, requestOp{Action: "create", Object: op.Object, Set: before[s.Op].Body})
		case "update":
			var set, was fields
			_ = json.Unmarshal(op.Payload, &set)
			_ = json.Unmarshal(before[s.Op].Body, &was)
			for k := range set {
				if set[k] = was[k]; was[k] == nil {
					set[k] = json.RawMessage("null")
				}
			}
			b, err := json.Marshal(set)
			if err != nil {
				return wetink.Request{}, wetink.Promise{}, err
			}
			r.Ops = append(r.Ops, requestOp{Action: "update", Object: op.Object, Set: b})
		}
	}
	args, err := json.Marshal(r)
	return wetink.Request{Args: args}, wetink.Promise{Extent: wetink.FullUndo}, err
}

// Unmoved implements wetink.Undoer.
func (t *Target) Unmoved(after, now wetink.Snapshot) (bool, []string) {
	return after.Digest() == now.Digest(), []string{"body"}
}
