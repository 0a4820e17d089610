package wetink_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/wetinktest"
)

// opaque cannot tell what an operation should have made of its object.
type opaque struct{ *wetinktest.Target }

func (opaque) Judge(_ wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	if before.Digest() == now.Digest() {
		return wetink.Untouched, ""
	}
	return wetink.Opaque, ""
}

func opaqueKit(t *testing.T) *wetinktest.Kit {
	k := kit(t, agentLevel())
	o := agentLevel()
	o.Mode = wetink.ModeGuarded
	k.Engine = wetink.New(k.Ledger, map[string]wetink.Target{"test": opaque{k.Target}}, o)
	return k
}

func TestWhatCannotBeComparedIsRecordedAsAnsweredAndCanBeUndone(t *testing.T) {
	k := opaqueKit(t)
	c, ev := preview(t, k, setN2)
	c, ticket, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, c, wetink.Applied)
	if c.Steps[0].How != wetink.HowAnswered || c.Compared() {
		t.Errorf("recorded as %q, compared: %t", c.Steps[0].How, c.Compared())
	}
	k.Target.Put("a", `{"n":2,"x":"edited"}`)
	uev := presented(ticket)
	if _, _, err := k.Undo(ctx, by, c.ID, &uev); err == nil || !strings.Contains(err.Error(), "nothing was overwritten") {
		t.Errorf("an edit since: %v", err)
	}
	k.Target.Put("a", `{"n":2,"x":"kept"}`)
	u, _, err := k.Undo(ctx, by, c.ID, &uev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, u, wetink.Applied)
}

// Somebody else may have made the change that is seen: without an answer it proves nothing, however long one waits.
func TestWhatCannotBeComparedStaysInDoubtWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1,"x":"kept"}`)
		target.SetFlight(time.Minute)
		o := agentLevel()
		o.Mode = wetink.ModeGuarded
		k := wetinktest.On(l, target, agentLevel())
		k.Engine = wetink.New(l, map[string]wetink.Target{"test": opaque{target}}, o)
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { _ = do(); return errLost }
		c, ev := preview(t, k, setN2)
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, _, err := k.Reconcile(ctx, by, c.ID); err != nil {
				t.Log(err)
			}
			wantStatus(t, get(t, k, c.ID), wetink.InDoubt)
			time.Sleep(time.Hour)
		}
	})
}
