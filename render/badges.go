package render

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Badges are what a person should know of how a text can be mistaken: words that mix scripts (UTS #39, moderately
// restrictive), and hosts of links that are not what they look like. They are ours, and shown apart from the text.
func Badges(s string) (out []string) {
	add := func(b string) {
		if b != "" && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	for _, h := range hosts(s) {
		for _, b := range hostBadges(h) {
			add(b)
		}
	}
	for _, w := range words(s) {
		if mixed := mixedScripts(w); mixed != "" {
			add(quote(w) + " mixes " + mixed)
		}
	}
	return out
}

// words are runs of letters, marks and digits.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) })
}

// scripts that are told apart, and by name.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Hebrew", unicode.Hebrew}, {"Arabic", unicode.Arabic}, {"Cherokee", unicode.Cherokee}, {"Coptic", unicode.Coptic}, {"Georgian", unicode.Georgian},
	{"Devanagari", unicode.Devanagari}, {"Bengali", unicode.Bengali}, {"Tamil", unicode.Tamil}, {"Telugu", unicode.Telugu}, {"Thai", unicode.Thai},
	{"Lao", unicode.Lao}, {"Khmer", unicode.Khmer}, {"Ethiopic", unicode.Ethiopic}, {"Lisu", unicode.Lisu}, {"Deseret", unicode.Deseret},
	{"Han", unicode.Han}, {"Hiragana", unicode.Hiragana}, {"Katakana", unicode.Katakana}, {"Hangul", unicode.Hangul}, {"Bopomofo", unicode.Bopomofo},
}

// together are the scripts that one language writes in one word, each also with Latin.
var together = [][]string{{"Han", "Hiragana", "Katakana"}, {"Han", "Hangul"}, {"Han", "Bopomofo"}}

// risky scripts have letters that look like Latin ones: a word that has both is taken for one that has not.
var risky = []string{"Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Georgian", "Lisu", "Deseret"}

// mixedScripts names the scripts of a word that nobody writes like that; "" if there is nothing strange.
func mixedScripts(word string) string {
	var found []string
	for _, r := range word {
		if r < 0x80 && !unicode.IsLetter(r) {
			continue
		}
		for _, s := range scripts {
			if unicode.Is(s.table, r) && !slices.Contains(found, s.name) {
				found = append(found, s.name)
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(found), func(n string) bool { return n == "Latin" })
	switch {
	case len(found) < 2:
		return ""
	case len(rest) == 1 && !slices.Contains(risky, rest[0]):
		return ""
	}
	for _, set := range together {
		if !slices.ContainsFunc(rest, func(n string) bool { return !slices.Contains(set, n) }) {
			return ""
		}
	}
	return strings.Join(found, " and ") + " letters"
}

var link = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// hosts are those of the links in a text.
func hosts(s string) (out []string) {
	for _, l := range link.FindAllString(s, -1) {
		_, rest, _ := strings.Cut(l, "://")
		rest, _, _ = strings.Cut(rest, "/")
		rest, _, _ = strings.Cut(rest, "?")
		rest, _, _ = strings.Cut(rest, "#")
		if u, err := url.Parse(l); err == nil && u.Hostname() != "" {
			if u.User != nil {
				out = append(out, "@"+u.Hostname())
				continue
			}
			rest = u.Hostname()
		}
		out = append(out, rest)
	}
	return out
}

// hostBadges tells of a host what its letters hide. A host that stood behind an @ begins with one.
func hostBadges(host string) (out []string) {
	if h, at := strings.CutPrefix(host, "@"); at {
		out, host = append(out, "the link goes to "+quote(h)+", what stands before the @ is no host"), h
	}
	ascii, err := idna.Lookup.ToASCII(host)
	shown, err2 := idna.Display.ToUnicode(strings.ToLower(host))
	switch {
	case err != nil && !plainHost(host):
		out = append(out, quote(host)+" is no host that a browser takes")
	case !isASCII(host):
		out = append(out, quote(host)+" is "+ascii)
	case strings.Contains(strings.ToLower(host), "xn--") && err2 == nil && shown != strings.ToLower(host):
		out = append(out, host+" is "+quote(shown))
		host = shown
	}
	for label := range strings.SplitSeq(host, ".") {
		if mixed := mixedScripts(label); mixed != "" {
			out = append(out, quote(label)+" mixes "+mixed)
		} else if same := skeleton(label); same != "" {
			out = append(out, quote(label)+" looks like "+same+" and is not")
		}
	}
	return out
}

func plainHost(h string) bool {
	return isASCII(h) && !strings.ContainsFunc(h, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// twins are letters that look like an ASCII one (UTS #39, confusables), of the scripts in which whole words can be
// written with them.
var twins = func() map[rune]byte {
	m := map[rune]byte{}
	for ascii, like := range map[byte]string{
		'a': "аɑα", 'b': "Ьʙ", 'c': "сϲ", 'd': "ԁ", 'e': "еҽ", 'g': "ɡց", 'h': "һհ", 'i': "іıι", 'j': "јϳ", 'k': "κк", 'l': "ӏⅼ", 'm': "м", 'n': "ոп",
		'o': "оοօ", 'p': "рρ", 'q': "ԛզ", 'r': "гᴦ", 's': "ѕ", 't': "тτ", 'u': "υսц", 'v': "νѵ", 'w': "ԝѡω", 'x': "хχ", 'y': "уγ", 'z': "ᴢ",
	} {
		for _, r := range like {
			m[r] = ascii
		}
	}
	return m
}()

// skeleton is the ASCII word that a word of another script looks like as a whole; "" if it does not. Two letters are no
// disguise.
func skeleton(label string) string {
	var b strings.Builder
	n, foreign := 0, 0
	for _, r := range label {
		n++
		switch like, ok := twins[r]; {
		case ok:
			foreign++
			b.WriteByte(like)
		case r < 0x80 && !unicode.IsLetter(r):
			b.WriteRune(r)
		default:
			return ""
		}
	}
	if n < 3 || foreign == 0 {
		return ""
	}
	return b.String()
}
