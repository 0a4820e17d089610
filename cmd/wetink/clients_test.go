package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testClients(t *testing.T) (list []clientFile, home, project string) {
	t.Helper()
	home, project = t.TempDir(), t.TempDir()
	env := func(k string) string {
		return map[string]string{"HOME": home, "APPDATA": filepath.Join(home, "AppData")}[k]
	}
	return clientFiles("/opt/bin/wetink", Config{Home: filepath.Join(home, ".wetink")}, env, project), home, project
}

// files of other people, as they come.
var foreignFiles = map[string]string{
	"none":             "",
	"empty object":     "{}",
	"two spaces":       "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"a\"}\n  }\n}\n",
	"four spaces":      "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"other\": {\"command\": \"a\"}\n    }\n}\n",
	"tabs":             "{\n\t\"servers\": {\n\t\t\"other\": {\"command\": \"a\"}\n\t},\n\t\"inputs\": []\n}",
	"one line":         `{"mcpServers":{"other":{"command":"a"}},"n":9007199254740993}`,
	"comments":         "{\n  // mine\n  \"servers\": {\n    /* the other */ \"other\": {\"command\": \"a\"}, // here\n  },\n}\n",
	"other inputs":     "{\n  \"inputs\": [\n    {\"type\": \"promptString\", \"id\": \"x\"}\n  ],\n  \"servers\": {}\n}\n",
	"escapes and HTML": "{\n  \"a\": \"<\\u003c&\\/\",\n  \"mcpServers\": {}\n}\n",
}

func TestAClientsFileGetsOurEntryAndLosesNothing(t *testing.T) {
	for name, text := range foreignFiles {
		list, _, _ := testClients(t)
		for _, c := range list {
			t.Run(name+"/"+c.ID, func(t *testing.T) {
				if text != "" {
					if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(c.Path, []byte(text), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				e, err := c.connecting()
				if err != nil {
					t.Fatal(err)
				}
				if err := e.write(); err != nil {
					t.Fatal(err)
				}
				now, err := c.read()
				if err != nil {
					t.Fatal(err)
				}
				rest := string(now) // all of it is still there, in its order
				for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("{}[],\n", r) }) {
					_, after, found := strings.Cut(rest, piece)
					if rest = after; !found {
						t.Fatalf("%q is gone:\n%s", piece, now)
					}
				}
				if strings.Contains(text, "//") == json.Valid(now) {
					t.Errorf("as strict JSON it should be as it was:\n%s", now)
				}
				again, err := c.connecting()
				if err != nil || !again.nothing() {
					t.Errorf("a second time it changes something: %v\n%s", err, again.After)
				}
				info, err := os.Stat(c.Path)
				if want := os.FileMode(0o640); text != "" && (err != nil || info.Mode().Perm() != want) {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
				if e, err = c.disconnecting(); err != nil {
					t.Fatal(err)
				}
				if err := e.write(); err != nil {
					t.Fatal(err)
				}
				if now, err = c.read(); err != nil || string(now) != text || (now == nil) != (text == "") {
					t.Errorf("undone it is not what it was: %v\n%s", err, now)
				}
			})
		}
	}
}

func TestDisconnectingKeepsWhatWasChangedSince(t *testing.T) {
	list, _, _ := testClients(t)
	for _, c := range list {
		e, err := c.connecting()
		if err != nil {
			t.Fatal(err)
		}
		if err := e.write(); err != nil {
			t.Fatal(err)
		}
		since := strings.Replace(string(e.After), "{", "{\n  \"since\": 1,", 1)
		if err := os.WriteFile(c.Path, []byte(since), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := c.disconnecting()
		if err != nil {
			t.Fatal(err)
		}
		if s := string(d.After); !strings.Contains(s, `"since": 1`) || strings.Contains(s, "wetink") || !json.Valid(d.After) {
			t.Errorf("%s: %s", c.ID, s)
		}
	}
}

func TestAClientsFileThatIsNotUnderstoodIsNotTouched(t *testing.T) {
	for name, text := range map[string]string{
		"another program of our name": `{"mcpServers":{"calendar":{"command":"npx","args":["cal"]}},"servers":{"calendar":{"command":"npx","args":["cal"]}}}`,
		"no JSON":                     "mcpServers:\n  x: 1\n",
		"a list":                      "[]",
		"servers that are none":       `{"mcpServers":[],"servers":[]}`,
		"half":                        `{"mcpServers":{`,
	} {
		list, _, _ := testClients(t)
		for _, c := range list {
			if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if e, err := c.connecting(); err == nil {
				t.Errorf("%s, %s: it would become\n%s", name, c.ID, e.After)
			} else if strings.HasPrefix(name, "another") && !errors.Is(err, errNotOurs) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAFileThatChangedSinceItWasShownIsNotWritten(t *testing.T) {
	list, _, _ := testClients(t)
	c := list[0]
	e, err := c.connecting()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Path, []byte(`{"mine":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.write(); err == nil {
		t.Error("it was written")
	}
	if b, _ := c.read(); string(b) != `{"mine":1}` {
		t.Errorf("%s", b)
	}
}

func TestALinkToAClientsFileStaysALink(t *testing.T) {
	list, home, _ := testClients(t)
	c := list[0]
	real := filepath.Join(home, "dotfiles.json")
	if err := os.WriteFile(real, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, c.Path); err != nil {
		t.Fatal(err)
	}
	e, err := c.connecting()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.write(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(real); err != nil || !strings.Contains(string(b), "wetink") {
		t.Errorf("%s %v", b, err)
	}
	if info, err := os.Lstat(c.Path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
}
