package render

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

var canonicalInt = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

// meaning shows a value as the target says that it is read. What does not fit is shown as it stands, so that no two
// values look alike.
func meaning(raw json.RawMessage, m wetink.Meaning, zone string) []string {
	plain := value(raw)
	if len(plain) == 0 {
		return nil
	}
	switch m.Kind {
	case wetink.Moment, wetink.Day:
		if s, ok := text(raw); ok && raw[0] == '"' {
			if local, ok := localTime(s); ok {
				if m.Kind == wetink.Moment && zone != "" && strings.Contains(s, "T") {
					return []string{local + " " + Line(zone)}
				}
				return []string{local}
			}
		}
	case wetink.Seconds:
		if canonicalInt.Match(raw) {
			n, _ := strconv.Atoi(string(raw))
			return []string{spell(time.Duration(n) * time.Second)}
		}
	case wetink.Metres:
		if canonicalInt.Match(raw) {
			return []string{string(raw) + " m"}
		}
	case wetink.Number:
		if m.Unit != "" && len(plain) == 1 && plain[0][0] != '"' {
			return []string{plain[0] + " " + Line(m.Unit)}
		}
	case wetink.Flag:
		switch string(raw) {
		case "true":
			return []string{"yes"}
		case "false":
			return []string{"no"}
		}
	case wetink.Plain, wetink.Prose, wetink.Markdown, wetink.Link:
	}
	return plain
}

// spell writes a length of time in full: 1 h 5 min 30 s.
func spell(d time.Duration) string {
	var parts []string
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.of; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			d %= u.of
		}
	}
	if len(parts) == 0 {
		return "0 s"
	}
	return strings.Join(parts, " ")
}

// chips escapes a line that Line made and turns its tokens into chips.
func chips(line string) string {
	var b strings.Builder
	for {
		at := strings.Index(line, "[U+")
		if hex := strings.Index(line, "[0x"); hex >= 0 && (at < 0 || hex < at) {
			at = hex
		}
		if at < 0 {
			break
		}
		end := strings.IndexByte(line[at:], ']')
		b.WriteString(escaped(line[:at]))
		code := line[at+1 : at+end]
		if n, err := strconv.ParseUint(strings.TrimPrefix(code, "U+"), 16, 32); err == nil && strings.HasPrefix(code, "U+") {
			b.WriteString(chip(rune(n), ""))
		} else {
			b.WriteString(`<span class="hc">[` + code + `]</span>`)
		}
		line = line[at+end+1:]
	}
	b.WriteString(escaped(line))
	return b.String()
}
