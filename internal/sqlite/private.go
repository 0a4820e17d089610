package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// secure refuses what is there and is not private, and prepares the names that the driver would create by the umask:
// it offers no other way to say their mode. So the -wal and -shm exist before any connection does, and stay when the
// last one closes (see configure).
//
// SQLite opens the files again by name. Nobody can swap them in between: the directory is ours, and closed to others.
// The directories above it are the business of who owns them.
func (db *DB) secure() error {
	dir := filepath.Dir(db.path)
	if err := makeDir(dir); err != nil {
		return err
	}
	if err := checkPrivate(db.path); err != nil {
		return err
	}
	// In this order, because a process that is creating the file makes the log after it.
	_, noLog := os.Lstat(db.path + "-wal")
	if _, err := os.Lstat(db.path); errors.Is(err, fs.ErrNotExist) {
		if noLog == nil {
			return fmt.Errorf("%w: %s-wal is there without it; bring the file back, or, if it is gone for good, rm %s-wal %s-shm",
				ErrTorn, db.path, db.path, db.path)
		}
		if err := db.create(); err != nil {
			return err
		}
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := makeFile(db.path + suffix); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// create makes an empty database elsewhere and gives it its name when it is whole and in WAL mode. An empty file in
// its place would not do: SQLite deletes a -wal beside one, and makes its own. Of several processes one is first.
func (db *DB) create() error {
	dir, err := os.MkdirTemp(filepath.Dir(db.path), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o700); err != nil { // a strict umask may have taken our own rights
		return err
	}
	path := filepath.Join(dir, "db")
	if err := makeFile(path); err != nil {
		return err
	}
	c, err := db.connect(path, true)
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	if err := os.Link(path, db.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// makeDir creates dir and its missing parents with mode 0700.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // for the umask, as above
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// makeFile creates an empty file with mode 0600, unless the name is taken.
func makeFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkPrivate refuses the directory or one of SQLite's files when others can get at it.
func checkPrivate(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir) // a link to a private directory is as good as the directory
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrInsecure, dir)
	}
	if err := private(dir, info, 0o700); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		name := path + suffix
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %s is a link or no plain file; name the file that it stands for", ErrInsecure, name)
		}
		if err := private(name, info, 0o600); err != nil {
			return err
		}
	}
	return nil
}
