//go:build crashpoint

package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var (
	armed Point
	left  atomic.Int64 // hits until death; 0 from the start: nothing is armed
)

func init() {
	setting := os.Getenv(Env)
	if setting == "" {
		return
	}
	name, count, _ := strings.Cut(setting, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	i := slices.Index(names[:], name)
	if err != nil || n < 1 || i < 0 {
		fmt.Fprintf(os.Stderr, "%s=%q: want NAME:N, with N from 1 and NAME one of %v\n", Env, setting, All())
		os.Exit(2)
	}
	armed = Point(i)
	left.Store(n)
}

// Here marks a point, and never returns from the hit that was armed.
func Here(p Point) {
	if p != armed || left.Load() == 0 || left.Add(-1) != 0 {
		return
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // the signal may take a moment; nothing may happen in it
}
