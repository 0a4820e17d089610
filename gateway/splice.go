package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// edit replaces a part of a message.
type edit struct {
	at   span
	with []byte
}

// splice returns b with the edits made, whose places do not overlap. Everything else stays to the byte.
// A line feed stands behind what it returns, so that it can be written as a line without a copy.
func splice(b []byte, edits ...edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at.from - b.at.from })
	n := len(b) + 1
	for _, e := range edits {
		n += len(e.with) - (e.at.to - e.at.from)
	}
	out := make([]byte, 0, n)
	from := 0
	for _, e := range edits {
		out = append(append(out, b[from:e.at.from]...), e.with...)
		from = e.at.to
	}
	out = append(append(out, b[from:]...), '\n')
	return out[:len(out)-1]
}

// line is b with its line feed.
func line(b []byte) []byte {
	if cap(b) > len(b) && b[:len(b)+1][len(b)] == '\n' {
		return b[:len(b)+1]
	}
	return append(b[:len(b):len(b)], '\n')
}

// oneLine makes a message fit for a transport that ends messages by a line feed. In valid JSON a raw one stands
// between tokens only, where a space means the same; left in, it would smuggle a second message in. So would a carriage
// return, where the reader takes it for the end of a line, as Python's does.
func oneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.Clone(b)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}

// member finds the last member of that name in the object at that place, as most readers do. whole is the member
// with its key.
func member(b []byte, object span, name string) (value, whole span) {
	if !object.ok() || b[object.from] != '{' {
		return span{}, span{}
	}
	s := scanner{b: b, i: object.from + 1, max: math.MaxInt}
	for {
		s.space()
		if s.b[s.i] == '}' {
			return value, whole
		}
		key := span{from: s.i}
		s.str() // checked before, as all of it
		key.to = s.i
		s.space()
		s.i++ // :
		s.space()
		v := span{from: s.i}
		s.value()
		v.to = s.i
		if i, _ := s.which([]string{name}, key); i == 0 {
			value, whole = v, span{key.from, v.to}
		}
		if more, _ := s.next('}'); !more {
			return value, whole
		}
	}
}

// without is the edit that takes a member out, with the comma before or behind it.
func without(b []byte, whole span) edit {
	for i := whole.to; ; i++ {
		if b[i] == ',' {
			return edit{at: span{whole.from, i + 1}}
		}
		if b[i] == '}' {
			break
		}
	}
	for i := whole.from - 1; ; i-- {
		if b[i] == ',' {
			return edit{at: span{i, whole.to}}
		}
		if b[i] == '{' {
			return edit{at: whole}
		}
	}
}

// into is the edit that adds a member in front of the others.
func into(b []byte, object span, key, value string) edit {
	s := scanner{b: b, i: object.from + 1}
	s.space()
	text := strconv.Quote(key) + ":" + value
	if b[s.i] != '}' {
		text += ","
	}
	return edit{span{object.from + 1, object.from + 1}, []byte(text)}
}

// elements of the array at that place.
func elements(b []byte, array span) []json.RawMessage {
	if !array.ok() || b[array.from] != '[' {
		return nil
	}
	var list []json.RawMessage
	s := scanner{b: b, i: array.from + 1, max: math.MaxInt}
	for {
		s.space()
		if s.b[s.i] == ']' {
			return list
		}
		from := s.i
		s.value()
		list = append(list, b[from:s.i:s.i])
		if more, _ := s.next(']'); !more {
			return list
		}
	}
}

// whole is the span of the one value in b, without the space around it.
func whole(b []byte) span {
	t := bytes.TrimLeft(b, " \t\r\n")
	from := len(b) - len(t)
	return span{from, from + len(bytes.TrimRight(t, " \t\r\n"))}
}

// quoted is a JSON string.
func quoted(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(text) // a string cannot fail
	return bytes.TrimRight(b.Bytes(), "\n")
}

// array joins what is already JSON.
func array(list []json.RawMessage) []byte {
	n := 2
	for _, e := range list {
		n += len(e) + 1
	}
	b := append(make([]byte, 0, n), '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// resultLine answers the request of that id.
func resultLine(id, result []byte) []byte {
	b := make([]byte, 0, len(id)+len(result)+36)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(append(b, `,"result":`...), oneLine(result)...)
	b = append(b, '}', '\n')
	return b[:len(b)-1]
}

// errorLine answers the request of that id; nil is null, for what could not be read. data may be nil.
func errorLine(id []byte, code int, text string, data []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), int64(code), 10)
	b = append(append(b, `,"message":`...), quoted(text)...)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	b = append(b, '}', '}', '\n')
	return b[:len(b)-1]
}

// requestLine is a request, or without an id a notification.
func requestLine(id []byte, method string, params []byte) []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	b = append(append(b, `,"method":`...), quoted(method)...)
	if params != nil {
		b = append(append(b, `,"params":`...), oneLine(params)...)
	}
	b = append(b, '}', '\n')
	return b[:len(b)-1]
}
