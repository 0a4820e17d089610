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

type nowLedger struct {
	wetink.Ledger
	fail func() bool
}

func (l *nowLedger) Now(ctx context.Context) (time.Time, error) {
	if l.fail != nil && l.fail() {
		return time.Time{}, errDisk
	}
	return l.Ledger.Now(ctx)
}

func TestNothingIsSentBeforeTheStepBeforeIsDurable(t *testing.T) {
	l := memory.New(nil)
	nl := &nowLedger{Ledger: l}
	target := wetinktest.NewTarget()
	k := wetinktest.On(nl, target, agentLevel())
	c, ev := preview(t, k, fiveOps)
	target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
		got, err := l.Get(ctx, by.Tenant, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Steps) != n-1 {
			t.Errorf("send %d with %d durable steps", n, len(got.Steps))
		}
		if n == 1 {
			once := true
			nl.fail = func() bool { f := once; once = false; return f }
		}
		return do()
	}
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Fatal(err)
	}
}

func TestReconcileDoesNotSettleAnAnsweredOperationThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.SetFlight(10 * time.Minute)
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		c, ev := preview(t, owner, `{"ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"create","object":"2","set":{"n":1}}]}`)
		hold := make(chan struct{})
		target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
			if n == 1 {
				return nil // answered, not done
			}
			err := do()
			<-hold // the owner dies here
			return err
		}
		go owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(2 * time.Minute)
		got, _, err := other.Reconcile(ctx, by, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == wetink.Applied {
			t.Errorf("applied with %d effects of 2: %+v", len(target.Journal()), got.Steps)
		}
		close(hold)
		time.Sleep(time.Hour)
	})
}

func TestResolveIsRefusedBeforeTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		k.Target.OnExecute = func(int, wetink.Op, func() error) error { return errLost }
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.Resolve(ctx, by, c.ID, []wetink.Step{{Op: 0, Outcome: wetink.NoEffect}}); !errors.Is(err, wetink.ErrEarly) {
			t.Errorf("resolved at once: %v", err)
		}
	})
}

func TestAStoredHashIsNoTicket(t *testing.T) {
	k := kit(t, agentLevel())
	c, _ := preview(t, k, setN2)
	row := get(t, k, c.ID)
	got, err := k.Approve(ctx, by, c.ID, wetink.Evidence{Kind: wetink.EvidenceTicket, Data: row.Tickets[0].Hash[:]})
	if err == nil {
		t.Errorf("approved by what is stored: %s %s", got.Status, got.Approvals[0].Sentence())
	}
}

func TestALateDoubtIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		bl := &brokenLedger{Ledger: l}
		owner, other := wetinktest.On(bl, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		run(t, other)
		c, ev := preview(t, owner, setN2)
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
			time.Sleep(time.Hour)
			return do()
		}
		late := false
		bl.before = func(_ int, m []wetink.Move) error {
			if late {
				return errDisk // dies right after
			}
			late = m[0].From == wetink.Failed
			return nil
		}
		owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(24 * time.Hour)
		got := get(t, other, c.ID)
		if got.Status != wetink.Applied {
			t.Errorf("%s, due %v, a day later", got.Status, got.Due)
		}
	})
}

func TestNothingIsSentWhenTheLeaseWasLostBeforeTheFirstSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew atomic.Int64
		l := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }})
		target := wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		run(t, other)
		c, ev := preview(t, owner, setN2)
		var later atomic.Bool
		target.OnObserve = func(n int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if !later.Swap(true) {
				skew.Store(int64(time.Hour))
				time.Sleep(5 * time.Second)
			}
			return s, nil
		}
		var at wetink.Status
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { at = get(t, other, c.ID).Status; return do() }
		owner.Apply(ctx, by, c.ID, &ev)
		if len(target.Journal()) > 0 {
			t.Errorf("sent while the record said %s", at)
		}
	})
}

func TestManySlowReadsDoNotCostTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		var ops []string
		for i := range 25 {
			ops = append(ops, fmt.Sprintf(`{"action":"create","object":"e%d","set":{"n":1}}`, i))
		}
		c, ev := preview(t, k, `{"ops":[`+strings.Join(ops, ",")+`]}`)
		slow := slowTarget{k.Target}
		opt := agentLevel()
		opt.Mode = wetink.ModeGuarded
		e := wetink.New(k.Ledger, map[string]wetink.Target{"test": slow}, opt)
		got, _, err := e.Apply(ctx, by, c.ID, &ev)
		if err != nil || got.Status != wetink.Applied {
			t.Errorf("%s %s %v", got.Status, got.Why, err)
		}
	})
}

type slowTarget struct{ *wetinktest.Target }

func (s slowTarget) Observe(ctx context.Context, a wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	select {
	case <-time.After(1700 * time.Millisecond):
	case <-ctx.Done():
		return wetink.Snapshot{}, ctx.Err()
	}
	return s.Target.Observe(ctx, a, op)
}

func TestAnAnsweredEffectThatSomebodyTookBackIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		bl := &brokenLedger{Ledger: l}
		owner, other := wetinktest.On(bl, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		c, ev := preview(t, owner, `{"ops":[{"action":"create","object":"1","set":{"n":1}}]}`)
		stepped := false
		bl.before = func(_ int, m []wetink.Move) error {
			if stepped {
				return errDisk
			}
			stepped = m[0].Step != nil
			return nil
		}
		owner.Apply(ctx, by, c.ID, &ev)
		target.Put("1", "") // a person deletes it
		time.Sleep(time.Hour)
		got, _, err := other.Reconcile(ctx, by, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == wetink.Failed {
			t.Errorf("failed with %d effect(s): %+v", len(target.Journal()), got.Steps)
		}
	})
}

type hangs struct {
	*wetinktest.Target
	hang atomic.Bool
	end  chan struct{}
}

func (h *hangs) Account(ctx context.Context) (wetink.Account, string, error) {
	if h.hang.Load() {
		select {
		case <-ctx.Done():
		case <-h.end:
		}
		return "", "", errLost
	}
	return h.Target.Account(ctx)
}

func TestAHungReadBeforeTheClaimEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hangs{Target: wetinktest.NewTarget(), end: make(chan struct{})}
		defer close(h.end)
		h.Put("a", `{"n":1}`)
		opt := agentLevel()
		opt.Mode = wetink.ModeGuarded
		e := wetink.New(memory.New(nil), map[string]wetink.Target{"test": h}, opt)
		c, ticket, err := e.Preview(ctx, "test", wetink.Request{By: by, Args: []byte(setN2)})
		if err != nil {
			t.Fatal(err)
		}
		ev := presented(ticket)
		h.hang.Store(true)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		e.Apply(short, by, c.ID, &ev)
		h.hang.Store(false)
		time.Sleep(5 * time.Minute) // within the TTL
		short, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if got, _, err := e.Apply(short, by, c.ID, &ev); err != nil {
			t.Errorf("the service is well again: %s %v", got.Status, err)
		}
	})
}

func TestApplyOfALostClaimEndsWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		bl := &brokenLedger{Ledger: l}
		owner, other := wetinktest.On(bl, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		c, ev := preview(t, owner, setN2)
		claimed := false
		bl.before = func(_ int, m []wetink.Move) error {
			if claimed {
				return errDisk
			}
			claimed = true
			return nil
		}
		owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(time.Hour)
		short, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		got, _, err := other.Apply(short, by, c.ID, &ev)
		if err != nil {
			t.Errorf("%s %v", got.Status, err)
		}
		// end the goroutine that goes on
		other.Reconcile(ctx, by, c.ID)
	})
}

func TestALostAnswerThatComesLateIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		run(t, other)
		c, ev := preview(t, owner, setN2)
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
			time.Sleep(time.Hour)
			return errLost
		}
		var down atomic.Bool
		target.OnObserve = func(n int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if down.Load() {
				return s, errLost
			}
			return s, nil
		}
		go owner.Apply(ctx, by, c.ID, &ev)
		time.Sleep(59 * time.Minute)
		wantStatus(t, get(t, other, c.ID), wetink.Failed)
		down.Store(true)
		time.Sleep(10 * time.Minute)
		down.Store(false)
		time.Sleep(24 * time.Hour)
		got := get(t, other, c.ID)
		wantStatus(t, got, wetink.Failed)
		t.Log(got.Due, got.Steps)
	})
}
