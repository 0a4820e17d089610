// Package recipes has what is known of published MCP servers: which of their tools only read, how the others are guarded,
// and what an undo restores. Each is a YAML file of this folder, in the grammar of docs/guard-grammar.md, with recorded
// cases that Replay checks. docs/recipes.md says what each can and cannot do.
//
// A recipe is knowledge of one server at one version, and no proof: a server that contradicts its recipe ends in doubt or is
// refused, but a tool that the recipe says only reads is called without anybody being asked.
package recipes

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/upstream"
)

//go:embed *.yaml
var files embed.FS

// Recipe is one of them.
type Recipe struct {
	Name   string   // of its file
	About  string   // the server and the version that it was tested with
	For    []string // names of packages, images and programs that are this server
	Pass   []string // patterns of the tools that only read
	Cases  []Case
	Source []byte

	reader *strictyaml.Reader
	guard  ast.Node
}

// All are sorted by name.
func All() []*Recipe { return all() }

var all = sync.OnceValue(func() (list []*Recipe) {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range entries {
		src, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		r, problems := Parse(strings.TrimSuffix(e.Name(), ".yaml"), src)
		if len(problems) > 0 { // a test reads them all
			panic(fmt.Sprintf("recipe %s: %v", e.Name(), problems))
		}
		list = append(list, r)
	}
	return list
})

const maxSize = 1 << 20

// Parse reads a recipe, all but its rules.
func Parse(name string, src []byte) (*Recipe, []strictyaml.Problem) {
	r := &Recipe{Name: name, Source: src, reader: strictyaml.NewReader(src)}
	doc := r.reader.Document(maxSize)
	if doc == nil {
		return nil, r.reader.Problems()
	}
	m, ok := r.reader.Mapping(doc, "recipe", "about", "for", "pass", "guard", "cases")
	if !ok {
		return nil, r.reader.Problems()
	}
	for _, key := range []string{"about", "for", "pass", "guard", "cases"} {
		if m[key] == nil {
			r.reader.Bad(doc.GetToken(), "%s is missing", key)
			return nil, r.reader.Problems()
		}
	}
	r.About, _ = r.reader.Text(m["about"], "about")
	r.For, r.Pass = r.reader.Texts(m["for"], "for"), r.reader.Texts(m["pass"], "pass")
	r.guard = m["guard"]
	r.cases(m["cases"])
	return r, r.reader.Problems()
}

// Rules are what stands under its guard.
func (r *Recipe) Rules() (upstream.Rules, []strictyaml.Problem) {
	reader := strictyaml.NewReader(r.Source)
	rules := upstream.ParseRules(reader, r.guard, r.Pass)
	return rules, reader.Problems()
}

// version is what stands behind a package's or an image's name.
var version = regexp.MustCompile(`[@:][A-Za-z0-9][\w.+-]*$`)

// Find is the recipe for a server that is started by a command, or nil. What the command runs has to be a name in For, without
// its version, or a path to it in node_modules: part of a name is another server's, and so is what stands among its arguments.
func Find(command []string) *Recipe {
	word := program(command)
	for _, r := range All() {
		if slices.ContainsFunc(r.For, func(name string) bool { return names(word, name) }) {
			return r
		}
	}
	return nil
}

// program is the package, image or file that a command runs, "" if that is not plain.
func program(command []string) string {
	if len(command) == 0 {
		return ""
	}
	runner := strings.TrimSuffix(strings.TrimSuffix(path.Base(strings.ReplaceAll(command[0], `\`, "/")), ".exe"), ".cmd")
	rest := command[1:]
	valued := []string{"-p", "--package", "-r", "--require", "--import"}
	switch runner {
	case "npx", "bunx", "uvx", "node", "bun":
	case "pnpm", "yarn":
		if len(rest) == 0 || rest[0] != "dlx" {
			return ""
		}
		rest = rest[1:]
	case "docker", "podman":
		if len(rest) == 0 || rest[0] != "run" {
			return ""
		}
		rest = rest[1:]
		valued = []string{"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "-p", "--publish", "-u", "--user", "-w", "--workdir", "--add-host", "--entrypoint"}
	default:
		return command[0]
	}
	for i := 0; i < len(rest); i++ {
		switch {
		case slices.Contains(valued, rest[i]):
			i++
		case !strings.HasPrefix(rest[i], "-"):
			return rest[i]
		}
	}
	return ""
}

func names(word, name string) bool {
	word = strings.ReplaceAll(word, `\`, "/")
	bare := version.ReplaceAllString(word, "")
	if word == name || bare == name && bare != "" {
		return true
	}
	if !path.IsAbs(word) && !strings.HasPrefix(word, ".") && !strings.Contains(word, "node_modules/") {
		return false
	}
	return strings.Contains(word+"/", "node_modules/"+name+"/") || !strings.Contains(name, "/") && path.Base(word) == name
}
