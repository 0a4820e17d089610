package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Badges are what a person should know of how a text can be mistaken: words that mix scripts or digits (UTS #39, moderately
// restrictive), words and hosts of another script that look like Latin ones, hosts that are not what they look like, and
// signs that look like those of a host. They are ours, and shown apart from the text.
//
// A single word of another script that has a Latin twin letter by letter, such as a Russian "сахар", is told, too: nothing
// beside it says which of the two it is. What is written in ASCII alone (paypaI with a capital i) is not.
func Badges(s string) (out []string) {
	told := map[string]bool{}
	add := func(b string) {
		if !told[b] {
			told[b] = true
			out = append(out, b)
		}
	}
	for _, h := range hosts(s) {
		for _, b := range h.badges() {
			add(b)
		}
	}
	if isASCII(s) {
		return out
	}
	list := words(s)
	honest := map[string]bool{} // scripts of which the text has a word that looks like no other
	for _, w := range list {
		if skeleton(w) == "" {
			for _, script := range scriptsOf(w) {
				honest[script] = true
			}
		}
	}
	for _, w := range list {
		if mixed := mixedScripts(w); mixed != "" {
			add(brief(w) + " mixes " + mixed)
		} else if like := disguise(w); utf8.RuneCountInString(w) >= 4 && like != "" && !slices.ContainsFunc(scriptsOf(w), func(s string) bool { return s != "Latin" && honest[s] }) {
			add(looksLike(w, like))
		}
		if mixedDigits(w) {
			add(brief(w) + " mixes digits of two scripts")
		}
	}
	for _, sign := range signs(s) {
		add(sign)
	}
	return out
}

// brief is quote for a badge, which points at a word: the word itself is shown in whole where it stands.
func brief(word string) string {
	const most = 60
	if n := utf8.RuneCountInString(word); n > most {
		return quote(string([]rune(word)[:most])) + fmt.Sprintf(" and %d characters more", n-most)
	}
	return quote(word)
}

// words are runs of letters, marks and digits.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !unicode.IsNumber(r)
	})
}

// together are the scripts that one language writes in one word, each also with Latin.
var together = [][]string{{"Han", "Hiragana", "Katakana"}, {"Han", "Hangul"}, {"Han", "Bopomofo"}}

// besideLatin are the scripts that stand in one word with Latin letters and are not taken for them (UTS #39, table of
// recommended scripts; Cyrillic and Greek are left out there, Armenian and Georgian here).
var besideLatin = set("Arabic Bengali Bopomofo Devanagari Ethiopic Gujarati Gurmukhi Han Hangul Hebrew Hiragana Kannada Katakana Khmer Lao " +
	"Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// scriptsOf a word, Latin first.
func scriptsOf(word string) (found []string) {
	for _, r := range word {
		switch s := scriptOf(r); {
		case s == "" || slices.Contains(found, s):
		case s == "Latin":
			found = slices.Insert(found, 0, s)
		default:
			found = append(found, s)
		}
	}
	return found
}

// science are the Greek letters of units and formulas, which no Latin letter looks like.
const science = "ΔΣΩμπλθφ"

// mixedScripts names the scripts of a word that nobody writes like that, and what it looks like; "" if there is nothing
// strange.
func mixedScripts(word string) string {
	found := scriptsOf(word)
	rest := slices.DeleteFunc(slices.Clone(found), func(n string) bool { return n == "Latin" })
	switch {
	case len(found) < 2:
		return ""
	case len(rest) == 1 && besideLatin[rest[0]]:
		return ""
	case len(rest) == 1 && rest[0] == "Greek" && !strings.ContainsFunc(word, func(r rune) bool { return scriptOf(r) == "Greek" && !strings.ContainsRune(science, r) }):
		return ""
	}
	for _, set := range together {
		if !slices.ContainsFunc(rest, func(n string) bool { return !slices.Contains(set, n) }) {
			return ""
		}
	}
	mixed := strings.ReplaceAll(strings.Join(found, " and ")+" letters", "_", " ")
	if like := skeleton(word); like != "" && len(like) <= 60 {
		mixed += " and looks like " + like
	}
	return mixed
}

// mixedDigits reports whether a number has digits of two systems: a Bengali 4 looks like an 8.
func mixedDigits(word string) bool {
	zero := rune(-1)
	for _, r := range word {
		if !unicode.IsDigit(r) {
			continue
		}
		z := zeroOf(r)
		if zero >= 0 && z != zero {
			return true
		}
		zero = z
	}
	return false
}

// zeroOf the system of a digit. Each stands in the table as ten in a row.
func zeroOf(r rune) rune {
	for _, x := range unicode.Nd.R16 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return r - (r-rune(x.Lo))%10
		}
	}
	for _, x := range unicode.Nd.R32 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return r - (r-rune(x.Lo))%10
		}
	}
	return -1
}

// signs tell of what looks like a sign of a link and is none, within a word of ASCII: the division slash in
// acme.example∕login. Elsewhere such a sign is what it is.
func signs(s string) (out []string) {
	m := prototypes()
	before := utf8.RuneError
	for i, r := range s {
		next := first(s[i+max(utf8.RuneLen(r), 1):])
		if like := m[r]; r >= utf8.RuneSelf && r != utf8.RuneError && like != "" && strings.Contains("./:@?#&=%", like) && plainLetter(before) && plainLetter(next) {
			out = append(out, quote(string(r))+" looks like "+like+" and is not")
		}
		before = r
	}
	return out
}

func plainLetter(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) }
