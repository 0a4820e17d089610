package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Prepare implements wetink.Target. It calls no tool but the ones that the Rule names to read and to try.
//
// Order: the Rule → what is written is read → the version that was seen goes into the call → the server's own dry run → it
// is read again, so that what moves by itself, and a dry run that writes, are found → risks → how far an undo could go.
func (t *Target) Prepare(ctx context.Context, req wetink.Request) (wetink.Prepared, error) {
	p := wetink.Prepared{Account: wetink.Account(t.name)}
	if req.Tool == wetink.ToolUndo {
		err := t.prepareUndo(ctx, &p, req.Args)
		return p, err
	}
	o := op{}
	if err := strictjson.Decode(req.Args, &o.payload, strictjson.Default); err != nil {
		return p, &wetink.RequestError{Reason: err.Error()}
	}
	if req.Tool != ToolCall || o.DryRun != "" || o.Via != "" || o.Draw != nil || o.Again != nil {
		return p, &wetink.RequestError{Reason: "this is no call of a tool"}
	}
	if err := t.understand(&o); err != nil {
		return p, err
	}
	before := nothing("")
	object := ""
	if o.rule.Read != nil {
		c, err := o.rule.Read.fill(known{args: o.args})
		if err != nil {
			return p, &wetink.RequestError{Reason: err.Error(), Fix: "give the arguments that say which object is meant"}
		}
		object = c.String()
		if before, err = t.observe(ctx, o.rule, c); err != nil {
			return p, err
		}
	}
	if before.Absent && o.namesOnly() {
		return p, &wetink.RequestError{Reason: "it is not there: " + object, Fix: "name something that is there"}
	}
	k := known{args: o.args, before: fields(before), id: "chg"}
	if err := o.bind(k); err != nil {
		return p, err
	}
	if err := t.try(ctx, &o, k); err != nil {
		return p, err
	}
	if err := t.still(ctx, o.rule, before); err != nil {
		return p, err
	}
	p.Undo, p.Warnings = t.promise(o, k, before)
	if o.rule.Read != nil && !before.Absent && !o.changes(before) {
		return p, &wetink.RequestError{Reason: "nothing would change: it reads already as it is asked for", Fix: "tell the person so"}
	}
	err := t.add(&p, o, object, before)
	return p, err
}

func (t *Target) add(p *wetink.Prepared, o op, object string, before wetink.Snapshot) error {
	args, err := compact(o.Arguments)
	if err != nil {
		return err
	}
	o.Arguments = args
	o.Draw = &draw{Show: o.rule.Show, Identity: o.rule.identity()}
	switch {
	case before.Absent:
		o.Draw.Verb = "create"
	case o.read == nil || object == "": // its name is all that is known of it
	case removing.MatchString(o.Name):
		o.Draw.Verb = "delete"
	default:
		o.Draw.Verb = "change"
	}
	if t.typed(o, before) {
		o.Draw.Type = o.Name
	}
	raw, err := canonical(o.payload) // of RawMessage it keeps the bytes
	if err != nil {
		return err
	}
	p.Ops = append(p.Ops, wetink.Op{Action: o.Name, Object: object, Payload: raw})
	p.Before = append(p.Before, before)
	return nil
}

// still reads what was read first again. What differs moves by itself, and an approval that is bound to it would be stale at
// once; or the dry run was none.
func (t *Target) still(ctx context.Context, rule *Rule, first wetink.Snapshot) error {
	c, ok := parseCall(first.Object)
	if !ok {
		return nil
	}
	second, err := t.observe(ctx, rule, c)
	if err != nil || first.Digest() == second.Digest() {
		return err
	}
	was, is := fields(first), fields(second)
	var moved, still []string
	for name, v := range is {
		if equal(was[name], v) {
			still = append(still, name)
		} else {
			moved = append(moved, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			moved = append(moved, name)
		}
	}
	slices.Sort(moved)
	slices.Sort(still)
	if rule.Preview != nil {
		return &wetink.RequestError{
			Reason: fmt.Sprintf("%s moved while %s tried it: either somebody else changed it, or that was no dry run and wrote", strings.Join(moved, ", "), rule.Preview.Tool),
			Fix:    "tell the person to look at it before anything else is done",
		}
	}
	return &wetink.RequestError{
		Reason: fmt.Sprintf("%s moved between two reads, and no approval could be bound to it", strings.Join(moved, ", ")),
		Fix:    fmt.Sprintf("ask again; if it moves by itself, the operator lists what counts instead: watch: [%s]", strings.Join(still, ", ")),
	}
}

// bind puts what was seen into the call. An agent that names another version has not seen what the person will see.
func (o *op) bind(k known) error {
	if len(o.rule.Bind) == 0 {
		return nil
	}
	members, err := strictjson.Members(o.Arguments)
	if err != nil {
		return err
	}
	for _, b := range o.rule.Bind {
		v, err := b.node.make(k)
		if errors.Is(err, errMissing) { // it is not there yet
			continue
		}
		if err != nil {
			return err
		}
		if given, ok := o.args[b.name]; ok {
			if !equal(given, v) {
				return &wetink.RequestError{Field: "arguments." + b.name, Reason: fmt.Sprintf("it names %s, and what is there is %s", plain(given), plain(v)), Fix: "read it again, or leave it out"}
			}
			continue
		}
		raw, err := canonical(v)
		if err != nil {
			return err
		}
		o.args[b.name] = v
		members = append(members, strictjson.Member{Name: b.name, Value: raw})
	}
	o.Arguments, err = join(members)
	return err
}

// join writes an object with the values as they stand.
func join(members []strictjson.Member) (json.RawMessage, error) {
	b := []byte{'{'}
	for i, m := range members {
		name, err := canonical(m.Name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), m.Value...)
	}
	return append(b, '}'), nil
}

