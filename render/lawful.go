package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lawful finds the offsets of characters that are hidden elsewhere and that a language or an emoji needs just where they
// stand, so that to leave them out would be seen: in a family, a flag, a Persian word. Anywhere else the same character
// changes nothing on the screen, and is shown.
func lawful(s string) map[int]bool {
	var found map[int]bool
	add := func(at int) {
		if found == nil {
			found = map[int]bool{}
		}
		found[at] = true
	}
	for at, r := range s {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			continue
		}
		switch before, after := s[:at], s[min(at+size, len(s)):]; r {
		case '\ufe0f':
			if presents(before, after) {
				add(at)
			}
		case '\u200d':
			if joins(before, after) || virama(before) {
				add(at)
			}
		case '\u200c':
			if parts(before, after) || virama(before) {
				add(at)
			}
		case '\U0001f3f4':
			for _, region := range []string{"gbeng", "gbsct", "gbwls"} { // the three that Unicode recommends (UTS #51)
				if tags := tagged(region); strings.HasPrefix(after, tags) {
					for i := range tags {
						add(at + size + i)
					}
				}
			}
		}
	}
	return found
}

func last(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }
func first(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }

// presents reports whether the selector turns a character that is text by default into an emoji. Digits need the keycap.
func presents(before, after string) bool {
	r := last(before)
	if r == '#' || r == '*' || r >= '0' && r <= '9' {
		return first(after) == '\u20e3'
	}
	return unicode.Is(textEmoji, r)
}

// bare reports a picture that should be text without a selector behind it. No font has it as text, so that it would look
// like the one with the selector.
func bare(r rune, after string) bool {
	next := first(after)
	return r >= '\U0001f300' && unicode.Is(textEmoji, r) && next != '\ufe0f' && next != '\ufe0e' && (next < '\U0001f3fb' || next > '\U0001f3ff')
}

// joins reports whether a joiner between the two makes one picture of them in fonts that follow UTS #51. Between others,
// two faces and two joined faces look alike.
func joins(before, after string) bool {
	next := first(after)
	left := strings.TrimSuffix(before, "\ufe0f")
	base := last(left)
	if base >= '\U0001f3fb' && base <= '\U0001f3ff' { // skin
		left = left[:len(left)-utf8.RuneLen(base)]
		base = last(left)
	}
	switch {
	case next == '\u2640' || next == '\u2642':
		return unicode.Is(actions, base)
	case unicode.Is(persons, base):
		return unicode.Is(persons, next) || unicode.Is(roles, next)
	case strings.HasSuffix(left, "\u2764") && unicode.Is(persons, next), strings.HasSuffix(left, "\U0001f48b") && unicode.Is(persons, next),
		strings.HasSuffix(left, "\U0001f91d") && unicode.Is(persons, next):
		return strings.Contains(left, "\u200d") // in the middle of a couple
	case next == '\U0001f48b' && base == '\u2764':
		return strings.Contains(left, "\u200d")
	}
	return strings.ContainsRune(pairs[base], next)
}

// pairs are the joined emoji without a person.
var pairs = map[rune]string{
	'\U0001f3f3': "\U0001f308\u26a7", '\U0001f3f4': "\u2620", '\U0001f43b': "\u2744", '\U0001f408': "\u2b1b",
	'\U0001f426': "\u2b1b\U0001f525", '\U0001f415': "\U0001f9ba", '\U0001f441': "\U0001f5e8", '\u2764': "\U0001f525\U0001fa79",
	'\U0001f62e': "\U0001f4a8", '\U0001f635': "\U0001f4ab", '\U0001f636': "\U0001f32b", '\U0001f34b': "\U0001f7e9",
	'\U0001f344': "\U0001f7eb", '\u26d3': "\U0001f4a5", '\U0001f642': "\u2194\u2195",
}

// tagged spells a region in tag characters, with the cancel tag behind it.
func tagged(region string) string {
	var b strings.Builder
	for _, r := range region {
		b.WriteRune(0xe0000 + r)
	}
	return b.String() + "\U000e007f"
}

