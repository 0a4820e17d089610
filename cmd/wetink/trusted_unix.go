//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// hidden refuses a file of a secret that somebody else can read, or could have written.
func hidden(name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s can be read by others (mode %04o): run chmod go-rwx %s", ErrConfig, name, info.Mode().Perm(), name)
	}
	return trusted(name, info)
}

// trusted refuses a configuration file that somebody else could have written.
func trusted(name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s can be written by others (mode %04o): run chmod go-w %s", ErrConfig, name, info.Mode().Perm(), name)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() && st.Uid != 0 {
		return fmt.Errorf("%w: %s belongs to another user (uid %d): make a copy of your own", ErrConfig, name, st.Uid)
	}
	return nil
}
