package upstream_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/upstream"
)

func TestTheExamplesOfTheGrammarAreTaken(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guard-grammar.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(blocks) < 8 {
		t.Fatalf("only %d examples", len(blocks))
	}
	words := map[string]bool{}
	for _, m := range blocks {
		r := strictyaml.NewReader([]byte(m[1]))
		upstream.ParseRules(r, r.Document(1<<20), []string{"get_*"})
		if p := r.Problems(); len(p) > 0 {
			t.Errorf("%v in\n%s", p, m[1])
		}
		for _, w := range regexp.MustCompile(`(?m)(?:^|[\s{,-])([a-z_]+):`).FindAllStringSubmatch(m[1], -1) {
			words[w[1]] = true
		}
	}
	for _, w := range strings.Fields("when read at watch absent pick show preview risk ask typed_when bind undo undo_create undo_note as limit") {
		if !words[w] {
			t.Errorf("no example has %s", w)
		}
	}
}
