package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Line shows s on one line, with everything that a person could not see as a token: [U+202E] for a character,
// [0xff] for a byte that is no UTF-8. Two different strings never look alike: a literal "[U+" or "[0x" gets a
// token for its bracket.
//
// Shown as tokens are control and format characters (Cc, Cf), line and paragraph separators, every space but
// U+0020, U+0020 at the end and in runs of more than eight, default-ignorable characters, variation selectors,
// tags, fillers and blanks such as U+3164 and U+2800, private and unassigned code points, text that is not in
// normal form C (UAX #15), and marks without a base or stacked more than three high.
//
// BUG(wetink): look-alikes from another script (a Cyrillic а) are different bytes and the same picture. No
// token tells them apart.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	denormal := denormalized(s)
	end := len(strings.TrimRight(s, " "))
	spaces, marks, base := 0, 0, false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == ' ' {
			spaces++
		} else {
			spaces = 0
		}
		mark := unicode.Is(unicode.M, r)
		if mark {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "[0x%02x]", s[i])
		case r == ' ' && i < end && spaces <= 8:
			b.WriteByte(' ')
		case r == '[' && (strings.HasPrefix(s[i+1:], "U+") || strings.HasPrefix(s[i+1:], "0x")),
			r == ' ', hidden(r), denormal[i], mark && (!base || marks > 3):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
		base = mark && base || !mark && !hidden(r) && r != ' '
		i += n
	}
	return b.String()
}

// Lines is Line for each line of s; the line breaks themselves stay.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// plain is the quick way out for what is most text.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '[' {
			return false
		}
	}
	return !strings.HasSuffix(s, " ") && !strings.Contains(s, "         ")
}

// blank are code points that Unicode calls letters, symbols or marks and that draw nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{0x2800, 0x2800, 1}, {0xfffc, 0xfffc, 1}},
	R32: []unicode.Range32{{0x13441, 0x13446, 1}, {0x16fe4, 0x16fe4, 1}, {0x1d159, 0x1d159, 1}},
}

// hidden reports whether r has to be shown as a token wherever it stands.
func hidden(r rune) bool {
	return r != ' ' && unicode.Is(unicode.Zs, r) || !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
}

// denormalized finds the offsets of the runes that normalising would merge, split or reorder. ASCII is never
// among them: the base letter stays, what stands on it is named.
func denormalized(s string) map[int]bool {
	if norm.NFC.IsNormalString(s) {
		return nil
	}
	found := map[int]bool{}
	for at := 0; at < len(s); {
		n := norm.NFC.NextBoundaryInString(s[at:], true)
		if n <= 0 {
			n = len(s) - at
		}
		if segment := s[at : at+n]; !norm.NFC.IsNormalString(segment) {
			for i, r := range segment {
				if r >= utf8.RuneSelf {
					found[at+i] = true
				}
			}
		}
		at += n
	}
	return found
}
