package wetink_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wetink/wetink"

// arrows says who may import whom, by folder; a longer folder wins over its parent. Besides what is listed,
// a package may import its own sub-packages and parents below the first two levels (target/intervals and
// target/intervals/…), and everyone but internal may import internal. "." is the root package, "*" is anything.
// A top folder that is not here is a mistake until somebody has said what may go in.
var arrows = map[string][]string{
	".":          {},
	"approval":   {".", "render"},
	"audit":      {"."},
	"bench":      {"*"},
	"cmd":        {"*"},
	"docs":       {},
	"examples":   {"*"},
	"gateway":    {".", "mcpserver", "recipes", "target/upstream"},
	"internal":   {},
	"ledger":     {".", "audit"},
	"mcpserver":  {".", "approval/card", "render"},
	"notify":     {".", "render"},
	"oauth":      {},
	"policy":     {"."},
	"recipes":    {".", "render", "target/upstream"},
	"render":     {"."},
	"store":      {".", "approval/page", "oauth"},
	"target":     {"."},
	"tools":      {},
	"wetinktest": {".", "ledger/memory"},
	"bin":        {}, // built, not kept
}

// only says who may import a module or folder at all, tests included.
var only = map[string][]string{
	"github.com/go-webauthn/webauthn": {"approval/passkey", "cmd"},
	"github.com/ncruces/go-sqlite3":   {"internal/sqlite"},
}

// forbidden are the folders that say nothing of what may go in, so that everything does.
var forbidden = []string{"util", "utils", "common", "helper", "helpers", "types", "manager", "misc"}

func TestImportsFollowTheArrows(t *testing.T) {
	files, err := imports(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(files["deps_test.go"]) == 0 {
		t.Fatal("the walk did not find this file")
	}
	for _, v := range violations(files) {
		t.Error(v)
	}
}

func TestTopFoldersAreKnown(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, known := arrows[e.Name()]; e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !known {
			t.Errorf("%s/: a new top folder needs a row in the table of arrows and in docs/design.md", e.Name())
		}
	}
}

func TestAPlantedViolationIsFound(t *testing.T) {
	for _, tc := range []struct{ file, imports, want string }{
		{"engine.go", "github.com/goccy/go-yaml", "the root imports the standard library and internal"},
		{"engine.go", module + "/ledger/memory", "no arrow"},
		{"ledger/sqlite/sqlite.go", module + "/ledger/memory", "no arrow"},
		{"ledger/sqlite/sqlite_test.go", module + "/ledger/memory", "no arrow"},
		{"ledger/sqlite/sqlite.go", module + "/ledger/ledgertest", "is for tests"},
		{"target/intervals/intervals.go", module + "/target/intervals/intervalssim", "is for tests"},
		{"target/intervals/intervals.go", module + "/target/bluesky", "no arrow"},
		{"approval/card/card.go", module + "/approval/page", "no arrow"},
		{"gateway/gateway.go", module + "/target/intervals", "no arrow"},
		{"gateway/gateway.go", module + "/wetinktest", "is for tests"},
		{"oauth/oauth.go", module, "no arrow"},
		{"internal/strictjson/parse.go", module, "no arrow"},
		{"internal/pg/pg.go", module + "/internal/durable", "no arrow"},
		{"render/html.go", module + "/cmd/wetink", "no arrow"},
		{"ledger/sqlite/sqlite.go", "github.com/ncruces/go-sqlite3", "only internal/sqlite"},
		{"ledger/sqlite/sqlite_test.go", "github.com/ncruces/go-sqlite3/vfs", "only internal/sqlite"},
		{"internal/sqliteother/open.go", "github.com/ncruces/go-sqlite3", "only internal/sqlite"},
		{"approval/page/page.go", "github.com/go-webauthn/webauthn/protocol", "only approval/passkey, cmd"},
		{"target/util/util.go", "fmt", "says nothing"},
		{"newfolder/new.go", "fmt", "new top folder"},
	} {
		found := violations(map[string][]string{tc.file: {"fmt", tc.imports}})
		if len(found) != 1 || !strings.Contains(found[0], tc.want) {
			t.Errorf("%s importing %s: found %q, want one that says %q", tc.file, tc.imports, found, tc.want)
		}
	}
}

