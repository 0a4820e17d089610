package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink/internal/sqlite"
)

var schema = []string{
	`CREATE TABLE line (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, body BLOB) STRICT`,
	`CREATE TABLE counter (n INTEGER NOT NULL) STRICT; INSERT INTO counter VALUES (0)`,
}

// TestMain is also the second process of the tests that need one.
func TestMain(m *testing.M) {
	path := os.Getenv("SQLITE_TEST_FILE")
	if path == "" {
		os.Exit(m.Run())
	}
	if err := secondProcess(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	childWorkers = 4
	childWrites  = 50
)

// secondProcess opens the file and counts, each worker by itself.
func secondProcess(path string) error {
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: schema})
	if err != nil {
		return err
	}
	return errors.Join(count(db, childWorkers, childWrites), db.Close())
}

func count(db *sqlite.DB, workers, writes int) error {
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range writes {
				errs[i] = errors.Join(errs[i], db.Write(context.Background(), func(tx *sqlite.Tx) error {
					_, err := tx.Exec(`UPDATE counter SET n = n + 1`)
					return err
				}))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func startProcess(t *testing.T, path string) (wait func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "SQLITE_TEST_FILE="+path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("second process: %v: %s", err, out.String())
		}
	}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger", "test.db") }

func open(t testing.TB, path string, options *sqlite.Options) *sqlite.DB {
	t.Helper()
	o := sqlite.Options{Migrations: schema}
	if options != nil {
		o = *options
		o.Migrations = schema
	}
	db, err := sqlite.Open(path, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func insert(word string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO line (word) VALUES (?)`, word)
		return err
	}
}

func mustWrite(t testing.TB, db *sqlite.DB, f func(*sqlite.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func words(t testing.TB, db *sqlite.DB) []string {
	t.Helper()
	all := []string{}
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(`SELECT word FROM line ORDER BY id`) {
			if err != nil {
				return err
			}
			all = append(all, row.Text(0))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantWords(t testing.TB, db *sqlite.DB, want ...string) {
	t.Helper()
	if got := words(t, db); !slices.Equal(got, want) {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

func number(t testing.TB, db *sqlite.DB, sql string) (n int64) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(sql) {
			if err != nil {
				return err
			}
			n = row.Int64(0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheFileIsWALWithFullSync(t *testing.T) {
	db := open(t, newPath(t), nil)
	settings := map[string]string{}
	mustWrite(t, db, func(tx *sqlite.Tx) error {
		for _, pragma := range []string{"journal_mode", "synchronous", "wal_autocheckpoint", "temp_store"} {
			for row, err := range tx.Query(`PRAGMA ` + pragma) {
				if err != nil {
					return err
				}
				settings[pragma] = row.Text(0)
			}
		}
		return nil
	})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "wal_autocheckpoint": "4000", "temp_store": "2"} {
		if settings[pragma] != want {
			t.Errorf("%s is %q, want %q", pragma, settings[pragma], want)
		}
	}
}

func TestProcessesThatCreateOneFileTogetherMigrateItOnceAndLoseNoWrite(t *testing.T) {
	path := newPath(t)
	const processes = 3
	var waits []func()
	for range processes {
		waits = append(waits, startProcess(t, path))
	}
	db := open(t, path, nil)
	if err := count(db, 8, 50); err != nil {
		t.Error(err)
	}
	for _, wait := range waits {
		wait()
	}
	if got, want := number(t, db, `SELECT n FROM counter`), int64(processes*childWorkers*childWrites+8*50); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
	if n := number(t, db, `SELECT count(*) FROM counter`); n != 1 {
		t.Errorf("the second step ran %d times", n)
	}
}

func TestAFileOfANewerReleaseIsRefused(t *testing.T) {
	path := newPath(t)
	old := open(t, path, nil)
	mustWrite(t, old, insert("before"))
	newer, err := sqlite.Open(path, &sqlite.Options{Migrations: append(slices.Clone(schema), `CREATE TABLE more (n INTEGER) STRICT`)})
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()

	if _, err := sqlite.Open(path, &sqlite.Options{Migrations: schema}); !errors.Is(err, sqlite.ErrNewerSchema) {
		t.Errorf("open: %v, want ErrNewerSchema", err)
	}
	if err := old.Write(t.Context(), insert("after")); !errors.Is(err, sqlite.ErrNewerSchema) {
		t.Errorf("write of a process that runs since before: %v, want ErrNewerSchema", err)
	}
	wantWords(t, newer, "before")
}

func TestAFailedMigrationStepLeavesTheOneBefore(t *testing.T) {
	path := newPath(t)
	broken := append(slices.Clone(schema), `CREATE TABLE half (n INTEGER) STRICT; CREATE TABLE line (n INTEGER) STRICT`)
	if _, err := sqlite.Open(path, &sqlite.Options{Migrations: broken}); err == nil || !strings.Contains(err.Error(), "schema step 3") {
		t.Fatalf("open: %v, want an error that names step 3", err)
	}
	db := open(t, path, nil) // not newer: the version is still 2
	if n := number(t, db, `SELECT count(*) FROM sqlite_schema WHERE name = 'half'`); n != 0 {
		t.Error("the first statement of the failed step stayed")
	}
}

func TestAReadSeesOneMoment(t *testing.T) {
	db := open(t, newPath(t), nil)
	mustWrite(t, db, insert("one"))
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		count := func() (n int64) {
			for row, err := range tx.Query(`SELECT count(*) FROM line`) {
				if err != nil {
					t.Error(err)
					return
				}
				n = row.Int64(0)
			}
			return n
		}
		first := count()
		mustWrite(t, db, insert("two"))
		if second := count(); first != 1 || second != 1 {
			t.Errorf("counted %d and then %d in one read, want 1 and 1", first, second)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantWords(t, db, "one", "two")
}

func TestAReadCannotWrite(t *testing.T) {
	db := open(t, newPath(t), nil)
	mustWrite(t, db, insert("one"))
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM line`)
		return err
	})
	if err == nil {
		t.Error("a read deleted rows")
	}
	wantWords(t, db, "one")
}

