package wetink_test

import (
	"errors"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

// back plans the undo of a change, and applies it with the ticket of its own preview.
func back(t *testing.T, k *wetinktest.Kit, id wetink.ChangeID) wetink.Change {
	t.Helper()
	u, ticket, err := k.Undo(ctx, by, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	ev := presented(ticket)
	if u, _, err = k.Apply(ctx, by, u.ID, &ev); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, u, wetink.Applied)
	return u
}

func TestAnUndoIsUndoneAndThatAgain(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Fatal(err)
	}
	want := func(word, body string) {
		t.Helper()
		if got := shown(t, k, c.ID); got != word {
			t.Errorf("shown as %s, want %s", got, word)
		}
		if got := k.Target.Object("a"); got != body {
			t.Errorf("it is %s, want %s", got, body)
		}
	}
	const before, after = `{"n":1,"x":"kept"}`, `{"n":2,"x":"kept"}`
	u := back(t, k, c.ID)
	want("undone", before)
	redo := back(t, k, u.ID)
	want("applied", after)
	again := back(t, k, c.ID) // of what brought it back
	want("undone", before)
	if len(again.Undoes) != 1 || again.Undoes[0].Change != redo.ID {
		t.Errorf("it undoes %v, want %s", again.Undoes, redo.ID)
	}
	back(t, k, again.ID)
	want("applied", after)
	wantEffects(t, k, 5)
}

func TestARedoIsRefusedWhenTheObjectMovedSinceTheUndo(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Fatal(err)
	}
	u := back(t, k, c.ID)
	k.Target.Put("a", `{"n":1,"x":"mine"}`)
	if _, _, err := k.Undo(ctx, by, u.ID, nil); !errors.Is(err, wetink.ErrStale) {
		t.Errorf("got %v, want stale", err)
	}
	wantEffects(t, k, 2)
}

// The agent's undo ticket is for one undo: once that was taken back, the ticket tells what it did, and does no more.
func TestAnUndoTicketDoesNotUndoARedo(t *testing.T) {
	k := kit(t, agentLevel())
	c, ev := preview(t, k, setN2)
	_, ticket, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		t.Fatal(err)
	}
	uev := presented(ticket)
	u, _, err := k.Undo(ctx, by, c.ID, &uev)
	if err != nil {
		t.Fatal(err)
	}
	back(t, k, u.ID)
	if again, _, err := k.Undo(ctx, by, c.ID, &uev); err != nil || again.ID != u.ID {
		t.Errorf("%s, %v; want the answer of %s", again.ID, err, u.ID)
	}
	wantEffects(t, k, 3)
}

func TestACleanUpIsNotUndone(t *testing.T) {
	k := kit(t, agentLevel())
	k.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
		if n == 2 {
			return wetink.ErrNotApplied
		}
		return do()
	}
	c, ev := preview(t, k, `{"on_failure":"undo","ops":[{"action":"create","object":"b","set":{"n":1}},{"action":"create","object":"c","set":{"n":1}}]}`)
	if _, _, err := k.Apply(ctx, by, c.ID, &ev); err != nil {
		t.Fatal(err)
	}
	_, u, err := k.Status(ctx, by, c.ID, 0)
	if err != nil || u == nil || u.Status != wetink.Applied {
		t.Fatalf("the clean-up: %+v, %v", u, err)
	}
	if _, _, err := k.Undo(ctx, by, u.ID, nil); !errors.Is(err, wetink.ErrNoUndo) {
		t.Errorf("got %v, want no undo", err)
	}
}
