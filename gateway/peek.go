package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// span is a part of a message's bytes. The zero span means absent: no value stands at the first byte.
type span struct{ from, to int }

func (s span) ok() bool { return s.to > s.from }

// of is nil if it is absent.
func (s span) of(b []byte) []byte {
	if !s.ok() {
		return nil
	}
	return b[s.from:s.to:s.to]
}

// message is one JSON-RPC message, of which only what routes it was read.
type message struct {
	raw []byte

	method string // "" for a response
	name   string // params.name, if it is a string
	id     span
	params span
	nameAt span // params.name
	meta   span // params._meta
	uri    span // params.uri
	result span
	err    span
}

func (m *message) request() bool  { return m.method != "" && m.id.ok() }
func (m *message) response() bool { return m.method == "" }

// JSON-RPC errors (https://www.jsonrpc.org/specification#error_object), and one of MCP 2026-07-28.
const (
	codeParse          = -32700
	codeRequest        = -32600
	codeMethod         = -32601
	codeParams         = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
)

// refusal is why a message is not forwarded.
type refusal struct {
	code   int
	reason string
	at     int // byte, from 0; -1: the whole
}

func (r *refusal) Error() string {
	if r.at < 0 {
		return r.reason
	}
	return fmt.Sprintf("%s (at byte %d)", r.reason, r.at)
}

// Members that decide where a message goes and what a guard sees. Each may stand once, under its exact name: of two,
// one parser takes the first and another the last, and some ignore case.
var (
	topKeys   = []string{"id", "method", "params", "result", "error", "jsonrpc"}
	paramKeys = []string{"name", "arguments", "_meta", "uri", "cursor", "ref", "inputResponses", "requestState"}
)

// The places in topKeys and paramKeys.
const (
	keyID, keyMethod, keyParams, keyResult, keyError = 0, 1, 2, 3, 4
	keyName, keyMeta, keyURI                         = 0, 2, 3
)

// peek reads what is needed of b, and checks that the rest is JSON. What a client sends is read strictly; an
// upstream's results may hold what they like, bytes that are not UTF-8 included, as long as the message is one.
func peek(b []byte, depth int, strict bool) (message, error) {
	m := message{raw: b}
	s := scanner{b: b, max: depth, strict: strict}
	if strict && !utf8.Valid(b) {
		return m, &refusal{codeParse, "the message is not UTF-8", invalidAt(b)}
	}
	s.space()
	switch {
	case s.i == len(b):
		return m, &refusal{codeParse, "the message is empty", -1}
	case b[s.i] == '[':
		return m, &refusal{codeRequest, "batches are not accepted, send one message at a time", s.i}
	case b[s.i] != '{':
		return m, &refusal{codeRequest, "the message is not a JSON object", s.i}
	}
	if err := s.message(&m); err != nil {
		return m, err
	}
	s.space()
	if s.i != len(b) {
		return m, &refusal{codeParse, "something follows the message", s.i}
	}
	return m, m.check(strict)
}

func (m *message) check(strict bool) error {
	answer := m.result.ok() || m.err.ok()
	switch {
	case m.method == "" && !answer:
		return &refusal{codeRequest, "the message has no method, result or error", -1}
	case m.method != "" && answer:
		return &refusal{codeRequest, "the message is a request and a response", -1}
	case m.method == "" && !m.id.ok():
		return &refusal{codeRequest, "the response has no id", -1}
	case strict && m.result.ok() && m.err.ok():
		return &refusal{codeRequest, "the response has a result and an error", -1}
	case strict && m.params.ok() && m.raw[m.params.from] != '{':
		return &refusal{codeRequest, "params is not an object", m.params.from}
	}
	if m.id.ok() {
		if c := m.raw[m.id.from]; c != '"' && c != '-' && (c < '0' || c > '9') {
			return &refusal{codeRequest, "the id is neither a string nor a number", m.id.from}
		}
	}
	return nil
}

func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// scanner checks JSON (RFC 8259) without keeping any of it.
type scanner struct {
	b          []byte
	i          int
	depth, max int
	strict     bool
}

func (s *scanner) bad(reason string) error { return &refusal{codeParse, reason, s.i} }

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) message(m *message) error {
	return s.members(topKeys, func(key int, at span) error {
		switch key {
		case keyID:
			m.id = at
		case keyParams:
			m.params = at
		case keyResult:
			m.result = at
		case keyError:
			m.err = at
		case keyMethod:
			if string(at.of(s.b)) == `"tools/call"` { // most are; a constant costs no memory
				m.method = "tools/call"
				return nil
			}
			text, err := text(s.b, at)
			if err != nil || text == "" {
				return &refusal{codeRequest, "the method is not a plain text", at.from}
			}
			m.method = text
		}
		return nil
	}, func(key int, at int) error {
		if key != keyParams || !s.strict || s.b[at] != '{' {
			return s.value()
		}
		return s.members(paramKeys, func(key int, at span) error {
			switch key {
			case keyMeta:
				m.meta = at
			case keyURI:
				m.uri = at
			case keyName:
				if s.b[at.from] != '"' {
					return nil
				}
				text, err := text(s.b, at)
				if err != nil {
					return &refusal{codeRequest, "params.name is not a plain text", at.from}
				}
				m.name, m.nameAt = text, at
			}
			return nil
		}, nil)
	})
}

