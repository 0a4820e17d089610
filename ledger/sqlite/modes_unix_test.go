//go:build unix

package sqlite_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/wetink/wetink"
)

func TestNobodyElseCanReadTheFilesWhateverTheUmask(t *testing.T) {
	root := t.TempDir()
	defer syscall.Umask(syscall.Umask(0))
	lead(t, open(t, filepath.Join(root, "state", "wetink.db"), nil), wetink.Applied)
	modes := map[string]fs.FileMode{}
	err := filepath.WalkDir(filepath.Join(root, "state"), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		modes[d.Name()] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{"state": 0o700, "wetink.db": 0o600, "wetink.db-wal": 0o600, "wetink.db-shm": 0o600}
	for name, mode := range want {
		if modes[name] != mode {
			t.Errorf("%s has mode %#o, want %#o", name, modes[name], mode)
		}
	}
	if names := []string{}; len(modes) != len(want) {
		for name := range modes {
			names = append(names, name)
		}
		slices.Sort(names)
		t.Errorf("found %v", names)
	}
}
