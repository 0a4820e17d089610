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

// For finds the recipe of the server that a command starts. A word of the command has to be one of the recipe's, but for a
// version behind @ or :, and for folders before it where the recipe's word names none. Where two recipes fit there is none:
// a guess would guard a server by rules that were made for another.
func For(command []string) (Recipe, bool) {
	all, err := All()
	if err != nil {
		return Recipe{}, false
	}
	all = slices.DeleteFunc(all, func(r Recipe) bool {
		return !slices.ContainsFunc(command, func(w string) bool {
			return slices.ContainsFunc(r.For, func(name string) bool { return names(w, name) })
		})
	})
	if len(all) != 1 {
		return Recipe{}, false
	}
	return all[0], true
}

// names reports whether a word of a command names the package or program.
func names(word, name string) bool {
	word = strings.ReplaceAll(word, `\`, "/")
	if at := strings.LastIndexAny(word, "@:"); at > strings.LastIndexByte(word, '/') && at > 0 {
		word = word[:at]
	}
	return word == name || strings.HasSuffix(word, "/"+name) || // a program in a folder
		strings.Contains(word+"/", "/node_modules/"+name+"/")
}