func (t *Target) try(ctx context.Context, o *op, k known) error {
	if o.rule.Preview == nil {
		return nil
	}
	c, err := o.rule.Preview.fill(k)
	if err != nil {
		return &wetink.RequestError{Reason: err.Error()}
	}
	raw, _, err := t.server.Call(ctx, c.Tool, c.Args)
	if err != nil {
		return fmt.Errorf("dry run with %s: %w", c.Tool, err)
	}
	r, err := parseResult(raw)
	if err != nil {
		return err
	}
	if r.failed(o.rule) {
		return &wetink.RequestError{Reason: fmt.Sprintf("the dry run with %s answers %q", c.Tool, short(r.text())), Fix: "mend the arguments"}
	}
	if o.DryRun = r.text(); o.DryRun == "" {
		o.DryRun = plain(r.value())
	}
	return nil
}

// promise says how far an undo could go, and what makes the call risky.
func (t *Target) promise(o op, k known, before wetink.Snapshot) (p wetink.Promise, warnings []string) {
	rule := o.rule
	for _, r := range rule.Risks {
		switch holds, err := r.When.holds(k); {
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("%s: it cannot be ruled out (%v)", r.Name, err))
		case holds:
			warnings = append(warnings, r.Name)
		}
	}
	p = wetink.Promise{Extent: wetink.NoUndo}
	if rule.Read == nil {
		warnings = append(warnings, "what it changes cannot be read beforehand: the call is shown as it is")
	}
	back := rule.wayBack(before.Absent || rule.Read == nil)
	if back == nil && o.Again != nil {
		return wetink.Promise{Extent: wetink.PartialUndo, Until: t.opt.UndoFor, Notes: []string{"a redo makes the call again: what it makes is another object"}}, warnings
	}
	if back == nil {
		if rule.Note != "" {
			p.Notes = []string{rule.Note}
		}
		return p, warnings
	}
	p.Extent, p.Until = wetink.FullUndo, t.opt.UndoFor
	if rule.Note != "" {
		p.Extent, p.Notes = wetink.PartialUndo, append(p.Notes, rule.Note)
	}
	if t.rules.reader(rule) == nil {
		p.Extent = wetink.PartialUndo
		p.Notes = append(p.Notes, "whether somebody changed it meanwhile cannot be read before it is undone")
	}
	if needsResult(back) {
		return p, warnings
	}
	switch _, lost, err := back.fillBack(k, rule); {
	case err != nil:
		p = wetink.Promise{Extent: wetink.NoUndo, Notes: []string{err.Error()}}
	case len(lost) > 0:
		p.Extent = wetink.PartialUndo
		p.Notes = append(p.Notes, "there was nothing before, and that cannot be put back: "+strings.Join(lost, ", "))
	}
	return p, warnings
}

func needsResult(t *Template) bool {
	return slices.ContainsFunc(t.references(), func(r reference) bool { return r.root == "result" })
}

// identity are the arguments that say which object is meant.
func (rule *Rule) identity() []string { return rule.Read.own() }

func (rule *Rule) binds(name string) bool {
	return slices.ContainsFunc(rule.Bind, func(b argument) bool { return b.name == name })
}

// changes reports whether some argument asks for what is not there already, or cannot be compared with it.
func (o op) changes(before wetink.Snapshot) bool {
	was := fields(before)
	identity := o.rule.identity()
	compared := 0
	for name, v := range o.args {
		if slices.Contains(identity, name) || o.rule.binds(name) {
			continue
		}
		old, there := was[name]
		if !there || !equal(v, old) {
			return true
		}
		compared++
	}
	return compared == 0
}
