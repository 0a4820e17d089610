package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Judge implements wetink.Judge. What can be compared are the arguments that have the name of something that is read.
func (t *Target) Judge(o wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	own, err := t.open(o.Payload)
	_, placed := parseCall(o.Object)
	switch {
	case err != nil:
		return wetink.Opaque, "the stored call is unreadable"
	case own.read == nil:
		return wetink.Opaque, "nothing reads what it changes"
	case !placed: // a creation whose answer is lost: that nothing was found proves nothing
		return wetink.Opaque, "where it stands is not known"
	case now.Absent && (before.Absent || before.Object == ""):
		return wetink.Untouched, ""
	}
	c := own.compare(fields(before), fields(now))
	unchanged := before.Digest() == now.Digest()
	switch {
	case unchanged && c.same > 0 && c.same == c.others: // every argument asks for what is there
		return wetink.AsApproved, ""
	case unchanged:
		return wetink.Untouched, ""
	case now.Absent && c.others == 0: // the call names no more than the object, and it is gone
		return wetink.AsApproved, ""
	case now.Absent && c.asked == 0:
		return wetink.Opaque, "it is gone, and whether that was asked for is not known"
	case now.Absent:
		return wetink.Foreign, "it is gone"
	case c.asked > 0 && c.met == c.asked:
		return wetink.AsApproved, ""
	case c.met > 0 && len(c.missed) > 0:
		return wetink.Otherwise, strings.Join(c.missed, ", ")
	case len(c.missed) > 0 && c.kept == c.asked:
		return wetink.Foreign, strings.Join(c.missed, ", ") + " as before, and the rest is not"
	case len(c.missed) > 0:
		return wetink.Opaque, "it changed, and reads otherwise than asked for: " + strings.Join(c.missed, ", ")
	}
	return wetink.Opaque, "it changed, and what it should read now is not known"
}

// comparison of a call's arguments with what was and is read under the same names.
type comparison struct {
	others int      // arguments that do not say which object is meant
	same   int      // asked for what was there already
	asked  int      // asked for something else
	met    int      // of those, read as asked
	kept   int      // of those, read as before
	missed []string // of those, read otherwise, in a form that can be compared
}

func (o op) compare(was, is map[string]any) (c comparison) {
	identity := o.read.identity()
	for name, v := range o.args {
		if slices.Contains(identity, name) || o.rule.binds(name) { // which object, or which version of it, is meant
			continue
		}
		c.others++
		got, there := is[name]
		old, had := was[name]
		switch {
		case !there && !had:
			continue
		case had && equal(v, old):
			c.same++
			continue
		}
		c.asked++
		switch {
		case there && equal(v, got):
			c.met++
		case !there || alike(v, got):
			c.missed = append(c.missed, name)
		}
		if had == there && equal(old, got) {
			c.kept++
		}
	}
	slices.Sort(c.missed)
	return c
}

// Flight implements wetink.Judge.
func (t *Target) Flight() time.Duration { return t.opt.Flight }

// Unmoved implements wetink.Undoer.
func (t *Target) Unmoved(after, now wetink.Snapshot) (bool, []string) {
	if after.Digest() == now.Digest() {
		return true, nil
	}
	if after.Absent != now.Absent {
		return false, []string{map[bool]string{true: "it is gone", false: "it is there again"}[now.Absent]}
	}
	was, is := fields(after), fields(now)
	var moved []string
	for name, v := range is {
		if old, ok := was[name]; !ok || !equal(old, v) {
			moved = append(moved, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			moved = append(moved, name)
		}
	}
	slices.Sort(moved)
	return false, moved
}

// way is the request that Invert makes and Prepare reads.
type way struct {
	Calls []back `json:"calls"`
}

type back struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	// What the call that is taken back was read by, where the tool that takes it back has nothing of its own.
	Via    string   `json:"via,omitempty"`
	Object string   `json:"object,omitempty"`
	Again  *again   `json:"again,omitempty"`
	Lost   []string `json:"lost,omitempty"`
	Note   string   `json:"note,omitempty"`
}

