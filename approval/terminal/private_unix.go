//go:build unix

package terminal

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// notPrivate says why others could have written or read the file; "" if they could not.
func notPrivate(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&^0o600 != 0 {
		return fmt.Sprintf("has mode %04o: run chmod 600 on it, after a look at who wrote it", mode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() {
		return fmt.Sprintf("belongs to another user (uid %d)", st.Uid)
	}
	return ""
}
