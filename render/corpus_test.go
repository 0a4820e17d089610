package render_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wetink/wetink/render"
)

// deceptions are texts that look like another one, or hide something. Each must be shown with a token or a badge.
var deceptions = map[string]string{
	"right-to-left override":          "report\u202efdp.exe",
	"left-to-right override":          "a\u202dbc",
	"embedding":                       "x\u202ay\u202c",
	"isolate":                         "access\u2066 // only\u2069\u2066 admin\u2069",
	"first strong isolate":            "\u2068x\u2069",
	"left-to-right mark":              "pay\u200epal",
	"right-to-left mark":              "pay\u200fpal",
	"arabic letter mark":              "pay\u061cpal",
	"zero width space":                "pay\u200bpal",
	"zero width joiner in Latin":      "pay\u200dpal",
	"zero width non-joiner in Latin":  "pay\u200cpal",
	"non-joiner that changes nothing": "\u062f\u200c\u0645",
	"word joiner":                     "pay\u2060pal",
	"byte order mark inside":          "pay\ufeffpal",
	"soft hyphen":                     "pay\u00adpal",
	"combining grapheme joiner":       "pay\u034fpal",
	"mongolian vowel separator":       "pay\u180epal",
	"hangul filler":                   "pay\u3164pal",
	"halfwidth hangul filler":         "pay\uffa0pal",
	"hangul choseong filler":          "pay\u115fpal",
	"braille blank":                   "pay\u2800pal",
	"invisible times":                 "2\u2062x",
	"function application":            "f\u2061x",
	"tags":                            "hello\U000e0068\U000e0069\U000e007f",
	"tags behind a flag":              "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e0076\U000e0069\U000e006c\U000e007f",
	"language tag":                    "x\U000e0001",
	"variation selector on a letter":  "a\ufe0e",
	"supplementary selector":          "a\U000e0100",
	"selector on an emoji by default": "\U0001f600\ufe0f",
	"two faces, joined":               "\U0001f600\u200d\U0001f600",
	"joiner behind a family":          "\U0001f468\u200d\U0001f469\u200d",
	"no-break space":                  "10\u00a0000",
	"em space padding":                "ok\u2003\u2003\u2003then delete all",
	"ideographic space":               "ok\u3000then",
	"trailing blanks":                 "admin  ",
	"padding":                         "ok" + strings.Repeat(" ", 60) + "then delete all",
	"line separator":                  "one\u2028two",
	"paragraph separator":             "one\u2029two",
	"carriage return":                 "delete all\rnothing",
	"backspace":                       "delete\b\b\b\b\b\bkeep  ",
	"escape sequence":                 "\x1b[8mhidden\x1b[0m",
	"C1 sequence":                     "\u009b8mhidden",
	"NUL":                             "a\x00b",
	"decomposed":                      "cafe\u0301",
	"singleton":                       "10 \u212a",
	"marks without a base":            "\u0336deleted",
	"a tower of marks":                "Z\u0300\u0301\u0302\u0303\u0304",
	"private use":                     "\ue000",
	"no character":                    "\ufdd0",
	"no UTF-8":                        "a\xc0\xafb",
	"a token that was typed":          "[U+202E]",
	"Cyrillic a in Latin":             "p\u0430ypal",
	"Greek omicron in Latin":          "g\u03bf\u03bfgle",
	"Armenian in Latin":               "app\u04cfe \u0561pple",
	"a host in Cyrillic look-alikes":  "https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/login",
	"a host with one foreign letter":  "https://\u0430pple.com",
	"punycode of a look-alike":        "https://xn--80ak6aa92e.com",
	"an emoji in text form":           "\U0001f3d4 peak",
	"a flag without its selector":     "\U0001f3f3\u200d\U0001f308",
	"a nested one":                    "[a] \u2063",
	"a host behind an at sign":        "https://acme.example@evil.example/",
}

