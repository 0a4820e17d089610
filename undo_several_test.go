package wetink_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/wetinktest"
)

// applied changes each object in a Change of its own.
func applied(t *testing.T, k *wetinktest.Kit, objects ...string) (list []wetink.ChangeID) {
	t.Helper()
	for _, o := range objects {
		k.Target.Put(o, `{"n":1}`)
		list = append(list, appliedTo(t, k, o, 2))
	}
	return list
}

func appliedTo(t *testing.T, k *wetinktest.Kit, object string, n int) wetink.ChangeID {
	t.Helper()
	c, ev := preview(t, k, fmt.Sprintf(`{"ops":[{"action":"update","object":%q,"set":{"n":%d}}]}`, object, n))
	c, _, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, c, wetink.Applied)
	return c.ID
}

func TestSeveralChangesAreUndoneAsOneChangeThatAPersonApproves(t *testing.T) {
	k := kit(t, agentLevel())
	ids := applied(t, k, "p", "q", "r")
	u, ticket, err := k.UndoAll(ctx, by, ids[2], ids[0], ids[2])
	if err != nil {
		t.Fatal(err)
	}
	undone := map[wetink.Undone]bool{}
	for _, p := range u.Undoes {
		undone[p] = true
	}
	if len(u.Undoes) != 2 || !undone[wetink.Undone{Change: ids[0], Effects: 1}] || !undone[wetink.Undone{Change: ids[2], Effects: 1}] {
		t.Errorf("it undoes %v", u.Undoes)
	}
	wantStatus(t, u, wetink.Pending)
	wantEffects(t, k, 3)
	ev := presented(ticket)
	if u, _, err = k.Apply(ctx, by, u.ID, &ev); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, u, wetink.Applied)
	for i, want := range []string{"undone", "applied", "undone"} {
		if got := shown(t, k, ids[i]); got != want {
			t.Errorf("change %d is shown as %s, want %s", i, got, want)
		}
	}
	if p, q, r := k.Target.Object("p"), k.Target.Object("q"), k.Target.Object("r"); p != `{"n":1}` || q != `{"n":2}` || r != `{"n":1}` {
		t.Error(p, q, r)
	}
	redo := back(t, k, u.ID) // of both at once
	wantStatus(t, redo, wetink.Applied)
	if p, r := k.Target.Object("p"), k.Target.Object("r"); p != `{"n":2}` || r != `{"n":2}` {
		t.Error(p, r)
	}
	wantEffects(t, k, 7)
}

func TestAnUndoOfSeveralIsWholeOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID
		want  error
		says  string
	}{
		"one object moved since": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			k.Target.Put("q", `{"n":9}`)
			return ids
		}, wetink.ErrStale, "q"},
		"two of them changed one object": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			return append(ids, appliedTo(t, k, "p", 3))
		}, wetink.ErrState, "undo chg_"},
		"one is undone": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			back(t, k, ids[1])
			return ids
		}, wetink.ErrState, "is undone by"},
		"one never happened": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			c, _ := preview(t, k, setN2)
			return append(ids, c.ID)
		}, wetink.ErrNotApproved, ""},
		"one of another account": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			k.Target.SetAccount("acct-2")
			ids = append(ids, applied(t, k, "z")...)
			k.Target.SetAccount("acct-1")
			return ids
		}, wetink.ErrState, "different accounts"},
		"one that is not there": {func(_ *testing.T, _ *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			return append(ids, "chg_none")
		}, wetink.ErrNotFound, ""},
		"two of them wait to be undone": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			for _, id := range ids {
				if _, _, err := k.UndoAll(ctx, by, id); err != nil {
					t.Fatal(err)
				}
			}
			return ids
		}, wetink.ErrState, "decline one first"},
		"one whose time is over": {func(t *testing.T, k *wetinktest.Kit, ids []wetink.ChangeID) []wetink.ChangeID {
			k.Target.SetPromise(wetink.Promise{Extent: wetink.FullUndo})
			return append(ids, applied(t, k, "z")...)
		}, wetink.ErrExpired, ""},
		"none": {func(*testing.T, *wetinktest.Kit, []wetink.ChangeID) []wetink.ChangeID { return nil }, nil, "choose one"},
		"too many": {func(*testing.T, *wetinktest.Kit, []wetink.ChangeID) []wetink.ChangeID {
			return make([]wetink.ChangeID, 51)
		}, nil, "50 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			k := kit(t, agentLevel())
			ids := c.spoil(t, k, applied(t, k, "p", "q"))
			effects, pending := len(k.Target.Journal()), waiting(t, k)
			_, _, err := k.UndoAll(ctx, by, ids...)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.want, c.says)
			}
			if wantEffects(t, k, effects); waiting(t, k) != pending {
				t.Error("something was stored")
			}
		})
	}
}

func waiting(t *testing.T, k *wetinktest.Kit) (n int) {
	t.Helper()
	for _, err := range k.Ledger.List(ctx, wetink.Filter{Status: []wetink.Status{wetink.Pending}}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestAnUndoOfSeveralTakesThePlaceOfOneThatWaits(t *testing.T) {
	k := kit(t, agentLevel())
	ids := applied(t, k, "p", "q")
	alone, _, err := k.UndoAll(ctx, by, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	both, _, err := k.UndoAll(ctx, by, ids...)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, get(t, k, alone.ID), wetink.Superseded)
	alone, _, err = k.UndoAll(ctx, by, ids[1]) // and the other way round
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, get(t, k, both.ID), wetink.Superseded)
	wantStatus(t, alone, wetink.Pending)
}

func TestTheAgentsUndoTicketIsForItsOwnChangeOnly(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, ticket, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	other := applied(t, k, "p")
	u, _, err := k.UndoAll(ctx, by, c.ID, other[0])
	if err != nil {
		t.Fatal(err)
	}
	uev := presented(ticket)
	if _, _, err := k.Apply(ctx, by, u.ID, &uev); !errors.Is(err, wetink.ErrTicket) {
		t.Errorf("an undo of two was applied with the ticket of one: %v", err)
	}
	wantEffects(t, k, 2)
}

func TestAPersonWithoutCredentialsHasTheServerPlanTheUndoOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, target := memory.New(nil), wetinktest.NewTarget()
		terminal, server := wetinktest.On(l, nil, nil), wetinktest.On(l, target, agentLevel())
		run(t, server)
		synctest.Wait()
		ids := applied(t, server, "p", "q")
		if err := terminal.AskUndo(ctx, by, ids...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, u, err := terminal.Status(ctx, by, ids[1], 0)
		if err != nil || u == nil || u.Status != wetink.Pending || len(u.Undoes) != 2 {
			t.Fatalf("%v %+v", err, u)
		}
	})
}
