package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
	ledger "github.com/wetink/wetink/ledger/sqlite"
)

// BenchmarkClaim measures durable claims beside what the disk can do: x-floor is their rate divided by the rate of
// appending 4 KiB and syncing it, measured just before and just after. Only this ratio can be compared between runs.
func BenchmarkClaim(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := open(b, newPath(b), nil)
			moves := make([]wetink.Move, b.N)
			for at := range slices.Chunk(moves, 500) {
				births := make([]wetink.Move, 0, 2*len(at))
				for i := range at {
					c := newRow(time.Now())
					births = append(births, birth(c, wetink.Pending), move(c.ID, 1, wetink.Pending, wetink.Approved))
					at[i] = claimMove(c.ID, 2)
				}
				advance(b, l, births...)
			}
			before := syncRate(b)
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						from := time.Now()
						if _, err := l.Advance(context.Background(), moves[i]); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(from)
					}
				})
			}
			all.Wait()
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "claims/s")
			b.ReportMetric(rate/((before+syncRate(b))/2), "x-floor")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkStatus reads a random row, as a status call does, from a small ledger and a large one.
func BenchmarkStatus(b *testing.B) {
	for _, rows := range []int{1e3, 1e6} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			l := open(b, filled(b, rows), nil)
			took := make([]time.Duration, 0, 1<<20)
			for b.Loop() {
				id := filledID(rand.IntN(rows))
				from := time.Now()
				if _, err := l.Get(context.Background(), "", id); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(from))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}

// BenchmarkSweep is what Run asks each second, with nothing due.
func BenchmarkSweep(b *testing.B) {
	l := open(b, filled(b, 1e6), nil)
	due := wetink.Filter{AnyTenant: true, DueBefore: time.UnixMilli(1), Limit: 500,
		Status: []wetink.Status{wetink.Pending, wetink.Approved, wetink.Applying, wetink.InDoubt}}
	approved := wetink.Filter{AnyTenant: true, Status: []wetink.Status{wetink.Approved}, Limit: 500}
	for b.Loop() {
		for _, f := range []wetink.Filter{due, approved} {
			for _, err := range l.List(context.Background(), f) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkOpen opens, reads once and closes a ledger of a million rows.
func BenchmarkOpen(b *testing.B) {
	path := filled(b, 1e6)
	for b.Loop() {
		l, err := ledger.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Get(context.Background(), "", filledID(7)); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// filled returns a ledger with many rows, one in a hundred of them pending, each with an approval and 256 bytes of
// statement. It is written past Advance, which would take minutes.
func filled(b *testing.B, rows int) string {
	b.Helper()
	path := newPath(b)
	l := open(b, path, nil)
	c := newRow(time.UnixMilli(1))
	m := birth(c, wetink.Pending)
	m.Approval = &wetink.Approval{At: time.UnixMilli(1), Evidence: wetink.Evidence{Kind: "page", By: "bo", Data: make([]byte, 64)}}
	advance(b, l, m)
	db := direct(b, path)
	defer db.Close()
	err := db.Write(context.Background(), func(tx *sqlite.Tx) error {
		var pattern [4][]byte
		for row, err := range tx.Query(`SELECT statement, request, before, bytes FROM content, facts`) {
			if err != nil {
				return err
			}
			for i := range pattern {
				pattern[i] = row.Blob(i)
			}
		}
		const n = `WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i+1 FROM n WHERE i+1 < ?) `
		_, err := tx.Exec(n+`INSERT INTO changes (tenant, id, rev, status, content, target, account, due, created, updated)
			SELECT '', printf('chg_%026d', i), 3, iif(i % 100 = 0, 1, 5), i+2, 'test', 'acct-' || (i % 50), 1900000000000, 1, 1 FROM n`, rows)
		if err == nil {
			_, err = tx.Exec(n+`INSERT INTO content SELECT i+2, ?, ?, ? FROM n`, rows, pattern[0], pattern[1], pattern[2])
		}
		if err == nil {
			_, err = tx.Exec(n+`INSERT INTO facts (change, rev, kind, bytes) SELECT i+2, 1, 1, ? FROM n`, rows, pattern[3])
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func filledID(i int) wetink.ChangeID { return wetink.ChangeID(fmt.Sprintf("chg_%026d", i)) }

// syncRate is how often a second 4 KiB can be appended and made durable.
func syncRate(b *testing.B) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	start, n := time.Now(), 0
	for time.Since(start) < 300*time.Millisecond {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}
