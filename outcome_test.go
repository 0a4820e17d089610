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

var errLost = errors.New("connection reset")

// Every effect is broken both ways, and the journal is the judge.
func TestEachSendBrokenBothWays(t *testing.T) {
	for _, c := range []struct {
		name    string
		execute func(do func() error) error
		at      wetink.Status // when Apply answers
		end     wetink.Status // when the time of flight is over
		effects int
	}{
		{"refused", func(func() error) error { return fmt.Errorf("403: %w", wetink.ErrNotApplied) }, wetink.Failed, wetink.Failed, 0},
		{"failed, not done", func(func() error) error { return errLost }, wetink.InDoubt, wetink.Failed, 0},
		{"failed, but done", func(do func() error) error { _ = do(); return errLost }, wetink.Applied, wetink.Applied, 1},
		{"answered, not done", func(func() error) error { return nil }, wetink.InDoubt, wetink.InDoubt, 0}, // or done and taken back: a person tells
		{"answered and done", func(do func() error) error { return do() }, wetink.Applied, wetink.Applied, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kit(t, agentLevel())
				run(t, k)
				ch, ev := preview(t, k, setN2)
				k.Target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { return c.execute(do) }
				got, _, err := k.Apply(ctx, by, ch.ID, &ev)
				if err != nil {
					t.Fatal(err)
				}
				wantStatus(t, got, c.at)
				time.Sleep(10 * time.Minute)
				wantStatus(t, get(t, k, ch.ID), c.end)
				wantEffects(t, k, c.effects)
			})
		})
	}
}

func run(t *testing.T, k *wetinktest.Kit) {
	run, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = k.Run(run) }()
	t.Cleanup(func() { stop(); <-done })
}

func TestOldStateProvesNothingBeforeFlightIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		var late func() error
		k.Target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { late = do; return errLost }
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second) // the lease is over, the minute of flight is not
		got, _, err := k.Reconcile(ctx, by, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.InDoubt)
		if err := late(); err != nil { // the write was held somewhere, and lands now
			t.Fatal(err)
		}
		if got, _, err = k.Reconcile(ctx, by, c.ID); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.Applied)
		wantEffects(t, k, 1)
	})
}

func TestNoFlightMeansAPersonResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		k.Target.SetFlight(0)
		c, ev := preview(t, k, setN2)
		k.Target.OnExecute = func(int, wetink.Op, func() error) error { return errLost }
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1000 * time.Hour)
		got, _, err := k.Reconcile(ctx, by, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.InDoubt)
		for name, found := range map[string][]wetink.Step{
			"nothing":    nil,
			"another op": {{Op: 3, Outcome: wetink.NoEffect}},
			"unknown":    {{Op: 0, Outcome: wetink.Unknown}},
		} {
			if _, _, err := k.Resolve(ctx, by, c.ID, found); err == nil {
				t.Errorf("resolved by %s", name)
			}
		}
		got, _, err = k.Resolve(ctx, by, c.ID, []wetink.Step{{Op: 0, Outcome: wetink.NoEffect, Why: "looked"}})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.Failed)
		if got.Steps[0].How != "resolved by ana" {
			t.Errorf("how: %s", got.Steps[0].How)
		}
	})
}

// The owner is stopped (as by SIGSTOP) while its request is on the way, and goes on after its lease.
func TestOwnerThatWakesAfterItsLeaseSendsNothingMoreAndItsLateAnswerWins(t *testing.T) {
	for _, landed := range []bool{true, false} {
		t.Run(fmt.Sprintf("landed=%t", landed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, target := memory.New(nil), wetinktest.NewTarget()
				owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
				run(t, other)
				c, ev := preview(t, owner, fiveOps)
				target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
					if n == 2 {
						time.Sleep(10 * time.Minute)
						if !landed {
							return fmt.Errorf("refused: %w", wetink.ErrNotApplied)
						}
					}
					return do()
				}
				if _, _, err := owner.Apply(ctx, by, c.ID, &ev); err != nil {
					t.Fatal(err)
				}
				got := get(t, owner, c.ID)
				wantStatus(t, got, wetink.Partial)
				want, outcome := 1, wetink.NoEffect
				if landed {
					want, outcome = 2, wetink.TookEffect
				}
				wantEffects(t, owner, want)
				if s, _ := got.StepOf(1); s.Outcome != outcome {
					t.Errorf("step 1: %+v", s)
				}
			})
		})
	}
}

func TestLateReceiptContradictsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		owner, other := wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())
		run(t, other)
		c, ev := preview(t, owner, setN2)
		target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
			time.Sleep(time.Hour) // far beyond the declared flight
			return do()
		}
		applied := make(chan error, 1)
		go func() { _, _, err := owner.Apply(ctx, by, c.ID, &ev); applied <- err }()
		time.Sleep(30 * time.Minute)
		wantStatus(t, get(t, owner, c.ID), wetink.Failed)
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		got := get(t, owner, c.ID)
		wantStatus(t, got, wetink.Applied)
		wantEffects(t, owner, 1)
	})
}

const allOrNothing = `{"on_failure":"undo","ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"create","object":"2","set":{"n":1}},{"action":"create","object":"3","set":{"n":1}}]}`

func TestOrderedCleanUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		execute func(n int, do func() error) error
		shown   string
		effects int
		left    int
	}{
		{"third refused", func(n int, do func() error) error {
			if n == 3 {
				return fmt.Errorf("422: %w", wetink.ErrNotApplied)
			}
			return do()
		}, "apply_failed", 4, 0},
		{"first refused", func(int, func() error) error { return wetink.ErrNotApplied }, "apply_failed", 0, 0},
		{"third refused, clean-up fails half way", func(n int, do func() error) error {
			if n == 3 || n == 5 {
				return fmt.Errorf("422: %w", wetink.ErrNotApplied)
			}
			return do()
		}, "apply_partial", 3, 1},
		{"third done but its answer lost", func(n int, do func() error) error {
			err := do()
			if n == 3 {
				return errLost
			}
			return err
		}, "applied", 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kit(t, agentLevel())
				ch, ev := preview(t, k, allOrNothing)
				k.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error { return c.execute(n, do) }
				got, undo, err := k.Apply(ctx, by, ch.ID, &ev)
				if err != nil {
					t.Fatal(err)
				}
				if s := shown(t, k, ch.ID); s != c.shown {
					t.Errorf("shown as %s (%s), want %s", s, got.Why, c.shown)
				}
				wantEffects(t, k, c.effects)
				left := 0
				for _, o := range []string{"1", "2", "3"} {
					if k.Target.Object(o) != "" {
						left++
					}
				}
				if left != c.left {
					t.Errorf("%d objects are left, want %d", left, c.left)
				}
				if got.Status != wetink.Applied && !undo.IsZero() {
					t.Error("an undo ticket beside the ordered clean-up")
				}
			})
		})
	}
}

func TestReadBackDecidesNotTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, `{"ops":[{"action":"update","object":"a","set":{"n":2,"x":"y"}}]}`)
		k.Target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
			err := do()
			k.Target.Put("a", `{"n":2,"x":"normalised"}`)
			return err
		}
		got, undo, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.Partial)
		if s := shown(t, k, c.ID); s != "apply_partial" {
			t.Errorf("shown as %s", s)
		}
		if undo.IsZero() {
			t.Error("no undo ticket for what took effect")
		}
	})
}

func TestReadBackWaitsForAStaleCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		old, _ := k.Target.Observe(ctx, "", wetink.Op{Object: "a"})
		k.Target.OnObserve = func(n int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
			if n == 3 || n == 4 { // 1 was ours above, 2 the look before the send
				return old, nil
			}
			return s, nil
		}
		got, _, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.Applied)
	})
}

func TestUnreadableBeforeTheSendSendsNothing(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	k.Target.OnObserve = func(int, wetink.Op, wetink.Snapshot) (wetink.Snapshot, error) { return wetink.Snapshot{}, errLost }
	got, _, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, wetink.Failed)
	wantEffects(t, k, 0)
}

// The owner is stopped between two sends: in the commit of the first step, or right before the second send.
func TestOwnerThatWasTooSlowBetweenTwoSendsSendsNothingMore(t *testing.T) {
	var skew atomic.Int64
	for name, slow := range map[string]func(*brokenLedger){
		"by the ledger's clock only": func(l *brokenLedger) {
			l.before = func(_ int, moves []wetink.Move) error {
				if moves[0].Step != nil && moves[0].From == wetink.Applying {
					skew.Store(int64(time.Hour))
					time.Sleep(3 * time.Second) // the other process calls it in doubt
				}
				return nil
			}
		},
		"in the commit": func(l *brokenLedger) {
			l.before = func(_ int, moves []wetink.Move) error {
				if moves[0].Step != nil && moves[0].From == wetink.Applying {
					time.Sleep(10 * time.Minute)
				}
				return nil
			}
		},
		"before the send": func(l *brokenLedger) {
			l.mode = func(n int) {
				if n == 3 { // the check before the claim, the first send, the second send
					time.Sleep(10 * time.Minute)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				skew.Store(0)
				l := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }})
				target := wetinktest.NewTarget()
				bl := &brokenLedger{Ledger: l}
				other := wetinktest.On(l, target, agentLevel())
				opt := agentLevel()
				opt.Mode = wetink.ModeGuarded
				owner := &wetinktest.Kit{Engine: wetink.New(bl, map[string]wetink.Target{"test": careless{target}}, opt), Ledger: l, Target: target}
				run(t, other)
				c, ev := preview(t, owner, fiveOps)
				slow(bl)
				if _, _, err := owner.Apply(ctx, by, c.ID, &ev); err != nil {
					t.Fatal(err)
				}
				wantEffects(t, owner, 1)
				wantStatus(t, get(t, other, c.ID), wetink.Partial)
			})
		})
	}
}

