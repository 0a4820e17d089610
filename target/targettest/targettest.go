// Package targettest checks that a wetink.Target keeps its contract: that it tells the truth about what it did to the
// outside system, and does nothing else to it. What is proved is judged by the outside system's own count of effects.
//
// A Target that is a wetink.Judge or a wetink.Undoer is held to those contracts, too.
package targettest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wetink/wetink"
)

// Case is a Target on a fresh outside system that nobody else uses. The system holds two different objects: one for
// Update, one for Delete.
type Case struct {
	Target wetink.Target

	Create wetink.Request // of one object that is not there
	Update wetink.Request // of one that is
	Delete wetink.Request // of another that is
	Bad    wetink.Request // one that has to be refused with a *wetink.RequestError

	// Edit changes an object behind the Target's back: a field that neither Update nor anything else here touches.
	Edit func(object string)
	// Effects counts what changed in the outside system, whoever changed it. It is the system's own count.
	Effects func() int
	// Break makes the system unreachable, so that connections are refused. nil: the Target does not connect to anything.
	Break func()
	// Secrets are the Target's credentials, as they must not appear anywhere.
	Secrets []string
}

// Run runs the suite. fresh makes a Case for each test; it may use t.Cleanup.
func Run(t *testing.T, fresh func(t *testing.T) Case) {
	for _, test := range []struct {
		name string
		run  func(*harness)
	}{
		{"AccountIsStable", accountIsStable},
		{"PrepareAndObserveWriteNothing", prepareAndObserveWriteNothing},
		{"PrepareSeesWhatObserveSees", prepareSeesWhatObserveSees},
		{"PrepareRefusesABadRequest", prepareRefusesABadRequest},
		{"PrepareIsSafeForConcurrentUse", prepareIsSafeForConcurrentUse},
		{"ExecuteHasOneEffect", executeHasOneEffect},
		{"ACreateIsFoundByItsKey", aCreateIsFoundByItsKey},
		{"ExecuteWithACancelledContextProvesThatNothingWasSent", cancelled},
		{"ExecuteForAnotherAccountHasNoEffect", anotherAccount},
		{"ARefusedConnectionProvesThatNothingWasSent", broken},
		{"JudgeIsPureAndRight", judge},
		{"UndoRestores", undo},
		{"UnmovedNamesWhatMoved", unmoved},
		{"NoSecretIsPrinted", noSecretIsPrinted},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &harness{T: t, Case: fresh(t)}
			h.start = h.Effects()
			test.run(h)
		})
	}
}

type harness struct {
	*testing.T
	Case
	start int
}

var ctx = context.Background()

// requests are the three kinds. A test that uses one up needs a Case each.
func (h *harness) requests() map[string]wetink.Request {
	return map[string]wetink.Request{"create": h.Create, "update": h.Update, "delete": h.Delete}
}

func (h *harness) prepare(req wetink.Request) wetink.Prepared {
	h.Helper()
	p, err := h.Target.Prepare(ctx, req)
	if err != nil {
		h.Fatalf("prepare %s: %v", req.Args, err)
	}
	if len(p.Ops) != 1 || len(p.Before) != 1 {
		h.Fatalf("prepare %s: %d operations and %d snapshots; the suite wants requests of one", req.Args, len(p.Ops), len(p.Before))
	}
	p.Ops[0].Before = p.Before[0].Digest()
	if p.Ops[0].Key == "" {
		p.Ops[0].Key = "targettest-00" // as the engine does
	}
	return p
}

func (h *harness) observe(acct wetink.Account, op wetink.Op) wetink.Snapshot {
	h.Helper()
	s, err := h.Target.Observe(ctx, acct, op)
	if err != nil {
		h.Fatalf("observe %s: %v", op.Object, err)
	}
	return s
}

// execute sends p's one operation and returns it with the object that it is about.
func (h *harness) execute(p wetink.Prepared) (wetink.Op, wetink.Receipt) {
	h.Helper()
	op := p.Ops[0]
	r, err := h.Target.Execute(ctx, p.Account, op, nil)
	if err != nil {
		h.Fatalf("execute %s of %s: %v", op.Action, op.Object, err)
	}
	if r.Object != "" {
		op.Object = r.Object
	}
	if op.Object == "" {
		h.Fatalf("execute %s: nobody knows the object", op.Action)
	}
	return op, r
}

