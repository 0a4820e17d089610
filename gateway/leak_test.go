//go:build unix

package gateway_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wetink/wetink/gateway"
)

func TestCloseLeavesNoGoroutineAndNoProcess(t *testing.T) {
	before := runtime.NumGoroutine()
	var pids []int
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			g, _ := newGateway(t, &guard{}, nil, upstreamOf("one", "sdk"), overHTTP(t, "two", version == modern))
			s := dial(t, listen(t, g), version, nil)
			call(t, s, "two__echo", text{"x"})
			pid, err := strconv.Atoi(call(t, s, "one__pid", nil))
			if err != nil || pid == os.Getpid() {
				t.Fatal(pid, err)
			}
			pids = append(pids, pid)
			g.Upstream("one").Tools(t.Context())
			c := connect(t, g, version, nil)
			call(t, c, "one__echo", text{"x"})
		})
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, "goroutines are left")
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d lives", pid)
		}
	}
}

func TestAProcessThatDoesNotEndByItselfIsEnded(t *testing.T) {
	g, log := newGateway(t, nil, &gateway.Options{Grace: 50_000_000},
		gateway.Upstream{Name: "one", Command: []string{"/bin/sh", "-c", "trap '' TERM; sleep 300 & echo pid $! $$ >&2; while true; do read x; wait; done"}})
	w := serve(t, g)
	var pids []string
	eventually(t, func() bool {
		_, line, ok := strings.Cut(log.String(), "[one] pid ")
		pids = strings.Fields(line)
		return ok && len(pids) >= 2
	}, "it did not start")
	w.in.Close()
	if err := <-w.done; err != nil {
		t.Error(err)
	}
	w.done <- nil
	for _, p := range pids[:2] {
		pid, _ := strconv.Atoi(p)
		eventually(t, func() bool { return syscall.Kill(pid, 0) != nil || zombie(p) }, "process "+p+" of its group lives")
	}
}

// zombie reports a process that ended, and that nobody has waited for.
func zombie(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}
