package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// value shows a JSON value as lines. null is no line. A text stands in quotes, the lines after its first one
// column further in; what else there is starts with another character, so that no two values look alike:
//
//	"text"   Thu 10 Dec 2026 08:00   42   true   [ or { and JSON
func value(raw json.RawMessage) []string {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return nil
	case trimmed[0] == '"':
		s, ok := text(trimmed)
		if !ok {
			return []string{"json " + Line(string(trimmed))}
		}
		if day, ok := localTime(s); ok {
			return []string{day}
		}
		return quoted(s)
	case trimmed[0] == '{' || trimmed[0] == '[':
		var b bytes.Buffer
		if err := json.Indent(&b, trimmed, "", "  "); err == nil && (bytes.ContainsRune(trimmed, '{') || len(trimmed) > 100) {
			return indented(b.String())
		}
	}
	return []string{Line(string(trimmed))}
}

// text decodes a JSON string. It reports false where decoding would lose something: half of a surrogate pair.
func text(raw json.RawMessage) (string, bool) {
	var s string
	if !utf8.Valid(raw) || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, !strings.ContainsRune(s, utf8.RuneError) || bytes.ContainsRune(raw, utf8.RuneError) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ud`))
}

func quoted(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = " " + Line(lines[i])
	}
	lines[0] = `"` + lines[0][1:]
	lines[len(lines)-1] += `"`
	return lines
}

// indented JSON has line breaks of ours only: in a JSON string they are escaped. The blanks at the start are
// ours, too.
func indented(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		body := strings.TrimLeft(l, " ")
		lines[i] = l[:len(l)-len(body)] + Line(body)
	}
	return lines
}

// localTime shows a date or a local date and time with its weekday, if s is exactly one.
func localTime(s string) (string, bool) {
	for in, out := range map[string]string{
		"2006-01-02":          "Mon 2 Jan 2006",
		"2006-01-02T15:04:05": "Mon 2 Jan 2006 15:04:05",
	} {
		t, err := time.Parse(in, s)
		if err != nil || t.Format(in) != s {
			continue
		}
		return strings.TrimSuffix(t.Format(out), ":00"), true
	}
	return "", false
}

// Duration spells out minutes, hours and days; what is less than a minute is seconds.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour && d%time.Hour != 0 || d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d%(24*time.Hour) == 0 && d > 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
