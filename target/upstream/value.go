package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decode reads JSON for comparing and for expressions; a number keeps its literal.
func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the value")
	}
	return v, nil
}

// canonical writes v with sorted keys, so that a server which orders them anew each time does not seem to change.
func canonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func compact(b []byte) (json.RawMessage, error) {
	var out bytes.Buffer
	err := json.Compact(&out, b)
	return out.Bytes(), err
}

// equal compares two values by meaning; a text may hold the JSON of the other, as servers that want one do.
func equal(a, b any) bool {
	if s, ok := a.(string); ok && isCompound(b) {
		v, err := decode([]byte(s))
		return err == nil && same(v, b)
	}
	if s, ok := b.(string); ok && isCompound(a) {
		return equal(s, a)
	}
	return same(a, b)
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	}
	return !isCompound(b) && a == b
}

// sameNumber compares exactly, whatever the size: 1.0 is 1, and 2^53+1 is not 2^53.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, n := digits(a)
	y, m := digits(b)
	return x == y && n == m && n != unreadable
}

const unreadable = math.MinInt

// digits are those of a JSON number without zeros at its ends, and the power of ten of the last one.
func digits(s string) (string, int) {
	minus := strings.HasPrefix(s, "-")
	s = strings.ToLower(strings.TrimPrefix(s, "-"))
	s, power, _ := strings.Cut(s, "e")
	n := 0
	if power != "" {
		var err error
		if n, err = strconv.Atoi(power); err != nil || n > 1<<30 || n < -1<<30 {
			return s, unreadable
		}
	}
	whole, fraction, _ := strings.Cut(s, ".")
	d := whole + fraction
	n -= len(fraction)
	short := strings.TrimRight(d, "0")
	n += len(d) - len(short)
	if short = strings.TrimLeft(short, "0"); short == "" {
		return "", 0
	}
	if minus {
		short = "-" + short
	}
	return short, n
}

// alike reports whether two values are of one form, so that a difference between them tells something. A server may take
// a date as a text and give it as an object.
func alike(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	case []any:
		b, ok := b.([]any)
		return ok && (len(a) == 0 || len(b) == 0 || alike(a[0], b[0]))
	case string:
		_, ok := b.(string)
		return ok
	case bool:
		_, ok := b.(bool)
		return ok
	case json.Number:
		_, ok := b.(json.Number)
		return ok
	}
	return true // null is of any form
}

func isCompound(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// look follows a path through v; members of lists are named by their number from 0.
func look(v any, path []string) (any, bool) {
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// result is a CallToolResult, as far as we read it.
type result struct {
	Type       string          `json:"resultType"`
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		// Embedded, as servers give files.
		Resource struct {
			Text *string `json:"text"`
		} `json:"resource"`
	} `json:"content"`
}

// parseResult reads what a tool answered. A result that says nothing, or that asks for more before the tool does its work
// (2026-07-28: input_required), is no answer: what was read would else be taken for empty, and what was sent for done.
func parseResult(b []byte) (result, error) {
	var r result
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("the server's result cannot be read: %w", err)
	}
	switch {
	case r.Type != "" && r.Type != "complete":
		return r, fmt.Errorf("the server answers %q instead of a result", short(r.Type))
	case r.Content == nil && len(r.Structured) == 0:
		return r, errors.New("the server's result has no content")
	}
	return r, nil
}

// failed reports whether it tells of a failure, in the way of MCP or in that of the server.
func (r result) failed(rule *Rule) bool {
	return r.IsError || rule.Failed != "" && strings.HasPrefix(strings.TrimSpace(r.text()), rule.Failed)
}

// text is all that the result says in words.
func (r result) text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// embedded is the text of the one resource in it.
func (r result) embedded() (text string, ok bool) {
	n := 0
	for _, c := range r.Content {
		if c.Type == "resource" && c.Resource.Text != nil {
			text = *c.Resource.Text
			n++
		}
	}
	return text, n == 1
}

// value is structuredContent, or else the JSON of the first text, or else the text itself: published servers do all three.
func (r result) value() any {
	if len(r.Structured) > 0 {
		if v, err := decode(r.Structured); err == nil && v != nil {
			return v
		}
	}
	for _, c := range r.Content {
		if c.Type == "resource" && c.Resource.Text != nil {
			return *c.Resource.Text
		}
	}
	for _, c := range r.Content {
		if c.Type != "text" {
			continue
		}
		if v, err := decode([]byte(c.Text)); err == nil && isCompound(v) {
			return v
		}
		break
	}
	return r.text()
}

// reference is $args.a.b, $before.a, $result.a or $id, with "~ /pattern/" behind it if only a part is meant, and
// "as number" if the server takes that part as one.
type reference struct {
	root   string
	path   []string
	cut    *regexp.Regexp
	number bool
	text   string // as it stands in the file
}

var (
	oneReference = regexp.MustCompile(`^\$(args|before|result|id)((?:\.[A-Za-z0-9_-]+)*)(?:\s*~\s*/(.*)/( as number)?)?$`)
	inText       = regexp.MustCompile(`\$(args|before|result|id)((?:\.[A-Za-z0-9_-]+)*)`)
)

func parseReference(s string) (reference, bool, error) {
	m := oneReference.FindStringSubmatch(s)
	if m == nil {
		return reference{}, false, nil
	}
	r := reference{root: m[1], text: s}
	if m[2] != "" {
		r.path = strings.Split(m[2][1:], ".")
	}
	if m[3] != "" {
		var err error
		r.number = m[4] != ""
		if r.cut, err = regexp.Compile(m[3]); err != nil {
			return r, true, fmt.Errorf("%s: %w", s, err)
		}
		if r.cut.NumSubexp() != 1 {
			return r, true, fmt.Errorf("%s: the pattern wants one group in brackets, which is the part that is meant", s)
		}
	}
	return r, true, nil
}

// known is what references can name.
type known struct {
	args   map[string]any
	before map[string]any
	result any
	id     string
}

var errMissing = errors.New("is not there")

func (r reference) resolve(k known) (any, error) {
	var v any
	switch r.root {
	case "args":
		v = map[string]any(k.args)
	case "before":
		v = map[string]any(k.before)
		if flat, ok := k.before[strings.Join(r.path, ".")]; ok && len(r.path) > 1 { // watched by that path
			return r.part(flat)
		}
	case "result":
		v = k.result
	case "id":
		return k.id, nil
	}
	v, ok := look(v, r.path)
	if !ok {
		return nil, fmt.Errorf("%s %w", r.text, errMissing)
	}
	return r.part(v)
}

func (r reference) part(v any) (any, error) {
	if r.cut == nil {
		return v, nil
	}
	m := r.cut.FindStringSubmatch(plain(v))
	if m == nil {
		return nil, fmt.Errorf("%s %w: %q does not match", r.text, errMissing, plain(v))
	}
	if r.number {
		if _, err := decode([]byte(m[1])); err != nil || !startsNumber(m[1]) {
			return nil, fmt.Errorf("%s is no number: %q", r.text, m[1])
		}
		return json.Number(m[1]), nil
	}
	return m[1], nil
}

func startsNumber(s string) bool { return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') }

// plain is v within a text.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := canonical(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
