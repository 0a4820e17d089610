package wetink_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/reports.md names the tests that hold what it says. A test that was renamed must be renamed there, too.
func TestEveryReportNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("docs/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				there[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for row := range strings.Lines(string(page)) {
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(row, -1)
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| reported") {
			continue
		}
		if rows++; len(named) == 0 {
			t.Errorf("no test is named: %s", row)
		}
		for _, name := range named {
			if !there[name[1]] {
				t.Errorf("%s is not there: %s", name[1], row)
			}
		}
	}
	if rows < 11 {
		t.Errorf("%d reports", rows)
	}
}
