package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/wetink/wetink/approval/terminal"
)

// line is one end of a conversation: what is read was typed before, what is written is kept.
type line struct {
	io.Reader
	said bytes.Buffer
}

func (l *line) Write(b []byte) (int, error) { return l.said.Write(b) }

func TestAskLeavesTheNextAnswerAlone(t *testing.T) {
	tty := &line{Reader: strings.NewReader("  y \r\nbecause\nrest")}
	for _, want := range []string{"y", "because", "rest", ""} {
		if got, err := terminal.Ask(t.Context(), tty, "? "); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if got := tty.said.String(); got != "? ? ? ? " {
		t.Errorf("it said %q", got)
	}
}

func TestAskRefusesALineWithoutEnd(t *testing.T) {
	tty := &line{Reader: strings.NewReader(strings.Repeat("y", 5000) + "\n")}
	if _, err := terminal.Ask(t.Context(), tty, "? "); err == nil {
		t.Error("5000 bytes were an answer")
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := terminal.Ask(ctx, &line{Reader: r}, "? "); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := os.Stdin
	os.Stdin = null
	defer func() { os.Stdin = before }()
	if tty, err := terminal.Open(); !errors.Is(err, terminal.ErrNotTerminal) {
		t.Errorf("%v, %v", tty, err)
	}
}
