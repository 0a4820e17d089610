package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wetink/wetink/internal/sqlite"
)

// BenchmarkWrite measures durable writes beside what the disk can do: x-floor is their rate divided by the rate of
// appending 4 KiB and fdatasync, measured just before and just after. Only this ratio can be compared between runs.
func BenchmarkWrite(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := open(b, newPath(b), nil)
			body := make([]byte, 256)
			var id, left atomic.Int64
			left.Store(int64(b.N))
			before := syncRate(b)
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						n := id.Add(1)
						word := fmt.Sprintf("%020d", n)
						mustWrite(b, db, func(tx *sqlite.Tx) error {
							_, err := tx.Exec(`INSERT INTO line (id, word, body) VALUES (?, ?, ?)`, n, word, body)
							return err
						})
					}
				})
			}
			all.Wait()
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "writes/s")
			b.ReportMetric(rate/((before+syncRate(b))/2), "x-floor")
		})
	}
}

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

func BenchmarkRead(b *testing.B) {
	db := open(b, newPath(b), nil)
	mustWrite(b, db, insert("a"))
	for b.Loop() {
		words(b, db)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	open(b, path, nil)
	for b.Loop() {
		db, err := sqlite.Open(path, &sqlite.Options{Migrations: schema})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
