package wetink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/wetinktest"
)

var (
	ctx = context.Background()
	by  = wetinktest.By
)

const setN2 = `{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`

func agentLevel() *wetink.Options {
	return &wetink.Options{Policy: wetink.Floor{Level: wetink.Agent, People: 1}}
}

// kit has one object, a = {"n":1,"x":"kept"}.
func kit(t *testing.T, o *wetink.Options) *wetinktest.Kit {
	k := wetinktest.New(t, o)
	k.Target.Put("a", `{"n":1,"x":"kept"}`)
	return k
}

func preview(t *testing.T, k *wetinktest.Kit, args string) (wetink.Change, wetink.Evidence) {
	t.Helper()
	c, ticket, err := k.Preview(ctx, "test", wetink.Request{By: by, Args: []byte(args)})
	if err != nil {
		t.Fatal(err)
	}
	return c, presented(ticket)
}

func presented(ticket wetink.Ticket) wetink.Evidence {
	return wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}
}

func approve(t *testing.T, k *wetinktest.Kit, c wetink.Change) wetink.Change {
	t.Helper()
	c, err := k.Approve(ctx, by, c.ID, wetinktest.Vouch(c, wetink.Session, "bo"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, k *wetinktest.Kit, id wetink.ChangeID) wetink.Change {
	t.Helper()
	c, err := k.Ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantEffects(t *testing.T, k *wetinktest.Kit, want int) {
	t.Helper()
	if got := k.Target.Journal(); len(got) != want {
		t.Errorf("journal has %d effects, want %d: %v", len(got), want, got)
	}
}

func wantStatus(t *testing.T, c wetink.Change, want wetink.Status) {
	t.Helper()
	if c.Status != want {
		t.Errorf("status %s (%s), want %s", c.Status, c.Why, want)
	}
}

func shown(t *testing.T, k *wetinktest.Kit, id wetink.ChangeID) string {
	t.Helper()
	c, undo, err := k.Status(ctx, by, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return wetink.Shown(c, undo)
}

func TestWholeLifeAtLevelAgent(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	wantStatus(t, c, wetink.Pending)
	wantEffects(t, k, 0)

	c, undo, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, c, wetink.Applied)
	if undo.IsZero() {
		t.Fatal("no undo ticket")
	}
	undoEv := presented(undo)
	u, _, err := k.Undo(ctx, by, c.ID, &undoEv)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, u, wetink.Applied)
	if got := shown(t, k, c.ID); got != "undone" {
		t.Errorf("shown as %s", got)
	}
	if got := k.Target.Object("a"); got != `{"n":1,"x":"kept"}` {
		t.Errorf("after undo: %s", got)
	}
	wantEffects(t, k, 2)

	again, _, err := k.Undo(ctx, by, c.ID, &undoEv)
	if err != nil || again.ID != u.ID {
		t.Errorf("the right ticket used again: %v, %v", again.ID, err)
	}
	wantEffects(t, k, 2)
}

func TestApplySentAgainAnswersTheSameAndRenewsTheUndoTicket(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, first, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	c, second, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil || c.Status != wetink.Applied || second.IsZero() || second.Reveal() == first.Reveal() {
		t.Fatalf("again: %s, fresh ticket %t, %v", c.Status, !second.IsZero(), err)
	}
	wantEffects(t, k, 1)
	old := presented(first)
	if _, _, err := k.Undo(ctx, by, c.ID, &old); !errors.Is(err, wetink.ErrTicket) {
		t.Errorf("the older undo ticket lives: %v", err)
	}
	wantEffects(t, k, 1)
}

func TestSixtyFourAppliesInTwoProcessesMakeOneEffect(t *testing.T) {
	l, target := memory.New(nil), wetinktest.NewTarget()
	kits := []*wetinktest.Kit{wetinktest.On(l, target, agentLevel()), wetinktest.On(l, target, agentLevel())}
	target.Put("a", `{"n":1}`)
	c, ev := preview(t, kits[0], setN2)
	var wg sync.WaitGroup
	for i := range 128 {
		wg.Go(func() {
			got, _, err := kits[i%2].Apply(ctx, by, c.ID, &ev)
			if err != nil || got.Status != wetink.Applied {
				t.Errorf("apply %d: %s, %v", i, got.Status, err)
			}
		})
	}
	wg.Wait()
	wantEffects(t, kits[0], 1)
}

func TestWrongTicketUsesNothingUp(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	other, otherEv := preview(t, k, setN2)
	for name, wrong := range map[string]wetink.Evidence{
		"made up":           presented(wetink.PresentedTicket("confirm_x")),
		"empty":             presented(wetink.Ticket{}),
		"of another change": otherEv,
	} {
		if _, _, err := k.Apply(ctx, by, c.ID, &wrong); !errors.Is(err, wetink.ErrTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantStatus(t, get(t, k, c.ID), wetink.Pending)
	wantStatus(t, get(t, k, other.ID), wetink.Pending)
	wantEffects(t, k, 0)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Errorf("the right one, after wrong ones: %v", err)
	}
	undoAsApply, _, _ := k.Undo(ctx, by, c.ID, &ev)
	if undoAsApply.ID != "" {
		t.Error("an apply ticket undid")
	}
}

func TestRightTicketIsUsedAlsoWhenApplyFails(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	k.Target.OnExecute = func(int, wetink.Op, func() error) error { return fmt.Errorf("422: %w", wetink.ErrNotApplied) }
	for range 2 {
		got, _, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, got, wetink.Failed)
		k.Target.OnExecute = nil
	}
	wantEffects(t, k, 0)
}

func TestExpiryIsDecidedByTheLedgersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		time.Sleep(15 * time.Minute)
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); !errors.Is(err, wetink.ErrExpired) {
			t.Errorf("apply after the TTL: %v", err)
		}
		wantStatus(t, get(t, k, c.ID), wetink.Expired)
		wantEffects(t, k, 0)
	})
}

func TestExpiredStaysExpiredWhenTheWallClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew time.Duration
		l := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(skew) }})
		k := wetinktest.On(l, wetinktest.NewTarget(), agentLevel())
		k.Target.Put("a", `{"n":1}`)
		c, ev := preview(t, k, setN2)
		time.Sleep(16 * time.Minute)
		skew = -time.Hour
		if _, _, err := k.Apply(ctx, by, c.ID, &ev); !errors.Is(err, wetink.ErrExpired) {
			t.Errorf("apply with the clock set back: %v", err)
		}
		wantEffects(t, k, 0)
	})
}

func TestUndoTicketExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, agentLevel())
		c, ev := preview(t, k, setN2)
		_, undo, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		undoEv := presented(undo)
		if _, _, err := k.Undo(ctx, by, c.ID, &undoEv); !errors.Is(err, wetink.ErrExpired) {
			t.Errorf("undo after a day: %v", err)
		}
		if _, fresh, err := k.Apply(ctx, by, c.ID, &ev); err != nil || !fresh.IsZero() {
			t.Errorf("apply sent again gives a new undo ticket after the window: %v", err)
		}
		wantEffects(t, k, 1)
	})
}

func TestAnEditedRowDoesNotProlongAnUndoTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &editedLedger{Ledger: wetinktest.NewLedger()}
		k := wetinktest.On(l, wetinktest.NewTarget(), agentLevel())
		k.Target.Put("a", `{"n":1}`)
		c, ev := preview(t, k, setN2)
		_, undo, err := k.Apply(ctx, by, c.ID, &ev)
		if err != nil {
			t.Fatal(err)
		}
		l.edit = func(c *wetink.Change) { c.Due = c.Due.AddDate(1, 0, 0) }
		time.Sleep(24 * time.Hour)
		undoEv := presented(undo)
		if _, _, err := k.Undo(ctx, by, c.ID, &undoEv); !errors.Is(err, wetink.ErrExpired) {
			t.Errorf("undo after a day: %v", err)
		}
		wantEffects(t, k, 1)
	})
}

func TestWritesOffRefusesAndBurnsNothing(t *testing.T) {
	k := kit(t, &wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeOff})
	c, ev := preview(t, k, setN2)
	before := get(t, k, c.ID)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); !errors.Is(err, wetink.ErrOff) {
		t.Errorf("apply: %v", err)
	}
	if after := get(t, k, c.ID); after.Rev != before.Rev || after.Status != wetink.Pending {
		t.Errorf("the row moved: rev %d → %d, %s", before.Rev, after.Rev, after.Status)
	}
	if err := k.Ledger.SetMode(ctx, wetink.ModeGuarded, "op"); err != nil {
		t.Fatal(err)
	}
	_, undo, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Ledger.SetMode(ctx, wetink.ModeOff, "op"); err != nil {
		t.Fatal(err)
	}
	undoEv := presented(undo)
	if _, _, err := k.Undo(ctx, by, c.ID, &undoEv); !errors.Is(err, wetink.ErrOff) {
		t.Errorf("undo: %v", err)
	}
	wantEffects(t, k, 1)
}

