package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Template is a call of a tool whose arguments are made from what is known when it is sent.
type Template struct {
	Tool string
	Line int
	args []argument
}

type argument struct {
	name string
	node node
}

// node makes one value.
type node interface{ make(known) (any, error) }

type (
	literal  struct{ value any }
	joined   []any // string or reference
	sequence []node
	object   []argument
	copied   struct{ name string } // the call's own argument of that name
	restored struct{ all bool }    // $restore: more arguments, of what was before
)

func (l literal) make(known) (any, error)     { return l.value, nil }
func (r reference) make(k known) (any, error) { return r.resolve(k) }

func (j joined) make(k known) (any, error) {
	s := ""
	for _, part := range j {
		switch part := part.(type) {
		case string:
			s += part
		case reference:
			v, err := part.resolve(k)
			if err != nil {
				return nil, err
			}
			s += plain(v)
		}
	}
	return s, nil
}

func (l sequence) make(k known) (any, error) {
	out := make([]any, len(l))
	for i, n := range l {
		v, err := n.make(k)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (o object) make(k known) (any, error) {
	out := map[string]any{}
	for _, a := range o {
		v, err := a.node.make(k)
		if errors.Is(err, errLeftOut) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[a.name] = v
	}
	return out, nil
}

// errLeftOut: the call had no such argument, so neither has this one.
var errLeftOut = errors.New("left out")

func (c copied) make(k known) (any, error) {
	v, ok := k.args[c.name]
	if !ok {
		return nil, errLeftOut
	}
	return v, nil
}

func (restored) make(known) (any, error) {
	return nil, errors.New("$restore stands where no arguments are")
}

// call is a tool with its arguments as they are sent.
type call struct {
	Tool string
	Args json.RawMessage // compact
}

// String is the call as an Op names its object: the tool, a space, and the arguments.
func (c call) String() string { return c.Tool + " " + string(c.Args) }

func parseCall(object string) (call, bool) {
	tool, args, ok := bytes.Cut([]byte(object), []byte(" "))
	return call{string(tool), args}, ok && json.Valid(args)
}

// fill makes the call.
func (t *Template) fill(k known) (call, error) {
	c, _, err := t.fillBack(k, &Rule{})
	return c, err
}

// fillBack makes the call that takes back one under rule. lost are the arguments that were set where nothing was before:
// no value says "none" to every server, so they stay.
func (t *Template) fillBack(k known, rule *Rule) (c call, lost []string, err error) {
	out := arguments{given: rule.identity()}
	var more *restored
	for _, a := range t.args {
		if r, ok := a.node.(restored); ok {
			more = &r
			continue
		}
		v, err := a.node.make(k)
		if errors.Is(err, errLeftOut) {
			out.given = append(out.given, a.name)
			continue
		}
		if err == nil {
			err = out.add(a.name, v)
		}
		if err != nil {
			return c, nil, fmt.Errorf("%s: %s: %w", t.Tool, a.name, err)
		}
	}
	if more != nil {
		names := slices.Sorted(maps.Keys(k.before))
		if !more.all {
			names = slices.Sorted(maps.Keys(k.args))
		}
		restored := 0
		for _, name := range names {
			if slices.Contains(out.given, name) {
				continue
			}
			v, was := k.before[name]
			if !was {
				lost = append(lost, name)
				continue
			}
			if x := rule.As[name]; x != nil {
				v, err = x.value(k)
			}
			if err == nil {
				err = out.add(name, v)
			}
			if err != nil {
				return c, nil, fmt.Errorf("%s: %s: %w", t.Tool, name, err)
			}
			restored++
		}
		if restored == 0 {
			return c, nil, fmt.Errorf("%s: what %s was before is not known: %w", t.Tool, strings.Join(lost, ", "), errMissing)
		}
	}
	return call{t.Tool, append(append([]byte{'{'}, out.b...), '}')}, lost, nil
}

// arguments are the members of a JSON object as it is written.
type arguments struct {
	b     []byte
	given []string // what $restore does not touch
}

func (o *arguments) add(name string, v any) error {
	key, err := canonical(name)
	if err != nil {
		return err
	}
	value, err := canonical(v)
	if err != nil {
		return err
	}
	if len(o.b) > 0 {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, key...), ':'), value...)
	o.given = append(o.given, name)
	return nil
}

// own are the arguments of the guarded call that the template uses as they are: they say which object is meant. An argument
// of which it uses a part only holds what is to be written, too, and has to be shown.
func (t *Template) own() (names []string) {
	if t == nil {
		return nil
	}
	var walk func(node)
	walk = func(n node) {
		switch n := n.(type) {
		case copied:
			names = append(names, n.name)
		case reference:
			if n.root == "args" && len(n.path) == 1 {
				names = append(names, n.path[0])
			}
		case joined:
			for _, p := range n {
				if r, ok := p.(reference); ok {
					walk(r)
				}
			}
		case sequence:
			for _, e := range n {
				walk(e)
			}
		case object:
			for _, a := range n {
				walk(a.node)
			}
		}
	}
	for _, a := range t.args {
		walk(a.node)
	}
	return names
}

// Arguments are the names that the call has, but for those of $restore.
func (t *Template) Arguments() (names []string) {
	for _, a := range t.args {
		if _, more := a.node.(restored); !more {
			names = append(names, a.name)
		}
	}
	return names
}

// references are all that the template names.
func (t *Template) references() (list []reference) {
	var walk func(node)
	walk = func(n node) {
		switch n := n.(type) {
		case reference:
			list = append(list, n)
		case joined:
			for _, p := range n {
				if r, ok := p.(reference); ok {
					list = append(list, r)
				}
			}
		case sequence:
			for _, e := range n {
				walk(e)
			}
		case object:
			for _, a := range n {
				walk(a.node)
			}
		}
	}
	for _, a := range t.args {
		walk(a.node)
	}
	return list
}

// Restores reports whether $restore adds more arguments.
func (t *Template) Restores() bool {
	return slices.ContainsFunc(t.args, func(a argument) bool { _, is := a.node.(restored); return is })
}
