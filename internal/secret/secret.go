// Package secret holds bytes that must not be printed.
package secret

import (
	"fmt"
	"log/slog"
)

// Bytes prints as [redacted], also as an unexported field of what is printed, of which fmt prints the members without
// calling their methods: there it is the address of a function.
type Bytes struct{ reveal func() []byte }

// New wraps b, which is not copied.
func New(b []byte) Bytes { return Bytes{func() []byte { return b }} }

// Reveal is the only way out; grep for it.
func (s Bytes) Reveal() []byte {
	if s.reveal == nil {
		return nil
	}
	return s.reveal()
}

// IsZero reports that there is none.
func (s Bytes) IsZero() bool { return len(s.Reveal()) == 0 }

func (Bytes) String() string               { return "[redacted]" }
func (Bytes) GoString() string             { return "[redacted]" }
func (Bytes) Format(s fmt.State, _ rune)   { fmt.Fprint(s, "[redacted]") }
func (Bytes) LogValue() slog.Value         { return slog.StringValue("[redacted]") }
func (Bytes) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }
