// Package recipes carries what is known of published MCP servers: which of their tools read, and how the others are guarded.
//
// A recipe is a file in the grammar of the guard, with the version of the server that it was checked against and with cases:
// calls, the answers that the server's reading tools give, and what a person is then told. [Replay] holds a recipe against
// its cases without any server. What a recipe says is a claim about a server that somebody else changes: a server that does
// not answer as the recipe says leaves changes in doubt or refuses them; it never makes one look done that was not seen.
package recipes

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/upstream"
)

//go:embed *.yaml
var files embed.FS

const maxRecipe = 1 << 20

// Recipe is what is known of one server.
type Recipe struct {
	Name   string
	Src    []byte   // as it stands in its file
	For    []string // words by which a command line is recognised
	Server string   // name and version that it was checked against
	Cases  []Case

	pass  []string
	rules upstream.Rules
}

// Case is one call and what is expected of it.
type Case struct {
	Line    int
	Says    string // what it shows, for people
	Tool    string
	Args    json.RawMessage
	Answers []Answer // of the tools that read and try, in any order
	Expect  Expectation
	Then    *Then // nil: the case ends before it is applied
}

// Answer is what the server's tool answers. Of several for a tool the first counts whose Args are the call's.
type Answer struct {
	Tool   string
	Args   json.RawMessage // nil: any
	Result json.RawMessage // a CallToolResult
}

// Expectation is what a person would be told. A member that is not given is not looked at, but Warnings always is.
type Expectation struct {
	Verb     string // "create", "change", "delete", or "call" where nothing reads it
	Warnings []string
	Ask      string // a word of upstream.ParseAsk; "": what the operator says of all tools
	Undo     string // "full", "partial", "none"
	Refused  string // part of the reason; nothing else is looked at then
}

// Then goes on: the server's answer to the call itself, and the call that would take it back.
type Then struct {
	Result json.RawMessage
	Tool   string // "": no undo can be made of this answer
	Args   json.RawMessage
}

// Parse reads the recipe's rules. The file was read when it was found, so err is nil for a Recipe that this package gave out.
func (r Recipe) Parse() (pass []string, rules upstream.Rules, err error) {
	if r.rules == nil {
		return nil, nil, errors.New("a recipe comes from Named, For, All or Read")
	}
	return r.pass, r.rules, nil
}

// Error lists all that is wrong with a file.
type Error struct {
	File     string
	Problems []strictyaml.Problem
}

func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, p.Line, p.Column, p.Says))
	}
	return strings.Join(lines, "\n")
}

// Read reads a file; its errors are *Error.
func Read(file string, src []byte) (Recipe, error) {
	r := reader{strictyaml.NewReader(src)}
	recipe := Recipe{Name: strings.TrimSuffix(path.Base(file), ".yaml"), Src: src}
	r.recipe(&recipe)
	if problems := r.Problems(); len(problems) > 0 {
		return Recipe{}, &Error{file, problems}
	}
	return recipe, nil
}

// All are the recipes that are part of this program, by name.
func All() ([]Recipe, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []Recipe
	for _, f := range names {
		src, err := files.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		r, err := Read(f.Name(), src)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Named finds a recipe by its name.
func Named(name string) (Recipe, bool) {
	if strings.ContainsAny(name, `/\`) {
		return Recipe{}, false
	}
	src, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return Recipe{}, false
	}
	r, err := Read(name+".yaml", src)
	return r, err == nil
}

// Names of all recipes, sorted.
func Names() (names []string) {
	list, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// For finds the recipe of the server that a command starts, by the whole name of the program that it runs. A recipe lets tools
// through: an argument, or a package that only looks like the server, must not choose it.
func For(command []string) (Recipe, bool) {
	all, err := All()
	if err != nil {
		return Recipe{}, false
	}
	word := program(command)
	i := slices.IndexFunc(all, func(r Recipe) bool {
		return slices.ContainsFunc(r.For, func(name string) bool { return names(word, name) })
	})
	if i < 0 {
		return Recipe{}, false
	}
	return all[i], true
}

var version = regexp.MustCompile(`[@:][A-Za-z0-9][\w.+-]*$`)

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
