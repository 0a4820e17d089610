package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Pictures are looked at by people and weigh on everybody who clones: each is shown somewhere, and all of them are small.
func TestEveryPictureIsShownAndAllOfThemAreSmall(t *testing.T) {
	root := filepath.Join("..", "..")
	shown := map[string]bool{}
	for _, name := range []string{"README.md", "docs/page.md"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(((?:docs/)?pictures/[^)]+)\)`).FindAllStringSubmatch(string(b), -1) {
			path := filepath.Join(root, "docs", strings.TrimPrefix(m[1], "docs/"))
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s shows what is not there: %v", name, err)
			}
			shown[filepath.Base(path)] = true
		}
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "pictures"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	total := int64(0)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if !shown[f.Name()] {
			t.Errorf("%s is shown nowhere", f.Name())
		}
	}
	if total > 3<<20 {
		t.Errorf("they have %d bytes", total)
	}
}
