package recipes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
)

func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each example of the reference is one that is read, and each word has one.
func TestTheGrammarsReferenceIsTrue(t *testing.T) {
	doc := document(t, "guard-grammar.md")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatchIndex(doc, -1)
	missing := upstream.Words()
	for _, at := range blocks {
		src := doc[at[2]:at[3]]
		line := strings.Count(doc[:at[2]], "\n")
		r := strictyaml.NewReader([]byte(src), "pass")
		m, ok := r.Mapping(r.Document(1<<20), "example", "pass", "guard")
		if ok && m["guard"] != nil {
			upstream.ParseRules(r, m["guard"], r.Texts(m["pass"], "pass"))
		}
		for _, p := range r.Problems() {
			t.Errorf("guard-grammar.md:%d:%d: %s", line+p.Line, p.Column, p.Says)
		}
		missing = slices.DeleteFunc(missing, func(w string) bool { return regexp.MustCompile(`(^|[\s{-])` + w + `:`).MatchString(src) })
	}
	if len(missing) > 0 {
		t.Errorf("no example of %q", missing)
	}
	for _, w := range upstream.Words() {
		if !strings.Contains(doc, "`"+w+"`") {
			t.Errorf("%s is not explained", w)
		}
	}
}

func TestEveryRecipeIsDescribed(t *testing.T) {
	doc := document(t, "recipes.md")
	for _, r := range recipes.All() {
		if !strings.Contains(doc, "\n## "+r.Name+"\n") {
			t.Errorf("recipes.md has no section %s", r.Name)
		}
		server, _, _ := strings.Cut(r.About, ":")
		if !strings.Contains(doc, server) {
			t.Errorf("recipes.md does not say which server and version %s is for: %s", r.Name, server)
		}
	}
}
