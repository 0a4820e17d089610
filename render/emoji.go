package render

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

//go:embed unicode/emoji.txt
var emojiFile string

// sequences are the emoji of UTS #51 that are made of several characters and that fonts draw as one picture: those
// recommended for general interchange (RGI). It is the data and not a rule of thumb, because between two emoji that no font
// joins a joiner is not seen.
//
// They are drawn as one where the reader has a font of emoji that knows them. Without one a family is its members in a row,
// with joiners or without.
type sequences struct {
	zwj     map[string]bool
	flags   map[string]bool // regions, in lower case
	regions []string        // the flags that are spelt in tags
	text    *unicode.RangeTable
	base    *unicode.RangeTable // what takes a skin tone
}

var emoji = sync.OnceValue(func() (e sequences) {
	e.zwj, e.flags = map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(emojiFile) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "zwj":
			e.zwj[rest] = true
		case "flag":
			for f := range strings.FieldsSeq(rest) {
				e.flags[f] = !twinFlags[f]
			}
		case "tags":
			e.regions = strings.Fields(rest)
		case "text":
			e.text = table(rest)
		case "base":
			e.base = table(rest)
		}
	}
	return e
})

// twinFlags are drawn like the flag of the country that they belong to: Clipperton and Saint Martin like France, Bouvet and
// Svalbard like Norway, and so on.
var twinFlags = map[string]bool{"bv": true, "cp": true, "dg": true, "ea": true, "hm": true, "mf": true, "sj": true, "um": true}

// table reads ranges such as 1f466-1f469.
func table(ranges string) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for lo, hi := range rangesOf(ranges) {
		if hi <= 0xffff {
			t.R16 = append(t.R16, unicode.Range16{Lo: uint16(lo), Hi: uint16(hi), Stride: 1})
		} else {
			t.R32 = append(t.R32, unicode.Range32{Lo: uint32(lo), Hi: uint32(hi), Stride: 1})
		}
	}
	return t
}

// rangesOf yields the first and the last of each; the files are ours and well-formed.
func rangesOf(ranges string) func(func(lo, hi rune) bool) {
	return func(yield func(lo, hi rune) bool) {
		for r := range strings.FieldsSeq(ranges) {
			a, b, several := strings.Cut(r, "-")
			lo, _ := strconv.ParseUint(a, 16, 32)
			hi := lo
			if several {
				hi, _ = strconv.ParseUint(b, 16, 32)
			}
			if !yield(rune(lo), rune(hi)) {
				return
			}
		}
	}
}

func tone(r rune) bool     { return r >= '\U0001f3fb' && r <= '\U0001f3ff' }
func regional(r rune) bool { return r >= '\U0001f1e6' && r <= '\U0001f1ff' }
func tagged(r rune) bool   { return r >= '\U000e0020' && r <= '\U000e007f' }
func keycap(r rune) bool   { return r == '#' || r == '*' || r >= '0' && r <= '9' }

// maxChain bounds chain, in bytes: two people with tones and a kiss between them have 35.
const maxChain = 64

// chain measures what begins s and could be one emoji: a character with all that modifies it, and what is joined to it.
func chain(s string) (n int, joined bool) {
	for i, r := range s {
		switch {
		case i > maxChain:
			return i, false
		case r == zwj:
			joined = true
		case i == 0, strings.HasSuffix(s[:i], string(zwj)):
		case tone(r), tagged(r), r == emojiSelector, r == textSelector, r == enclosingKeycap:
		default:
			return i, joined
		}
	}
	return len(s), joined
}

const (
	zwnj            = '\u200c'
	zwj             = '\u200d'
	textSelector    = '\ufe0e'
	emojiSelector   = '\ufe0f'
	enclosingKeycap = '\u20e3'
)

// flag measures the flag that begins s; 0: there is none.
func (e sequences) flag(s string) int {
	var region strings.Builder
	for i, r := range s {
		if !regional(r) || region.Len() == 2 {
			break
		}
		region.WriteByte(byte('a' + r - '\U0001f1e6'))
		if e.flags[region.String()] {
			return i + 4 // bytes of the second letter
		}
	}
	for _, region := range e.regions {
		var spelt strings.Builder
		spelt.WriteRune('\U0001f3f4')
		for _, r := range region {
			spelt.WriteRune(0xe0000 + r)
		}
		spelt.WriteRune('\U000e007f')
		if strings.HasPrefix(s, spelt.String()) {
			return spelt.Len()
		}
	}
	return 0
}
