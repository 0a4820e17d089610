package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/wetink/wetink/internal/secret"
)

// ErrNotTerminal says that nobody is there to ask.
var ErrNotTerminal = errors.New("standard input is not a terminal")

// TTY is the controlling terminal of this process.
type TTY struct{ in, out *os.File }

// Open returns the controlling terminal, to show a change on and ask about it: not standard output, which may
// be a file that nobody sees. It refuses with ErrNotTerminal unless standard input is a terminal too, so that
// `yes | wetink approve` and a tool that an agent starts without a terminal get nowhere.
func Open() (*TTY, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, ErrNotTerminal
	}
	in, out, err := openTTY()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotTerminal, err)
	}
	return &TTY{in, out}, nil
}

func (t *TTY) Read(b []byte) (int, error)  { return t.in.Read(b) }
func (t *TTY) Write(b []byte) (int, error) { return t.out.Write(b) }

// Close does not wait for a read that an ended context left behind.
func (t *TTY) Close() error {
	if t.in == t.out {
		return t.in.Close()
	}
	return errors.Join(t.in.Close(), t.out.Close())
}

// User is the OS user that this process runs as, by the system's user database: $USER says what it likes. A
// user without a name there is "uid 1000".
func User() (string, error) {
	if uid := os.Getuid(); uid >= 0 {
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && u.Username != "" {
			return u.Username, nil
		}
		return fmt.Sprintf("uid %d", uid), nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("which OS user is this: %w", err)
	}
	return u.Username, nil
}

// maxAnswer bounds a typed line, in bytes.
const maxAnswer = 4096

// Ask writes a question and returns the line that was typed, without surrounding blanks. The end of input is
// an empty answer.
func Ask(ctx context.Context, tty io.ReadWriter, question string) (string, error) {
	if _, err := io.WriteString(tty, question); err != nil {
		return "", fmt.Errorf("ask: %w", err)
	}
	return await(ctx, func() (string, error) {
		line, err := readLine(tty)
		return strings.TrimSpace(line), err
	})
}

// AskPassphrase reads a passphrase without echo. When ctx ends first, the terminal echoes again.
func AskPassphrase(ctx context.Context, tty *TTY, question string) (secret.Bytes, error) {
	fd := int(tty.in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("ask for the passphrase: %w: %w", ErrNotTerminal, err)
	}
	if _, err := io.WriteString(tty, question); err != nil {
		return secret.Bytes{}, fmt.Errorf("ask for the passphrase: %w", err)
	}
	p, err := await(ctx, func() (secret.Bytes, error) {
		b, err := term.ReadPassword(fd)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return secret.New(b), err
	})
	if ctx.Err() != nil {
		err = errors.Join(err, term.Restore(fd, before))
	}
	_, werr := io.WriteString(tty, "\n") // the person's Enter was not echoed
	return p, errors.Join(err, werr)
}

// await returns when f does or ctx ends. A read of a terminal cannot be cancelled: its goroutine stays until
// the process ends, which is what follows.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := f()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readLine reads byte by byte: what is typed after the line belongs to the next question.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n':
			return string(line), nil
		case n == 1:
			if line = append(line, b[0]); len(line) > maxAnswer {
				return "", errors.New("the answer is too long")
			}
		case errors.Is(err, io.EOF):
			return string(line), nil
		case err != nil:
			return "", fmt.Errorf("read the answer: %w", err)
		}
	}
}