func TestAReadEndsWithItsContextAndLeavesTheConnectionUsable(t *testing.T) {
	db := open(t, newPath(t), &sqlite.Options{Readers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Read(ctx, func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(`WITH RECURSIVE c (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT n FROM c`) {
			if err != nil {
				return err
			}
			if row.Int64(0) == 3 {
				cancel()
			}
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an endless query ended with %v, want the context's error", err)
	}
	if err := db.Read(ctx, func(*sqlite.Tx) error { t.Error("ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a read whose context was over: %v", err)
	}
	wantWords(t, db)
}

func TestAReadWaitsForAConnectionNoLongerThanItsContext(t *testing.T) {
	db := open(t, newPath(t), &sqlite.Options{Readers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Read(t.Context(), func(*sqlite.Tx) error {
		cancel()
		return db.Read(ctx, func(*sqlite.Tx) error { return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	db := open(t, newPath(t), nil)
	big := bytes.Repeat([]byte{0, 'x', 255}, 1<<20)
	for i, body := range []any{nil, []byte(nil), []byte{}, []byte("x\x00y"), big} {
		mustWrite(t, db, func(tx *sqlite.Tx) error {
			n, err := tx.Exec(`INSERT INTO line (id, word, body) VALUES (?, ?, ?)`, i, strconv.Itoa(i)+"\x00ü", body)
			if n != 1 {
				t.Errorf("body %d: %d rows changed, want 1", i, n)
			}
			return err
		})
		err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
			for row, err := range tx.Query(`SELECT id, word, body, ?, ? FROM line WHERE id = ?`, true, int64(-1<<63), int64(i)) {
				if err != nil {
					return err
				}
				want, _ := body.([]byte)
				if got := row.Blob(2); !bytes.Equal(got, want) || (got == nil) != (want == nil) || row.Null(2) != (want == nil) {
					t.Errorf("body %d: another came back (%d bytes, nil: %v)", i, len(got), got == nil)
				}
				if row.Text(1) != strconv.Itoa(i)+"\x00ü" || row.Int64(0) != int64(i) || !row.Bool(3) || row.Int64(4) != -1<<63 {
					t.Errorf("row %d came back as %d %q %v %d", i, row.Int64(0), row.Text(1), row.Bool(3), row.Int64(4))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatementsThatNobodyMeantAreRefused(t *testing.T) {
	type named string
	db := open(t, newPath(t), nil)
	for _, tc := range []struct {
		sql  string
		args []any
		want string
	}{
		{`INSERT INTO line (word) VALUES (?)`, nil, "0 arguments for 1"},
		{`INSERT INTO line (word) VALUES (?)`, []any{"a", "b"}, "2 arguments for 1"},
		{`INSERT INTO line (word) VALUES (?)`, []any{named("a")}, "a sqlite_test.named cannot be stored"},
		{`INSERT INTO line (word) VALUES (?)`, []any{1.5}, "a float64 cannot be stored"},
		{`INSERT INTO line (word) VALUES (?)`, []any{time.Time{}}, "a time.Time cannot be stored"},
		{`DELETE FROM line; DELETE FROM line`, nil, "more than one"},
		{`-- nothing`, nil, "no statement"},
		{`INSERT INTO line (word) VALUES ("double quoted")`, nil, "no such column"},
	} {
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(tc.sql, tc.args...)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %v: %v, want %q", tc.sql, tc.args, err, tc.want)
		}
	}
	wantWords(t, db)
}

func TestAQueryInsideAQueryOfTheSameTextIsItsOwn(t *testing.T) {
	db := open(t, newPath(t), nil)
	mustWrite(t, db, insert("a"))
	mustWrite(t, db, insert("b"))
	const sql = `SELECT word FROM line ORDER BY id`
	var pairs []string
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		for outer, err := range tx.Query(sql) {
			if err != nil {
				return err
			}
			for inner, err := range tx.Query(sql) {
				if err != nil {
					return err
				}
				pairs = append(pairs, outer.Text(0)+inner.Text(0))
			}
		}
		return nil
	})
	if err != nil || !slices.Equal(pairs, []string{"aa", "ab", "ba", "bb"}) {
		t.Errorf("got %q, %v", pairs, err)
	}
}

func TestATxIsOverWhenItsFunctionHasReturned(t *testing.T) {
	db := open(t, newPath(t), nil)
	var kept [2]*sqlite.Tx
	mustWrite(t, db, func(tx *sqlite.Tx) error { kept[0] = tx; return nil })
	if err := db.Read(t.Context(), func(tx *sqlite.Tx) error { kept[1] = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, tx := range kept {
		if _, err := tx.Exec(`DELETE FROM line`); err == nil {
			t.Error("a kept Tx still works")
		}
	}
}

func TestABackupPutBackAfterACleanCloseIsWhatItWas(t *testing.T) {
	path := newPath(t)
	db := open(t, path, nil)
	mustWrite(t, db, insert("old"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db = open(t, path, nil)
	mustWrite(t, db, insert("new"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	wantWords(t, open(t, path, nil), "old")
}

func TestALogWhoseFileIsGoneIsNotReplayedIntoANewOne(t *testing.T) {
	path := newPath(t)
	db := open(t, path, nil)
	mustWrite(t, db, insert("old"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(path, &sqlite.Options{Migrations: schema})
	if fix := fmt.Sprintf("rm %s-wal %s-shm", path, path); !errors.Is(err, sqlite.ErrTorn) || !strings.Contains(err.Error(), fix) {
		t.Errorf("open: %v, want ErrTorn that says %q", err, fix)
	}
}

func TestClosedMeansClosed(t *testing.T) {
	db := open(t, newPath(t), nil)
	waiting := db.Changed()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), insert("late")); !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("write: %v, want ErrClosed", err)
	}
	if err := db.Read(t.Context(), func(*sqlite.Tx) error { return nil }); !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("read: %v, want ErrClosed", err)
	}
	<-waiting
	<-db.Changed()
	if err := db.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
