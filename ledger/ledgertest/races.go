package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/wetink/wetink"
)

// ErrNoOrder says that the answers of Races contradict each other.
var ErrNoOrder = errors.New("no order of the answers has one decision for each change")

// RunRaces lets n changes be decided by everybody at once (see Races) on a fresh ledger.
func RunRaces(t *testing.T, n int, open func(t *testing.T) wetink.Ledger) {
	if err := Races(t.Context(), open(t), n); err != nil {
		t.Error(err)
	}
}

// together is how many changes are raced for at a time, under one switch.
const together = 50

// Races lets n changes be approved twice, rejected, expired, claimed and read at once, while the kill switch goes off
// and on. It returns an error unless the answers are linearizable: there is an order of all of them, in keeping with
// who was answered before who asked, in which each change was decided once, and nothing was claimed while writes were
// off (Herlihy and Wing, 1990; checked with porcupine).
func Races(ctx context.Context, l wetink.Ledger, n int) error {
	for first := 0; first < n; first += together {
		r := &race{l: l, ctx: ctx}
		if err := r.run(first, min(together, n-first)); err != nil {
			return err
		}
	}
	return nil
}

// race is one batch. Its history is what was asked and answered, by a counter that orders calls and answers.
type race struct {
	l     wetink.Ledger
	ctx   context.Context
	clock atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation
	broken  error
}

// asked and answered are one call. change is the key of the history; "" is the switch, which all have in common.
type asked struct {
	change   wetink.ChangeID
	what     string // "move", "get", "mode"
	rev      int64
	from, to wetink.Status
	mode     wetink.Mode
}

type answered struct {
	refusal error
	rev     int64
	status  wetink.Status
}

// decided is what is known of a change between two calls.
type decided struct {
	rev    int64
	status wetink.Status
	mode   wetink.Mode
}

func (r *race) run(first, n int) error {
	if err := r.l.SetMode(r.ctx, wetink.ModeGuarded, "ledgertest"); err != nil {
		return err
	}
	ids := make([]wetink.ChangeID, n)
	var births []wetink.Move
	for i := range ids {
		c := row(fmt.Sprintf("chg_%026d", first+i))
		ids[i], births = c.ID, append(births, born(c, wetink.Pending))
	}
	if _, err := r.l.Advance(r.ctx, births...); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range 4 {
			r.mode(wetink.ModeOff)
			r.mode(wetink.ModeGuarded)
		}
	})
	for _, id := range ids {
		for range 2 {
			all.Go(func() {
				if a := r.move(id, 1, wetink.Pending, wetink.Approved); a.refusal == nil {
					r.move(id, 2, wetink.Approved, wetink.Applying)
				}
			})
		}
		all.Go(func() {
			if a := r.move(id, 1, wetink.Pending, wetink.Rejected); a.refusal != nil {
				if a = r.get(id); a.status == wetink.Approved {
					r.move(id, a.rev, wetink.Approved, wetink.Rejected)
				}
			}
		})
		all.Go(func() { r.move(id, 1, wetink.Pending, wetink.Expired) })
		all.Go(func() {
			if a := r.get(id); a.status == wetink.Approved {
				r.move(id, a.rev, wetink.Approved, wetink.Applying)
			}
		})
	}
	all.Wait()
	if r.broken != nil {
		return r.broken
	}
	if !porcupine.CheckOperations(oneDecision, r.history) {
		return fmt.Errorf("%w: %s", ErrNoOrder, r.describe())
	}
	return nil
}

func (r *race) call(in asked, f func() (answered, error)) answered {
	called := r.clock.Add(1)
	out, err := f()
	for _, refusal := range []error{wetink.ErrConflict, wetink.ErrOff} {
		if errors.Is(err, refusal) {
			out.refusal, err = refusal, nil
		}
	}
	returned := r.clock.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.broken = errors.Join(r.broken, err)
	}
	r.history = append(r.history, porcupine.Operation{Input: in, Output: out, Call: called, Return: returned})
	return out
}

func (r *race) move(id wetink.ChangeID, rev int64, from, to wetink.Status) answered {
	return r.call(asked{change: id, what: "move", rev: rev, from: from, to: to}, func() (answered, error) {
		c := row(string(id))
		c.Rev, c.Status = rev, from
		_, err := r.l.Advance(r.ctx, move(c, to))
		return answered{}, err
	})
}

func (r *race) get(id wetink.ChangeID) answered {
	return r.call(asked{change: id, what: "get"}, func() (answered, error) {
		c, err := r.l.Get(r.ctx, "", id)
		return answered{rev: c.Rev, status: c.Status}, err
	})
}

func (r *race) mode(m wetink.Mode) {
	r.call(asked{what: "mode", mode: m}, func() (answered, error) { return answered{}, r.l.SetMode(r.ctx, m, "ledgertest") })
}

// oneDecision is what a ledger is to one change and the switch.
var oneDecision = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byChange := map[wetink.ChangeID][]porcupine.Operation{}
		var switched []porcupine.Operation
		for _, op := range history {
			if id := op.Input.(asked).change; id != "" {
				byChange[id] = append(byChange[id], op)
			} else {
				switched = append(switched, op)
			}
		}
		parts := make([][]porcupine.Operation, 0, len(byChange))
		for _, part := range byChange {
			parts = append(parts, append(part, switched...))
		}
		return parts
	},
	Init: func() any { return decided{1, wetink.Pending, wetink.ModeGuarded} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(decided), input.(asked), output.(answered)
		switch in.what {
		case "mode":
			s.mode = in.mode
			return true, s
		case "get":
			return out.rev == s.rev && out.status == s.status, s
		}
		switch {
		case s.rev != in.rev || s.status != in.from:
			return errors.Is(out.refusal, wetink.ErrConflict), s
		case in.to == wetink.Applying && s.mode == wetink.ModeOff:
			return errors.Is(out.refusal, wetink.ErrOff), s
		}
		return out.refusal == nil, decided{s.rev + 1, in.to, s.mode}
	},
}

// describe lists a change whose answers have no order.
func (r *race) describe() string {
	for _, part := range oneDecision.Partition(r.history) {
		if m := (porcupine.Model{Init: oneDecision.Init, Step: oneDecision.Step}); porcupine.CheckOperations(m, part) {
			continue
		}
		s := ""
		for _, op := range part {
			s += fmt.Sprintf("\n%d-%d %+v: %+v", op.Call, op.Return, op.Input, op.Output)
		}
		return s
	}
	return "none alone"
}
