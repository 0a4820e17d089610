package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Compact checks b against [Default] and returns it without its insignificant white space. Nothing else changes:
// escapes, the text of numbers, the order of members, and < > & survive byte for byte (json.Compact would do the same,
// json.Marshal of a RawMessage escapes < > &). The result is a copy.
func Compact(b []byte) ([]byte, error) {
	if err := Check(b, Default); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		end := i + 1
		if b[i] == '"' {
			end = endOfString(b, i)
		}
		if !isSpace(b[i]) {
			out = append(out, b[i:end]...)
		}
		i = end
	}
	return out, nil
}

// Member is one member of an object.
type Member struct {
	Name  string          // escapes resolved
	Value json.RawMessage // exact bytes
}

// Members checks b against [Default] and lists the members of the object that it is, in their order; another kind of
// value is [ErrType]. For callers that hash or compare field by field. The values are slices of one copy of b.
func Members(b []byte) ([]Member, error) {
	if err := Check(b, Default); err != nil {
		return nil, err
	}
	c := cursor{b: bytes.Clone(b)}
	c.space()
	if c.b[c.i] != '{' {
		return nil, c.mismatch("an object")
	}
	var out []Member
	for more := c.open(); more; more = c.next() {
		name := c.name()
		from := c.i
		c.skip()
		out = append(out, Member{name, c.b[from:c.i:c.i]})
	}
	return out, nil
}

// cursor walks JSON that passed Check. It leaves white space only in front of what it will read next in an object or
// array, so between steps it stands on the first byte of something.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) space() {
	for c.i < len(c.b) && isSpace(c.b[c.i]) {
		c.i++
	}
}

// open enters an object or array, and says whether it has a first element. Used with next:
//
//	for more := c.open(); more; more = c.next() { … }
func (c *cursor) open() bool {
	c.i++
	c.space()
	if c.b[c.i] == '}' || c.b[c.i] == ']' {
		c.i++
		return false
	}
	return true
}

func (c *cursor) next() bool {
	c.space()
	more := c.b[c.i] == ','
	c.i++
	if more {
		c.space()
	}
	return more
}

// name reads a member's name and goes on to its value.
func (c *cursor) name() string {
	name := unquote(c.string())
	c.space()
	c.i++ // the colon
	c.space()
	return name
}

func (c *cursor) string() []byte {
	from := c.i
	c.i = endOfString(c.b, from)
	return c.b[from:c.i]
}

// skip passes one value and returns its bytes.
func (c *cursor) skip() []byte {
	from, depth := c.i, 0
	for {
		switch c.b[c.i] {
		case '"':
			c.i = endOfString(c.b, c.i)
		case '{', '[':
			depth++
			c.i++
		case '}', ']':
			depth--
			c.i++
		case ',', ':', ' ', '\n', '\r', '\t':
			c.i++
			continue
		default:
			c.scalar()
		}
		if depth == 0 {
			return c.b[from:c.i:c.i]
		}
	}
}

// scalar passes a number, true, false or null.
func (c *cursor) scalar() []byte {
	from := c.i
	for c.i < len(c.b) && strings.IndexByte(",:]} \n\r\t", c.b[c.i]) < 0 {
		c.i++
	}
	return c.b[from:c.i]
}

func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// mismatch is the error for a value that is not what is wanted.
func (c *cursor) mismatch(want string) *Error {
	got := "a number"
	switch c.b[c.i] {
	case '{':
		got = "an object"
	case '[':
		got = "an array"
	case '"':
		got = "a string"
	case 't', 'f':
		got = "a boolean"
	case 'n':
		got = "null"
	}
	return &Error{Kind: ErrType, Offset: c.i, Reason: "want " + want + ", got " + got}
}
