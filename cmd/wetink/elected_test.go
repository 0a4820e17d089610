package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestOneOfManyServesThePageAndAnotherTakesOver(t *testing.T) {
	home := t.TempDir()
	var serving atomic.Int32
	type term struct{ who int }
	began := make(chan term)
	stops := make([]context.CancelFunc, 3)
	for i := range stops {
		ctx, stop := context.WithCancel(t.Context())
		stops[i] = stop
		go elected(ctx, home, quiet(), func(ctx context.Context) error {
			if n := serving.Add(1); n != 1 {
				t.Errorf("%d serve at once", n)
			}
			defer serving.Add(-1)
			began <- term{i}
			<-ctx.Done()
			return nil
		})
	}
	seen := map[int]bool{}
	for range stops {
		select {
		case b := <-began:
			if seen[b.who] {
				t.Errorf("%d served again after it was stopped", b.who)
			}
			seen[b.who] = true
			stops[b.who]()
		case <-time.After(10 * time.Second):
			t.Fatalf("nobody took over after %v", seen)
		}
	}
}

func TestServingThatFailsIsTriedAgainAndSaidOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log strings.Builder
	tries := 0
	elected(ctx, t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error {
		if tries++; tries == 3 {
			stop()
		}
		return errors.New("the port is taken")
	})
	if n := strings.Count(log.String(), "the port is taken"); tries != 3 || n != 1 {
		t.Errorf("%d tries, said %d times: %s", tries, n, log.String())
	}
}

func TestAPageIsNotServedNextToAStranger(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stranger, err := listen(ctx, "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, l := range stranger {
			_ = l.Close()
		}
	}()
	address := "localhost:" + port(stranger[0].Addr().String())
	for _, l := range stranger[:len(stranger)-1] { // one of the two is left
		_ = l.Close()
	}
	if err := serveHTTP(ctx, address, http.NotFoundHandler()); err == nil {
		t.Error("it serves on one address of localhost while somebody else has the other")
	}
}

func TestTheServerEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	free, err := listen(ctx, "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "localhost:" + port(free[0].Addr().String())
	for _, l := range free {
		_ = l.Close()
	}
	done := make(chan error)
	go func() {
		done <- serveHTTP(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "here") }))
	}()
	for {
		res, err := http.Get("http://" + address)
		if err == nil {
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(b) != "here" {
				t.Errorf("it says %q", b)
			}
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }
