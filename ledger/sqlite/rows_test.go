package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

var serial int

// newRow is a Change as large as a small real one, with an id of its own that sorts by time.
func newRow(at time.Time) wetink.Change {
	serial++
	c := wetink.Change{
		ID:     wetink.ChangeID(fmt.Sprintf("chg_%013d%013d", at.UnixMilli(), serial)),
		Target: "test", Account: "acct-1",
		Request: wetink.Request{By: wetink.Principal{Person: "ana", Client: "a client"}, Tool: "update", Args: []byte(`{"a":1}`)},
		Before:  []wetink.Snapshot{{Object: "a", Version: "1", Body: []byte(`{"n":1}`), At: at}},
	}
	c.Statement = wetink.Statement(fmt.Sprintf(`{"change":%q,"nonce":%q,"ops":[{"action":"update"}]}`, c.ID, make([]byte, 40)))
	return c
}

func birth(c wetink.Change, to wetink.Status) wetink.Move {
	return wetink.Move{Tenant: c.Tenant, ID: c.ID, To: to, New: &c, Due: time.UnixMilli(1900000000000),
		Event: wetink.Event{Kind: wetink.KindPreviewed, Digest: c.Statement.Digest(), By: "ana", Client: "a client"}}
}

func move(id wetink.ChangeID, rev int64, from, to wetink.Status) wetink.Move {
	m := wetink.Move{ID: id, Rev: rev, From: from, To: to, Due: time.UnixMilli(1900000000000),
		Event: wetink.Event{Kind: wetink.KindSettled, By: "ana", Client: "a client"}}
	if from == wetink.Approved && to == wetink.Applying {
		m.Claim = &wetink.Claim{ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Owner: "host/1234", Lease: m.Due}
		m.Event.Kind, m.Event.Facts = wetink.KindClaimed, map[string]string{"claim": m.Claim.ID}
	}
	return m
}

func claimMove(id wetink.ChangeID, rev int64) wetink.Move {
	return move(id, rev, wetink.Approved, wetink.Applying)
}

func advance(t testing.TB, l wetink.Ledger, moves ...wetink.Move) []wetink.Event {
	t.Helper()
	ev, err := l.Advance(context.Background(), moves...)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func get(t testing.TB, l wetink.Ledger, id wetink.ChangeID) wetink.Change {
	t.Helper()
	c, err := l.Get(context.Background(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
