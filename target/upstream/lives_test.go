package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

var (
	ctx = context.Background()
	by  = wetink.Principal{Person: "ana", Client: "test"}
)

// kit is an engine before one guarded server. Its policy is what the rules ask, and the default is the level that a test
// reaches without a person.
type kit struct {
	*testing.T
	*wetink.Engine
	*server
	target *upstream.Target
}

type byRules struct{ *upstream.Target }

func (p byRules) Decide(_ context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	return p.Requires(t, before)
}

// life runs a test on virtual time: what is read back is read again for a while.
func life(t *testing.T, rules string, run func(k *kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ask, _ := upstream.ParseAsk("agent")
		s := newServer()
		target := upstream.New("demo", s, parse(t, rules), &upstream.Options{Default: ask})
		run(&kit{t, wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"demo": target},
			&wetink.Options{Policy: byRules{target}, Mode: wetink.ModeGuarded}), s, target})
	})
}

type change struct {
	wetink.Change
	ticket wetink.Ticket
}

func (k *kit) preview(tool, args string) change {
	k.Helper()
	before := k.effects()
	c, ticket, err := k.Preview(ctx, "demo", request(tool, args))
	if err != nil {
		k.Fatalf("preview %s %s: %v", tool, args, err)
	}
	if k.effects() != before {
		k.Errorf("the preview of %s changed something: %v", tool, k.journal)
	}
	return change{c, ticket}
}

func (k *kit) refused(tool, args, want string) {
	k.Helper()
	before := k.effects()
	_, _, err := k.Preview(ctx, "demo", request(tool, args))
	if err == nil || !strings.Contains(err.Error(), want) {
		k.Errorf("preview %s %s: %v, want %q", tool, args, err, want)
	}
	if k.effects() != before {
		k.Errorf("a refused preview changed something: %v", k.journal)
	}
}

func (k *kit) apply(c change, want wetink.Status) change {
	k.Helper()
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: c.ticket}
	got, ticket, err := k.Apply(ctx, by, c.ID, &ev)
	if err != nil {
		k.Fatalf("apply: %v", err)
	}
	if got.Status != want {
		k.Fatalf("applied, it is %s (%s), want %s; steps %+v", got.Status, got.Why, want, got.Steps)
	}
	return change{got, ticket}
}

// undo takes c back by its ticket.
func (k *kit) undo(c change) (change, error) {
	k.Helper()
	ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: c.ticket}
	u, ticket, err := k.Undo(ctx, by, c.ID, &ev)
	return change{u, ticket}, err
}

func (k *kit) undone(c change) change {
	k.Helper()
	u, err := k.undo(c)
	if err != nil || u.Status != wetink.Applied {
		k.Fatalf("undo: %v %s (%s)", err, u.Status, u.Why)
	}
	return u
}

// redone undoes an undo: a new change, with a ticket of its own.
func (k *kit) redone(u change) {
	k.Helper()
	r, ticket, err := k.UndoAll(ctx, by, u.ID)
	if err != nil {
		k.Fatalf("redo: %v", err)
	}
	k.apply(change{r, ticket}, wetink.Applied)
}

func (k *kit) terms(c change) wetink.Terms {
	k.Helper()
	t, err := c.Terms()
	if err != nil {
		k.Fatal(err)
	}
	return t
}

func (k *kit) want(id, field string, v any) {
	k.Helper()
	if got := k.get(id, field); got != v {
		k.Errorf("%s.%s is %v, want %v", id, field, got, v)
	}
}

func TestAGuardedCallIsPreviewedAppliedOnceUndoneAndRedone(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.apply(k.preview("put_record", `{"id":"a","title":"renamed"}`), wetink.Applied)
		k.want("a", "title", "renamed")
		if !c.Compared() || k.effects() != 1 {
			t.Errorf("compared: %t, effects %v", c.Compared(), k.journal)
		}
		u := k.undone(c)
		k.want("a", "title", "first")
		k.redone(u)
		k.want("a", "title", "renamed")
		if k.effects() != 3 {
			t.Errorf("effects: %v", k.journal)
		}
	})
}

func TestACreationIsUndoneByItsOwnWayBack(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.preview("put_record", `{"id":"c","title":"third"}`)
		if got := k.terms(c).Undo.Extent; got != wetink.FullUndo {
			t.Errorf("undo %s", got)
		}
		u := k.undone(k.apply(c, wetink.Applied))
		if k.records["c"] != nil {
			t.Errorf("it is there still: %v", k.records["c"])
		}
		k.redone(u)
		k.want("c", "title", "third")
	})
}