// parts reports whether a non-joiner keeps two Arabic letters apart that would join: it is seen then.
func parts(before, after string) bool {
	left := strings.TrimRightFunc(before, func(r rune) bool { return unicode.Is(unicode.Mn, r) })
	l, r := last(left), first(after)
	return unicode.Is(unicode.Arabic, l) && unicode.IsLetter(l) && !strings.ContainsRune(rightJoining, l) &&
		unicode.Is(unicode.Arabic, r) && unicode.IsLetter(r) && r != '\u0621'
}

// rightJoining letters join the one before them only (Unicode, ArabicShaping), so nothing joins them to what follows.
const rightJoining = "\u0621\u0622\u0623\u0624\u0625\u0627\u0629\u062f\u0630\u0631\u0632\u0648\u0671\u0672\u0673\u0675\u0676\u0677" +
	"\u0688\u0689\u068a\u068b\u068c\u068d\u068e\u068f\u0690\u0691\u0692\u0693\u0694\u0695\u0696\u0697\u0698\u0699\u06c0\u06c3\u06c4\u06c5" +
	"\u06c6\u06c7\u06c8\u06c9\u06ca\u06cb\u06cd\u06cf\u06d2\u06d3\u06d5\u06ee\u06ef"

// virama: in the scripts of India a joiner or non-joiner after the sign that kills a vowel chooses the shape.
func virama(before string) bool {
	r := last(before)
	return r != utf8.RuneError && norm.NFC.PropertiesString(string(r)).CCC() == 9
}

func table(ranges ...[2]rune) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for _, r := range ranges {
		if r[1] <= 0xffff {
			t.R16 = append(t.R16, unicode.Range16{Lo: uint16(r[0]), Hi: uint16(r[1]), Stride: 1})
		} else {
			t.R32 = append(t.R32, unicode.Range32{Lo: uint32(r[0]), Hi: uint32(r[1]), Stride: 1})
		}
	}
	return t
}

// textEmoji are emoji that are drawn as text unless a selector follows (Unicode, emoji-variation-sequences).
var textEmoji = table([][2]rune{
	{0xa9, 0xa9}, {0xae, 0xae}, {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x2199}, {0x21a9, 0x21aa},
	{0x2328, 0x2328}, {0x23cf, 0x23cf}, {0x23ed, 0x23ef}, {0x23f1, 0x23f2}, {0x23f8, 0x23fa}, {0x24c2, 0x24c2}, {0x25aa, 0x25ab},
	{0x25b6, 0x25b6}, {0x25c0, 0x25c0}, {0x25fb, 0x25fc}, {0x2600, 0x2604}, {0x260e, 0x260e}, {0x2611, 0x2611}, {0x2618, 0x2618},
	{0x261d, 0x261d}, {0x2620, 0x2620}, {0x2622, 0x2623}, {0x2626, 0x2626}, {0x262a, 0x262a}, {0x262e, 0x262f}, {0x2638, 0x263a},
	{0x2640, 0x2640}, {0x2642, 0x2642}, {0x265f, 0x2660}, {0x2663, 0x2663}, {0x2665, 0x2666}, {0x2668, 0x2668}, {0x267b, 0x267b},
	{0x267e, 0x267e}, {0x2692, 0x2692}, {0x2694, 0x2697}, {0x2699, 0x2699}, {0x269b, 0x269c}, {0x26a0, 0x26a0}, {0x26a7, 0x26a7},
	{0x26b0, 0x26b1}, {0x26c8, 0x26c8}, {0x26cf, 0x26cf}, {0x26d1, 0x26d1}, {0x26d3, 0x26d3}, {0x26e9, 0x26e9}, {0x26f0, 0x26f1},
	{0x26f4, 0x26f4}, {0x26f7, 0x26f9}, {0x2702, 0x2702}, {0x2708, 0x2709}, {0x270c, 0x270d}, {0x270f, 0x270f}, {0x2712, 0x2712},
	{0x2714, 0x2714}, {0x2716, 0x2716}, {0x271d, 0x271d}, {0x2721, 0x2721}, {0x2733, 0x2734}, {0x2744, 0x2744}, {0x2747, 0x2747},
	{0x2763, 0x2764}, {0x27a1, 0x27a1}, {0x2934, 0x2935}, {0x2b05, 0x2b07}, {0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3297},
	{0x3299, 0x3299}, {0x1f170, 0x1f171}, {0x1f17e, 0x1f17f}, {0x1f202, 0x1f202}, {0x1f237, 0x1f237}, {0x1f321, 0x1f321},
	{0x1f324, 0x1f32c}, {0x1f336, 0x1f336}, {0x1f37d, 0x1f37d}, {0x1f396, 0x1f397}, {0x1f399, 0x1f39b}, {0x1f39e, 0x1f39f},
	{0x1f3cb, 0x1f3ce}, {0x1f3d4, 0x1f3df}, {0x1f3f3, 0x1f3f3}, {0x1f3f5, 0x1f3f5}, {0x1f3f7, 0x1f3f7}, {0x1f43f, 0x1f43f},
	{0x1f441, 0x1f441}, {0x1f4fd, 0x1f4fd}, {0x1f549, 0x1f54a}, {0x1f56f, 0x1f570}, {0x1f573, 0x1f579}, {0x1f587, 0x1f587},
	{0x1f58a, 0x1f58d}, {0x1f590, 0x1f590}, {0x1f5a5, 0x1f5a5}, {0x1f5a8, 0x1f5a8}, {0x1f5b1, 0x1f5b2}, {0x1f5bc, 0x1f5bc},
	{0x1f5c2, 0x1f5c4}, {0x1f5d1, 0x1f5d3}, {0x1f5dc, 0x1f5de}, {0x1f5e1, 0x1f5e1}, {0x1f5e3, 0x1f5e3}, {0x1f5e8, 0x1f5e8},
	{0x1f5ef, 0x1f5ef}, {0x1f5f3, 0x1f5f3}, {0x1f5fa, 0x1f5fa}, {0x1f6cb, 0x1f6cb}, {0x1f6cd, 0x1f6cf}, {0x1f6e0, 0x1f6e5},
	{0x1f6e9, 0x1f6e9}, {0x1f6f0, 0x1f6f0}, {0x1f6f3, 0x1f6f3},
}...)