func (h *harness) wantEffects(n int) {
	h.Helper()
	if got := h.Effects() - h.start; got != n {
		h.Errorf("%d effects, want %d", got, n)
	}
}

func (h *harness) keepsSecrets(what string, v any) {
	h.Helper()
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(form, v)
		for _, s := range h.Secrets {
			if strings.Contains(text, s) {
				h.Errorf("%s shows a secret when it is printed with %s", what, form)
			}
		}
	}
}

func accountIsStable(h *harness) {
	acct, version, err := h.Target.Account(ctx)
	if err != nil || acct == "" || version == "" {
		h.Fatalf("account %q, version %q: %v", acct, version, err)
	}
	for range 3 {
		if a, v, err := h.Target.Account(ctx); err != nil || a != acct || v != version {
			h.Errorf("account %q, version %q, and then %q, %q: %v", acct, version, a, v, err)
		}
	}
	if p := h.prepare(h.Update); p.Account != acct {
		h.Errorf("prepared for %q by %q", p.Account, acct)
	}
	h.wantEffects(0)
}

func prepareAndObserveWriteNothing(h *harness) {
	for range 2 {
		for _, req := range h.requests() {
			p := h.prepare(req)
			h.observe(p.Account, p.Ops[0])
		}
	}
	h.wantEffects(0)
}

func prepareSeesWhatObserveSees(h *harness) {
	for kind, req := range h.requests() {
		p := h.prepare(req)
		op, before := p.Ops[0], p.Before[0]
		if got := h.observe(p.Account, op); got.Digest() != before.Digest() {
			h.Errorf("%s: prepare saw %s and observe %s", kind, before.Body, got.Body)
		}
		if before.Absent != (kind == "create") {
			h.Errorf("%s: absent before: %t", kind, before.Absent)
		}
		if again := h.prepare(req); again.Before[0].Digest() != before.Digest() {
			h.Errorf("%s: prepared twice, it saw %s and then %s", kind, before.Body, again.Before[0].Body)
		}
		for what, raw := range map[string]json.RawMessage{"payload": op.Payload, "snapshot": before.Body} {
			if len(raw) == 0 {
				continue
			}
			var b bytes.Buffer
			if err := json.Compact(&b, raw); err != nil || !bytes.Equal(b.Bytes(), raw) {
				h.Errorf("%s: the %s is no compact JSON: %s", kind, what, raw)
			}
		}
		if kind != "create" && op.Object == "" {
			h.Errorf("%s: the operation does not say of which object", kind)
		}
	}
}

func prepareRefusesABadRequest(h *harness) {
	_, err := h.Target.Prepare(ctx, h.Bad)
	var re *wetink.RequestError
	if !errors.As(err, &re) {
		h.Errorf("prepare %s: %v; want a *wetink.RequestError", h.Bad.Args, err)
	}
	h.wantEffects(0)
}

// With the race detector this is a test of every lock.
func prepareIsSafeForConcurrentUse(h *harness) {
	var wg sync.WaitGroup
	for _, req := range h.requests() {
		for range 6 {
			wg.Go(func() {
				p, err := h.Target.Prepare(ctx, req)
				if err != nil {
					h.Errorf("prepare: %v", err)
					return
				}
				if s, err := h.Target.Observe(ctx, p.Account, p.Ops[0]); err != nil || s.Digest() != p.Before[0].Digest() {
					h.Errorf("observe: %v", err)
				}
				if _, _, err := h.Target.Account(ctx); err != nil {
					h.Errorf("account: %v", err)
				}
			})
		}
	}
	wg.Wait()
	h.wantEffects(0)
}

func executeHasOneEffect(h *harness) {
	for i, req := range []wetink.Request{h.Create, h.Update, h.Delete} {
		p := h.prepare(req)
		op, _ := h.execute(p)
		h.wantEffects(i + 1)
		now := h.observe(p.Account, op)
		if now.Digest() == p.Before[0].Digest() {
			h.Errorf("%s: the old state is read back", op.Action)
		}
		if isDelete := i == 2; now.Absent != isDelete {
			h.Errorf("%s: absent afterwards: %t", op.Action, now.Absent)
		}
	}
	h.wantEffects(3)
}

