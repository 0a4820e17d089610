package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/wetink/wetink"
)

const (
	maxFile   = 1 << 20
	maxRules  = 500
	maxPeople = 10 // more is a mistake
)

// Problem is one mistake of a file.
type Problem struct {
	Line   int    `json:"line"`   // from 1; 0: the file as a whole
	Column int    `json:"column"` // from 1, in characters
	Says   string `json:"says"`
}

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
	l := &loader{lines: strings.Split(string(src), "\n")}
	list := l.file(src)
	if len(l.problems) > 0 {
		slices.SortStableFunc(l.problems, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, &Error{File: name, Problems: l.problems}
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
	lines    []string
	env      *cel.Env
	problems []Problem
}

func (l *loader) bad(at *token.Token, format string, args ...any) {
	p := Problem{Line: 1, Column: 1, Says: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		p.Line, p.Column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	l.problems = append(l.problems, p)
}

func (l *loader) file(src []byte) []Rule {
	if len(src) > maxFile {
		l.bad(nil, "the file has more than %d KiB", maxFile>>10)
		return nil
	}
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			l.bad(e.GetToken(), "%s", e.GetMessage())
		} else {
			l.bad(nil, "%v", err)
		}
		return nil
	}
	if l.env, err = environment(); err != nil {
		l.bad(nil, "%v", err)
		return nil
	}
	var body ast.Node
	for i, doc := range tree.Docs {
		if i > 0 {
			at := doc.Start
			if at == nil && doc.Body != nil {
				at = doc.Body.GetToken()
			}
			l.bad(at, "a second document: want one")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		l.bad(nil, "version is missing: want version: 1")
		return nil
	}
	top, ok := l.mapping(body, "the file", "version", "rules")
	if !ok {
		return nil
	}
	if v, ok := top["version"]; !ok {
		l.bad(body.GetToken(), "version is missing: want version: 1")
	} else if n, ok := l.number(v, "version"); ok && n != 1 {
		l.bad(v.GetToken(), "version is %d: want 1", n)
	}
	return l.rules(top["rules"])
}

func (l *loader) rules(n ast.Node) (list []Rule) {
	switch n := n.(type) {
	case nil, *ast.NullNode: // all of them commented out
		return nil
	case *ast.SequenceNode:
		if len(n.Values) > maxRules {
			l.bad(n.GetToken(), "%d rules: want at most %d", len(n.Values), maxRules)
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
		l.bad(n.GetToken(), "rules: want a list, each beginning with a dash")
		return nil
	}
}

func (l *loader) rule(n ast.Node, i int, seen map[string]bool) (rule Rule, ok bool) {
	m, ok := l.mapping(n, "a rule", "name", "when", "require", "people", "other", "ttl", "cap", "deny", "why")
	if !ok {
		return rule, false
	}
	at := first(n)
	rule.Line = at.Position.Line
	text := func(key string) string {
		v, there := m[key]
		if !there {
			return ""
		}
		s, _ := l.text(v, key)
		return s
	}
	if rule.Name = text("name"); m["name"] == nil {
		l.bad(at, "rule %d has no name", i+1)
	} else if rule.Name != "" && seen[rule.Name] {
		l.bad(m["name"].GetToken(), "another rule is named %q", rule.Name)
	}
	seen[rule.Name] = true
	rule.Deny, rule.Why = text("deny"), text("why")
	if v := m["require"]; v != nil {
		var good bool
		if rule.Require, good = l.text(v, "require"); good {
			if _, known := words[rule.Require]; !known {
				l.bad(v.GetToken(), "require is %q: want auto, agent, card, page, reauth or passkey", rule.Require)
			}
		}
	}
	if v := m["people"]; v != nil {
		if n, good := l.number(v, "people"); good && (n < 1 || n > maxPeople) {
			l.bad(v.GetToken(), "people is %d: want 1 to %d", n, maxPeople)
		} else {
			rule.People = int(n)
		}
	}
	if v := m["other"]; v != nil {
		if b, good := v.(*ast.BoolNode); good {
			rule.Other = b.Value
		} else {
			l.bad(v.GetToken(), "other: want true or false")
		}
	}
	if v := m["ttl"]; v != nil {
		if s, good := l.text(v, "ttl"); good {
			d, err := time.ParseDuration(s)
			if err != nil || d < time.Minute || d > time.Hour {
				l.bad(v.GetToken(), "ttl is %q: want a duration from 1m to 60m, such as 10m", s)
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
		l.bad(at, "rule %d demands nothing: give it deny, require, people, other: true, ttl or cap", i+1)
	}
	return rule, true
}

func (l *loader) cap(n ast.Node) *wetink.Cap {
	m, ok := l.mapping(n, "cap", "name", "max")
	if !ok {
		return nil
	}
	if m["name"] == nil || m["max"] == nil {
		l.bad(first(n), "a cap has a name and a max, as in {name: publish, max: 3}")
		return nil
	}
	name, _ := l.text(m["name"], "name")
	most, good := l.number(m["max"], "max")
	if good && (most < 1 || most > 1_000_000) {
		l.bad(m["max"].GetToken(), "max is %d: want 1 or more; to allow none, use deny", most)
	}
	return &wetink.Cap{Name: name, Max: int(most)}
}

func (l *loader) condition(n ast.Node) (string, cel.Program) {
	when := ""
	if b, ok := n.(*ast.BoolNode); ok {
		when = b.Token.Value // when: true
	} else if s, ok := l.text(n, "when"); ok {
		when = s
	} else {
		return "", nil
	}
	program, faults := compile(l.env, when)
	for _, f := range faults {
		p := Problem{Says: f.says}
		p.Line, p.Column = l.position(n, when, f)
		l.problems = append(l.problems, p)
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
	if line > len(l.lines) {
		return at.Line, at.Column
	}
	in := []rune(l.lines[line-1])
	before, _, found := strings.Cut(string(in[min(max(skip, 0), len(in)):]), of[f.line-1])
	if !found || of[f.line-1] == "" {
		return at.Line, at.Column
	}
	return line, skip + len([]rune(before)) + f.column + 1
}

// mapping returns the members of n. Every mistake in it is reported, and ok is false only if it is none at all.
func (l *loader) mapping(n ast.Node, what string, keys ...string) (members map[string]ast.Node, ok bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		l.bad(n.GetToken(), "%s: want keys and values, of %s; anchors, aliases and tags are not read", what, strings.Join(keys, ", "))
		return nil, false
	}
	members = map[string]ast.Node{}
	for _, v := range values {
		at := v.Key.GetToken()
		key, isText := v.Key.(*ast.StringNode)
		switch {
		case !isText:
			l.bad(at, "%s: a key is a word, one of %s", what, strings.Join(keys, ", "))
		case !slices.Contains(keys, key.Value):
			l.bad(at, "%s", unknown(key.Value, keys))
		case members[key.Value] != nil:
			l.bad(at, "%s stands here twice", key.Value)
		default:
			if _, null := v.Value.(*ast.NullNode); null && key.Value != "rules" {
				l.bad(at, "%s is empty: give it a value, or leave it out", key.Value)
			}
			members[key.Value] = v.Value
		}
	}
	return members, true
}

// text reports nothing of a null: mapping did.
func (l *loader) text(n ast.Node, key string) (string, bool) {
	s := ""
	switch n := n.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimRight(n.Value.Value, "\n")
	case *ast.NullNode:
		return "", false
	default:
		l.bad(n.GetToken(), "%s: want text; put it in quotes", key)
		return "", false
	}
	if strings.TrimSpace(s) == "" {
		l.bad(n.GetToken(), "%s is empty: give it a value, or leave it out", key)
		return "", false
	}
	return s, true
}

func (l *loader) number(n ast.Node, key string) (int64, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return v, true
		case uint64:
			if v <= 1<<62 {
				return int64(v), true
			}
		}
	case *ast.NullNode:
		return 0, false
	}
	l.bad(n.GetToken(), "%s: want a whole number", key)
	return 0, false
}

// first is the token that a mapping begins with; its own is the first colon.
func first(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return n.Values[0].Key.GetToken()
		}
		return n.Start
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}
