package intervals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/wetink/wetink"
)

// wayBack is the request that Invert makes and Prepare reads.
type wayBack struct {
	Ops []wayBackOp `json:"ops"`
}

type wayBackOp struct {
	Action  string          `json:"action"`
	EventID EventID         `json:"event_id,omitempty"`
	Event   json.RawMessage `json:"event,omitempty"` // create: what to write; update: the touched fields as they were
}

// Invert implements wetink.Undoer: create → delete; delete → create again, with a new id; update → the touched
// fields as they were.
func (t *Target) Invert(ops []wetink.Op, before []wetink.Snapshot, steps []wetink.Step) (wetink.Request, wetink.Promise, error) {
	var w wayBack
	promise := wetink.Promise{Extent: wetink.FullUndo, Until: t.undoWindow}
	for _, s := range slices.Backward(steps) {
		if s.Outcome != wetink.TookEffect && s.Outcome != wetink.Differs {
			continue
		}
		op, was := ops[s.Op], fields(before[s.Op])
		back := wayBackOp{}
		switch op.Action {
		case Create:
			id, err := strconv.ParseInt(s.Receipt.Object, 10, 64)
			if err != nil {
				return wetink.Request{}, promise, fmt.Errorf("%w: nobody knows the id of event %d of this change", wetink.ErrNoUndo, s.Op)
			}
			back = wayBackOp{Action: Delete, EventID: EventID(id)}
		case Delete:
			b, err := encode(recreate(was))
			if err != nil {
				return wetink.Request{}, promise, err
			}
			back = wayBackOp{Action: Create, Event: b}
			promise.Extent = wetink.PartialUndo
		case Update:
			id, err := strconv.ParseInt(op.Object, 10, 64)
			if err != nil {
				return wetink.Request{}, promise, err
			}
			restore, err := former(op, was)
			if err != nil {
				return wetink.Request{}, promise, err
			}
			back = wayBackOp{Action: Update, EventID: EventID(id), Event: restore}
		}
		w.Ops = append(w.Ops, back)
	}
	args, err := marshal(w)
	return wetink.Request{Args: args}, promise, err
}

// former is the payload that gives the fields of op's payload their old values.
func former(op wetink.Op, was event) (json.RawMessage, error) {
	var sent event
	if err := json.Unmarshal(op.Payload, &sent); err != nil {
		return nil, fmt.Errorf("stored payload: %w", err)
	}
	for f := range sent {
		if was.set(f) {
			sent[f] = was[f]
		} else if v, ok := emptied(f); ok {
			sent[f] = v
		} else {
			sent[f] = json.RawMessage("null") // nothing empties it for sure: the read-back says what became of it
		}
	}
	if _, text := sent["description"]; text && !was.set(stepsField) {
		for _, f := range []string{"moving_time", "distance", "icu_training_load"} { // the steps that we wrote computed them
			if _, ok := sent[f]; !ok && was.set(f) {
				sent[f] = was[f]
			}
		}
	}
	return encode(sent)
}

// restore prepares what Invert planned. The engine has checked that nothing moved since; this reads again.
func (p *plan) restore(ctx context.Context, raw json.RawMessage) error {
	var w wayBack
	if err := parseArgs(raw, &w); err != nil {
		return err
	}
	for i, o := range w.Ops {
		if o.Action == Create {
			var e event
			if err := json.Unmarshal(o.Event, &e); err != nil {
				return err
			}
			if err := p.add(e); err != nil {
				return err
			}
			p.warn("%q is created again with a new id; what pointed at the old one does not follow", clean(e.text("name")))
			continue
		}
		e, before, err := p.findAgain(ctx, fmt.Sprintf("ops[%d]", i), o.EventID)
		if err != nil {
			return err
		}
		if o.Action == Delete {
			p.goes(o.EventID, before)
			continue
		}
		var want event
		if err := json.Unmarshal(o.Event, &want); err != nil {
			return err
		}
		for f, v := range want {
			if same(f, v, e[f]) {
				delete(want, f)
			}
		}
		if err := p.put(o.EventID, want, before); err != nil {
			return err
		}
	}
	return nil
}

// findAgain reads an event for an undo. Only a pairing or a lock refuses it: the change itself may have moved
// it into the past, or out of sight, and must still be reversible.
func (p *plan) findAgain(ctx context.Context, at string, id EventID) (event, wetink.Snapshot, error) {
	e, err := p.t.event(ctx, p.Account, id.String())
	if err != nil {
		return nil, wetink.Snapshot{}, err
	}
	if e.set("paired_activity_id") || e.flag("athlete_cannot_edit") {
		return nil, wetink.Snapshot{}, p.refuse(at, e)
	}
	s, err := e.snapshot()
	return e, s, err
}