func TestADeletionIsUndoneWithAllThatWasRead(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.apply(k.preview("delete_record", `{"id":"a"}`), wetink.Applied)
		k.undone(c)
		k.want("a", "title", "first")
		k.want("a", "note", "kept")
		k.want("a", "size", json.Number("9007199254740993"))
	})
}

// The id of what is created is in the answer alone; it is read back by the rule of the tool that takes it away.
func TestACreationWithANewIDIsReadBackAndUndone(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.preview("create_record", `{"title":"new"}`)
		c = k.apply(c, wetink.Applied)
		if !c.Compared() || c.Steps[0].Receipt.Object != `get_record {"id":"r2"}` {
			t.Errorf("compared %t, object %s", c.Compared(), c.Steps[0].Receipt.Object)
		}
		k.undone(c)
		if k.records["r2"] != nil {
			t.Error("it is there still")
		}
	})
}

func TestACreationThatSomebodyEditedIsNotTakenAway(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.apply(k.preview("create_record", `{"title":"new"}`), wetink.Applied)
		k.set("r2", "title", "mine")
		if _, err := k.undo(c); !errors.Is(err, wetink.ErrStale) {
			t.Errorf("undo: %v", err)
		}
		k.want("r2", "title", "mine")
	})
}

func TestAnEditBetweenPreviewAndApplySendsNothing(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		for _, c := range []change{
			k.preview("put_record", `{"id":"a","title":"renamed"}`), k.preview("put_record", `{"id":"c","title":"third"}`), k.preview("delete_record", `{"id":"b"}`),
		} {
			id := strings.Split(c.Before[0].Object, `"`)[3]
			k.set(id, "note", "mine")
			c = k.apply(c, wetink.Failed)
			if !strings.Contains(c.Why, "changed since the preview") {
				t.Errorf("%s: %s", id, c.Why)
			}
			k.want(id, "note", "mine")
		}
		if k.effects() != 0 {
			t.Errorf("sent: %v", k.journal)
		}
	})
}

func TestUndoRefusesWhatSomebodyEditedSince(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.apply(k.preview("put_record", `{"id":"a","title":"renamed"}`), wetink.Applied)
		k.set("a", "note", "mine")
		if _, err := k.undo(c); !errors.Is(err, wetink.ErrStale) || !strings.Contains(err.Error(), "note") {
			t.Errorf("undo: %v", err)
		}
		k.want("a", "note", "mine")
		k.want("a", "title", "renamed")
	})
}

// broken makes the next write fail in one of the ways that an answer can.
func (k *kit) broken(answer func(do func() json.RawMessage) (json.RawMessage, bool, error)) {
	k.OnCall = func(tool string, _ map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error) {
		if strings.HasPrefix(tool, "get_") || strings.HasPrefix(tool, "read_") {
			return do(), true, nil
		}
		return answer(do)
	}
}