// careless sends although its context is over, as a Target must not: the engine has a fence of its own.
type careless struct{ *wetinktest.Target }

func (c careless) Execute(ctx context.Context, acct wetink.Account, op wetink.Op, blobs wetink.BlobReader) (wetink.Receipt, error) {
	return c.Target.Execute(context.WithoutCancel(ctx), acct, op, blobs)
}

// brokenLedger fails Advance at chosen calls, before or after the commit.
type brokenLedger struct {
	wetink.Ledger
	calls  int
	before func(n int, moves []wetink.Move) error
	after  func(n int, moves []wetink.Move) error
	modes  int
	mode   func(n int)
}

func (l *brokenLedger) Mode(ctx context.Context) (wetink.Mode, error) {
	if l.mode != nil {
		l.modes++
		l.mode(l.modes)
	}
	return l.Ledger.Mode(ctx)
}

func (l *brokenLedger) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	l.calls++
	n := l.calls
	if l.before != nil {
		if err := l.before(n, moves); err != nil {
			return nil, err
		}
	}
	ev, err := l.Ledger.Advance(ctx, moves...)
	if err == nil && l.after != nil {
		err = l.after(n, moves)
	}
	return ev, err
}

var errDisk = errors.New("disk I/O error")

// Every transition is broken both ways, once and for good: at every call of Advance in a whole life.
func TestEachTransitionBrokenBothWays(t *testing.T) {
	for _, forGood := range []bool{false, true} {
		for _, done := range []bool{false, true} {
			for at := 2; at <= 5; at++ { // 1 is the preview; then claim, step, settle
				name := fmt.Sprintf("call=%d committed=%t for good=%t", at, done, forGood)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						bl := &brokenLedger{Ledger: memory.New(nil)}
						target := wetinktest.NewTarget()
						target.Put("a", `{"n":1}`)
						k := wetinktest.On(bl, target, agentLevel())
						c, ev := preview(t, k, setN2)
						fail := func(n int, _ []wetink.Move) error {
							if n == at || forGood && n > at {
								return errDisk
							}
							return nil
						}
						if done {
							bl.after = fail
						} else {
							bl.before = fail
						}
						_, _, err := k.Apply(ctx, by, c.ID, &ev)
						bl.before, bl.after = nil, nil
						got := get(t, k, c.ID)
						effects := len(target.Journal())
						switch {
						case effects > 1:
							t.Fatalf("%d effects", effects)
						case effects == 1 && got.Status == wetink.Pending:
							t.Fatal("sent without a durable claim")
						case err == nil && got.Status == wetink.Applied && effects == 0:
							t.Fatal("applied without an effect")
						}
						run(t, k)
						time.Sleep(time.Hour)
						got = get(t, k, c.ID)
						effects = len(target.Journal())
						want := map[int]wetink.Status{0: wetink.Failed, 1: wetink.Applied}[effects]
						if got.Status == wetink.Expired && effects == 0 {
							want = wetink.Expired // the claim never was, and nobody asked again
						}
						wantStatus(t, got, want)
					})
				})
			}
		}
	}
}

func TestFactsInEventsCarryNoContent(t *testing.T) {
	k := kit(t, agentLevel())
	secret := "my private note"
	c, ev := preview(t, k, `{"ops":[{"action":"update","object":"a","set":{"x":"`+secret+`"}}]}`)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Fatal(err)
	}
	n := 0
	for e, err := range k.Ledger.Events(ctx, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, bad := range []string{secret, "kept", ev.Ticket.Reveal()} {
			if strings.Contains(string(e.Bytes()), bad) {
				t.Errorf("event says %q: %s", bad, e.Bytes())
			}
		}
		back, err := wetink.ParseEvent(e.Bytes())
		if err != nil || string(back.Bytes()) != string(e.Bytes()) {
			t.Errorf("round trip: %v\n%s\n%s", err, back.Bytes(), e.Bytes())
		}
	}
	if n < 4 {
		t.Errorf("only %d events", n)
	}
}
