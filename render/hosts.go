package render

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// host is what a text says of a host.
type host struct {
	name   string
	link   bool   // it is one, and not only perhaps: main.go may be a file, too
	behind string // what stands before the @ of a link
	slash  bool   // the link has a backslash before its path
}

// hosts are those of the links, the mail addresses and the plain names in a text.
func hosts(s string) (out []host) {
	for i := 0; i < len(s); {
		n := strings.IndexFunc(s[i:], between)
		if n < 0 {
			n = len(s) - i
		}
		word := s[i : i+n]
		if h, ok := hostOf(word, strings.HasSuffix(s[:i], "](")); ok {
			out = append(out, h)
		}
		for k, inner := range strings.Split(word, "://") { // a link within a link: where it leads on to
			if h, ok := hostOf("://"+inner, true); k > 1 && ok {
				out = append(out, h)
			}
		}
		i += n
		if i < len(s) {
			i += len(string(first(s[i:])))
		}
	}
	return out
}

// between are the characters that end a link in a text.
func between(r rune) bool {
	return unicode.IsSpace(r) || r < ' ' || strings.ContainsRune("\"'`<>()[]{}|,;!\u00ab\u00bb\u201c\u201d\u201e\u2018\u2019\u2026", r)
}

// dots part the labels of a host (UTS #46).
const dots = ".\u3002\uff0e\uff61"

// special schemes need no slashes for a browser to go there.
var special = regexp.MustCompile(`(?i)^(https?|wss?|ftp):/*`)

func hostOf(word string, link bool) (host, bool) {
	h := host{link: link}
	rest := strings.ReplaceAll(word, `\`, "/") // as browsers read it
	_, after, found := strings.Cut(rest, "://")
	until := strings.IndexAny(rest+"/", "/?#")
	switch {
	case found:
		h.link, rest = true, after
	case special.MatchString(rest):
		h.link, rest = true, special.ReplaceAllString(rest, "")
	case strings.HasPrefix(rest, "//"):
		h.link, rest = strings.ContainsAny(rest, dots), rest[2:]
	case strings.Contains(rest[:until], "@"):
		_, rest, _ = strings.Cut(rest, "@")
		h.link = strings.ContainsAny(rest, dots)
	case !strings.ContainsAny(rest, dots):
		return h, false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		h.slash = h.link && rest[end] == '/' && word[len(word)-len(rest)+end] == '\\'
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 && h.link {
		h.behind, rest = rest[:at], rest[at+1:]
	}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && strings.Trim(rest[at+1:], "0123456789") == "" {
		rest = rest[:at]
	}
	h.name = strings.Trim(rest, dots+":*_?&")
	return h, h.name != ""
}

// badges tell of a host what its letters hide.
func (h host) badges() (out []string) {
	name := h.name
	if un, err := url.PathUnescape(name); err == nil && un != name && h.link {
		out, name = append(out, brief(name)+" is "+brief(un)), un
	}
	if h.behind != "" {
		out = append(out, "the link goes to "+brief(name)+", what stands before the @ is no host")
	}
	if h.slash {
		out = append(out, "the link goes to "+brief(name)+", its \\ is a / to a browser")
	}
	ascii, err := idna.Lookup.ToASCII(name)
	shown, err2 := idna.Display.ToUnicode(strings.ToLower(name))
	switch {
	case err != nil && !plainHost(name):
		if h.link {
			out = append(out, brief(name)+" is no host that a browser takes")
		}
	case !isASCII(name):
		if h.link {
			out = append(out, brief(name)+" is "+ascii)
		}
	case strings.Contains(strings.ToLower(name), "xn--") && err2 == nil && shown != strings.ToLower(name):
		out = append(out, name+" is "+brief(shown))
		name = shown
	}
	labels := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(dots, r) })
	for i, label := range labels {
		if mixed := mixedScripts(label); mixed != "" {
			out = append(out, brief(label)+" mixes "+mixed)
		} else if like := disguise(label); len(like) >= 3 && !(i < len(labels)-1 && sameScript(label, labels[len(labels)-1])) {
			// In a Cyrillic domain under a Cyrillic top-level one everything says what script it is.
			out = append(out, looksLike(label, like))
		}
	}
	return out
}

func looksLike(word, like string) string {
	if len(like) > 60 {
		like = "a word of " + count(len(like), "Latin letter")
	}
	return brief(word) + " looks like " + like + " and is not"
}

// sameScript reports whether the letters of both are of one script, which is not Latin.
func sameScript(a, b string) bool {
	script := ""
	for _, r := range a + b {
		if s := scriptOf(r); s != "" {
			if s == "Latin" || script != "" && s != script {
				return false
			}
			script = s
		}
	}
	return script != "" && strings.ContainsFunc(b, func(r rune) bool { return scriptOf(r) == script })
}

func plainHost(h string) bool {
	return isASCII(h) && !strings.ContainsFunc(h, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
