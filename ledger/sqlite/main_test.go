package sqlite_test

import (
	"os"
	"os/exec"
	"testing"
)

// roles are what this test binary can be besides the test: a second process on the same file.
var roles = map[string]func(){}

const roleEnv = "WETINK_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		roles[name]()
		return
	}
	os.Exit(m.Run())
}

// role is the command that starts another process of this binary.
func role(t testing.TB, name string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), roleEnv+"="+name), env...)
	cmd.Stderr = os.Stderr
	return cmd
}
