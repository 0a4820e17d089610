package wetink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
)

// notes is an outside system of the smallest kind: named notes. A Target for it tells who it acts for, prepares,
// observes and executes.
type notes struct {
	mu   sync.Mutex
	text map[string]string
}

func (n *notes) Account(context.Context) (wetink.Account, string, error) {
	return "my-notes", "notes/1", nil
}

func (n *notes) Observe(_ context.Context, _ wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok := n.text[op.Object]
	body, err := json.Marshal(text)
	return wetink.Snapshot{Object: op.Object, Absent: !ok, Body: body}, err
}

func (n *notes) Prepare(ctx context.Context, req wetink.Request) (wetink.Prepared, error) {
	var args struct{ Name, Text string }
	if err := json.Unmarshal(req.Args, &args); err != nil {
		return wetink.Prepared{}, &wetink.RequestError{Reason: err.Error(), Fix: "send name and text"}
	}
	payload, err := json.Marshal(args.Text)
	if err != nil {
		return wetink.Prepared{}, err
	}
	op := wetink.Op{Action: "write", Object: args.Name, Payload: payload}
	before, err := n.Observe(ctx, "my-notes", op)
	undo := wetink.Promise{Extent: wetink.FullUndo, Until: time.Hour} // shown before approval
	if before.Absent {
		undo = wetink.Promise{Extent: wetink.NoUndo}
	}
	return wetink.Prepared{Account: "my-notes", Ops: []wetink.Op{op}, Before: []wetink.Snapshot{before}, Undo: undo}, err
}

// Judge lets the engine read back what was written, and settle what was in doubt.
func (n *notes) Judge(op wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	switch {
	case !now.Absent && string(now.Body) == string(op.Payload):
		return wetink.AsApproved, ""
	case now.Digest() == before.Digest():
		return wetink.Untouched, ""
	}
	return wetink.Foreign, "it reads otherwise"
}

func (n *notes) Flight() time.Duration { return time.Minute }

// Invert plans the way back: the note as it was.
func (n *notes) Invert(ops []wetink.Op, before []wetink.Snapshot, _ []wetink.Step) (wetink.Request, wetink.Promise, error) {
	args := fmt.Sprintf(`{"name":%q,"text":%s}`, ops[0].Object, before[0].Body)
	return wetink.Request{Args: []byte(args)}, wetink.Promise{Extent: wetink.FullUndo}, nil
}

func (n *notes) Unmoved(after, now wetink.Snapshot) (bool, []string) {
	return after.Digest() == now.Digest(), []string{"text"}
}

func (n *notes) Execute(_ context.Context, _ wetink.Account, op wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text string
	if err := json.Unmarshal(op.Payload, &text); err != nil {
		return wetink.Receipt{}, fmt.Errorf("payload: %w: %w", err, wetink.ErrNotApplied)
	}
	n.text[op.Object] = text
	return wetink.Receipt{Object: op.Object}, nil
}

// A change from its preview to its end, at the level where the agent presents a token.
func Example() {
	ctx := context.Background()
	target := &notes{text: map[string]string{"todo": "milk"}}
	engine := wetink.New(memory.New(nil), map[string]wetink.Target{"notes": target}, &wetink.Options{
		Policy: wetink.Floor{Level: wetink.Agent, People: 1}, // the default asks for a signed-in session
		Mode:   wetink.ModeGuarded,                           // the default is off
	})
	me := wetink.Principal{Person: "ana"}

	change, token, err := engine.Preview(ctx, "notes", wetink.Request{By: me, Args: []byte(`{"name":"todo","text":"milk, bread"}`)})
	if err != nil {
		panic(err)
	}
	terms, err := change.Terms() // what is shown is decoded from what is stored
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s becomes %s; token %v\n", change.Status, change.Before[0].Body, terms.Ops[0].Payload, token)

	var undo wetink.Ticket
	for range 2 { // the second call is answered, and does nothing but renew the undo ticket
		change, undo, err = engine.Apply(ctx, me, change.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: token})
		fmt.Println(change.Status, err, target.text["todo"])
	}
	fmt.Println(change.Approvals[0].Sentence())

	_, _, err = engine.Undo(ctx, me, change.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: undo})
	fmt.Println(err, target.text["todo"])
	// Output:
	// pending: "milk" becomes "milk, bread"; token [redacted]
	// applied <nil> milk, bread
	// applied <nil> milk, bread
	// The agent presented the token for this exact change.
	// <nil> milk
}

// An approval is bound to what was seen: a note that somebody edits meanwhile is not overwritten.
func Example_stale() {
	ctx := context.Background()
	target := &notes{text: map[string]string{"todo": "milk"}}
	engine := wetink.New(memory.New(nil), map[string]wetink.Target{"notes": target},
		&wetink.Options{Policy: wetink.Floor{Level: wetink.Agent}, Mode: wetink.ModeGuarded})

	change, token, _ := engine.Preview(ctx, "notes", wetink.Request{Args: []byte(`{"name":"todo","text":"milk, bread"}`)})
	target.text["todo"] = "milk, eggs"
	change, _, err := engine.Apply(ctx, wetink.Principal{}, change.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: token})
	fmt.Println(change.Status, err, target.text["todo"])
	fmt.Println(change.Why)
	// Output:
	// failed <nil> milk, eggs
	// nothing was sent: changed since the preview: its content
}
