package terminal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/internal/secret"
)

// pty returns both ends of a pseudo-terminal.
func pty(t *testing.T) (person, program *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

func silence(t *testing.T, f *os.File) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); echoes(t, f); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it goes on echoing")
		}
	}
}

func TestAPassphraseIsNotEchoed(t *testing.T) {
	person, program := pty(t)
	type answer struct {
		p   secret.Bytes
		err error
	}
	got := make(chan answer, 1)
	go func() {
		p, err := terminal.AskPassphrase(t.Context(), terminal.NewTTY(program), "Passphrase: ")
		got <- answer{p, err}
	}()
	silence(t, program)
	if _, err := person.WriteString("five words make a phrase\n"); err != nil {
		t.Fatal(err)
	}
	a := <-got
	if a.err != nil || string(a.p.Reveal()) != "five words make a phrase" {
		t.Fatalf("another one was read: %v", a.err)
	}
	if !echoes(t, program) {
		t.Error("the terminal stays silent")
	}
	if _, err := program.WriteString("the end\n"); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	r := bufio.NewReader(person)
	for !strings.Contains(seen.String(), "the end") {
		l, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		seen.WriteString(l)
	}
	if s := seen.String(); !strings.Contains(s, "Passphrase: ") || strings.Contains(s, "five") {
		t.Errorf("the screen shows %q", s)
	}
}

func TestAnInterruptedPassphraseLeavesTheTerminalEchoing(t *testing.T) {
	_, program := pty(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := terminal.AskPassphrase(ctx, terminal.NewTTY(program), "Passphrase: ")
		got <- err
	}()
	silence(t, program)
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !echoes(t, program) {
		t.Error("the terminal stays silent")
	}
}