// members scans an object. Members named in known are told to got; each may stand once. Their values are scanned by
// value, if there is one.
func (s *scanner) members(known []string, got func(key int, at span) error, value func(key, at int) error) error {
	if s.depth++; s.depth > s.max {
		return &refusal{codeRequest, fmt.Sprintf("nested deeper than %d", s.max), s.i}
	}
	seen := 0
	s.i++ // {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == '}' {
		s.i++
		s.depth--
		return nil
	}
	for {
		from := s.i
		if err := s.str(); err != nil {
			return err
		}
		key, err := s.which(known, span{from, s.i})
		if err != nil {
			return err
		}
		if key >= 0 {
			if seen&(1<<key) != 0 {
				return &refusal{codeRequest, fmt.Sprintf("%q stands twice", known[key]), from}
			}
			seen |= 1 << key
		}
		s.space()
		if s.i == len(s.b) || s.b[s.i] != ':' {
			return s.bad("a colon is missing")
		}
		s.i++
		s.space()
		if s.i == len(s.b) {
			return s.bad("the message ends too early")
		}
		from = s.i
		if value != nil {
			err = value(key, from)
		} else {
			err = s.value()
		}
		if err != nil {
			return err
		}
		if key >= 0 {
			if err := got(key, span{from, s.i}); err != nil {
				return err
			}
		}
		more, err := s.next('}')
		if err != nil {
			return err
		}
		if !more {
			s.depth--
			return nil
		}
	}
}

// which of known a key is, -1 for none. One that differs in case alone is refused where a client sent it.
func (s *scanner) which(known []string, at span) (int, error) {
	key := s.b[at.from+1 : at.to-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if json.Unmarshal(at.of(s.b), &plain) != nil {
			return -1, &refusal{codeParse, "a key is not a string", at.from}
		}
		key = []byte(plain)
	}
	for i, k := range known {
		if string(key) == k {
			return i, nil
		}
	}
	for _, k := range known {
		if len(key) >= len(k) && len(key) <= 3*len(k) && strings.EqualFold(string(key), k) {
			return -1, &refusal{codeRequest, fmt.Sprintf("%q is written %q", k, key), at.from}
		}
	}
	return -1, nil
}

// next reports whether another member or element follows, and goes to it.
func (s *scanner) next(end byte) (bool, error) {
	s.space()
	if s.i == len(s.b) {
		return false, s.bad("the message ends too early")
	}
	switch s.b[s.i] {
	case end:
		s.i++
		return false, nil
	case ',':
		s.i++
		s.space()
		if s.i == len(s.b) {
			return false, s.bad("the message ends too early")
		}
		return true, nil
	}
	return false, s.bad("a comma is missing")
}

func (s *scanner) value() error {
	if s.i == len(s.b) {
		return s.bad("the message ends too early")
	}
	switch c := s.b[s.i]; {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.bad("not a JSON value")
}

func (s *scanner) object() error {
	if s.depth++; s.depth > s.max {
		return &refusal{codeRequest, fmt.Sprintf("nested deeper than %d", s.max), s.i}
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == '}' {
		s.i++
		s.depth--
		return nil
	}
	for {
		if err := s.str(); err != nil {
			return err
		}
		s.space()
		if s.i == len(s.b) || s.b[s.i] != ':' {
			return s.bad("a colon is missing")
		}
		s.i++
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		if more, err := s.next('}'); err != nil || !more {
			s.depth--
			return err
		}
	}
}

func (s *scanner) array() error {
	if s.depth++; s.depth > s.max {
		return &refusal{codeRequest, fmt.Sprintf("nested deeper than %d", s.max), s.i}
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == ']' {
		s.i++
		s.depth--
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		if more, err := s.next(']'); err != nil || !more {
			s.depth--
			return err
		}
	}
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.bad("not a JSON value")
	}
	s.i += len(w)
	return nil
}

func (s *scanner) str() error {
	if s.i == len(s.b) || s.b[s.i] != '"' {
		return s.bad("a string is missing")
	}
	b := s.b
	for i := s.i + 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			return nil
		case c < 0x20:
			s.i = i
			return s.bad("a control character in a string")
		case c == '\\':
			i++
			if i == len(b) {
				break
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for n := 0; n < 4; n++ {
					if i++; i == len(b) || !hex(b[i]) {
						s.i = min(i, len(b)-1)
						return s.bad("not an escape")
					}
				}
			default:
				s.i = i
				return s.bad("not an escape")
			}
		}
	}
	s.i = len(b)
	return s.bad("the message ends too early")
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() error {
	at := func(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }
	if at('-') {
		s.i++
	}
	if at('0') {
		s.i++
	} else if !s.digits() {
		return s.bad("not a number")
	}
	if at('.') {
		s.i++
		if !s.digits() {
			return s.bad("not a number")
		}
	}
	if at('e') || at('E') {
		s.i++
		if at('+') || at('-') {
			s.i++
		}
		if !s.digits() {
			return s.bad("not a number")
		}
	}
	return nil
}

// text decodes a string that readers must agree on: half of a surrogate pair is read differently by each language.
func text(b []byte, at span) (string, error) {
	raw := at.of(b)
	if len(raw) < 2 || raw[0] != '"' {
		return "", fmt.Errorf("not a string")
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		if !utf8.Valid(raw) {
			return "", fmt.Errorf("not UTF-8")
		}
		return string(raw[1 : len(raw)-1]), nil
	}
	var t string
	if err := json.Unmarshal(raw, &t); err != nil {
		return "", err
	}
	if strings.ContainsRune(t, utf8.RuneError) {
		return "", fmt.Errorf("half a character")
	}
	return t, nil
}
