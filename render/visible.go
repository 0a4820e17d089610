package render

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// Line shows s on one line, with everything that a person could not see as a token: [U+202E] for a character,
// [0xff] for a byte that is no UTF-8. Two different strings never look alike: a literal "[U+" or "[0x" gets a
// token for its bracket.
//
// Shown as tokens are control and format characters (Cc, Cf), line and paragraph separators, every space but
// U+0020, U+0020 at the end and in runs of more than eight, default-ignorable characters, variation selectors,
// tags, fillers and blanks such as U+3164 and U+2800, private and unassigned code points, text that is not in
// normal form C (UAX #15), marks without a base or stacked more than three high, marks that strike out or underline,
// presentation forms (an Arabic letter in one of its shapes), letters of scripts that nobody writes any more, and what belongs to no emoji that fonts draw: joiners, skin
// tones and regional letters elsewhere, an emoji in a text form. Where a language or an emoji needs one of them, so that it
// would be missed, it stays: see lawful.
//
// Look-alikes from another script (a Cyrillic а) are different bytes and the same picture. No token tells them apart: see
// Badges. What stays can look alike where the reader's fonts lack it: two boxes.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for _, p := range pieces(s) {
		b.WriteString(p.String())
	}
	return b.String()
}

// piece of a text: what stays as it is, or one character that is shown as a token.
type piece struct {
	text  string
	token bool
	code  rune // of a token; -1: a byte that is no UTF-8
}

func (p piece) String() string {
	switch {
	case !p.token:
		return p.text
	case p.code < 0:
		return fmt.Sprintf("[0x%02x]", p.text[0])
	}
	return fmt.Sprintf("[U+%04X]", p.code)
}

// pieces is the one place that decides what is shown and what is named.
func pieces(s string) (out []piece) {
	denormal, judged := denormalized(s), lawful(s)
	end := len(strings.TrimRight(s, " "))
	spaces, marks, base, from := 0, 0, false, 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == ' ' {
			spaces++
		} else {
			spaces = 0
		}
		allowed, known := judged[i]
		mark := mark(r) && !allowed
		if mark {
			marks++
		} else if !allowed {
			marks = 0
		}
		token := false
		switch {
		case r == utf8.RuneError && n == 1:
			r, token = -1, true
		case allowed, r == ' ' && i < end && spaces <= 8:
		case r == '[' && (strings.HasPrefix(s[i+1:], "U+") || strings.HasPrefix(s[i+1:], "0x")),
			r == ' ', known, hidden(r), denormal[i], mark && (!base || marks > 3):
			token = true
		}
		if token {
			if from < i {
				out = append(out, piece{text: s[from:i]})
			}
			out = append(out, piece{s[i : i+n], true, r})
			from = i + n
		}
		if !allowed {
			base = mark && base || !mark && r >= 0 && !hidden(r) && r != ' '
		}
		i += n
	}
	if from < len(s) {
		out = append(out, piece{text: s[from:]})
	}
	return out
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

// posing are marks that strike out and underline what they stand on, as we do with what goes and comes, and presentation
// forms: shapes of letters that programs choose and nobody types, which look like the letters.
var posing = &unicode.RangeTable{
	R16: []unicode.Range16{{0x332, 0x333, 1}, {0x335, 0x338, 1}, {0xfb00, 0xfb06, 1}, {0xfb13, 0xfb17, 1}, {0xfb20, 0xfb29, 1}, {0xfb50, 0xfbb1, 1},
		{0xfbd3, 0xfd3d, 1}, {0xfd50, 0xfdef, 1}, {0xfe70, 0xfefc, 1}},
}

// hidden reports whether r has to be shown as a token wherever it stands but where it is lawful.
func hidden(r rune) bool {
	return r != ' ' && unicode.Is(unicode.Zs, r) || !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank, posing) || r >= 0x370 && unicode.Is(boxes(), r)
}

// inUse are the scripts that people write today: recommended and of limited use in UAX #31, tables 5 and 7.
const inUse = "Adlam Arabic Armenian Balinese Bamum Batak Bengali Bopomofo Canadian_Aboriginal Chakma Cham Cherokee Cyrillic Devanagari " +
	"Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hanifi_Rohingya Hebrew Hiragana Javanese Kannada Katakana Kayah_Li Khmer Lao " +
	"Latin Lepcha Limbu Lisu Malayalam Mandaic Meetei_Mayek Miao Mongolian Myanmar New_Tai_Lue Newa Nko Nyiakeng_Puachue_Hmong Ol_Chiki Oriya Osage " +
	"Saurashtra Sinhala Sundanese Syloti_Nagri Syriac Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh Vai Wancho Yi"

// boxes are the letters of all other scripts. Hardly any device has a font for them, and draws each as the same box.
var boxes = sync.OnceValue(func() *unicode.RangeTable {
	known := set(inUse + " Common Inherited Braille")
	var rest []*unicode.RangeTable
	for name, t := range unicode.Scripts {
		if !known[name] {
			rest = append(rest, t)
		}
	}
	return rangetable.Merge(rest...)
})

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
