// Package strictyaml reads YAML that people write to say what is allowed: nothing in a file is passed over, and every mistake
// is told with its line. Unknown and doubled keys, empty values, anchors, aliases, tags and a second document are mistakes,
// for else a line that a person reads there might not count.
package strictyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Problem is one mistake of a file.
type Problem struct {
	Line   int    `json:"line"`   // from 1; 0: the file as a whole
	Column int    `json:"column"` // from 1, in characters
	Says   string `json:"says"`
}

// Reader collects the Problems of one file.
type Reader struct {
	Lines      []string
	src        []byte
	problems   []Problem
	mayBeEmpty []string
}

// NewReader reads src. The keys named mayBeEmpty may have no value: a list of which all was commented out.
func NewReader(src []byte, mayBeEmpty ...string) *Reader {
	return &Reader{Lines: strings.Split(string(src), "\n"), src: src, mayBeEmpty: mayBeEmpty}
}

// Problems are all that were found, in the order of the file.
func (r *Reader) Problems() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return r.problems
}

// Bad adds a Problem at a token; nil: at the file's beginning.
func (r *Reader) Bad(at *token.Token, format string, args ...any) {
	line, column := 1, 1
	if at != nil && at.Position != nil {
		line, column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	r.BadAt(line, column, fmt.Sprintf(format, args...))
}

// BadAt adds a Problem.
func (r *Reader) BadAt(line, column int, says string) {
	r.problems = append(r.problems, Problem{line, column, says})
}

// Document is the one document of the file, nil if it is empty or cannot be read.
func (r *Reader) Document(limit int) ast.Node {
	if len(r.src) > limit {
		r.Bad(nil, "the file has more than %d KiB", limit>>10)
		return nil
	}
	tree, err := parser.ParseBytes(r.src, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			r.Bad(e.GetToken(), "%s", e.GetMessage())
		} else {
			r.Bad(nil, "%v", err)
		}
		return nil
	}
	for i, doc := range tree.Docs {
		if i > 0 {
			at := doc.Start
			if at == nil && doc.Body != nil {
				at = doc.Body.GetToken()
			}
			r.Bad(at, "a second document: want one")
			return nil
		}
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		r.Bad(nil, "version is missing: want version: 1")
		return nil
	}
	return tree.Docs[0].Body
}

// Version checks the first key of every file of ours.
func (r *Reader) Version(body, v ast.Node) {
	if v == nil {
		r.Bad(body.GetToken(), "version is missing: want version: 1")
	} else if n, ok := r.Number(v, "version"); ok && n != 1 {
		r.Bad(v.GetToken(), "version is %d: want 1", n)
	}
}

// Entry is one member of a mapping whose keys are not ours.
type Entry struct {
	Key   string
	At    *token.Token
	Value ast.Node // an *ast.NullNode if there is none
}

// Entries returns the members of n in their order.
func (r *Reader) Entries(n ast.Node, what string) (list []Entry, ok bool) {
	values, ok := members(n)
	if !ok {
		r.Bad(n.GetToken(), "%s: want keys and values; anchors, aliases and tags are not read", what)
		return nil, false
	}
	for _, v := range values {
		key, isText := v.Key.(*ast.StringNode)
		switch {
		case !isText:
			r.Bad(v.Key.GetToken(), "%s: a key is text; put it in quotes", what)
		case slices.ContainsFunc(list, func(e Entry) bool { return e.Key == key.Value }):
			r.Bad(v.Key.GetToken(), "%s stands here twice", key.Value)
		default:
			list = append(list, Entry{key.Value, v.Key.GetToken(), v.Value})
		}
	}
	return list, true
}

func members(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// Texts is a list of texts, or one alone.
func (r *Reader) Texts(n ast.Node, key string) (list []string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if s, ok := r.Text(n, key); ok {
			list = append(list, s)
		}
		return list
	}
	for _, v := range seq.Values {
		if s, ok := r.Text(v, key); ok {
			list = append(list, s)
		}
	}
	return list
}

// Bool is true or false.
func (r *Reader) Bool(n ast.Node, key string) bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.Bad(n.GetToken(), "%s: want true or false", key)
		return false
	}
	return b.Value
}

// Mapping returns the members of n. Every mistake in it is reported, and ok is false only if it is none at all.
func (r *Reader) Mapping(n ast.Node, what string, keys ...string) (found map[string]ast.Node, ok bool) {
	values, ok := members(n)
	if !ok {
		r.Bad(n.GetToken(), "%s: want keys and values, of %s; anchors, aliases and tags are not read", what, strings.Join(keys, ", "))
		return nil, false
	}
	found = map[string]ast.Node{}
	for _, v := range values {
		at := v.Key.GetToken()
		key, isText := v.Key.(*ast.StringNode)
		switch {
		case !isText:
			r.Bad(at, "%s: a key is a word, one of %s", what, strings.Join(keys, ", "))
		case !slices.Contains(keys, key.Value):
			r.Bad(at, "%s", Unknown(key.Value, keys))
		case found[key.Value] != nil:
			r.Bad(at, "%s stands here twice", key.Value)
		default:
			if _, null := v.Value.(*ast.NullNode); null && !slices.Contains(r.mayBeEmpty, key.Value) {
				r.Bad(at, "%s is empty: give it a value, or leave it out", key.Value)
			}
			found[key.Value] = v.Value
		}
	}
	return found, true
}

// Text reports nothing of a null: Mapping did.
func (r *Reader) Text(n ast.Node, key string) (string, bool) {
	s := ""
	switch n := n.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimRight(n.Value.Value, "\n")
	case *ast.NullNode:
		return "", false
	default:
		r.Bad(n.GetToken(), "%s: want text; put it in quotes", key)
		return "", false
	}
	if strings.TrimSpace(s) == "" {
		r.Bad(n.GetToken(), "%s is empty: give it a value, or leave it out", key)
		return "", false
	}
	return s, true
}

func (r *Reader) Number(n ast.Node, key string) (int64, bool) {
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
	r.Bad(n.GetToken(), "%s: want a whole number", key)
	return 0, false
}

// First is the token that a mapping begins with; its own is the first colon.
func First(n ast.Node) *token.Token {
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

// Unknown names a word that nobody knows, and the nearest one that we do.
func Unknown(word string, all []string) string {
	best, distance := "", 3
	if len(word) < 5 {
		distance = 2
	}
	for _, w := range all {
		if d := edits(strings.ToLower(word), strings.ToLower(w)); d < distance || strings.HasPrefix(word, w) && best == "" && len(w) > 2 {
			best, distance = w, min(d, distance)
		}
	}
	if best != "" {
		return fmt.Sprintf("unknown word %q: did you mean %s?", word, best)
	}
	return fmt.Sprintf("unknown word %q: want one of %s", word, strings.Join(all, ", "))
}

// edits is the distance of Levenshtein, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