// What makes a lost answer harmless: without the id that the answer would have given, the object is found by the key.
func aCreateIsFoundByItsKey(h *harness) {
	p := h.prepare(h.Create)
	if s := h.observe(p.Account, p.Ops[0]); !s.Absent {
		h.Fatalf("it is there before: %s", s.Body)
	}
	done, _ := h.execute(p)
	found := h.observe(p.Account, p.Ops[0])
	if found.Absent || found.Object != done.Object {
		h.Errorf("found %q by the key, absent: %t; the receipt says %q", found.Object, found.Absent, done.Object)
	}
	if byID := h.observe(p.Account, done); byID.Digest() != found.Digest() {
		h.Errorf("by the key it is %s, by its id %s", found.Body, byID.Body)
	}
	other := p.Ops[0]
	other.Key += "-other"
	if other.Object == "" {
		if s := h.observe(p.Account, other); !s.Absent {
			h.Errorf("another key finds it as well: %s", s.Body)
		}
	}
}

func cancelled(h *harness) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for kind, req := range h.requests() {
		p := h.prepare(req)
		_, err := h.Target.Execute(gone, p.Account, p.Ops[0], nil)
		if !errors.Is(err, wetink.ErrNotApplied) {
			h.Errorf("%s: %v; want wetink.ErrNotApplied", kind, err)
		}
		h.keepsSecrets("the error of a cancelled "+kind, err)
	}
	h.wantEffects(0)
}

func anotherAccount(h *harness) {
	for kind, req := range h.requests() {
		p := h.prepare(req)
		_, err := h.Target.Execute(ctx, p.Account+"9", p.Ops[0], nil)
		if err == nil {
			h.Errorf("%s for another account went through", kind)
		}
		h.keepsSecrets("the error of a "+kind+" for another account", err)
	}
	h.wantEffects(0)
}

func broken(h *harness) {
	if h.Break == nil {
		h.Log("the target does not connect to anything")
		return
	}
	prepared := map[string]wetink.Prepared{}
	for kind, req := range h.requests() {
		prepared[kind] = h.prepare(req)
	}
	h.Break()
	for kind, p := range prepared {
		if _, err := h.Target.Execute(ctx, p.Account, p.Ops[0], nil); !errors.Is(err, wetink.ErrNotApplied) {
			h.Errorf("%s: %v; want wetink.ErrNotApplied", kind, err)
		} else {
			h.keepsSecrets("the error of a "+kind, err)
		}
		s, err := h.Target.Observe(ctx, p.Account, p.Ops[0])
		if err == nil {
			h.Errorf("%s: what cannot be read was observed as %s, absent: %t", kind, s.Body, s.Absent)
		}
		h.keepsSecrets("the error of an observation", err)
	}
	_, err := h.Target.Prepare(ctx, h.Update)
	if re := (*wetink.RequestError)(nil); err == nil || errors.As(err, &re) {
		h.Errorf("prepare: %v; it is not the request that is wrong", err)
	}
	h.keepsSecrets("the error of prepare", err)
	if _, _, err = h.Target.Account(ctx); err == nil {
		h.Error("account: it was not asked")
	}
	h.keepsSecrets("the error of account", err)
	h.wantEffects(0)
}

func judge(h *harness) {
	j, ok := h.Target.(wetink.Judge)
	if !ok {
		h.Log("the target is no Judge")
		return
	}
	if j.Flight() < 0 {
		h.Errorf("flight of %s", j.Flight())
	}
	want := func(op wetink.Op, before, now wetink.Snapshot, verdicts ...wetink.Verdict) {
		h.Helper()
		first, why := j.Judge(op, before, now)
		if again, whyAgain := j.Judge(op, before, now); again != first || why != whyAgain {
			h.Errorf("%s: judged %s, and then %s", op.Action, first, again)
		}
		for _, v := range verdicts {
			if first == v {
				return
			}
		}
		h.Errorf("%s: judged %s (%s), want one of %v", op.Action, first, why, verdicts)
	}
	effects := 0
	for _, req := range []wetink.Request{h.Create, h.Update, h.Delete} {
		p := h.prepare(req)
		before := p.Before[0]
		want(p.Ops[0], before, before, wetink.Untouched)
		h.wantEffects(effects)
		if !before.Absent { // somebody else, and not we
			h.Edit(before.Object)
			want(p.Ops[0], before, h.observe(p.Account, p.Ops[0]), wetink.Foreign, wetink.Opaque) // neither claims that it was ours
			p = h.prepare(req)
			effects++
		}
		op, _ := h.execute(p)
		effects++
		want(op, p.Before[0], h.observe(p.Account, op), wetink.AsApproved)
		h.wantEffects(effects)
	}
}

