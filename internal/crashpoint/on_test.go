//go:build crashpoint

package crashpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/wetink/wetink/internal/crashpoint"
)

// TestMain is also the process that dies: it hits every point three times and prints each hit.
func TestMain(m *testing.M) {
	if os.Getenv("CRASHPOINT_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	for hit := 1; hit <= 3; hit++ {
		for _, p := range crashpoint.All() {
			crashpoint.Here(p)
			fmt.Printf("%v:%d\n", p, hit)
		}
	}
}

func child(t *testing.T, setting string) (stdout, stderr string, state syscall.WaitStatus) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "CRASHPOINT_TEST_CHILD=1", crashpoint.Env+"="+setting)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func TestTheProcessDiesAtTheNamedHitAndNotBefore(t *testing.T) {
	for _, p := range crashpoint.All() {
		for _, n := range []int{1, 3} {
			setting := fmt.Sprintf("%v:%d", p, n)
			out, _, state := child(t, setting)
			if !state.Signaled() || state.Signal() != syscall.SIGKILL {
				t.Errorf("%s: ended with %v, want SIGKILL", setting, state)
			}
			if strings.Contains(out, setting) {
				t.Errorf("%s: the process went on after the point", setting)
			}
			if before := fmt.Sprintf("%v:%d", p, n-1); n > 1 && !strings.Contains(out, before) {
				t.Errorf("%s: died before hit %s", setting, before)
			}
		}
	}
}

func TestNobodyDiesUnasked(t *testing.T) {
	for _, setting := range []string{"", "after-claim:4"} {
		out, _, state := child(t, setting)
		if !state.Exited() || state.ExitStatus() != 0 {
			t.Errorf("%q: ended with %v, want exit 0", setting, state)
		}
		if want := 3 * len(crashpoint.All()); strings.Count(out, "\n") != want {
			t.Errorf("%q: passed %d hits, want %d", setting, strings.Count(out, "\n"), want)
		}
	}
}

func TestASettingThatNamesNoPointIsFatal(t *testing.T) {
	for _, setting := range []string{"after-clam:1", "after-claim", "after-claim:0", "after-claim:-1", "after-claim:x", ":1"} {
		out, stderr, state := child(t, setting)
		if !state.Exited() || state.ExitStatus() != 2 {
			t.Errorf("%q: ended with %v, want exit 2", setting, state)
		}
		if out != "" {
			t.Errorf("%q: the process ran", setting)
		}
		if !strings.Contains(stderr, "after-born-undo") {
			t.Errorf("%q: the message does not list the points: %s", setting, stderr)
		}
	}
}
