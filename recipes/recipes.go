// Package recipes carries what is known of published MCP servers: which of their tools read, and how the others are guarded.
package recipes

import "github.com/wetink/wetink/target/upstream"

// Recipe is what is known of one server.
type Recipe struct {
	Name string
	Src  []byte
}

// Parse reads it.
func (Recipe) Parse() (pass []string, rules upstream.Rules, err error) { return nil, nil, nil }

// Named finds a recipe by its name.
func Named(string) (Recipe, bool) { return Recipe{}, false }

// Names of all recipes.
func Names() []string { return nil }

// For finds the recipe of the server that a command starts.
func For([]string) (Recipe, bool) { return Recipe{}, false }
