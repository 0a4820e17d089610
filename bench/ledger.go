package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/sqlite"
)

// statement is as large as a usual one.
var statement = wetink.Statement(fmt.Sprintf(`{"v":1,"padding":"%01000d"}`, 0))

func rowID(i int) wetink.ChangeID { return wetink.ChangeID(fmt.Sprintf("chg_%026d", i)) }

func birth(id wetink.ChangeID) wetink.Move {
	return wetink.Move{ID: id, To: wetink.Pending, New: &wetink.Change{ID: id, Statement: statement, Target: "bench", Account: "acct"},
		Event: wetink.Event{Kind: wetink.KindPreviewed, Digest: statement.Digest()}}
}

func step(id wetink.ChangeID, rev int64, from, to wetink.Status, kind string) wetink.Move {
	return wetink.Move{ID: id, Rev: rev, From: from, To: to, Event: wetink.Event{Kind: kind, Digest: statement.Digest()}}
}

// fill makes a ledger of settled rows, as an old home has.
func fill(ctx context.Context, dir string, rows int) (string, error) {
	path := filepath.Join(dir, "ledger.db")
	l, err := sqlite.Open(path, nil)
	if err != nil {
		return "", err
	}
	defer l.Close()
	const batch = 500
	for from := 0; from < rows; from += batch {
		var moves []wetink.Move
		for i := from; i < min(from+batch, rows); i++ {
			moves = append(moves, birth(rowID(i)), step(rowID(i), 1, wetink.Pending, wetink.Rejected, wetink.KindRejected))
		}
		if _, err := l.Advance(ctx, moves...); err != nil {
			return "", err
		}
	}
	return path, nil
}

// claimRate is claims a second of so many callers, and the disk's sync rate around it.
func claimRate(ctx context.Context, dir string, callers int) (rate, floor float64, err error) {
	home, err := os.MkdirTemp(dir, "claims-")
	if err != nil {
		return 0, 0, err
	}
	if err := os.Chmod(home, 0o700); err != nil {
		return 0, 0, err
	}
	l, err := sqlite.Open(filepath.Join(home, "ledger.db"), nil)
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	n := 4000 * min(callers, 16) // more than are claimed in the time
	for from := 0; from < n; from += 500 {
		var moves []wetink.Move
		for i := from; i < from+500; i++ {
			moves = append(moves, birth(rowID(i)), step(rowID(i), 1, wetink.Pending, wetink.Approved, wetink.KindApproved))
		}
		if _, err := l.Advance(ctx, moves...); err != nil {
			return 0, 0, err
		}
	}
	before, err := syncRate(dir)
	if err != nil {
		return 0, 0, err
	}
	var next, done atomic.Int64
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	from := time.Now()
	for range callers {
		wg.Go(func() {
			for time.Since(from) < lasts {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				m := step(rowID(i), 2, wetink.Approved, wetink.Applying, wetink.KindClaimed)
				m.Claim = &wetink.Claim{ID: fmt.Sprint(i), Owner: "bench", Lease: from.Add(time.Hour)}
				m.Before, m.Due = from.Add(time.Hour), m.Claim.Lease
				if _, err := l.Advance(ctx, m); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(from)
	if e := first.Load(); e != nil {
		return 0, 0, *e
	}
	after, err := syncRate(dir)
	return float64(done.Load()) / took.Seconds(), (before + after) / 2, err
}

// statusTime is the p50 of reading a random row.
func statusTime(ctx context.Context, path string, rows int) (time.Duration, error) {
	l, err := sqlite.Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	took := make([]time.Duration, 4000)
	for i := range took {
		id := rowID(rand.IntN(rows))
		from := time.Now()
		if _, err := l.Get(ctx, "", id); err != nil {
			return 0, err
		}
		took[i] = time.Since(from)
	}
	return median(took), nil
}
