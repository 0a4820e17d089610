package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// elected runs serve in one process of all that share a home, and in another one as soon as that is gone. The lock is
// the operating system's, so that it goes with the process, however it ends.
//
// An error of serve gives the lock back and is tried again after a while, here or elsewhere: a port that is taken now
// may be free later. It returns when ctx ends.
func elected(ctx context.Context, home string, log *slog.Logger, serve func(ctx context.Context) error) {
	lock := flock.New(filepath.Join(home, "page.lock"), flock.SetPermissions(0o600))
	said := ""
	for ctx.Err() == nil {
		won, err := lock.TryLockContext(ctx, electionPause)
		if err == nil && won {
			err = serve(ctx)
			err = errors.Join(err, lock.Unlock())
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error() // once: it is tried every second
			log.WarnContext(ctx, "the approval page is not served here", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(electionPause):
		}
	}
}

// electionPause is how long a page may be gone before another process serves it.
const electionPause = time.Second

// serveHTTP serves h at all addresses of a loopback name, until ctx ends. It returns an error if it can listen at none.
func serveHTTP(ctx context.Context, address string, h http.Handler) error {
	listeners, err := listen(ctx, address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, len(listeners))
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() { failed <- s.Serve(l) })
	}
	select {
	case <-ctx.Done():
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = s.Shutdown(finish)
	case err = <-failed:
		err = errors.Join(err, s.Close())
	}
	serving.Wait()
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// listen opens a listener for each address of the host: a browser that asks for localhost may choose ::1 or 127.0.0.1,
// and on one that we leave free, somebody else could listen.
func listen(ctx context.Context, address string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %q: %w", address, err)
	}
	hosts := []string{host}
	if host == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var list []net.Listener
	var first error
	for i, h := range hosts {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(h, port))
		switch {
		case err == nil:
			list = append(list, l)
			if port == "0" {
				_, port, _ = net.SplitHostPort(l.Addr().String())
			}
		case i == 0:
			return nil, err
		case isInUse(err): // somebody else would answer there in our name
			for _, l := range list {
				_ = l.Close()
			}
			return nil, err
		default: // no IPv6 on this machine
			first = err
		}
	}
	if len(list) == 0 {
		return nil, first
	}
	return list, nil
}
