package render

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

//go:embed unicode/confusables.txt
var confusablesFile string

// prototypes are the confusables of UTS #39 whose prototype is ASCII.
var prototypes = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for line := range strings.Lines(confusablesFile) {
		target, ranges, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if target == "#" && strings.Contains(ranges, ".") {
			continue // a comment
		}
		for lo, hi := range rangesOf(ranges) {
			for r := lo; r <= hi; r++ {
				m[r] = target
			}
		}
	}
	m['\u04cf'] = "l" // the standard takes it for an i; drawn it is a stroke, and the best-known false apple.com has it
	return m
})

// skeleton is the ASCII word that a word looks like as a whole; "" if there is none, or if it is ASCII itself.
//
// UTS #39 asks for the skeleton of two identifiers: normal form D, what is not seen left out, each character in the place of
// its prototype; they are confusable if the skeletons are the same. We have no list of words or hosts to compare with, and
// compare with everything in ASCII: a word whose skeleton is ASCII looks like that skeleton (whole-script confusable, or
// mixed with Latin letters). The prototypes are those of the standard, so that a Cyrillic т, which is a small T, is none.
func skeleton(word string) string {
	if isASCII(word) {
		return ""
	}
	m, taken := prototypes(), false
	var b strings.Builder
	for _, r := range norm.NFD.String(word) {
		switch like, ok := m[r]; {
		case ok:
			taken = true
			b.WriteString(like)
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case hidden(r) && !mark(r): // which is shown as a token
		default:
			return ""
		}
	}
	if !taken || strings.ContainsFunc(b.String(), func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return ""
	}
	return b.String()
}

// disguise is skeleton, but "" where a letter is one that people read and write beside Latin ones: a Turkish ı, an Arabic or
// Hebrew letter that is a mere stroke. What is left are the scripts whose words can be taken for Latin ones, and letters of
// phonetics and of mathematics.
func disguise(word string) string {
	like := skeleton(word)
	for _, r := range word {
		if r >= utf8.RuneSelf && unicode.IsLetter(r) && !unicode.Is(strangeLatin, r) {
			if s := scriptOf(r); s == "Latin" || besideLatin[s] {
				return ""
			}
		}
	}
	return like
}

// strangeLatin are letters of the Latin script that belong to no alphabet: phonetic, numerals, full-width, small capitals.
var strangeLatin = &unicode.RangeTable{R16: []unicode.Range16{{0x250, 0x2af, 1}, {0x1d00, 0x1dbf, 1}, {0x2071, 0x209c, 1}, {0x2100, 0x2188, 1},
	{0xa727, 0xa7ff, 1}, {0xab30, 0xab6f, 1}, {0xff21, 0xff5a, 1}}}
