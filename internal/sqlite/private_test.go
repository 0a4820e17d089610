//go:build unix

package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wetink/wetink/internal/sqlite"
)

func TestFilesArePrivateUnderEveryUmask(t *testing.T) {
	for _, umask := range []int{0o000, 0o022, 0o077, 0o777} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			root := t.TempDir()
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			path := filepath.Join(root, "state", "wetink", "test.db")

			for _, moment := range []string{"new", "again"} {
				db, err := sqlite.Open(path, &sqlite.Options{Migrations: schema})
				if err != nil {
					t.Fatal(err)
				}
				mustWrite(t, db, insert(moment))
				words(t, db)
				wantModes(t, root)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				wantModes(t, root)
			}
		})
	}
}

func wantModes(t *testing.T, root string) {
	t.Helper()
	var seen []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %#o, want %#o", d.Name(), info.Mode().Perm(), want)
		}
		seen = append(seen, d.Name())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(seen, " "), "state wetink test.db test.db-shm test.db-wal"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestWhatOthersCanReachIsRefusedWithTheFix(t *testing.T) {
	for _, tc := range []struct {
		name, fix string
		loosen    func(path string) error
	}{
		{"directory others may list", "chmod 700 DIR", func(p string) error { return os.Chmod(filepath.Dir(p), 0o750) }},
		{"directory others may enter", "chmod 700 DIR", func(p string) error { return os.Chmod(filepath.Dir(p), 0o701) }},
		{"file others may read", "chmod 600 FILE", func(p string) error { return os.Chmod(p, 0o604) }},
		{"file the group may write", "chmod 600 FILE", func(p string) error { return os.Chmod(p, 0o620) }},
		{"log", "chmod 600 FILE-wal", func(p string) error { return os.Chmod(p+"-wal", 0o644) }},
		{"shared memory", "chmod 600 FILE-shm", func(p string) error { return os.Chmod(p+"-shm", 0o666) }},
		{"planted journal", "chmod 600 FILE-journal", func(p string) error { return os.WriteFile(p+"-journal", []byte("x"), 0o644) }},
		{"link", "name the file that it stands for", func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		}},
		{"link to nothing", "name the file that it stands for", func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink(p+".none", p))
		}},
		{"linked log", "name the file that it stands for", func(p string) error {
			return errors.Join(os.Remove(p+"-wal"), os.Symlink(p, p+"-wal"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			if err := open(t, path, nil).Close(); err != nil {
				t.Fatal(err)
			}
			if err := tc.loosen(path); err != nil {
				t.Fatal(err)
			}
			wantInsecure(t, path, tc.fix)
		})
	}
}

// Root can give files away; for everybody else the root directory belongs to another.
func TestWhatBelongsToAnotherIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		wantInsecure(t, "/test.db", "belongs to the user with id 0")
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := newPath(t)
		if err := open(t, path, nil).Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path+suffix, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		wantInsecure(t, path, "chown 0 FILE"+suffix)
	}
	path := newPath(t)
	if err := open(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(path), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	wantInsecure(t, path, "chown 0 DIR")
}

func wantInsecure(t *testing.T, path, fix string) {
	t.Helper()
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: schema})
	if err == nil {
		db.Close()
	}
	fix = strings.ReplaceAll(strings.ReplaceAll(fix, "FILE", path), "DIR", filepath.Dir(path))
	if !errors.Is(err, sqlite.ErrInsecure) || !strings.HasSuffix(err.Error(), fix) && !strings.Contains(err.Error(), fix+" ") {
		t.Errorf("open: %v, want ErrInsecure that says %q", err, fix)
	}
}