const fiveOps = `{"ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"create","object":"2","set":{"n":1}},
	{"action":"create","object":"3","set":{"n":1}},{"action":"create","object":"4","set":{"n":1}},{"action":"create","object":"5","set":{"n":1}}]}`

func TestWritesOffInTheMiddleSendsNothingMoreAndCleansNothingUp(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, strings.Replace(fiveOps, `{"ops"`, `{"on_failure":"undo","ops"`, 1))
	k.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
		if n == 2 {
			_ = k.Ledger.SetMode(ctx, wetink.ModeOff, "op")
		}
		return do()
	}
	got, _, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, wetink.Partial)
	wantEffects(t, k, 2)
	if s := shown(t, k, c.ID); s != "apply_partial" {
		t.Errorf("shown as %s", s)
	}
	if _, undo, err := k.Status(ctx, by, c.ID, 0); err != nil || undo != nil {
		t.Errorf("a clean-up waits for the switch: %v %v", undo, err)
	}
}

func TestApplyRefusesWhenTargetMovedSincePreview(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	k.Target.Put("a", `{"n":1,"x":"edited"}`)
	got, _, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, wetink.Failed)
	if len(got.Steps) != 1 || string(got.Steps[0].Receipt.After.Body) != `{"n":1,"x":"edited"}` || !strings.HasSuffix(got.Why, "preview: x") {
		t.Errorf("the record does not say what is there now: %+v", got.Steps)
	}
	wantEffects(t, k, 0)
}

func TestUndoRefusesWhenTargetMovedSinceApply(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, undo, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	k.Target.Put("a", `{"n":2,"x":"edited"}`)
	undoEv := presented(undo)
	if _, _, err := k.Undo(ctx, by, c.ID, &undoEv); !errors.Is(err, wetink.ErrStale) {
		t.Errorf("undo over a later edit: %v", err)
	}
	if got := k.Target.Object("a"); got != `{"n":2,"x":"edited"}` {
		t.Errorf("the edit is lost: %s", got)
	}
	wantEffects(t, k, 1)
}

func TestAccountSwitchedRefusesAndBurnsNothing(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	k.Target.SetAccount("acct-2")
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); !errors.Is(err, wetink.ErrAccount) {
		t.Errorf("apply: %v", err)
	}
	wantStatus(t, get(t, k, c.ID), wetink.Pending)
	wantEffects(t, k, 0)
	k.Target.SetAccount("acct-1")
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Errorf("switched back: %v", err)
	}
}

func TestUpgradedMappingRefuses(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	k.Target.SetVersion("v2")
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); !errors.Is(err, wetink.ErrVersion) {
		t.Errorf("apply: %v", err)
	}
	wantEffects(t, k, 0)
}

// policy can be changed between preview and apply.
type policy struct{ wetink.Decision }

func (p *policy) Decide(context.Context, wetink.Terms, []wetink.Snapshot) (wetink.Decision, error) {
	return p.Decision, nil
}

func TestPolicyMadeStricterAfterApprovalWins(t *testing.T) {
	p := &policy{wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 1}}}
	k := kit(t, &wetink.Options{Policy: p})
	c, _ := preview(t, k, setN2)
	c = approve(t, k, c)
	p.Require.Level = wetink.Passkey
	if _, _, err := k.Apply(ctx, by, c.ID, nil); !errors.Is(err, wetink.ErrLevel) {
		t.Errorf("stricter level: %v", err)
	}
	p.Require.Level, p.Require.People = wetink.Session, 2
	if _, _, err := k.Apply(ctx, by, c.ID, nil); !errors.Is(err, wetink.ErrLevel) {
		t.Errorf("two people: %v", err)
	}
	p.Require.People, p.Deny = 1, "not today"
	if _, _, err := k.Apply(ctx, by, c.ID, nil); !errors.Is(err, wetink.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	wantStatus(t, get(t, k, c.ID), wetink.Approved)
	wantEffects(t, k, 0)
	p.Deny, p.Require.Level = "", wetink.Auto
	if _, _, err := k.Apply(ctx, by, c.ID, nil); err != nil {
		t.Errorf("a laxer policy: %v", err)
	}
}

