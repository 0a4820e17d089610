package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

const wrapped = `{
  // mine
  "mcpServers": {
    "Files": {"command": "npx", "args": ["-y", "@x/files", "/srv"], "env": {"A": "b"}}, // here
    "bare": {"command": "server"},
    "far": {"type": "http", "url": "https://mcp.example"},
    "calendar": {"command": "/opt/bin/wetink", "args": ["calendar"]},
  },
  "n": 9007199254740993
}
`

func TestAClientsServersAreWrappedAndComeBackToTheByte(t *testing.T) {
	for _, home := range []string{"", "/srv/wetink"} {
		list, _, _ := testClients(t)
		c := list[0]
		if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Path, []byte(wrapped), 0o600); err != nil {
			t.Fatal(err)
		}
		e, names, err := c.wrapping("/opt/bin/wetink", home)
		if err != nil || strings.Join(names, " ") != "Files bare" {
			t.Fatalf("%v %v", names, err)
		}
		if err := e.write(); err != nil {
			t.Fatal(err)
		}
		b, err := hujson.Standardize(bytes.Clone(e.After)) // which blanks the comments of what it is given
		if err != nil {
			t.Fatalf("%v in %s", err, e.After)
		}
		var f struct {
			Servers map[string]entry `json:"mcpServers"`
		}
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		files, bare := f.Servers["Files"], f.Servers["bare"]
		if files.Command != "/opt/bin/wetink" || strings.Join(files.Args, " ") != "wrap --name files -- npx -y @x/files /srv" || files.Env["A"] != "b" || files.Env["WETINK_HOME"] != home {
			t.Errorf("%+v", files)
		}
		if strings.Join(bare.Args, " ") != "wrap --name bare -- server" {
			t.Errorf("%+v", bare)
		}
		for _, kept := range []string{"// mine", "// here", `"far": {"type": "http"`, `"args": ["calendar"]`, "9007199254740993"} {
			if !strings.Contains(string(e.After), kept) {
				t.Errorf("%s is lost: %s", kept, e.After)
			}
		}
		if again, names, err := c.wrapping("/opt/bin/wetink", home); err != nil || len(names) > 0 || !again.nothing() {
			t.Errorf("wrapped twice: %v %v", names, err)
		}
		back, err := c.unwrapping("/opt/bin/wetink", home)
		if err != nil || string(back.After) != wrapped {
			t.Errorf("%v: %s", err, back.After)
		}
		// Somebody added a server since: the others still come back.
		changed := strings.Replace(string(e.After), `"n": `, `"m": 1, "n": `, 1)
		if err := os.WriteFile(c.Path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if back, err = c.unwrapping("/opt/bin/wetink", home); err != nil || strings.Contains(string(back.After), "wrap") || !strings.Contains(string(back.After), `"m": 1`) || !strings.Contains(string(back.After), "@x/files") {
			t.Errorf("%v: %s", err, back.After)
		}
	}
}