// Invert implements wetink.Undoer, by what the Rules declare.
func (t *Target) Invert(ops []wetink.Op, before []wetink.Snapshot, steps []wetink.Step) (wetink.Request, wetink.Promise, error) {
	var w way
	promise := wetink.Promise{Extent: wetink.FullUndo, Until: t.opt.UndoFor}
	for _, s := range slices.Backward(steps) {
		if s.Outcome != wetink.TookEffect && s.Outcome != wetink.Differs {
			continue
		}
		own, err := t.open(ops[s.Op].Payload)
		if err != nil {
			return wetink.Request{}, promise, err
		}
		b, err := t.invert(own, ops[s.Op], before[s.Op], s)
		if err != nil {
			return wetink.Request{}, promise, err
		}
		if len(b.Lost) > 0 || b.Note != "" {
			promise.Extent = wetink.PartialUndo
		}
		w.Calls = append(w.Calls, b)
	}
	args, err := canonical(w)
	return wetink.Request{Args: args}, promise, err
}

func (t *Target) invert(own op, o wetink.Op, before wetink.Snapshot, s wetink.Step) (back, error) {
	template := own.rule.wayBack(before.Absent || own.rule.Read == nil)
	if template == nil && own.Again != nil {
		return back{Name: own.Again.Name, Arguments: own.Again.Arguments}, nil
	}
	if template == nil {
		return back{}, fmt.Errorf("%w: nothing that takes %s back is declared", wetink.ErrNoUndo, own.Name)
	}
	k := known{args: own.args, before: fields(before), id: strings.TrimSuffix(o.Key, o.Key[max(strings.LastIndexByte(o.Key, '-'), 0):])}
	if needsResult(template) {
		r, err := parseResult(s.Receipt.Raw)
		if err != nil {
			return back{}, fmt.Errorf("%w: the answer of %s was not kept, and names what to take back", wetink.ErrNoUndo, own.Name)
		}
		k.result = r.value()
	}
	c, lost, err := template.fillBack(k, own.rule)
	if err != nil {
		return back{}, fmt.Errorf("%w: %w", wetink.ErrNoUndo, err)
	}
	b := back{Name: c.Tool, Arguments: c.Args, Lost: lost, Note: own.rule.Note, Again: &again{own.Name, own.Arguments}}
	if own.read != nil {
		b.Object = s.Receipt.Object
		for tool, list := range t.rules {
			if slices.Contains(list, own.read) {
				b.Via = tool
			}
		}
	}
	return b, nil
}

// prepareUndo reads what Invert planned to write. A tool that has a Rule of its own is read by that.
func (t *Target) prepareUndo(ctx context.Context, p *wetink.Prepared, raw json.RawMessage) error {
	var w way
	if err := strictjson.Decode(raw, &w, strictjson.Default); err != nil {
		return err
	}
	p.Undo = wetink.Promise{Extent: wetink.FullUndo, Until: t.opt.UndoFor}
	for _, b := range w.Calls {
		o := op{payload: payload{Name: b.Name, Arguments: b.Arguments, Again: b.Again}}
		if err := t.understand(&o); err != nil {
			return err
		}
		object, before := "", nothing("")
		switch {
		case o.rule.Read != nil:
			c, err := o.rule.Read.fill(known{args: o.args})
			if err != nil {
				return err
			}
			if before, err = t.observe(ctx, o.rule, c); err != nil {
				return err
			}
			if err := o.bind(known{args: o.args, before: fields(before)}); err != nil {
				return err
			}
			object = c.String()
		case b.Via != "" && len(t.rules[b.Name]) == 0: // one that has a rule without a read makes something new
			if o.Via = b.Via; t.understand(&o) == nil && o.read != nil {
				c, ok := parseCall(b.Object)
				if !ok {
					return fmt.Errorf("%w: where it stands is not known", wetink.ErrNoUndo)
				}
				var err error
				if before, err = t.observe(ctx, o.read, c); err != nil {
					return err
				}
				object = b.Object
			}
		}
		promise, _ := t.promise(o, known{args: o.args, before: fields(before)}, before)
		if promise.Extent != wetink.FullUndo && p.Undo.Extent != wetink.NoUndo {
			p.Undo.Extent, p.Undo.Notes = promise.Extent, promise.Notes
		}
		if len(b.Lost) > 0 {
			p.Warnings = append(p.Warnings, "there was nothing before, and that cannot be put back: "+strings.Join(b.Lost, ", "))
		}
		if b.Note != "" {
			p.Warnings = append(p.Warnings, b.Note)
		}
		if err := t.add(p, o, object, before); err != nil {
			return err
		}
	}
	if p.Undo.Extent == wetink.NoUndo {
		p.Undo.Until = 0
	}
	return nil
}