// innocents are what people write. None may be flagged.
var innocents = []string{
	"Tempo 3 x 10 min", "caf\u00e9 br\u00fbl\u00e9", "Stra\u00dfe, \u0141\u00f3d\u017a, \u0130stanbul", "\U0001f600 \U0001f3c3 \U0001f6b4",
	"\u2764\ufe0f and \u2600\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f469\U0001f3fd\u200d\U0001f680",
	"\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f3c3\U0001f3fb\u200d\u2640\ufe0f", "1\ufe0f\u20e3 2\ufe0f\u20e3 #\ufe0f\u20e3",
	"\U0001f1e9\U0001f1ea \U0001f1ef\U0001f1f5", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
	"\U0001f469\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468", "\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1",
	"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", // Persian, with a non-joiner that is seen
	"\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f",
	"\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u043d\u0430\u0443\u043a\u0430 \u0438 \u0436\u0438\u0437\u043d\u044c",
	"https://\u043f\u043e\u0447\u0442\u0430.example/ is none of ours", "\u0395\u03bb\u03bb\u03ac\u03b4\u03b1",
	"\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304f", "\ud55c\uad6d\uc5b4", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
	"\u0939\u093f\u0928\u094d\u0926\u0940", "\u0915\u094d\u200d\u0937", "\u0baa\u0bcb\u0bb2", "T\u30b7\u30e3\u30c4", "a [link] and 3 > 2",
	"\u2714 done, \u2600, \u00a9 2026, \u2122, \u2194", "\U0001f3d4\ufe0f \U0001f3cb\ufe0f\u200d\u2640\ufe0f \U0001f575\U0001f3fd\u200d\u2642\ufe0f",
	"\u0d05\u0d35\u0d28\u0d4d\u200d", "Ti\u1ebfng Vi\u1ec7t", "\u0440\u0435\u0441\u0442\u043e\u0440\u0430\u043d \u0441\u043e\u0440\u0442", "\u05d1\u05be 5 \u05d9\u05d5\u05dd", "100 \u20ac \u2192 50 %, \u00bd", "https://acme.example/path?q=1#x",
}

func TestEveryDeceptionIsVisible(t *testing.T) {
	if len(deceptions) < 40 {
		t.Errorf("%d deceptions", len(deceptions))
	}
	for name, s := range deceptions {
		if render.Line(s) == s && len(render.Badges(s)) == 0 {
			t.Errorf("%s: %+q looks harmless", name, s)
		}
	}
}

func TestNothingInnocentIsFlagged(t *testing.T) {
	if len(innocents) < 20 {
		t.Errorf("%d innocents", len(innocents))
	}
	for _, s := range innocents {
		if got := render.Line(s); got != s {
			t.Errorf("%s is shown as %+q", s, got)
		}
		badges := render.Badges(s)
		if strings.Contains(s, "\u043f\u043e\u0447\u0442\u0430.example") { // the other name of an honest host is told, and no more
			if len(badges) != 1 || !strings.Contains(badges[0], "xn--") {
				t.Errorf("%s: %q", s, badges)
			}
			continue
		}
		if len(badges) != 0 {
			t.Errorf("%s: %q", s, badges)
		}
	}
}

func TestAHostIsToldBothWays(t *testing.T) {
	for s, want := range map[string]string{
		"https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/": "looks like paypal and is not",
		"https://xn--80ak6aa92e.com":                        "is \"\u0430\u0440\u0440\u04cf\u0435.com\"",
		"https://b\u00fccher.example":                       "is xn--bcher-kva.example",
		"https://a.example@b.example":                       `the link goes to "b.example"`,
		"p\u0430ypal":                                       "mixes Latin and Cyrillic letters",
	} {
		if got := strings.Join(render.Badges(s), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}

// One change of a text, as an attacker makes it: a character more, less, or another one.
func mutate(r *rand.Rand, s string) string {
	runes := []rune(s)
	invisible := []rune{0x200b, 0x200c, 0x200d, 0x2060, 0xfeff, 0xad, 0x34f, 0x202e, 0x2066, 0xfe0f, 0xfe0e, 0xe0041, 0xe007f, 0xe0100, 0x3164,
		0x2800, 0xa0, 0x2003, ' ', 0x301, 0x0, '\n', '\r', '\t', 0x1b, '[', 'U', '+', 0x85, 0x2028, 0xfffd, 0x430, 'a'}
	c := invisible[r.IntN(len(invisible))]
	if r.IntN(4) == 0 {
		c = rune(r.IntN(utf8.MaxRune))
	}
	at := r.IntN(len(runes) + 1)
	switch {
	case r.IntN(3) > 0 || len(runes) == 0:
		return string(runes[:at]) + string(c) + string(runes[at:])
	case at == len(runes):
		return string(runes[:at-1])
	case r.IntN(2) == 0:
		return string(runes[:at]) + string(runes[at+1:])
	}
	return string(runes[:at]) + string(c) + string(runes[at+1:])
}

func TestAHundredThousandMutatedTextsNeverLookAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := append([]string{"", "[U+202E]", "[U+202E right-to-left override]", "[0xff]", "a\xffb"}, innocents...)
	pool = append(pool, slices.Sorted(maps.Values(deceptions))...)
	pairs := 0
	for pairs < 100_000 {
		a := pool[r.IntN(len(pool))]
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
	}
}
