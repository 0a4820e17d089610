package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/wetink/wetink/internal/sqlite"
)

// faults is the operating system's file layer with a hook before each sync, and with a memory of what was synced:
// all that a loss of power would leave when the disk drops every write that was not.
type faults struct {
	vfs.VFSFilename
	beforeSync func(name string) error // nil: none

	mu      sync.Mutex
	durable map[string][]byte
	syncs   int
}

func newFaults(t *testing.T) (name string, f *faults) {
	f = &faults{VFSFilename: vfs.Find("os").(vfs.VFSFilename), durable: map[string][]byte{}}
	name = strings.ReplaceAll(t.Name(), "/", "-")
	vfs.Register(name, f)
	t.Cleanup(func() { vfs.Unregister(name) })
	return name, f
}

func (f *faults) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := f.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &faultyFile{FilePersistWAL: file.(vfs.FilePersistWAL), name: name.String(), faults: f}, flags, nil
}

type faultyFile struct {
	vfs.FilePersistWAL
	name   string
	faults *faults
}

func (f *faultyFile) SharedMemory() vfs.SharedMemory {
	return f.FilePersistWAL.(vfs.FileSharedMemory).SharedMemory()
}

func (f *faultyFile) Sync(flags vfs.SyncFlag) error {
	if f.faults.beforeSync != nil {
		if err := f.faults.beforeSync(f.name); err != nil {
			return err
		}
	}
	if err := f.FilePersistWAL.Sync(flags); err != nil {
		return err
	}
	now, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.faults.durable[f.name] = now
	f.faults.syncs++
	return nil
}

func (f *faults) synced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// cutPower writes what would be left of the file at path into a directory of its own.
func (f *faults) cutPower(t *testing.T, path string) (left string) {
	t.Helper()
	f.mu.Lock()
	durable := maps.Clone(f.durable)
	f.mu.Unlock()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range durable {
		if strings.HasPrefix(name, path) {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(dir, filepath.Base(path))
}

// original puts the file as it was created into what is durable: it is made whole and synced under another name.
func (f *faults) original(t *testing.T, path string) {
	t.Helper()
	if err := open(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		f.durable[path+suffix] = content
	}
}

func TestNobodyIsAnsweredBeforeTheLogIsSynced(t *testing.T) {
	name, f := newFaults(t)
	db := open(t, newPath(t), &sqlite.Options{VFS: name})
	var all sync.WaitGroup
	for c := range 32 {
		all.Go(func() {
			for i := range 10 {
				var before int
				err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
					before = f.synced()
					return insert(fmt.Sprintf("%d-%d", c, i))(tx)
				})
				if err != nil {
					t.Error(err)
				}
				if f.synced() == before {
					t.Errorf("%d-%d: answered without a sync after it had run", c, i)
				}
			}
		})
	}
	all.Wait()
	if n := f.synced(); n > 320 {
		t.Errorf("%d syncs for 320 writes: nobody shared one", n)
	}
}

func TestWhatWasAnsweredSurvivesALossOfPower(t *testing.T) {
	name, f := newFaults(t)
	path := newPath(t)
	f.original(t, path)
	db := open(t, path, &sqlite.Options{VFS: name})
	// Small, so that the power also goes while the log is moved into the file and when it starts over.
	mustWrite(t, db, func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`PRAGMA wal_autocheckpoint = 16`)
		return err
	})
	const writers, writes = 4, 60
	var answered [writers]atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range int64(writes) {
				mustWrite(t, db, func(tx *sqlite.Tx) error {
					_, err := tx.Exec(`INSERT INTO line (id, word, body) VALUES (?, ?, ?)`, int64(w)*1000+i, fmt.Sprintf("%d-%d", w, i), make([]byte, 1500))
					return err
				})
				answered[w].Store(i + 1)
				if w > 0 || i%3 != 0 {
					continue
				}
				var promised [writers]int64
				for v := range writers {
					promised[v] = answered[v].Load()
				}
				left, err := sqlite.Open(f.cutPower(t, path), &sqlite.Options{Migrations: schema})
				if err != nil {
					t.Errorf("after a loss of power: %v", err)
					continue
				}
				for v, n := range promised {
					sql := fmt.Sprintf(`SELECT count(*) FROM line WHERE id BETWEEN %d AND %d`, v*1000, int64(v)*1000+n-1)
					if got := number(t, left, sql); got != n {
						t.Errorf("of %d answered writes %d are left", n, got)
					}
				}
				if err := left.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestACommitThatFailsIsAnsweredAsUnknownToTheWholeBatch(t *testing.T) {
	name, f := newFaults(t)
	db := open(t, newPath(t), &sqlite.Options{VFS: name})
	var broken atomic.Bool
	f.beforeSync = func(name string) error {
		if broken.Load() && strings.HasSuffix(name, "-wal") {
			return errors.New("the disk is gone")
		}
		return nil
	}
	mustWrite(t, db, insert("before"))

	broken.Store(true)
	errs := together(t, db, insert("a"), func(*sqlite.Tx) error { return sqlite.Refuse(errNo) }, insert("b"))
	for i, err := range errs {
		if !errors.Is(err, sqlite.ErrCommitUnknown) || errors.Is(err, errNo) {
			t.Errorf("call %d: %v, want ErrCommitUnknown only", i, err)
		}
	}
	wantWords(t, db, "before")

	broken.Store(false)
	mustWrite(t, db, insert("after"))
	wantWords(t, db, "before", "after")
}
