package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// ServeStdio serves one client over in and out until in ends, ctx does, or out takes nothing more. At the end of in,
// requests that are open have [Options.Grace] to be answered. in and out are closed then, if they are io.Closers: a
// write to a client that no longer reads would not end otherwise.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	write := func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := out.Write(line(oneLine(b))); err != nil {
			cancel(err)
		}
	}
	g.mu.Lock()
	if g.closed || g.stdio != nil {
		g.mu.Unlock()
		return errors.New("standard streams are served once, and not after Close")
	}
	s := g.newSession(write, false)
	g.stdio = s
	g.mu.Unlock()
	defer func() {
		if c, ok := out.(io.Closer); ok {
			c.Close()
		}
		s.close()
		g.mu.Lock()
		g.stdio = nil
		g.mu.Unlock()
	}()
	if c, ok := in.(io.Closer); ok {
		defer context.AfterFunc(ctx, func() { c.Close() })()
	}
	r := newLines(in, g.opt.ClientBytes)
	for {
		b, err := r.next()
		switch {
		case ctx.Err() != nil:
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case errors.Is(err, errTooLong):
			write(errorLine(nil, codeRequest, errTooLong.Error(), nil))
			continue
		case errors.Is(err, io.EOF):
			s.settle(ctx)
			return nil
		case err != nil:
			return err
		}
		m, err := peek(b, g.opt.Depth, true)
		if err != nil {
			write(refused(&m, err))
			continue
		}
		s.receive(m, nil, nil)
	}
}

// settle waits for the requests that are open.
func (s *session) settle(ctx context.Context) {
	late := time.NewTimer(s.g.opt.Grace)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		s.mu.Lock()
		open := len(s.open)
		s.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// refused tells the sender why a message goes nowhere, under its id if one was read.
func refused(m *message, err error) []byte {
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{codeInternal, err.Error(), -1}
	}
	var id []byte
	if m.id.ok() {
		if c := m.raw[m.id.from]; c == '"' || c == '-' || c >= '0' && c <= '9' {
			id = m.id.of(m.raw)
		}
	}
	return errorLine(id, r.code, r.Error(), nil)
}
