package wetink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/wetinktest"
)

func TestUndoKeepsAnEditMadeWhileItIsPlanned(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, undo, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	k.Target.OnPrepare = func(int) error { k.Target.Put("a", `{"n":99,"x":"kept"}`); return nil }
	uev := presented(undo)
	_, _, err = k.Undo(ctx, by, c.ID, &uev)
	if !errors.Is(err, wetink.ErrStale) {
		t.Errorf("err %v", err)
	}
	if got := k.Target.Object("a"); got != `{"n":99,"x":"kept"}` {
		t.Errorf("the edit was overwritten: %s", got)
	}
}

func TestReconcileNeverCleansUpWhatAPersonEdited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		c, ev := preview(t, owner, `{"on_failure":"undo","ops":[{"action":"create","object":"1","set":{"n":1,"x":1}}]}`)
		hold := make(chan struct{})
		target.OnExecute = func(n int, op wetink.Op, do func() error) error {
			err := do()
			if op.Action == "create" {
				<-hold // the owner dies
			}
			return err
		}
		go owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(time.Hour)
		target.Put("1", `{"n":1,"x":2,"mine":true}`) // a person works on with it
		if _, _, err := other.Reconcile(ctx, by, c.ID); err != nil {
			t.Fatal(err)
		}
		if got := target.Object("1"); got == "" {
			t.Errorf("the person's edit was deleted: %s, %+v", shown(t, other, c.ID), get(t, other, c.ID).Steps)
		}
		close(hold)
		time.Sleep(time.Hour)
	})
}

func TestCleanUpDoesNotOverwriteWhatSomebodyElseWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		k.Target.Put("b", `{"n":1}`)
		c, ev := preview(t, k, `{"on_failure":"undo","ops":[{"action":"update","object":"a","set":{"n":2}},{"action":"update","object":"b","set":{"n":2}}]}`)
		k.Target.OnExecute = func(n int, op wetink.Op, do func() error) error {
			err := do()
			if n == 2 {
				k.Target.Put("a", `{"n":77,"x":"kept"}`)
			}
			return err
		}
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		if got := k.Target.Object("a"); got != `{"n":77,"x":"kept"}` {
			t.Errorf("somebody else's write was overwritten: %s; %+v", got, get(t, k, c.ID).Steps[0])
		}
	})
}

func TestALateEffectAfterTheCleanUpIsNotShownAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		run(t, other)
		c, ev := preview(t, owner, allOrNothing)
		target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
			if n == 2 {
				time.Sleep(10 * time.Minute)
			}
			return do()
		}
		if _, _, err := owner.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if target.Object("2") != "" && shown(t, owner, c.ID) == "apply_failed" {
			t.Errorf("object 2 is there, and it is shown as %s; %+v", shown(t, owner, c.ID), get(t, owner, c.ID).Status)
		}
	})
}

func TestAnExpiredChangeCanBePreparedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		run(t, k)
		c, _ := preview(t, k, setN2)
		time.Sleep(time.Hour)
		wantStatus(t, get(t, k, c.ID), wetink.Expired)
		if _, _, err := k.Replace(ctx, by, c.ID, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestAResolvedChangeCanBeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.SetFlight(0)
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		c, ev := preview(t, owner, `{"ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"create","object":"2","set":{"n":1}}]}`)
		hold := make(chan struct{})
		target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
			if n == 2 {
				<-hold
				return wetink.ErrNotApplied
			}
			return do()
		}
		var down atomic.Bool
		target.OnObserve = func(_ int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if down.Load() {
				return wetink.Snapshot{}, errLost
			}
			return s, nil
		}
		go owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(2 * time.Minute)
		down.Store(true)
		if _, _, err := other.Reconcile(ctx, by, c.ID); err == nil {
			t.Fatal("reconciled")
		}
		down.Store(false)
		if _, _, err := other.Resolve(ctx, by, c.ID, []wetink.Step{{Op: 1, Outcome: wetink.NoEffect}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.Undo(ctx, by, c.ID, nil); err != nil {
			t.Errorf("nobody touched it: %v", err)
		}
		close(hold)
		time.Sleep(time.Hour)
	})
}

func TestAChangeResolvedAtATerminalCanBeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		target.SetFlight(0)
		owner, terminal := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, nil, agentLevel())
		c, ev := preview(t, owner, setN2)
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { _ = do(); return errLost }
		target.OnObserve = func(n int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if n > 1 {
				return s, errLost
			}
			return s, nil
		}
		owner.Apply(ctx, by, c.ID, &ev)
		target.OnObserve = nil
		time.Sleep(time.Hour)
		if _, _, err := terminal.Resolve(ctx, by, c.ID, []wetink.Step{{Op: 0, Outcome: wetink.TookEffect}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := owner.Undo(ctx, by, c.ID, nil); err != nil {
			t.Errorf("nobody touched it: %v", err)
		}
	})
}

