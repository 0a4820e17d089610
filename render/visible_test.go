package render_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/wetink/wetink/render"
)

func TestWhatNobodyCouldSeeIsNamed(t *testing.T) {
	for in, want := range map[string]string{
		"Tempo 3 x 10 min":             "Tempo 3 x 10 min",
		"Möhre, 東京, наука, שלום":       "Möhre, 東京, наука, שלום",
		"a\u202eb":                     "a[U+202E]b",
		"\u2066x\u2069":                "[U+2066]x[U+2069]",
		"zero\u200bwidth\u2060":        "zero[U+200B]width[U+2060]",
		"\ufeffbom":                    "[U+FEFF]bom",
		"soft\u00adhyphen":             "soft[U+00AD]hyphen",
		"tag\U000e0041\U000e007f":      "tag[U+E0041][U+E007F]",
		"\u2600\ufe0f":                 "\u2600\ufe0f",
		"\U0001f600\ufe0f":             "\U0001f600[U+FE0F]",
		"a\U000e0100":                  "a[U+E0100]",
		"\u3164filler\uffa0":           "[U+3164]filler[U+FFA0]",
		"braille\u2800blank":           "braille[U+2800]blank",
		"nbsp\u00a0em\u2003ideo\u3000": "nbsp[U+00A0]em[U+2003]ideo[U+3000]",
		"line\u2028para\u2029":         "line[U+2028]para[U+2029]",
		"esc\x1b[31mred":               "esc[U+001B][31mred",
		"bell\a\r\ttab":                "bell[U+0007][U+000D][U+0009]tab",
		"c1\u009b31m":                  "c1[U+009B]31m",
		"del\x7f":                      "del[U+007F]",
		"two\nlines":                   "two[U+000A]lines",
		"end  ":                        "end[U+0020][U+0020]",
		" start":                       " start",
		"pad         b":                "pad        [U+0020]b",
		"cafe\u0301":                   "cafe[U+0301]",
		"caf\u00e9":                    "caf\u00e9",
		"\u212bngstrom":                "[U+212B]ngstrom",
		"\u0301alone":                  "[U+0301]alone",
		"q\u0307\u0307\u0307\u0307":    "q\u0307\u0307\u0307[U+0307]",
		"\xff\xc3(":                    "[0xff][0xc3](",
		"real \ufffd":                  "real \ufffd",
		"private\ue000":                "private[U+E000]",
		"nonchar\uffff":                "nonchar[U+FFFF]",
		"[U+202E]":                     "[U+005B]U+202E]",
		"[0xff]":                       "[U+005B]0xff]",
		"[x]":                          "[x]",
		"emoji \U0001f600":             "emoji \U0001f600",
		"mongolian\u180e":              "mongolian[U+180E]",
		"joiner\u034f":                 "joiner[U+034F]",
	} {
		if got := render.Line(in); got != want {
			t.Errorf("Line(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

// nasty draws from what is dangerous far more often than chance would.
func nasty() *rapid.Generator[string] {
	parts := []string{"[", "U", "+", "U+", "[U+", "[0x", "0x", "]", "[U+005B]", "[U+202E]", "\u202e", "\u200b", "e", "\u0301", "\u00e9", " ", "         ",
		"\n", "\r", "\t", "\x1b", "\"", "\\", "\xff", "\xc3", "\ufffd", "\u3164", "\U000e0041", "\ufe0f", "\u1100", "\u1161", "\uac00", "\u212b", "\u00c5", "null", "1", "{", "-", "2026-07-16", "T08:00:00"}
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8), func(l []string) string { return strings.Join(l, "") }),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
	)
}

func TestDifferentTextNeverLooksAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := nasty().Draw(t, "a"), nasty().Draw(t, "b")
		if a != b && render.Line(a) == render.Line(b) {
			t.Fatalf("%+q and %+q are both shown as %+q", a, b, render.Line(a))
		}
		if a != b && render.Lines(a) == render.Lines(b) {
			t.Fatalf("%+q and %+q are both shown as the lines %+q", a, b, render.Lines(a))
		}
	})
}

// unline is what a person could do with paper: read the tokens back.
func unline(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		var n rune
		var hex string
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "[U+"):
			hex = rest[3:strings.IndexByte(rest, ']')]
			for _, c := range hex {
				n = n<<4 | rune(strings.IndexRune("0123456789ABCDEF", c))
			}
			b.WriteRune(n)
			i += len(hex) + 4
		case strings.HasPrefix(rest, "[0x"):
			n = rune(strings.IndexByte("0123456789abcdef", rest[3]))<<4 | rune(strings.IndexByte("0123456789abcdef", rest[4]))
			b.WriteByte(byte(n))
			i += 6
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}

func TestWhatIsShownCanBeReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := nasty().Draw(t, "s")
		shown := render.Line(s)
		if got := unline(shown); got != s {
			t.Fatalf("%+q is shown as %+q, which reads %+q", s, shown, got)
		}
		if !utf8.ValidString(shown) || !norm.NFC.IsNormalString(shown) {
			t.Fatalf("%+q is shown as %+q", s, shown)
		}
		for _, r := range shown {
			if !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) && r != ' ' {
				t.Fatalf("%+q is shown as %+q with %U in it", s, shown, r)
			}
		}
		if strings.HasSuffix(shown, " ") {
			t.Fatalf("%+q ends in a blank", shown)
		}
	})
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "Tempo", "[U+202E]", "e\u0301", "\xff[0x", "\u1100\u1161\u11a8", "\U000e0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := render.Line(s)
		if got := unline(shown); got != s {
			t.Errorf("%+q is shown as %+q, which reads %+q", s, shown, got)
		}
		if !norm.NFC.IsNormalString(shown) {
			t.Errorf("%+q is shown as %+q", s, shown)
		}
		if again := render.Lines(s); strings.Count(again, "\n") != strings.Count(s, "\n") {
			t.Errorf("%+q is shown as %+q", s, again)
		}
	})
}
