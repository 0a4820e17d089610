package gateway

import (
	"bufio"
	"errors"
	"io"
)

// errTooLong is a line over the limit. It was read to its end, so that the next one can be read.
var errTooLong = errors.New("the message is too long")

// lines reads messages that end by a line feed.
type lines struct {
	r     *bufio.Reader
	max   int
	empty bool // empty lines are told, too
}

func newLines(r io.Reader, max int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns a line of its own memory, without its line feed, and skips empty ones. The last line needs none.
func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil && len(part) <= l.max+1 {
			if !l.empty && blank(part) {
				continue
			}
			b := make([]byte, len(part))
			copy(b, part)
			return b[:len(b)-1], nil
		}
		var b []byte
		size := 0
		for {
			if size += len(part); size > l.max+1 {
				b = nil
			} else {
				b = append(b, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
			part, err = l.r.ReadSlice('\n')
		}
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || blank(b)):
			return nil, err
		case size > l.max+1:
			return nil, errTooLong
		case !l.empty && blank(b):
			continue
		}
		if b[len(b)-1] == '\n' {
			return b[:len(b)-1], nil
		}
		return b, nil
	}
}

func blank(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
