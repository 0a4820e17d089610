package sqlite_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/sqlite"
)

var writersFor = flag.Duration("writers-for", 2*time.Second, "how long fifty writers write")

const writersEnv = "WETINK_TEST_WRITERS_FOR"

func init() { roles["writers"] = write }

// Public reports tell of one write in six that is refused as busy, whatever busy_timeout says.
func TestFiftyWritersInTenProcessesAreNeverRefused(t *testing.T) {
	path := newPath(t)
	l := open(t, path, nil)
	var writers []*exec.Cmd
	outputs := make([]strings.Builder, 10)
	for i := range outputs {
		cmd := role(t, "writers", pathEnv+"="+path, writersEnv+"="+writersFor.String())
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, cmd)
	}
	written := 0
	for i, cmd := range writers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, outputs[i].String())
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(outputs[i].String()))
		if err != nil || n == 0 {
			t.Errorf("process %d wrote %q: %v", i, outputs[i].String(), err)
		}
		written += n
	}
	seq := int64(0)
	for ev, err := range l.Events(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; ev.Seq != seq {
			t.Fatalf("event %d stands where %d should", ev.Seq, seq)
		}
	}
	if int(seq) != written {
		t.Errorf("%d writes were answered as done, and %d events are there", written, seq)
	}
	t.Logf("%d writes in %s", written, *writersFor)
}

// write is five writers in one process. It prints how many writes were done, and ends with the first that was not.
func write() {
	d, err := time.ParseDuration(os.Getenv(writersEnv))
	if err != nil {
		panic(err)
	}
	l, err := sqlite.Open(os.Getenv(pathEnv), nil)
	if err != nil {
		panic(err)
	}
	ctx, end := context.Background(), time.Now().Add(d)
	done := make([]int, 5)
	var wg sync.WaitGroup
	for i := range done {
		wg.Go(func() {
			for time.Now().Before(end) {
				id := wetink.ChangeID("chg_" + rand.Text())
				row := wetink.Change{ID: id, Statement: wetink.Statement("{}"), Request: wetink.Request{Args: []byte("{}")}}
				birth := wetink.Move{ID: id, To: wetink.Pending, New: &row, Event: wetink.Event{Kind: wetink.KindPreviewed}}
				no := wetink.Move{ID: id, Rev: 1, From: wetink.Pending, To: wetink.Rejected, Event: wetink.Event{Kind: wetink.KindRejected}}
				for _, m := range []wetink.Move{birth, no} {
					if _, err := l.Advance(ctx, m); err != nil {
						panic(err)
					}
					done[i]++
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		panic(err)
	}
	fmt.Println(done[0] + done[1] + done[2] + done[3] + done[4])
}