func TestWhatTheArrowsAllowIsNotAViolation(t *testing.T) {
	for file, imported := range map[string]string{
		"engine.go":                          module + "/internal/strictjson",
		"engine_test.go":                     module + "/wetinktest",
		"ledger_test.go":                     "pgregory.net/rapid",
		"cmd/wetink/sim.go":                  module + "/target/intervals/intervalssim",
		"cmd/wetink/main.go":                 "github.com/go-webauthn/webauthn/webauthn",
		"gateway/gateway.go":                 module + "/target/upstream",
		"internal/sqlite/open.go":            "github.com/ncruces/go-sqlite3",
		"internal/sqlite/faults/vfs.go":      "github.com/ncruces/go-sqlite3/vfs",
		"ledger/ledgertest/run.go":           module,
		"ledger/sqlite/sqlite.go":            module + "/internal/sqlite",
		"ledger/sqlite/sqlite_test.go":       module + "/ledger/ledgertest",
		"mcpserver/server_test.go":           module + "/wetinktest",
		"oauth/token.go":                     module + "/internal/httpsec",
		"target/intervals/write_test.go":     module + "/target/intervals/intervalssim",
		"target/intervals/intervalssim/x.go": module + "/target/intervals/workout",
		"wetinktest/engine.go":               module + "/ledger/memory",
	} {
		for _, v := range violations(map[string][]string{file: {imported}}) {
			t.Error(v)
		}
	}
}

// violations checks a map of file (slash-separated, from the module's root) to import paths.
func violations(files map[string][]string) []string {
	var found []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		folder, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
		for _, element := range strings.Split(folder, "/") {
			if slices.Contains(forbidden, element) {
				found = append(found, fmt.Sprintf("%s: a folder named %q says nothing of what belongs in it", file, element))
			}
		}
		allowed, known := arrowsFrom(folder)
		if !known {
			found = append(found, fmt.Sprintf("%s: a new top folder needs a row in the table of arrows and in docs/design.md", file))
			continue
		}
		for _, imported := range files[file] {
			if problem := problem(folder, test, allowed, imported); problem != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", file, imported, problem))
			}
		}
	}
	return found
}

func problem(folder string, test bool, allowed []string, imported string) string {
	for who, importers := range only {
		if under(imported, who) && !slices.ContainsFunc(importers, func(f string) bool { return under(folder, f) }) {
			return "only " + strings.Join(importers, ", ") + " may"
		}
	}
	if !under(imported, module) {
		first, _, _ := strings.Cut(imported, "/")
		if folder == "." && !test && strings.Contains(first, ".") {
			return "the root imports the standard library and internal only"
		}
		return ""
	}
	to := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
	if to == "" {
		to = "."
	}
	switch {
	case slices.Contains(allowed, "*"):
		return ""
	case forTests(to) && (test || forTests(folder)):
		return ""
	case forTests(to):
		return path.Base(to) + " is for tests"
	case unit(to) == unit(folder): // an external test imports the package it tests
		return ""
	case folder == "." && test:
		return ""
	case under(to, "internal") && !under(folder, "internal"):
		return ""
	case slices.ContainsFunc(allowed, func(a string) bool { return a == to || a != "." && under(to, a) }):
		return ""
	}
	return "no arrow in the table allows it"
}

// arrowsFrom finds the row of the deepest folder that holds this one.
func arrowsFrom(folder string) (allowed []string, known bool) {
	for f := folder; ; f = path.Dir(f) {
		if allowed, known = arrows[f]; known || !strings.Contains(f, "/") {
			return allowed, known
		}
	}
}

// forTests: conformance suites, simulators and ready engines. Production code must not reach them.
func forTests(folder string) bool {
	base := path.Base(folder)
	return strings.HasSuffix(base, "test") || strings.HasSuffix(base, "sim")
}

// unit is the part of the tree whose packages are no siblings: two levels.
func unit(folder string) string {
	if parts := strings.SplitN(folder, "/", 3); len(parts) > 2 {
		return parts[0] + "/" + parts[1]
	}
	return folder
}

func under(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}

// imports reads the import lines of every Go file of the module. It reads files instead of asking `go list`,
// so that the test cache sees which files the answer depends on.
func imports(root string) (map[string][]string, error) {
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == root:
			return nil
		case d.IsDir():
			if base := d.Name(); strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own
			}
			return nil
		case filepath.Ext(name) != ".go":
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		list := make([]string, len(parsed.Imports))
		for i, spec := range parsed.Imports {
			if list[i], err = strconv.Unquote(spec.Path.Value); err != nil {
				return err
			}
		}
		files[filepath.ToSlash(name)] = list
		return nil
	})
	return files, err
}
