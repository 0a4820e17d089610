package strictjson

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bound what a sender can make us do. A field that is zero counts as that of [Default].
type Limits struct {
	Size    int // bytes of the whole text; a string has no limit of its own
	Depth   int // arrays and objects in one another: [[1]] has depth 2
	Members int // members of one object
	Digits  int // digits of one number, exponent included
}

// Default is what Limits{} means.
var Default = Limits{Size: 1 << 20, Depth: 32, Members: 2000, Digits: 40}

func (l Limits) orDefault() Limits {
	or := func(n, d int) int {
		if n == 0 {
			return d
		}
		return n
	}
	return Limits{or(l.Size, Default.Size), or(l.Depth, Default.Depth), or(l.Members, Default.Members), or(l.Digits, Default.Digits)}
}

// Check reports whether b is one JSON value as the package comment demands; the error is an [*Error].
func Check(b []byte, lim Limits) error {
	// Two allocations, and for ordinary input no more: the room is used again by each object.
	s := scanner{b: b, lim: lim.orDefault(), folded: make([]byte, 0, 512), seen: make([]member, 0, 32)}
	if err := s.text(); err != nil {
		return err
	}
	return nil
}

type scanner struct {
	b   []byte
	i   int
	lim Limits

	// Members of all objects that are open now, innermost last, and their folded names one after the other.
	seen   []member
	folded []byte
}

type member struct {
	from, to int // the folded name, in scanner.folded
	at, end  int // the name as written, quotes included, in scanner.b
}

// From this many members on a map is cheaper than looking at all names before.
const manyMembers = 16

func (s *scanner) fail(kind error, at int, format string, args ...any) *Error {
	return &Error{Kind: kind, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// unexpected is the error for the byte at i.
func (s *scanner) unexpected(want string) *Error {
	if s.i >= len(s.b) {
		return s.fail(ErrSyntax, s.i, "ends too early; expected %s", want)
	}
	if r, n := utf8.DecodeRune(s.b[s.i:]); r == utf8.RuneError && n == 1 {
		return s.fail(ErrSyntax, s.i, "not UTF-8; expected %s", want)
	} else {
		return s.fail(ErrSyntax, s.i, "unexpected %+q; expected %s", r, want)
	}
}

// peek is 0 at the end. A NUL in the input is 0, too, and no rule wants one, so both end in unexpected.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) && isSpace(s.b[s.i]) {
		s.i++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) text() *Error {
	if len(s.b) > s.lim.Size {
		return s.fail(ErrLimit, s.lim.Size, "is %d bytes long; at most %d are accepted, send less", len(s.b), s.lim.Size)
	}
	if bytes.HasPrefix(s.b, []byte("\ufeff")) {
		return s.fail(ErrSyntax, 0, "starts with a byte order mark; send plain UTF-8")
	}
	s.space()
	if err := s.value(0); err != nil {
		return err
	}
	if s.space(); s.i < len(s.b) {
		return s.fail(ErrSyntax, s.i, "more data after the end of the value; send one JSON value")
	}
	return nil
}

func (s *scanner) value(depth int) *Error {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		if depth >= s.lim.Depth {
			return s.fail(ErrLimit, s.i, "nested deeper than %d", s.lim.Depth)
		}
		if c == '{' {
			return s.object(depth + 1)
		}
		return s.array(depth + 1)
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || isDigit(c):
		return s.number()
	default:
		for _, word := range [...]string{"null", "true", "false"} {
			if len(s.b)-s.i >= len(word) && string(s.b[s.i:s.i+len(word)]) == word {
				s.i += len(word)
				return nil
			}
		}
		return s.unexpected("a value")
	}
}

func (s *scanner) array(depth int) *Error {
	s.i++
	if s.space(); s.peek() == ']' {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		s.space()
		if err := s.value(depth); err != nil {
			return err.in(indexStep(n))
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return s.unexpected(`"," or "]"`)
		}
	}
}

func (s *scanner) object(depth int) *Error {
	s.i++
	if s.space(); s.peek() == '}' {
		s.i++
		return nil
	}
	first, firstByte := len(s.seen), len(s.folded)
	var index map[string]int // of folded names into seen, once there are many
	for {
		s.space()
		m, err := s.name()
		if err != nil {
			return err
		}
		n := len(s.seen) - first
		if n == s.lim.Members {
			return s.fail(ErrLimit, m.at, "has more than %d members", s.lim.Members)
		}
		if n == manyMembers {
			index = make(map[string]int, 2*manyMembers)
			for i, old := range s.seen[first:] {
				index[string(s.folded[old.from:old.to])] = first + i
			}
		}
		if twin, ok := s.find(m, first, index); ok {
			return s.duplicate(twin, m)
		}
		if index != nil {
			index[string(s.folded[m.from:m.to])] = len(s.seen)
		}
		s.seen = append(s.seen, m)

		if s.space(); s.peek() != ':' {
			return s.unexpected(`":"`)
		}
		s.i++
		s.space()
		if err := s.value(depth); err != nil {
			return err.in(memberStep(unquote(s.b[m.at:m.end])))
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			s.seen, s.folded = s.seen[:first], s.folded[:firstByte]
			return nil
		default:
			return s.unexpected(`"," or "}"`)
		}
	}
}