func TestALaxerPolicyDoesNotLowerWhatTheStatementDemands(t *testing.T) {
	p := &policy{wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 1}}}
	k := kit(t, &wetink.Options{Policy: p})
	c, _ := preview(t, k, setN2)
	p.Require.Level = wetink.Auto
	if _, _, err := k.Apply(ctx, by, c.ID, nil); !errors.Is(err, wetink.ErrNotApproved) {
		t.Errorf("apply: %v", err)
	}
	if _, err := k.Approve(ctx, by, c.ID, wetinktest.Vouch(c, wetink.Host, "bo")); !errors.Is(err, wetink.ErrLevel) {
		t.Errorf("approve below: %v", err)
	}
	wantEffects(t, k, 0)
}

func TestApprovedInOneProcessRunByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		target.Put("a", `{"n":1}`)
		server, terminal := wetinktest.On(l, target, nil), wetinktest.On(l, nil, nil)
		run, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Run(run) }()
		c, _ := preview(t, server, setN2)
		if _, err := terminal.Approve(ctx, by, c.ID, wetinktest.Vouch(c, wetink.Session, "bo")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		wantStatus(t, get(t, server, c.ID), wetink.Applied)
		wantEffects(t, server, 1)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestApprovedButNeverStartedExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kit(t, nil)
		c, _ := preview(t, k, setN2)
		c = approve(t, k, c)
		time.Sleep(31 * time.Minute)
		if _, _, err := k.Apply(ctx, by, c.ID, nil); !errors.Is(err, wetink.ErrExpired) {
			t.Errorf("apply after start_by: %v", err)
		}
		wantEffects(t, k, 0)
	})
}

func TestRejectRacesApproveAndApplyAndOnlyOneWins(t *testing.T) {
	for range 200 {
		k := kit(t, nil)
		c, _ := preview(t, k, setN2)
		var rejected, applied error
		var wg sync.WaitGroup
		wg.Go(func() { _, rejected = k.Reject(ctx, by, c.ID, "no") })
		wg.Go(func() {
			if _, applied = k.Approve(ctx, by, c.ID, wetinktest.Vouch(c, wetink.Session, "bo")); applied == nil {
				_, _, applied = k.Apply(ctx, by, c.ID, nil)
			}
		})
		wg.Wait()
		if (rejected == nil) == (applied == nil) {
			t.Fatalf("rejected: %v, applied: %v", rejected, applied)
		}
		want := 1
		if rejected == nil {
			want = 0
		}
		wantEffects(t, k, want)
	}
}

func TestApprovalOfAnotherStatementIsNoEvidence(t *testing.T) {
	k := kit(t, nil)
	c, _ := preview(t, k, setN2)
	other, _ := preview(t, k, setN2)
	if _, err := k.Approve(ctx, by, c.ID, wetinktest.Vouch(other, wetink.Session, "bo")); !errors.Is(err, wetink.ErrEvidence) {
		t.Errorf("approve: %v", err)
	}
}

func TestTwoPeopleAndNotTheRequester(t *testing.T) {
	k := kit(t, &wetink.Options{Policy: wetink.Floor{Level: wetink.Session, People: 2, Other: true}})
	c, _ := preview(t, k, setN2)
	for i, who := range []wetink.Person{"ana", "bo", "bo", "cy"} {
		wantStatus(t, get(t, k, c.ID), wetink.Pending)
		var err error
		if c, err = k.Approve(ctx, by, c.ID, wetinktest.Vouch(c, wetink.Session, who)); err != nil {
			t.Fatal(i, err)
		}
	}
	wantStatus(t, c, wetink.Approved)
}

func TestLevelWithoutAChannelIsRefusedAtPreview(t *testing.T) {
	e := wetink.New(memory.New(nil), map[string]wetink.Target{"test": wetinktest.NewTarget()}, nil)
	_, _, err := e.Preview(ctx, "test", wetink.Request{By: by, Args: []byte(`{"ops":[{"action":"create","object":"a","set":{}}]}`)})
	if !errors.Is(err, wetink.ErrNoChannel) || !strings.Contains(err.Error(), "wetink setup") {
		t.Errorf("preview: %v", err)
	}
}

