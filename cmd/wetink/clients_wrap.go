package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// The servers that a client starts are put behind `wetink wrap` by their command and the beginning of their arguments;
// what stood there stands behind, as it was, and comes back to the byte.

// wrapArgs stand before the command that a client started before: wrap --name NAME --.
const wrapArgs = 4

// wrapping puts every server that the client starts behind ours. wrapped are the names of those; others are left alone: the
// ones with an address, and the ones that are ours already.
func (c clientFile) wrapping(self, home string) (e edit, wrapped []string, err error) {
	before, err := c.read()
	if err != nil || before == nil {
		return edit{c, before, before}, nil, err
	}
	v, err := c.parse(before)
	if err != nil {
		return edit{}, nil, err
	}
	for name, s := range c.entries(v) {
		command, args := startOf(s)
		if command == "" || isOurs(command, args) {
			continue
		}
		prefix := []string{"wrap", "--name", commandName([]string{name}), "--", command}
		list, err := inside(s, "args", &hujson.Array{})
		if err != nil {
			return edit{}, nil, fmt.Errorf("%s: %s: %w", c.Path, name, err)
		}
		var front []hujson.Value
		for _, p := range prefix {
			front = append(front, hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.String(p)})
		}
		front[0].BeforeExtra = nil
		if len(list.Elements) > 0 && len(list.Elements[0].BeforeExtra) == 0 {
			list.Elements[0].BeforeExtra = hujson.Extra(" ")
		}
		list.Elements = append(front, list.Elements...)
		setMember(s, "command", hujson.String(self))
		wrapped = append(wrapped, name)
	}
	slices.Sort(wrapped)
	if home != "" && len(wrapped) > 0 {
		for name, s := range c.entries(v) {
			if !slices.Contains(wrapped, name) {
				continue
			}
			env, err := inside(s, "env", &hujson.Object{})
			if err != nil {
				return edit{}, nil, fmt.Errorf("%s: %s: %w", c.Path, name, err)
			}
			appendMember(env, "WETINK_HOME", hujson.String(home))
		}
	}
	return edit{c, before, v.Pack()}, wrapped, nil
}

// unwrapping is the way back. A file that nobody else changed since becomes what it was, to the byte.
func (c clientFile) unwrapping(self, home string) (edit, error) {
	now, err := c.read()
	if err != nil || now == nil {
		return edit{c, now, now}, err
	}
	v, err := c.parse(now)
	if err != nil {
		return edit{}, err
	}
	for _, s := range c.entries(v) {
		command, args := startOf(s)
		if !isOurs(command, args) || len(args) <= wrapArgs || args[0] != "wrap" || args[wrapArgs-1] != "--" {
			continue
		}
		list, err := inside(s, "args", &hujson.Array{})
		if err != nil {
			return edit{}, err
		}
		list.Elements = list.Elements[wrapArgs+1:]
		setMember(s, "command", hujson.String(args[wrapArgs]))
		if env, err := inside(s, "env", &hujson.Object{}); err == nil {
			env.Members = slices.DeleteFunc(env.Members, func(m hujson.ObjectMember) bool {
				return m.Name.Value.(hujson.Literal).String() == "WETINK_HOME"
			})
		}
	}
	after := v.Pack()
	if old, err := readFileOrNone(c.backup()); err == nil && old != nil {
		was := c
		was.Path = c.backup()
		if again, _, err := was.wrapping(self, home); err == nil && string(again.After) == string(now) {
			after = old
		}
	}
	return edit{c, now, after}, nil
}

// entries are the servers of the file, by name.
func (c clientFile) entries(v hujson.Value) map[string]*hujson.Object {
	out := map[string]*hujson.Object{}
	list := v.Find("/" + c.Servers)
	if list == nil {
		return out
	}
	servers, ok := list.Value.(*hujson.Object)
	if !ok {
		return out
	}
	for _, m := range servers.Members {
		if s, ok := m.Value.Value.(*hujson.Object); ok {
			out[m.Name.Value.(hujson.Literal).String()] = s
		}
	}
	return out
}

// startOf is the command and the arguments of an entry.
func startOf(s *hujson.Object) (command string, args []string) {
	for _, m := range s.Members {
		switch m.Name.Value.(hujson.Literal).String() {
		case "command":
			if l, ok := m.Value.Value.(hujson.Literal); ok && l.Kind() == '"' {
				command = l.String()
			}
		case "args":
			if a, ok := m.Value.Value.(*hujson.Array); ok {
				for _, e := range a.Elements {
					if l, ok := e.Value.(hujson.Literal); ok {
						args = append(args, l.String())
					}
				}
			}
		}
	}
	return command, args
}

// inside is the value of a member of an entry; fresh takes the place of none.
func inside[T hujson.ValueTrimmed](s *hujson.Object, name string, fresh T) (T, error) {
	for i := range s.Members {
		if s.Members[i].Name.Value.(hujson.Literal).String() == name {
			found, ok := s.Members[i].Value.Value.(T)
			if !ok {
				return found, fmt.Errorf("%q is not what it should be; mend it by hand first", name)
			}
			return found, nil
		}
	}
	appendMember(s, name, fresh)
	return fresh, nil
}

// appendMember adds a member as the last one stands: behind a space, or on a line of its own.
func appendMember(s *hujson.Object, name string, v hujson.ValueTrimmed) {
	before := hujson.Extra(" ")
	if n := len(s.Members); n > 0 {
		if last := s.Members[n-1].Name.BeforeExtra; strings.TrimSpace(string(last)) == "" && len(last) > 0 {
			before = last
		}
	} else {
		before = nil
	}
	s.Members = append(s.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: v}})
}

func setMember(s *hujson.Object, name string, v hujson.ValueTrimmed) {
	for i := range s.Members {
		if s.Members[i].Name.Value.(hujson.Literal).String() == name {
			s.Members[i].Value.Value = v
		}
	}
}

// isOurs reports an entry that starts wetink already.
func isOurs(command string, args []string) bool {
	base := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	return strings.TrimSuffix(base, filepath.Ext(base)) == "wetink" && len(args) > 0
}

var errNothingToWrap = errors.New("no server there is started by a command")
