package notify_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wetink/wetink/notify"
)

// TestMain lets this binary stand for the program that shows notifications: it writes down how it was called.
func TestMain(m *testing.M) {
	if name := os.Getenv("NOTIFY_TEST_ARGV"); name != "" {
		if err := os.WriteFile(name, []byte(strings.Join(os.Args[1:], "\n")), 0o600); err != nil {
			os.Exit(3)
		}
		if os.Getenv("NOTIFY_TEST_FAIL") != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// screen puts this binary in front of the path as the system's program, and returns where it writes its arguments.
func screen(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, system := range []string{"linux", "darwin", "windows"} {
		if err := os.Symlink(self, filepath.Join(dir, notify.DesktopCommand(system, message())[0])); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	argv := filepath.Join(dir, "argv")
	t.Setenv("NOTIFY_TEST_ARGV", argv)
	return argv
}

func TestTheDesktopShowsAConstantText(t *testing.T) {
	argv := screen(t)
	d, err := notify.NewDesktop("desk")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(argv)
	if err != nil || !strings.Contains(string(got), "A change waits for you.") || strings.Contains(string(got), "wetink.example") {
		t.Errorf("%s (%v)", got, err)
	}
}

func TestADesktopThatCannotShowItIsNotDelivered(t *testing.T) {
	screen(t)
	t.Setenv("NOTIFY_TEST_FAIL", "1")
	d, err := notify.NewDesktop("desk")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(t.Context(), message()); err == nil {
		t.Error("a program that failed counts as delivered")
	}
	t.Setenv("PATH", t.TempDir())
	if err := d.Send(t.Context(), message()); err == nil {
		t.Error("a program that is not there counts as delivered")
	}
}

func TestNothingOfAMessageReachesTheCommandLine(t *testing.T) {
	hostile := notify.Message{ID: `"; rm -rf /; $(id)`, Link: `https://x.example/"'$(id)`, Waiting: 1}
	for _, system := range []string{"linux", "darwin", "windows"} {
		if got, want := notify.DesktopCommand(system, hostile), notify.DesktopCommand(system, notify.Message{Waiting: 7}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", system, got, want)
		}
		waiting, doubt, both := notify.Message{Waiting: 1}, notify.Message{InDoubt: 1}, notify.Message{Waiting: 1, InDoubt: 1}
		all := map[string]bool{}
		for _, m := range []notify.Message{waiting, doubt, both} {
			all[strings.Join(notify.DesktopCommand(system, m), " ")] = true
		}
		if len(all) != 3 {
			t.Errorf("%s has %d texts, want 3", system, len(all))
		}
	}
}