func TestAnUndoTicketIsUsedOnce(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, undo, _ := k.Apply(ctx, by, c.ID, &ev)
	sends := 0
	k.Target.OnExecute = func(int, wetink.Op, func() error) error { sends++; return wetink.ErrNotApplied }
	uev := presented(undo)
	for range 5 {
		u, _, err := k.Undo(ctx, by, c.ID, &uev)
		t.Log(u.ID, u.Status, err)
	}
	if sends != 1 {
		t.Errorf("one ticket, %d sends", sends)
	}
}

func TestTheSameUndoInTwoProcessesGetsOneAnswer(t *testing.T) {
	l, target := memory.New(nil), wetinktest.NewTarget()
	target.Put("a", `{"n":1}`)
	one, two := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
	c, ev := preview(t, one, setN2)
	_, undo, _ := one.Apply(ctx, by, c.ID, &ev)
	uev := presented(undo)
	n := 0
	target.OnPrepare = func(int) error {
		n++
		if n == 1 {
			if _, _, err := two.Undo(ctx, by, c.ID, &uev); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	if _, _, err := one.Undo(ctx, by, c.ID, &uev); err != nil {
		t.Errorf("the right ticket, sent twice: %v", err)
	}
}

func TestACleanUpThatCannotBePlannedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		run(t, k)
		c, ev := preview(t, k, allOrNothing)
		down := false
		k.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
			if n == 3 {
				return fmt.Errorf("429: %w", wetink.ErrNotApplied)
			}
			return do()
		}
		k.Target.OnObserve = func(n int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if n == 6 { // 3 before, 2 read back, then the clean-up's first look
				down = true
			}
			if down && n < 8 {
				return s, errLost
			}
			return s, nil
		}
		got, _, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !strings.Contains(got.Why, "clean-up") {
			t.Errorf("why: %q, shown %s, left %q %q", got.Why, shown(t, k, c.ID), k.Target.Object("1"), k.Target.Object("2"))
		}
	})
}

func TestNoUndoAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		k.Apply(ctx, by, c.ID, &ev)
		time.Sleep(1000 * time.Hour)
		u, ticket, err := k.Undo(ctx, by, c.ID, nil)
		if err == nil {
			t.Errorf("planned 41 days later, ticket %t, %s", !ticket.IsZero(), u.Status)
		}
	})
}

type capped struct{ max int }

func (p capped) Decide(context.Context, wetink.Terms, []wetink.Snapshot) (wetink.Decision, error) {
	return wetink.Decision{Require: wetink.Require{Level: wetink.Agent, People: 1}, Cap: &wetink.Cap{Name: "x", Max: p.max}}, nil
}

func TestACapDoesNotForbidTheOrderedCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, &wetink.Options{Policy: capped{1}})
		run(t, k)
		c, ev := preview(t, k, allOrNothing)
		k.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
			if n == 3 {
				return wetink.ErrNotApplied
			}
			return do()
		}
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		_, u, _ := k.Status(ctx, by, c.ID, 0)
		if s := shown(t, k, c.ID); s != "apply_failed" {
			t.Errorf("%s; clean-up %s", s, u.Status)
		}
	})
}

func TestAPersonWithoutCredentialsHasTheServerPlanTheUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		terminal := wetinktest.On(l, nil, nil)
		one, two := wetinktest.On(l, target, nil), wetinktest.On(l, target, nil)
		run(t, one)
		run(t, two)
		synctest.Wait()
		c, _ := preview(t, one, setN2)
		approve(t, terminal, c)
		time.Sleep(2 * time.Second)
		if err := terminal.AskUndo(ctx, by, c.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, u, err := terminal.Status(ctx, by, c.ID, 0)
		if err != nil || u == nil || u.Status != wetink.Pending {
			t.Fatalf("%v %+v", err, u)
		}
		wantEffects(t, one, 1)
		approve(t, terminal, *u)
		time.Sleep(2 * time.Second)
		if s := shown(t, terminal, c.ID); s != "undone" {
			t.Errorf("shown as %s", s)
		}
		wantEffects(t, one, 2)
	})
}

func TestWhatStandsInTheWayOfAnAskedUndoIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		terminal, server := wetinktest.On(l, nil, nil), wetinktest.On(l, target, nil)
		run(t, server)
		synctest.Wait()
		c, _ := preview(t, server, setN2)
		approve(t, terminal, c)
		time.Sleep(2 * time.Second)
		target.Put("a", `{"n":2,"x":"edited"}`)
		if err := terminal.AskUndo(ctx, by, c.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := get(t, server, c.ID); !strings.Contains(got.Why, "could not be undone") || !strings.Contains(got.Why, "changed since") {
			t.Errorf("why: %s", got.Why)
		}
		wantEffects(t, server, 1)
	})
}