func TestEachBrokenAnswerEndsAsWhatIsProved(t *testing.T) {
	failedAfter := func(do func() json.RawMessage) (json.RawMessage, bool, error) {
		do()
		return failed("timeout"), true, nil
	}
	lost := func(do func() json.RawMessage) (json.RawMessage, bool, error) { do(); return nil, true, errLost }
	never := func(func() json.RawMessage) (json.RawMessage, bool, error) { return nil, true, errLost }
	garbage := func(text string) func(do func() json.RawMessage) (json.RawMessage, bool, error) {
		return func(do func() json.RawMessage) (json.RawMessage, bool, error) {
			do()
			return json.RawMessage(text), true, nil
		}
	}
	refused := func(code int, first bool) func(do func() json.RawMessage) (json.RawMessage, bool, error) {
		return func(do func() json.RawMessage) (json.RawMessage, bool, error) {
			if first {
				do()
			}
			return nil, true, rpcError(code)
		}
	}
	for _, test := range []struct {
		name        string
		tool, args  string
		answer      func(do func() json.RawMessage) (json.RawMessage, bool, error)
		apply, then wetink.Status // then: after the flight of a call is over
	}{
		{"not sent", "put_record", `{"id":"a","title":"x"}`, func(func() json.RawMessage) (json.RawMessage, bool, error) { return nil, false, errLost }, wetink.Failed, wetink.Failed},
		{"lost after the effect", "put_record", `{"id":"a","title":"x"}`, lost, wetink.Applied, wetink.Applied},
		{"lost before the effect", "put_record", `{"id":"a","title":"x"}`, never, wetink.InDoubt, wetink.Failed},
		{"failed before the effect", "put_record", `{"id":"a","title":"x"}`, func(func() json.RawMessage) (json.RawMessage, bool, error) { return failed("no"), true, nil }, wetink.Failed, wetink.Failed},
		{"failed after the effect", "put_record", `{"id":"a","title":"x"}`, failedAfter, wetink.Applied, wetink.Applied},
		{"invalid parameters before the effect", "put_record", `{"id":"a","title":"x"}`, refused(-32602, false), wetink.Failed, wetink.Failed},
		{"invalid parameters after the effect", "put_record", `{"id":"a","title":"x"}`, refused(-32602, true), wetink.Applied, wetink.Applied},
		{"internal error", "put_record", `{"id":"a","title":"x"}`, refused(-32603, false), wetink.InDoubt, wetink.Failed},
		{"internal error after the effect", "put_record", `{"id":"a","title":"x"}`, refused(-32603, true), wetink.Applied, wetink.Applied},
		{"no JSON", "put_record", `{"id":"a","title":"x"}`, garbage("<html>"), wetink.Applied, wetink.Applied},
		{"null", "put_record", `{"id":"a","title":"x"}`, garbage("null"), wetink.Applied, wetink.Applied},
		{"no content", "put_record", `{"id":"a","title":"x"}`, garbage("{}"), wetink.Applied, wetink.Applied},
		{"more is asked for", "put_record", `{"id":"a","title":"x"}`, garbage(`{"resultType":"input_required","content":[],"inputRequests":{}}`), wetink.Applied, wetink.Applied},
		{"answered without doing it", "put_record", `{"id":"a","title":"x"}`, func(func() json.RawMessage) (json.RawMessage, bool, error) { return plainText("done"), true, nil }, wetink.InDoubt, wetink.InDoubt},
		{"a deletion is lost", "delete_record", `{"id":"b"}`, lost, wetink.Applied, wetink.Applied},
		{"a deletion fails after the effect", "delete_record", `{"id":"b"}`, failedAfter, wetink.Applied, wetink.Applied},
		// Nobody knows where a creation is that was not answered: that it is not seen proves nothing, however long one waits.
		{"a creation is lost", "create_record", `{"title":"x"}`, lost, wetink.InDoubt, wetink.InDoubt},
		{"a creation is not sent on", "create_record", `{"title":"x"}`, never, wetink.InDoubt, wetink.InDoubt},
		{"a creation fails after the effect", "create_record", `{"title":"x"}`, failedAfter, wetink.InDoubt, wetink.InDoubt},
		{"a creation without its id", "create_record", `{"title":"x"}`, garbage(`{"content":[{"type":"text","text":"created"}]}`), wetink.InDoubt, wetink.InDoubt},
		{"a creation under another name", "create_record", `{"title":"x"}`, garbage(`{"content":[],"structuredContent":{"item":{"id":"r2"}}}`), wetink.InDoubt, wetink.InDoubt},
		{"a creation that is not there", "create_record", `{"title":"x"}`, garbage(`{"content":[],"structuredContent":{"record":{"id":"r99"}}}`), wetink.InDoubt, wetink.InDoubt},
	} {
		t.Run(test.name, func(t *testing.T) {
			life(t, recordRules, func(k *kit) {
				c := k.preview(test.tool, test.args)
				k.broken(test.answer)
				c = k.apply(c, test.apply)
				n := k.effects()
				k.OnCall = nil
				time.Sleep(5 * time.Minute)
				got, _, err := k.Reconcile(ctx, by, c.ID)
				if err != nil || got.Status != test.then {
					t.Errorf("reconciled: %v %s (%s), want %s; %+v", err, got.Status, got.Why, test.then, got.Steps)
				}
				if k.effects() != n || n > 1 {
					t.Errorf("effects: %v", k.journal)
				}
			})
		})
	}
}

// Where the effect can be compared, a lost answer is made up for at once.
func TestWhatWasReconciledCanBeUndone(t *testing.T) {
	life(t, recordRules, func(k *kit) {
		c := k.preview("put_record", `{"id":"a","title":"x"}`)
		k.broken(func(do func() json.RawMessage) (json.RawMessage, bool, error) { do(); return nil, true, errLost })
		c = k.apply(c, wetink.Applied)
		if c.Steps[0].How != "reconciled" {
			t.Errorf("it is known from %q", c.Steps[0].How)
		}
		k.OnCall = nil
		k.undone(c)
		k.want("a", "title", "first")
	})
}
