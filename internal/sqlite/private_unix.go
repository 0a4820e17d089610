//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func private(name string, info fs.FileInfo, allowed fs.FileMode) error {
	if stat := info.Sys().(*syscall.Stat_t); int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to the user with id %d and this process runs as %d; run it as that user, or, if you trust what it says, chown %d %s",
			ErrInsecure, name, stat.Uid, os.Geteuid(), os.Geteuid(), name)
	}
	if mode := info.Mode().Perm(); mode&^allowed != 0 {
		return fmt.Errorf("%w: %s has mode %#o, so others may get at it; if you trust what it says, chmod %o %s",
			ErrInsecure, name, mode, allowed, name)
	}
	return nil
}
