package strictjson

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Sentinels for callers that branch; every [*Error] wraps exactly one.
var (
	ErrSyntax        = errors.New("not strict JSON")                   // also UTF-8, byte order mark, surrogates, controls in names, trailing data
	ErrDuplicate     = errors.New("duplicate member")                  // the same name again, or the same but for case
	ErrLimit         = errors.New("over a limit")                      // size, depth, members, digits
	ErrUnknownMember = errors.New("unknown member")                    // the struct has none of that name
	ErrType          = errors.New("value of another kind")             // or refused by the Go type's own decoder
	ErrRange         = errors.New("number that the field cannot hold") // out of range, or it would be rounded
)

// Error says what is wrong with the input, and where. Its text is fit to be shown to whoever sent the input.
type Error struct {
	// Path of the value or member that is wrong, in the form event.tags[3].name. A name that is not a plain word is
	// written ["in quotes"], shortened after 64 bytes. Empty: the whole text.
	Path   string
	Reason string
	Offset int   // in bytes from the start of the input
	Kind   error // one of the Err sentinels
	Cause  error // what UnmarshalJSON or UnmarshalText returned; else nil
}

func (e *Error) Error() string {
	path := e.Path
	if path == "" {
		path = "JSON"
	}
	return fmt.Sprintf("%s: %s (at byte %d)", path, e.Reason, e.Offset)
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// in puts a step in front of the path. Paths are put together while an error travels up, so good input pays nothing.
func (e *Error) in(step string) *Error {
	if e.Path != "" && e.Path[0] != '[' {
		step += "."
	}
	e.Path = step + e.Path
	return e
}

func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

func memberStep(name string) string {
	const most = 64
	plain := name != "" && len(name) <= most
	for i := 0; i < len(name) && plain; i++ {
		c := name[i]
		plain = c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && (c == '-' || '0' <= c && c <= '9')
	}
	if plain {
		return name
	}
	return "[" + quote(name, most) + "]"
}

// quote reveals what is not ASCII: the message may be read by a person, whom a look-alike letter would fool.
func quote(name string, most int) string {
	if len(name) <= most {
		return strconv.QuoteToASCII(name)
	}
	for !utf8.RuneStart(name[most]) {
		most--
	}
	return strconv.QuoteToASCII(name[:most] + "…")
}