// persons join with each other and with roles; actions join with a sign of gender (UTS #51, emoji-zwj-sequences).
var (
	persons = table([2]rune{0x1f466, 0x1f469}, [2]rune{0x1f9d1, 0x1f9d2})
	roles   = table([][2]rune{
		{0x2695, 0x2696}, {0x2708, 0x2708}, {0x2764, 0x2764}, {0x1f33e, 0x1f33e}, {0x1f373, 0x1f373}, {0x1f37c, 0x1f37c}, {0x1f384, 0x1f384},
		{0x1f393, 0x1f393}, {0x1f3a4, 0x1f3a4}, {0x1f3a8, 0x1f3a8}, {0x1f3eb, 0x1f3eb}, {0x1f3ed, 0x1f3ed}, {0x1f4bb, 0x1f4bc},
		{0x1f527, 0x1f527}, {0x1f52c, 0x1f52c}, {0x1f680, 0x1f680}, {0x1f692, 0x1f692}, {0x1f91d, 0x1f91d}, {0x1f9af, 0x1f9b3},
		{0x1f9bc, 0x1f9bd}, {0x1fa70, 0x1fa70},
	}...)
	actions = table([][2]rune{
		{0x26f9, 0x26f9}, {0x1f3c3, 0x1f3c4}, {0x1f3ca, 0x1f3cc}, {0x1f46e, 0x1f46f}, {0x1f470, 0x1f471}, {0x1f473, 0x1f473},
		{0x1f477, 0x1f477}, {0x1f481, 0x1f482}, {0x1f486, 0x1f487}, {0x1f575, 0x1f575}, {0x1f645, 0x1f647}, {0x1f64b, 0x1f64b},
		{0x1f64d, 0x1f64e}, {0x1f6a3, 0x1f6a3}, {0x1f6b4, 0x1f6b6}, {0x1f926, 0x1f926}, {0x1f935, 0x1f935}, {0x1f937, 0x1f939},
		{0x1f93c, 0x1f93e}, {0x1f9b8, 0x1f9b9}, {0x1f9cd, 0x1f9cf}, {0x1f9d4, 0x1f9d4}, {0x1f9d6, 0x1f9df},
	}...)
)