func undo(h *harness) {
	u, ok := h.Target.(wetink.Undoer)
	if !ok {
		h.Log("the target is no Undoer")
		return
	}
	for _, req := range []wetink.Request{h.Create, h.Update, h.Delete} {
		p := h.prepare(req)
		op, receipt := h.execute(p)
		receipt.Object, receipt.After = op.Object, h.observe(p.Account, op)
		steps := []wetink.Step{{Op: 0, Outcome: wetink.TookEffect, Receipt: receipt}}
		back, promise, err := u.Invert(p.Ops, p.Before, steps)
		if errors.Is(err, wetink.ErrNoUndo) {
			if p.Undo.Extent != wetink.NoUndo {
				h.Errorf("%s: promised an undo (%s) and has none: %v", op.Action, p.Undo.Extent, err)
			}
			continue
		}
		if err != nil {
			h.Fatalf("invert %s: %v", op.Action, err)
		}
		if promise.Extent == wetink.NoUndo {
			h.Errorf("%s: an undo that promises nothing", op.Action)
		}
		if again, _, err := u.Invert(p.Ops, p.Before, steps); err != nil || !bytes.Equal(again.Args, back.Args) {
			h.Errorf("%s: inverted to %s, and then to %s: %v", op.Action, back.Args, again.Args, err)
		}
		if none, _, err := u.Invert(p.Ops, p.Before, []wetink.Step{{Op: 0, Outcome: wetink.NoEffect, Receipt: receipt}}); err == nil && len(none.Args) >= len(back.Args) {
			h.Errorf("%s: what had no effect is undone: %s", op.Action, none.Args)
		}
		effects := h.Effects()
		back.Tool = wetink.ToolUndo
		way := h.prepare(back)
		if h.Effects() != effects {
			h.Errorf("%s: planning the undo changed something", op.Action)
		}
		undone, _ := h.execute(way)
		if n := h.Effects() - effects; n != 1 {
			h.Errorf("%s: %d effects of the undo, want 1", op.Action, n)
		}
		h.restored(u, p, way, undone)
	}
}

// restored compares the state after the undo with the one before the change.
func (h *harness) restored(u wetink.Undoer, p, way wetink.Prepared, undone wetink.Op) {
	h.Helper()
	before, now := p.Before[0], h.observe(p.Account, undone)
	action := p.Ops[0].Action
	if now.Absent != before.Absent {
		h.Errorf("%s undone: absent %t, and before %t", action, now.Absent, before.Absent)
		return
	}
	if now.Object == before.Object {
		if same, moved := u.Unmoved(before, now); !same {
			h.Errorf("%s undone: %v differ", action, moved)
		}
	}
	if j, ok := h.Target.(wetink.Judge); ok {
		if v, why := j.Judge(undone, way.Before[0], now); v != wetink.AsApproved {
			h.Errorf("the undo of %s was judged %s: %s", action, v, why)
		}
	}
}

func unmoved(h *harness) {
	u, ok := h.Target.(wetink.Undoer)
	if !ok {
		h.Log("the target is no Undoer")
		return
	}
	for _, req := range []wetink.Request{h.Create, h.Update} {
		p := h.prepare(req)
		op, _ := h.execute(p)
		after := h.observe(p.Account, op)
		if same, moved := u.Unmoved(after, h.observe(p.Account, op)); !same {
			h.Errorf("%s: nobody touched it, and %v moved", op.Action, moved)
		}
		h.Edit(op.Object)
		if same, moved := u.Unmoved(after, h.observe(p.Account, op)); same || len(moved) == 0 {
			h.Errorf("%s: somebody edited it, and unmoved says %t, %v", op.Action, same, moved)
		}
	}
	p := h.prepare(h.Delete)
	op, _ := h.execute(p)
	if same, _ := u.Unmoved(h.observe(p.Account, op), p.Before[0]); same {
		h.Error("delete: it is there again, and unmoved says true")
	}
}

func noSecretIsPrinted(h *harness) {
	h.keepsSecrets("the target", h.Target)
	for kind, req := range h.requests() {
		h.keepsSecrets("what was prepared for a "+kind, h.prepare(req))
	}
	_, err := h.Target.Prepare(ctx, h.Bad)
	h.keepsSecrets("the error of a bad request", err)
}
