package render

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// lawful judges the characters that are seen or not by what stands beside them. true: a language or an emoji needs it just
// there, so that to leave it out would be seen: in a family, a flag, a Persian word. false: elsewhere it is seen, and here it
// could be missed or taken for another. What is not judged stands for itself.
func lawful(s string) map[int]bool {
	var found map[int]bool
	set := func(at int, ok bool) {
		if found == nil {
			found = map[int]bool{}
		}
		found[at] = ok
	}
	e := emoji()
	before := utf8.RuneError
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		if n := e.whole(s[at:]); n > 0 {
			for i, r := range s[at : at+n] {
				if hidden(r) || mark(r) {
					set(at+i, true)
				}
			}
			before, at = utf8.RuneError, at+n
			continue
		}
		next := first(s[at+size:])
		switch {
		case r == emojiSelector:
			// U+FE0E is never lawful: behind an emoji that is one by default it depends on the font whether it is seen.
			if unicode.Is(e.text, before) && before >= utf8.RuneSelf {
				set(at, true)
			}
		case r == zwj, r == zwnj:
			if joins(s[:at], r, s[at+size:]) {
				set(at, true)
			}
		case r == enclosingKeycap, regional(r), tone(r) && !unicode.Is(e.base, before):
			set(at, false)
		case r >= '\U0001f300' && unicode.Is(e.text, r) && next != emojiSelector && next != textSelector && !(tone(next) && unicode.Is(e.base, r)):
			set(at, false) // no font has it as text, so that it would look like the one with the selector
		}
		before, at = r, at+size
	}
	return found
}

// whole measures the joined emoji, keycap or flag that begins s; 0: there is none.
func (e sequences) whole(s string) int {
	if r := first(s); r < utf8.RuneSelf {
		if keycap(r) && strings.HasPrefix(s[1:], string(emojiSelector)+string(enclosingKeycap)) {
			return 1 + len(string(emojiSelector)+string(enclosingKeycap))
		}
		return 0
	}
	if n, joined := chain(s); joined && e.zwj[s[:n]] {
		return n
	}
	return e.flag(s)
}

func mark(r rune) bool    { return unicode.Is(unicode.M, r) }
func last(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }
func first(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }

// joiners checks labels by the contextual rules of RFC 5892, appendix A.1 and A.2, and nothing else.
var joiners = idna.New(idna.CheckJoiners(true))

// joins reports whether a joiner or non-joiner does something that is seen: RFC 5892, appendix A.1 and A.2, and then within
// one script only, because no font joins two. Behind the sign that kills a vowel it chooses the shape of what follows, so
// that something has to follow. Between two letters that would join, a non-joiner keeps them apart.
func joins(before string, r rune, after string) bool {
	killer, next := last(before), first(after)
	if ccc(killer) == virama {
		base := last(strings.TrimRightFunc(before[:len(before)-utf8.RuneLen(killer)], func(r rune) bool { return ccc(r) == nukta }))
		script := scriptOf(killer)
		switch {
		case script == "", scriptOf(base) != script, scriptOf(next) != script, !unicode.IsLetter(base), !unicode.IsLetter(next):
			return false
		case r == zwj && (script == "Malayalam" || base == '\u09a4'): // the chillus and khanda ta have letters of their own
			return false
		}
		return true
	}
	if r != zwnj {
		return false
	}
	above := func(r rune) bool { return unicode.Is(unicode.Mn, r) && !hidden(r) }
	left, right := last(strings.TrimRightFunc(before, above)), first(strings.TrimLeftFunc(after, above))
	if left == utf8.RuneError || right == utf8.RuneError || scriptOf(left) == "" || scriptOf(left) != scriptOf(right) {
		return false
	}
	_, err := joiners.ToASCII(string([]rune{left, zwnj, right}))
	return err == nil
}

// Canonical combining classes.
const (
	nukta  = 7
	virama = 9
)

func ccc(r rune) uint8 {
	if r < utf8.RuneSelf || r == utf8.RuneError {
		return 0
	}
	return norm.NFC.PropertiesString(string(r)).CCC()
}

// common are the scripts that most text is in, so that they are looked at first.
var common = []string{"Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew", "Devanagari", "Thai", "Armenian", "Georgian"}

var scripts = func() (names []string) {
	for name := range unicode.Scripts {
		if name != "Common" && name != "Inherited" && !slices.Contains(common, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(slices.Clone(common), names...)
}()

// scriptOf a character, by its name in Unicode; "" of what belongs to several or none, such as digits.
func scriptOf(r rune) string {
	if r < utf8.RuneSelf {
		if unicode.IsLetter(r) {
			return "Latin"
		}
		return ""
	}
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for _, name := range scripts {
		if unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	return ""
}
