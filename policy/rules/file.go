package rules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/wetink/wetink"
)

// Load reads a file of rules that must be there.
func Load(path string, floor wetink.Require) (*Rules, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src, floor)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRules, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // one more, so that Parse sees that it is too long
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRules, err)
	}
	return src, nil
}

// File is a Policy that follows a file. Each decision reads it: a rule that was added counts from the next one on. A file
// that became invalid is an error, never a reason to go on with older, laxer rules. Without a file the floor counts, and
// what cannot be undone needs reauth. It is safe for concurrent use.
type File struct {
	path  string
	floor func(context.Context) (wetink.Require, error)

	mu    sync.Mutex
	src   []byte
	at    wetink.Require
	rules *Rules
}

// NewFile returns the Policy of a file that may come, go and change. floor is asked each time.
func NewFile(path string, floor func(context.Context) (wetink.Require, error)) *File {
	return &File{path: path, floor: floor}
}

// Decide implements wetink.Policy.
func (f *File) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	r, err := f.Rules(ctx)
	if err != nil {
		return wetink.Decision{}, err
	}
	return r.Decide(ctx, t, before)
}

// Rules are those of the file as it is now.
func (f *File) Rules(ctx context.Context) (*Rules, error) {
	floor, err := f.floor(ctx)
	if err != nil {
		return nil, err
	}
	src, err := read(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		src, err = []byte("version: 1\n"), nil
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// Bytes are compared, not times: two edits within the clock's grain, or a copy that keeps its time, must count.
	if f.rules != nil && bytes.Equal(src, f.src) && f.at == floor {
		return f.rules, nil
	}
	r, err := Parse(f.path, src, floor)
	if err != nil {
		return nil, err
	}
	f.src, f.at, f.rules = src, floor, r
	return r, nil
}
