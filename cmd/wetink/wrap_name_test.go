package main

import "testing"

func TestAServerIsNamedByItsCommand(t *testing.T) {
	for want, command := range map[string][]string{
		"server-filesystem": {"node", "/opt/x/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", "/srv/notes"},
		"some-notes-server": {"npx", "-y", "some-notes-server"},
		"files":             {"npx", "-y", "@x/files", "/srv"},
		"mcp-thing":         {"uvx", "mcp_thing", "--flag"},
		"notes":             {`C:\\Tools\\Notes.exe`},
		"image-latest":      {"docker", "run", "-i", "--rm", "ghcr.io/x/image:latest"},
		"server":            {"node", "index.js"},
	} {
		if got := commandName(command); got != want {
			t.Errorf("%v is named %s, want %s", command, got, want)
		}
	}
}