func TestScopesAreAskedAtEveryVerb(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	reader := wetink.Principal{Scopes: []string{"calendar:read"}}
	preparer := wetink.Principal{Scopes: []string{wetink.ScopePrepare}}
	if _, _, err := k.Preview(ctx, "test", wetink.Request{By: reader, Args: []byte(setN2)}); !errors.Is(err, wetink.ErrScope) {
		t.Errorf("preview: %v", err)
	}
	if _, _, err := k.Apply(ctx, preparer, c.ID, &ev); !errors.Is(err, wetink.ErrScope) {
		t.Errorf("apply: %v", err)
	}
	if _, _, err := k.Undo(ctx, preparer, c.ID, &ev); !errors.Is(err, wetink.ErrScope) {
		t.Errorf("undo: %v", err)
	}
	wantEffects(t, k, 0)
}

func TestAnotherTenantSeesNothing(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	stranger := wetink.Principal{Tenant: "other"}
	if _, _, err := k.Apply(ctx, stranger, c.ID, &ev); !errors.Is(err, wetink.ErrNotFound) {
		t.Errorf("apply: %v", err)
	}
	if _, _, err := k.Status(ctx, stranger, c.ID, 0); !errors.Is(err, wetink.ErrNotFound) {
		t.Errorf("status: %v", err)
	}
}

func TestReplaceSupersedesInOneStep(t *testing.T) {
	k := kit(t, agentLevel())
	old, oldEv := preview(t, k, setN2)
	k.Target.Put("a", `{"n":7}`)
	fresh, ticket, err := k.Replace(ctx, by, old.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, get(t, k, old.ID), wetink.Superseded)
	if _, _, err := k.Apply(ctx, by, old.ID, &oldEv); !errors.Is(err, wetink.ErrState) {
		t.Errorf("the old one applies: %v", err)
	}
	ev := presented(ticket)
	if _, _, err := k.Apply(ctx, by, fresh.ID, &ev); err != nil {
		t.Error(err)
	}
	wantEffects(t, k, 1)
}

func TestOneUndoLivesAtATime(t *testing.T) {
	k := kit(t, nil)
	c, _ := preview(t, k, setN2)
	c = approve(t, k, c)
	if c, _, _ = k.Apply(ctx, by, c.ID, nil); c.Status != wetink.Applied {
		t.Fatal(c.Status, c.Why)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[wetink.ChangeID]bool{}
	for range 16 {
		wg.Go(func() {
			if u, _, err := k.Undo(ctx, by, c.ID, nil); err == nil {
				mu.Lock()
				ids[u.ID] = true
				mu.Unlock()
			} else if !errors.Is(err, wetink.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	live := 0
	for u, err := range k.Ledger.List(ctx, wetink.Filter{Undoes: c.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Status.Live() {
			live++
			approve(t, k, u)
			if _, _, err := k.Apply(ctx, by, u.ID, nil); err != nil {
				t.Error(err)
			}
		}
	}
	if live != 1 {
		t.Errorf("%d live undos", live)
	}
	wantEffects(t, k, 2)
}

func TestSecretsPrintAsRedacted(t *testing.T) {
	k := kit(t, agentLevel())
	_, ev := preview(t, k, setN2)
	secret := ev.Ticket.Reveal()
	for _, s := range []string{fmt.Sprint(ev.Ticket), fmt.Sprintf("%v %+v %#v %s %q", ev.Ticket, ev, ev, ev.Ticket, ev.Ticket)} {
		if strings.Contains(s, secret) {
			t.Errorf("printed: %s", s)
		}
	}
}

func TestTicketsAreBoundToVerbWayEndAndChange(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	d := c.Statement.Digest()
	sealed := c.Tickets[0]
	if !sealed.Opens(ev.Ticket, c.ID, d) {
		t.Fatal("the right ticket does not open")
	}
	for name, edit := range map[string]func(*wetink.Sealed){
		"verb": func(s *wetink.Sealed) { s.Verb = wetink.VerbUndo },
		"way":  func(s *wetink.Sealed) { s.Delivered = wetink.DeliveredTerminal },
		"end":  func(s *wetink.Sealed) { s.Expires = s.Expires.Add(time.Hour) },
	} {
		s := sealed
		if edit(&s); s.Opens(ev.Ticket, c.ID, d) {
			t.Errorf("opens with another %s", name)
		}
	}
	if sealed.Opens(ev.Ticket, "chg_other", d) {
		t.Error("opens another change")
	}
	if d[0] ^= 1; sealed.Opens(ev.Ticket, c.ID, d) {
		t.Error("opens another statement")
	}
}