func (s *scanner) find(m member, first int, index map[string]int) (member, bool) {
	name := s.folded[m.from:m.to]
	if index != nil {
		i, ok := index[string(name)]
		if !ok {
			return member{}, false
		}
		return s.seen[i], true
	}
	for _, old := range s.seen[first:] {
		if bytes.Equal(s.folded[old.from:old.to], name) {
			return old, true
		}
	}
	return member{}, false
}

func (s *scanner) duplicate(old, m member) *Error {
	was, is := unquote(s.b[old.at:old.end]), unquote(s.b[m.at:m.end])
	reason := "is there twice; send it once"
	if was != is {
		reason = "differs only in case from " + quote(was, 64) + "; send one of them"
	}
	return (&Error{Kind: ErrDuplicate, Offset: m.at, Reason: reason}).in(memberStep(is))
}

// name reads a member's name and appends it, folded, to s.folded.
func (s *scanner) name() (member, *Error) {
	if s.peek() != '"' {
		return member{}, s.unexpected("a member name in double quotes")
	}
	m := member{from: len(s.folded), at: s.i}
	plain, err := s.str()
	if err != nil {
		return member{}, err
	}
	m.end = s.i
	text := s.b[m.at+1 : m.end-1]
	if !plain {
		text = []byte(unquote(s.b[m.at:m.end]))
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c < ' ':
			return member{}, s.fail(ErrSyntax, m.at, "control character in the member name %s", quote(string(text), 64))
		case 'a' <= c && c <= 'z':
			s.folded = append(s.folded, c-'a'+'A')
			i++
		case c < utf8.RuneSelf:
			s.folded = append(s.folded, c)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			s.folded = utf8.AppendRune(s.folded, foldRune(r))
			i += n
		}
	}
	m.to = len(s.folded)
	return m, nil
}

// foldRune is the same for all runes that are equal under simple case folding: the smallest of them. For ASCII letters
// that is the upper case one.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// str passes a string. It is plain if it holds no escape.
func (s *scanner) str() (plain bool, _ *Error) {
	start := s.i
	plain = true
	s.i++
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return plain, nil
		case c == '\\':
			plain = false
			if err := s.escape(); err != nil {
				return false, err
			}
		case c < ' ':
			return false, s.fail(ErrSyntax, s.i, `control character %+q in a string; write it as an escape such as \n`, c)
		case c < utf8.RuneSelf:
			s.i++
		default:
			r, n := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && n == 1 {
				return false, s.fail(ErrSyntax, s.i, "not UTF-8")
			}
			s.i += n
		}
	}
	return false, s.fail(ErrSyntax, start, "the string that begins here has no end")
}

func (s *scanner) escape() *Error {
	at := s.i
	if s.i++; s.i >= len(s.b) {
		return s.unexpected("an escape")
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i++
		return nil
	case 'u':
		r := hex4(s.b[s.i+1:])
		if r < 0 {
			return s.fail(ErrSyntax, at, `\u without four hex digits`)
		}
		s.i += 5
		if !utf16.IsSurrogate(r) {
			return nil
		}
		if bytes.HasPrefix(s.b[s.i:], []byte(`\u`)) && utf16.DecodeRune(r, hex4(s.b[s.i+2:])) != unicode.ReplacementChar {
			s.i += 6
			return nil
		}
		return s.fail(ErrSyntax, at, `\u%04x is half of a surrogate pair without the other half`, r)
	}
	return s.unexpected(`one of "\/bfnrtu after a backslash`)
}

// hex4 is -1 if b does not start with four hex digits.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) number() *Error {
	start, count := s.i, 0
	digits := func() bool {
		from := s.i
		for isDigit(s.peek()) {
			s.i++
		}
		count += s.i - from
		return s.i > from
	}
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
		count++
	} else if !digits() {
		return s.unexpected("a digit")
	}
	if s.peek() == '.' {
		s.i++
		if !digits() {
			return s.unexpected("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !digits() {
			return s.unexpected("a digit")
		}
	}
	if count > s.lim.Digits {
		return s.fail(ErrLimit, start, "number of %d digits; at most %d are accepted", count, s.lim.Digits)
	}
	return nil
}

// unquote resolves the escapes of a string literal that passed the scanner.
func unquote(lit []byte) string {
	lit = lit[1 : len(lit)-1]
	if bytes.IndexByte(lit, '\\') < 0 {
		return string(lit)
	}
	out := make([]byte, 0, len(lit))
	for i := 0; i < len(lit); i++ {
		if lit[i] != '\\' {
			out = append(out, lit[i])
			continue
		}
		i++
		switch c := lit[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(lit[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(lit[i+3:]))
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
