package render

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
)

// Reveal is Line for a page: what nobody could see is a chip with the code and the name of the character, and all else
// is escaped and set apart from what stands around it (UAX #9). Two different strings give different pages, and read
// differently without markup too: a chip has the brackets of a token, for whom copies it or has it read out. It is the
// one place that makes HTML of text that came from outside.
func Reveal(s string) template.HTML { return apart(reveal(s, 0, len(s))) }

// reveal makes the part of a line between two offsets. What is a token is decided in the whole line: the blank before a
// link is not the last.
func reveal(line string, from, to int) string {
	if plain(line) {
		return escaped(line[from:to])
	}
	var b strings.Builder
	at := 0
	for _, p := range pieces(line) {
		switch lo, hi := max(from-at, 0), min(to-at, len(p.text)); {
		case lo >= hi:
		case p.token:
			b.WriteString(chip(p.code, p.text))
		default:
			b.WriteString(escaped(p.text[lo:hi]))
		}
		at += len(p.text)
	}
	return b.String()
}

// quotes need no escape between tags, where all of this stands; a template escapes them anew in an attribute.
var quotes = strings.NewReplacer("&#34;", `"`, "&#39;", "'")

func escaped(s string) string { return quotes.Replace(template.HTMLEscapeString(s)) }

// apart isolates what reveal and chips made, and keeps its blanks apart: a browser draws several in a row as one, and none
// at the start. So each that would go is a no-break space, which cannot be mistaken: one that came from outside is a token.
func apart(line string) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	blank, tag := true, false
	for i := range len(line) {
		switch c := line[i]; {
		case tag || c == '<':
			tag = c != '>'
		case c == ' ' && blank:
			b.WriteString("&nbsp;")
			continue
		default:
			blank = c == ' ' || c == '\n'
		}
		b.WriteByte(line[i])
	}
	b.WriteString("</bdi>")
	return template.HTML(b.String())
}

// chip is a token on a page; code is -1 for the byte that is no UTF-8.
func chip(code rune, text string) string {
	if code < 0 {
		return fmt.Sprintf(`<span class="hc">[0x%02x]</span>`, text[0])
	}
	return fmt.Sprintf(`<span class="hc">[U+%04X%s]</span>`, code, nameOf(code))
}

// names of the characters that are used to deceive most; the code alone says enough of the others.
var names = map[rune]string{
	0: "NUL", '\t': "tab", '\n': "line feed", '\r': "carriage return", 0x1b: "escape", ' ': "space", '[': "bracket",
	0xa0: "no-break space", 0xad: "soft hyphen", 0x34f: "grapheme joiner", 0x61c: "Arabic letter mark", 0x180e: "Mongolian vowel separator",
	0x200b: "zero width space", 0x200c: "zero width non-joiner", 0x200d: "zero width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
	0x2028: "line separator", 0x2029: "paragraph separator", 0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding",
	0x202c: "end of direction", 0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x2060: "word joiner",
	0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate", 0x2069: "end of isolate",
	0x2800: "blank Braille pattern", 0x3000: "ideographic space", 0x3164: "Hangul filler", 0xfeff: "byte order mark", 0xffa0: "Hangul filler",
	0xfe0e: "text selector", 0xfe0f: "emoji selector", 0x20e3: "keycap",
}

func nameOf(r rune) string {
	switch n, ok := names[r]; {
	case ok:
		return " " + n
	case r >= 0xe0020 && r <= 0xe007e:
		return " tag " + template.HTMLEscapeString(string(r-0xe0000))
	case r == 0xe007f:
		return " end of tags"
	case r >= 0x300 && r <= 0x36f:
		return " combining mark"
	case r >= 0xe000 && r <= 0xf8ff:
		return " private use"
	case tone(r):
		return " skin tone"
	case regional(r):
		return " regional letter " + string('A'+r-'\U0001f1e6')
	case unicode.Is(emoji().text, r):
		return " emoji without selector"
	case unicode.Is(boxes(), r):
		return " " + strings.ReplaceAll(scriptOf(r), "_", " ")
	case unicode.Is(posing, r):
		return " presentation form"
	}
	return ""
}
