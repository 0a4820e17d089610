package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const oneRecipe = `version: 1
for: [notes]
server: notes 1
pass: [get_*]
guard: {update_note: {read: {get_note: {id}}, undo: {update_note: {id, $restore: changed}}}}
cases:
  - says: a note is changed
    tool: update_note
    args: {id: a, title: new}
    answers: [{tool: get_note, args: {id: a}, json: {id: a, title: old}}]
    expect: {verb: change, undo: full}
    then: {json: {status: ok}, undo: {update_note: {id: a, title: old}}}
`

func TestRecipesAreReplayedInCI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes.yaml")
	for _, tc := range []struct {
		from, to string
		code     int
		says     string
	}{
		{"", "", codeDone, " 0 failed"},
		{"title: old}}}", "title: older}}}", codeOther, "notes:7: a note is changed: undo: it sends update_note"},
		{"undo: full", "undo: none", codeOther, " 1 failed"},
		{"verb: change", "verb: chnage", codeUsage, "notes.yaml:11:"},
		{"get_note: {id}", "read_note: {id}", codeUsage, "read_note is called without anybody being asked"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(oneRecipe, tc.from, tc.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := run(t.Context(), []string{"test", file}, &out, &out); code != tc.code || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: exit %d, want %d; it says\n%s\nwant %q", tc.to, code, tc.code, &out, tc.says)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"test"}, &out, &out); code != codeDone || !strings.HasPrefix(out.String(), "8 recipes, ") {
		t.Errorf("exit %d: %s", code, &out)
	}
}
