package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/goccy/go-yaml/ast"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictyaml"
)

const (
	maxFile   = 1 << 20
	maxRules  = 500
	maxPeople = 10 // more is a mistake
)

// Problem is one mistake of a file.
type Problem = strictyaml.Problem

// Error lists all that is wrong with a file, in its order. It wraps ErrRules.
type Error struct {
	File     string
	Problems []Problem
}

func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("rules: %s:%d:%d: %s", e.File, p.Line, p.Column, p.Says))
	}
	return strings.Join(lines, "\n")
}

func (e *Error) Unwrap() error { return ErrRules }

// Parse reads rules. name is the file's, for errors, which are of type *Error.
//
// Nothing in the file is passed over: unknown and doubled keys, empty values, anchors, aliases, tags and a second document
// are mistakes. Else a rule that a person reads there might not count.
func Parse(name string, src []byte, floor wetink.Require) (*Rules, error) {
	l := &loader{Reader: strictyaml.NewReader(src, "rules")}
	list := l.file()
	if problems := l.Problems(); len(problems) > 0 {
		return nil, &Error{File: name, Problems: problems}
	}
	sum := sha256.Sum256(src)
	version := fmt.Sprintf("rules/%s+%s", hex.EncodeToString(sum[:8]), floor.Level)
	if floor.People > 1 {
		version += fmt.Sprintf("/%d", floor.People)
	}
	if floor.Other {
		version += "/other"
	}
	return &Rules{rules: list, floor: floor, version: version}, nil
}

type loader struct {
	*strictyaml.Reader
	env *cel.Env
}

func (l *loader) file() []Rule {
	body := l.Document(maxFile)
	if body == nil {
		return nil
	}
	var err error
	if l.env, err = environment(); err != nil {
		l.Bad(nil, "%v", err)
		return nil
	}
	top, ok := l.Mapping(body, "the file", "version", "rules")
	if !ok {
		return nil
	}
	l.Version(body, top["version"])
	return l.rules(top["rules"])
}

func (l *loader) rules(n ast.Node) (list []Rule) {
	switch n := n.(type) {
	case nil, *ast.NullNode: // all of them commented out
		return nil
	case *ast.SequenceNode:
		if len(n.Values) > maxRules {
			l.Bad(n.GetToken(), "%d rules: want at most %d", len(n.Values), maxRules)
			return nil
		}
		seen := map[string]bool{}
		for i, v := range n.Values {
			if rule, ok := l.rule(v, i, seen); ok {
				list = append(list, rule)
			}
		}
		return list
	default:
		l.Bad(n.GetToken(), "rules: want a list, each beginning with a dash")
		return nil
	}
}

func (l *loader) rule(n ast.Node, i int, seen map[string]bool) (rule Rule, ok bool) {
	m, ok := l.Mapping(n, "a rule", "name", "when", "require", "people", "other", "ttl", "cap", "deny", "why")
	if !ok {
		return rule, false
	}
	at := strictyaml.First(n)
	rule.Line = at.Position.Line
	text := func(key string) string {
		v, there := m[key]
		if !there {
			return ""
		}
		s, _ := l.Text(v, key)
		return s
	}
	if rule.Name = text("name"); m["name"] == nil {
		l.Bad(at, "rule %d has no name", i+1)
	} else if rule.Name != "" && seen[rule.Name] {
		l.Bad(m["name"].GetToken(), "another rule is named %q", rule.Name)
	}
	seen[rule.Name] = true
	rule.Deny, rule.Why = text("deny"), text("why")
	if v := m["require"]; v != nil {
		var good bool
		if rule.Require, good = l.Text(v, "require"); good {
			if _, known := words[rule.Require]; !known {
				l.Bad(v.GetToken(), "require is %q: want auto, agent, card, page, reauth or passkey", rule.Require)
			}
		}
	}
	if v := m["people"]; v != nil {
		if n, good := l.Number(v, "people"); good && (n < 1 || n > maxPeople) {
			l.Bad(v.GetToken(), "people is %d: want 1 to %d", n, maxPeople)
		} else {
			rule.People = int(n)
		}
	}
	if v := m["other"]; v != nil {
		rule.Other = l.Bool(v, "other")
	}
	if v := m["ttl"]; v != nil {
		if s, good := l.Text(v, "ttl"); good {
			d, err := time.ParseDuration(s)
			if err != nil || d < time.Minute || d > time.Hour {
				l.Bad(v.GetToken(), "ttl is %q: want a duration from 1m to 60m, such as 10m", s)
			}
			rule.TTL = d
		}
	}
	if v := m["cap"]; v != nil {
		rule.Cap = l.cap(v)
	}
	if v := m["when"]; v != nil {
		rule.When, rule.program = l.condition(v)
	}
	if m["deny"] == nil && m["require"] == nil && m["people"] == nil && !rule.Other && m["ttl"] == nil && m["cap"] == nil {
		l.Bad(at, "rule %d demands nothing: give it deny, require, people, other: true, ttl or cap", i+1)
	}
	return rule, true
}

func (l *loader) cap(n ast.Node) *wetink.Cap {
	m, ok := l.Mapping(n, "cap", "name", "max")
	if !ok {
		return nil
	}
	if m["name"] == nil || m["max"] == nil {
		l.Bad(strictyaml.First(n), "a cap has a name and a max, as in {name: publish, max: 3}")
		return nil
	}
	name, _ := l.Text(m["name"], "name")
	most, good := l.Number(m["max"], "max")
	if good && (most < 1 || most > 1_000_000) {
		l.Bad(m["max"].GetToken(), "max is %d: want 1 or more; to allow none, use deny", most)
	}
	return &wetink.Cap{Name: name, Max: int(most)}
}

func (l *loader) condition(n ast.Node) (string, cel.Program) {
	when := ""
	if b, ok := n.(*ast.BoolNode); ok {
		when = b.Token.Value // when: true
	} else if s, ok := l.Text(n, "when"); ok {
		when = s
	} else {
		return "", nil
	}
	program, faults := compile(l.env, when)
	for _, f := range faults {
		line, column := l.position(n, when, f)
		l.BadAt(line, column, f.says)
	}
	return when, program
}

// position of a fault of a condition in the file. It is exact where the condition stands in the file as it is, on one line
// or as a block with |; in folded and escaped text it is where the condition begins.
func (l *loader) position(n ast.Node, when string, f fault) (line, column int) {
	at := n.GetToken().Position
	line, column = at.Line, at.Column
	skip := column - 1
	of := strings.Split(when, "\n")
	if f.line < 1 || f.line > len(of) {
		return line, column
	}
	if block, ok := n.(*ast.LiteralNode); ok {
		line, skip = block.Start.Position.Line, 0
		if block.Start.Value != "" && block.Start.Value[0] == '|' {
			line += f.line
		}
	} else if f.line > 1 {
		return line, column
	}
	if line > len(l.Lines) {
		return at.Line, at.Column
	}
	in := []rune(l.Lines[line-1])
	before, _, found := strings.Cut(string(in[min(max(skip, 0), len(in)):]), of[f.line-1])
	if !found || of[f.line-1] == "" {
		return at.Line, at.Column
	}
	return line, skip + len([]rune(before)) + f.column + 1
}
