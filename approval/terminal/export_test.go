package terminal

import "os"

// NewTTY stands for Open where the test holds the other end.
func NewTTY(f *os.File) *TTY { return &TTY{f, f} }
