package render_test

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/wetink/wetink/render"
)

// deception looks like another text, or hides something. It must be shown with a token or a badge.
type deception struct {
	kind, name, text string
	honest           string // what it is taken for
}

const persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"

var deceptions = []deception{
	{"direction", "right-to-left override", "report\u202efdp.exe", "reportexe.pdf"},
	{"direction", "left-to-right override", "a\u202dbc", "abc"},
	{"direction", "embedding", "x\u202ay\u202c", "xy"},
	{"direction", "isolate", "access\u2066 // only\u2069\u2066 admin\u2069", "access // only admin"},
	{"direction", "first strong isolate", "\u2068x\u2069", "x"},
	{"direction", "left-to-right mark", "pay\u200epal", "paypal"},
	{"direction", "right-to-left mark", "pay\u200fpal", "paypal"},
	{"direction", "arabic letter mark", "pay\u061cpal", "paypal"},

	{"invisible", "zero width space", "pay\u200bpal", "paypal"},
	{"invisible", "word joiner", "pay\u2060pal", "paypal"},
	{"invisible", "byte order mark inside", "pay\ufeffpal", "paypal"},
	{"invisible", "soft hyphen", "pay\u00adpal", "paypal"},
	{"invisible", "combining grapheme joiner", "pay\u034fpal", "paypal"},
	{"invisible", "mongolian vowel separator", "pay\u180epal", "paypal"},
	{"invisible", "hangul choseong filler", "pay\u115fpal", "paypal"},
	{"invisible", "hangul filler", "pay\u3164pal", "pay pal"},
	{"invisible", "halfwidth hangul filler", "pay\uffa0pal", "pay pal"},
	{"invisible", "braille blank", "pay\u2800pal", "pay pal"},
	{"invisible", "invisible times", "2\u2062x", "2x"},
	{"invisible", "function application", "f\u2061x", "fx"},
	{"invisible", "tags", "hello\U000e0068\U000e0069\U000e007f", "hello"},
	{"invisible", "language tag", "x\U000e0001", "x"},
	{"invisible", "Khmer inherent vowel", "\u1780\u17b4", "\u1780"},
	{"invisible", "interlinear annotation", "a\ufff9b\ufffac\ufffb", "abc"},
	{"invisible", "a nested one", "[a] \u2063", "[a]"},

	{"joiner", "zero width joiner in Latin", "pay\u200dpal", "paypal"},
	{"joiner", "zero width non-joiner in Latin", "pay\u200cpal", "paypal"},
	{"joiner", "non-joiner that changes nothing", "\u062f\u200c\u0645", "\u062f\u0645"},
	{"joiner", "non-joiner at the end of Persian", persian + "\u200c", persian},
	{"joiner", "two non-joiners in Persian", strings.Replace(persian, "\u200c", "\u200c\u200c", 1), persian},
	{"joiner", "non-joiner between Arabic and Syriac", "\u0645\u200c\u0712", "\u0645\u0712"},
	{"joiner", "joiner between Arabic letters", "\u0645\u200d\u0645", "\u0645\u0645"},
	{"joiner", "joiner behind a virama before Latin", "\u0915\u094d\u200dpay", "\u0915\u094dpay"},
	{"joiner", "non-joiner behind a virama at the end", "\u0915\u094d\u200c", "\u0915\u094d"},
	{"joiner", "joiner behind a virama before another script", "\u0915\u094d\u200d\u0995", "\u0915\u094d\u0995"},
	{"joiner", "joiner behind a virama on Latin", "a\u094d\u200d\u0915", "a\u094d\u0915"},
	{"joiner", "two joiners behind a virama", "\u0915\u094d\u200d\u200d\u0937", "\u0915\u094d\u200d\u0937"},
	{"joiner", "a chillu of three characters", "\u0d05\u0d35\u0d28\u0d4d\u200d", "\u0d05\u0d35\u0d7b"},
	{"joiner", "a chillu within a word", "\u0d05\u0d28\u0d4d\u200d\u0d2a", "\u0d05\u0d7b\u0d2a"},
	{"joiner", "a khanda ta of three characters", "\u09a4\u09cd\u200d\u09b8", "\u09ce\u09b8"},

	{"emoji", "two faces, joined", "\U0001f600\u200d\U0001f600", "\U0001f600\U0001f600"},
	{"emoji", "two men, joined", "\U0001f468\u200d\U0001f468", "\U0001f468\U0001f468"},
	{"emoji", "a boy who cooks", "\U0001f466\u200d\U0001f373", "\U0001f466\U0001f373"},
	{"emoji", "a heart and a man behind a couple", "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468\u200d\u2764\ufe0f\u200d\U0001f468", "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468\u2764\ufe0f\U0001f468"},
	{"emoji", "a grandmother in a family", "\U0001f475\u200d\U0001f469\u200d\U0001f467", "\U0001f475\U0001f469\U0001f467"},
	{"emoji", "joiner behind a family", "\U0001f468\u200d\U0001f469\u200d", "\U0001f468\U0001f469"},
	{"emoji", "joiner before a family", "\u200d\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"},
	{"emoji", "selector behind a joined emoji", "\U0001f469\u200d\U0001f680\ufe0f", "\U0001f469\u200d\U0001f680"},
	{"emoji", "a runner without her selector", "\U0001f3c3\u200d\u2640", "\U0001f3c3\u200d\u2640\ufe0f"},
	{"emoji", "a flag without its selector", "\U0001f3f3\u200d\U0001f308", "\U0001f3f3\ufe0f\u200d\U0001f308"},
	{"emoji", "an emoji in text form", "\U0001f3d4 peak", "\U0001f3d4\ufe0f peak"},
	{"emoji", "selector on an emoji by default", "\U0001f600\ufe0f", "\U0001f600"},
	{"emoji", "two selectors", "\u2764\ufe0f\ufe0f", "\u2764\ufe0f"},
	{"emoji", "text selector on what is text", "\u2714\ufe0e", "\u2714"},
	{"emoji", "text selector on an emoji", "\u231a\ufe0e", "\u231a"},
	{"emoji", "variation selector on a letter", "a\ufe0e", "a"},
	{"emoji", "emoji selector on a digit", "1\ufe0f", "1"},
	{"emoji", "supplementary selector", "a\U000e0100", "a"},
	{"emoji", "keycap without selector", "1\u20e3", "1\ufe0f\u20e3"},
	{"emoji", "keycap on a letter", "a\ufe0f\u20e3", "a\u20e3"},
	{"emoji", "a tone on a face", "\U0001f600\U0001f3fd", "\U0001f600"},
	{"emoji", "two tones", "\U0001f44d\U0001f3fd\U0001f3fd", "\U0001f44d\U0001f3fd"},

	{"flag", "tags behind a flag", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e0076\U000e0069\U000e006c\U000e007f", "\U0001f3f4"},
	{"flag", "the flag of Texas", "\U0001f3f4\U000e0075\U000e0073\U000e0074\U000e0078\U000e007f", "\U0001f3f4"},
	{"flag", "a region that is none", "\U0001f1fd\U0001f1fd", "XX"},
	{"flag", "half a flag", "\U0001f1e9\U0001f1ea\U0001f1ef", "\U0001f1e9\U0001f1ea"},
	{"flag", "another flag of the United States", "\U0001f1fa\U0001f1f2", "\U0001f1fa\U0001f1f8"},

	{"blank", "no-break space", "10\u00a0000", "10 000"},
	{"blank", "em space padding", "ok\u2003\u2003\u2003then delete all", "ok   then delete all"},
	{"blank", "ideographic space", "ok\u3000then", "ok  then"},
	{"blank", "trailing blanks", "admin  ", "admin"},
	{"blank", "padding", "ok" + strings.Repeat(" ", 60) + "then delete all", "ok then delete all"},
	{"blank", "line separator", "one\u2028two", "onetwo"},
	{"blank", "paragraph separator", "one\u2029two", "onetwo"},

	{"control", "carriage return", "delete all\rnothing", "delete all nothing"},
	{"control", "backspace", "delete\b\b\b\b\b\bkeep  ", "keep"},
	{"control", "escape sequence", "\x1b[8mhidden\x1b[0m", "[8mhidden[0m"},
	{"control", "C1 sequence", "\u009b8mhidden", "8mhidden"},
	{"control", "NUL", "a\x00b", "ab"},
	{"control", "no UTF-8", "a\xc0\xafb", "a\ufffd\ufffdb"},
	{"control", "a token that was typed", "[U+202E]", "\u202e"},
	{"control", "a byte that was typed", "[0xff]", "\xff"},

	{"form", "decomposed", "cafe\u0301", "caf\u00e9"},
	{"form", "singleton", "10 \u212a", "10 K"},
	{"form", "marks without a base", "\u0336deleted", "deleted"},
	{"form", "struck out as if it went", "k\u0336e\u0336e\u0336p\u0336", "keep"},
	{"form", "underlined as if it came", "k\u0332e\u0332e\u0332p\u0332", "keep"},
	{"form", "a tower of marks", "Z\u0300\u0301\u0302\u0303\u0304", "Z\u0300\u0301\u0302"},
	{"form", "presentation form of an alef", "\ufe8d\u0644\u0633\u0644\u0627\u0645", "\u0627\u0644\u0633\u0644\u0627\u0645"},
	{"form", "ligature", "o\ufb03ce", "office"},
	{"form", "private use", "\ue000", "\ue001"},
	{"form", "no character", "\ufdd0", "\ufdd1"},

	{"script", "Cyrillic a in Latin", "p\u0430ypal", "paypal"},
	{"script", "Greek omicron in Latin", "g\u03bf\u03bfgle", "google"},
	{"script", "Armenian in Latin", "app\u04cfe \u0561pple", "apple apple"},
	{"script", "Cherokee in Latin", "\u13a0PPLE", "DPPLE"},
	{"script", "Lisu in Latin", "\ua4d0ANK", "BANK"},
	{"script", "a script that nobody writes in Latin", "p\U000102a0ypal", "paypal"},
	{"script", "a whole word in Cyrillic", "\u0430\u0440\u0440\u04cf\u0435", "apple"},
	{"script", "a whole word among Latin ones", "pay \u0440\u0430\u0443\u0440\u0430\u04cf now", "pay paypal now"},
	{"script", "a letter that few fonts have", "plan \U000102a1", "plan \U000102a0"},
	{"script", "phonetic letters", "\u0261oo\u0261le", "google"},
	{"script", "full-width letters", "\uff50\uff41\uff59pal", "paypal"},
	{"script", "mathematical letters", "\U0001d5c9\U0001d5ba\U0001d5d2\U0001d5c9\U0001d5ba\U0001d5c5", "paypal"},
	{"script", "Roman numeral in a word", "paypa\u217c", "paypal"},
	{"script", "a Bengali 4 in a number", "1\u09ea0", "180"},

	{"host", "in Cyrillic look-alikes", "https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/login", "https://paypal.com/login"},
	{"host", "with one foreign letter", "https://\u0430pple.com", "https://apple.com"},
	{"host", "punycode of a look-alike", "https://xn--80ak6aa92e.com", "https://apple.com"},
	{"host", "plain, with one foreign letter", "go to ex\u0430mple.com now", "go to example.com now"},
	{"host", "plain, in look-alikes", "see \u0441\u043e\u0440.com", "see cop.com"},
	{"host", "plain punycode", "see xn--80ak6aa92e.com:8443/x", "see apple.com:8443/x"},
	{"host", "of a mail address", "bob@\u0440\u0430\u0443.com", "bob@pay.com"},
	{"host", "of a mail address in punycode", "bob@xn--80ak6aa92e.com", "bob@apple.com"},
	{"host", "without scheme", "//\u0440\u0430\u0443.com/x", "//pay.com/x"},
	{"host", "without scheme before an at sign in its path", "\u0440\u0430\u0443.com/@ana", "pay.com/@ana"},
	{"host", "behind one slash", "https:/\u0440\u0430\u0443.com", "https:/pay.com"},
	{"host", "behind no slash", "https:xn--80ak6aa92e.com", "https:apple.com"},
	{"host", "in a link in a link", "https://acme.example/?u=https://\u0440\u0430\u0443.com", "https://acme.example/?u=https://pay.com"},
	{"host", "with a port", "\u0440\u0430\u0443.com:443", "pay.com:443"},
	{"host", "in a Markdown link", "[pay](\u0440\u0430\u0443.com/x)", "[pay](pay.com/x)"},
	{"host", "with a full-width dot", "https://evil\uff0eexample", "https://evil.example"},
	{"host", "behind an at sign", "https://acme.example@evil.example/", "https://acme.example/@evil.example/"},
	{"host", "without scheme behind an at sign", "//acme.example@evil.example/", "//acme.example/@evil.example/"},
	{"host", "behind a backslash", `https://evil.example\@acme.example`, "https://acme.example"},
	{"host", "escaped", "https://acme.example%2eevil.example/", "https://acme.example/evil.example/"},
	{"host", "a slash that is none", "acme.example\u2215login", "acme.example/login"},
	{"host", "a colon that is none", "http\ua789acme", "http:acme"},
}

// innocents are what people write, by kind. None may be flagged.
var innocents = map[string][]string{
	"Latin": {"Tempo 3 x 10 min", "caf\u00e9 br\u00fbl\u00e9", "Stra\u00dfe, \u0141\u00f3d\u017a, \u0130stanbul", "Ti\u1ebfng Vi\u1ec7t, \u01a1n, \u01b0ng",
		"k\u0131sa s\u0131ra, yar\u0131n", "a [link] and 3 > 2", "Ana\u2019s \u201cplan\u201d \u2013 10\u201320 km\u2026", "100 \u20ac \u2192 50 %, \u00bd, m\u00b2"},
	"science": {"10 \u03bcm, 5 k\u03a9, \u0394t = 3", "3\u22362 and 1\u204410", "2 \u2212 1 \u00d7 3"},
	"files": {"main.go, v1.2, e.g. this, i.e. that", "foo_test.go:12 and //nolint", "README.md, a@b, @handle, a.b.c()", "R\u00e9sum\u00e9.doc, \u043e\u0442\u0447\u0451\u0442.pdf, M\u00f6hre.txt",
		"p. 3.5, 10:30, 192.168.0.1:80", `C:\Users\ana\x.txt`, "Ende.Neuer Satz."},
	"links": {"https://acme.example/path?q=1#x", "http://localhost:8080/\u0444\u0430\u0439\u043b", "bob@acme.example, mailto:ana@acme.example", "[a](https://acme.example) //acme.example/x",
		"https://acme.example/@ana", "https:acme.example", "https://acme.example/?u=https://b.example", "git@acme.example:repo/x.git", "https://acme.example/a%20b"},
	"emoji": {"\U0001f600 \U0001f3c3 \U0001f6b4", "\u2764\ufe0f and \u2600\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f469\U0001f3fd\u200d\U0001f680",
		"\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f3c3\U0001f3fb\u200d\u2640\ufe0f", "1\ufe0f\u20e3 2\ufe0f\u20e3 #\ufe0f\u20e3", "\U0001f44d\U0001f3fd\u261d\U0001f3ff",
		"\U0001f469\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468", "\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1", "\u2714 done, \u2600, \u00a9 2026, \u2122, \u2194",
		"\U0001f3d4\ufe0f \U0001f3cb\ufe0f\u200d\u2640\ufe0f \U0001f575\U0001f3fd\u200d\u2642\ufe0f", "\U0001f426\u200d\U0001f525 \U0001f34b\u200d\U0001f7e9", "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0f"},
	"flags":   {"\U0001f1e9\U0001f1ea \U0001f1ef\U0001f1f5", "\U0001f1e9\U0001f1ea\U0001f1ef\U0001f1f5\U0001f1fa\U0001f1f8", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\U0001f3f4\u200d\u2620\ufe0f \U0001f3f4"},
	"Persian": {persian, "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627", "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645"},
	"Arabic":  {"\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f", "\u0647\u0627\u0647\u0627\u0647\u0627"},
	"Hebrew":  {"\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u05d1\u05be 5 \u05d9\u05d5\u05dd", "\u05e1\u05d5\u05e1\u05d5"},
	"Cyrillic": {"\u043d\u0430\u0443\u043a\u0430 \u0438 \u0436\u0438\u0437\u043d\u044c", "\u0440\u0435\u0441\u0442\u043e\u0440\u0430\u043d \u0441\u043e\u0440\u0442", "\u0441\u0430\u0445\u0430\u0440 \u0438 \u043c\u0443\u043a\u0430",
		"\u043f\u043e\u0447\u0442\u0430.\u0440\u0444", "\u0441\u0430\u0445\u0430\u0440.\u0440\u0444 \u043c\u0443\u043a\u0430", "\u0421\u0442\u0430\u0440\u0442 \u0432 \u041c\u043e\u0441\u043a\u0432\u0435"},
	"Greek":  {"\u0395\u03bb\u03bb\u03ac\u03b4\u03b1", "\u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5"},
	"CJK":    {"\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304f", "\ud55c\uad6d\uc5b4", "T\u30b7\u30e3\u30c4", "\u4f60\u597d\u3002\u4e16\u754c", "\uff08\u6ce8\uff09\uff1a\uff11\uff12"},
	"India":  {"\u0939\u093f\u0928\u094d\u0926\u0940", "\u0915\u094d\u200d\u0937", "\u0915\u094d\u200c\u0937", "\u0baa\u0bcb\u0bb2", "\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0d05\u0d35\u0d7b"},
	"others": {"\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8", "\u0540\u0561\u0575\u0565\u0580\u0565\u0576", "\u12a0\u121b\u122d\u129b"},
}

// honestHosts are told by their other name, and no more.
var honestHosts = []string{"https://\u043f\u043e\u0447\u0442\u0430.example/ is none of ours", "https://\u043f\u043e\u0447\u0442\u0430.\u0440\u0444", "ana@b\u00fccher.example", "[x](//b\u00fccher.example/y)"}

func TestEveryDeceptionIsVisible(t *testing.T) {
	kinds := map[string]int{}
	for _, d := range deceptions {
		kinds[d.kind]++
		if render.Line(d.text) == d.text && len(render.Badges(d.text)) == 0 {
			t.Errorf("%s, %s: %+q looks harmless", d.kind, d.name, d.text)
		}
	}
	if len(deceptions) < 60 || len(kinds) < 9 {
		t.Errorf("%d deceptions of %d kinds", len(deceptions), len(kinds))
	}
}

func TestNothingInnocentIsFlagged(t *testing.T) {
	n := 0
	for kind, list := range innocents {
		for _, s := range list {
			n++
			if got := render.Line(s); got != s {
				t.Errorf("%s: %s is shown as %+q", kind, s, got)
			}
			if badges := render.Badges(s); len(badges) != 0 {
				t.Errorf("%s: %s: %q", kind, s, badges)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d innocents", n)
	}
	for _, s := range honestHosts {
		if badges := render.Badges(s); len(badges) != 1 || !strings.Contains(badges[0], "xn--") {
			t.Errorf("%s: %q", s, badges)
		}
	}
}

func TestAHostIsToldBothWays(t *testing.T) {
	for s, want := range map[string]string{
		"https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/": "looks like paypal and is not",
		"\u0440\u0430\u0443\u0440\u0430\u04cf.com":          "looks like paypal and is not",
		"https://xn--80ak6aa92e.com":                        "is \"\u0430\u0440\u0440\u04cf\u0435.com\"",
		"bob@xn--80ak6aa92e.com":                            "looks like apple and is not",
		"xn--80ak6aa92e.com:443":                            "is \"\u0430\u0440\u0440\u04cf\u0435.com\"",
		"https://b\u00fccher.example":                       "is xn--bcher-kva.example",
		"https://a.example@b.example":                       `the link goes to "b.example"`,
		`https://b.example\@a.example`:                      `the link goes to "b.example"`,
		"https://a.example%2eb.example/":                    `is "a.example.b.example"`,
		"https://\u0430pple.com:8443/x":                     `"аpple" mixes Latin and Cyrillic letters and looks like apple`,
		"p\u0430ypal":                                       "mixes Latin and Cyrillic letters and looks like paypal",
	} {
		if got := strings.Join(render.Badges(s), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}

// mutations are what an attacker puts in, by kind; one of each kind is as likely as of any other.
var mutations = [][]string{
	{"\u202e", "\u202d", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"},
	{"\u200b", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u180e", "\u115f", "\u3164", "\uffa0", "\u2800", "\u17b4", "\u2062", "\U000e0041", "\U000e007f", "\U000e0001"},
	{"\u200c", "\u200d", "\u094d\u200d", "\u094d\u200c", "\u200d\u0937", "\u200c\u0645", "\u0d4d\u200d"},
	{"\u200d\U0001f468", "\u200d\U0001f680", "\u200d\u2764\ufe0f\u200d\U0001f468", "\u200d\u2640\ufe0f", "\u200d\u2640", "\ufe0f", "\ufe0e", "\U000e0100", "\u20e3", "\ufe0f\u20e3", "\U0001f3fd", "\U0001f3d4", "\U0001f468"},
	{"\U0001f1e9", "\U0001f1fa\U0001f1f8", "\U0001f1fa\U0001f1f2", "\U0001f1fd\U0001f1fd", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\U000e0067"},
	{" ", "\u00a0", "\u2003", "\u3000", "         ", "\u2028", "\u2029", "\u0085"},
	{"\x00", "\n", "\r", "\t", "\b", "\x1b", "\u009b", "\x7f", "\xff", "\xc3", "\ufffd", "[", "U", "+", "[U+202E]", "[U+200B zero width space]", "[0xff]", "]"},
	{"\u0301", "\u0336", "\u0332", "\u00e9", "e\u0301", "\u212b", "\u1100\u1161", "\uac00", "\ufe8d", "\u0627", "\ufb03", "\ue000", "\ufdd0", "\u0300\u0301\u0302\u0303"},
	{"\u0430", "\u03bf", "\u0561", "\u13a0", "\u04cf", "\u0261", "\uff41", "\U0001d5ba", "\u217c", "\u09ea", "a", "l", "8"},
	{"https://", "//", "xn--80ak6aa92e.com", "@", ".", "\uff0e", "\u2215", "\ua789", "\\", "%2e", ":443", "<b>", "&amp;", "\"", "'"},
}

// mutate changes one place of a text, as an attacker does: something more, less, or in the place of something.
func mutate(r *rand.Rand, s string) string {
	kind := mutations[r.IntN(len(mutations))]
	c := kind[r.IntN(len(kind))]
	if r.IntN(8) == 0 {
		c = string(rune(r.IntN(utf8.MaxRune)))
	}
	cuts := []int{len(s)} // between characters; what is no UTF-8 has one at each byte
	for i := range s {
		cuts = append(cuts, i)
	}
	slices.Sort(cuts)
	at := r.IntN(len(cuts))
	from, to := cuts[at], cuts[min(at+1, len(cuts)-1)]
	switch r.IntN(6) {
	case 0:
		return s[:from] + s[to:]
	case 1:
		return s[:from] + c + s[to:]
	}
	return s[:from] + c + s[from:]
}

var severalBlanks = regexp.MustCompile(`[ \n]+`)

// drawnBlanks is what a browser leaves of the blanks of a page: one of several, none at either end.
func drawnBlanks(page string) string {
	return strings.Trim(severalBlanks.ReplaceAllString(seen(page), " "), " ")
}

// rapid draws a text and a seed, and fails with the seed that it can be run again with; the pairs of one draw are made
// here, because to draw each of them by itself takes minutes.
func TestAHundredThousandMutatedTextsNeverLookAlike(t *testing.T) {
	pool := []string{"", "[U+202E]", "[U+202E right-to-left override]", "[0xff]", "a\xffb"}
	for _, kind := range slices.Sorted(maps.Keys(innocents)) {
		pool = append(pool, innocents[kind]...)
	}
	for _, d := range deceptions {
		pool = append(pool, d.text, d.honest)
	}
	pairs := 0
	for pairs < 100_000 {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			base := rapid.SampledFrom(pool).Draw(t, "text")
			for range 250 {
				a := base
				for range r.IntN(3) {
					a = mutate(r, a)
				}
				b := mutate(r, a)
				if a == b {
					continue
				}
				pairs++
				if render.Line(a) == render.Line(b) {
					t.Fatalf("%+q and %+q are both shown as %+q", a, b, render.Line(a))
				}
				x, y := string(render.Reveal(a)), string(render.Reveal(b))
				if x == y {
					t.Fatalf("%+q and %+q are both the page's %+q", a, b, x)
				}
				if seen(x) == seen(y) {
					t.Fatalf("%+q and %+q are both read as %+q", a, b, seen(x))
				}
				if drawnBlanks(x) == drawnBlanks(y) {
					t.Fatalf("%+q and %+q are both drawn as %+q", a, b, drawnBlanks(x))
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

// What an agent may send at most must not keep the page busy, whatever it is made of.
func TestTheWorstTextsAreJudgedInTime(t *testing.T) {
	for _, unit := range []string{"\U0001f468\u200d", "\U0001f3fd", "\u094d\u200d", "\u0645\u200c", "\u064e", "\u0430b ", "\u0430.", "//\u0430b.c", "xn--", "@", "\U0001f1e9", "\U0001f3f4\U000e0067", "\u0301", "\U000102a0"} {
		s := strings.Repeat(unit, render.Limit/len(unit))
		from := time.Now()
		_ = render.Reveal(s)
		_ = render.Badges(s)
		if took := time.Since(from); took > 2*time.Second {
			t.Errorf("%+q takes %v", unit, took)
		} else {
			t.Logf("%+q %v", unit, took)
		}
	}
}
