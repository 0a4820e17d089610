//go:build unix

package terminal_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wetink/wetink/approval/terminal"
)

func TestTheKeyFileIsPrivateUnderALooseUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "new", "home")
	if err := terminal.Setup(dir, "ana", phrase); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "approver.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("home: mode %v, %v", info.Mode(), err)
	}
}
