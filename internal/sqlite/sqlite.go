// Package sqlite keeps a small durable database in one SQLite file: the one place that touches the driver.
//
// # Guarantees
//
// A [DB.Write] that returned nil is on disk: the file is in WAL mode with synchronous=FULL, and no caller is answered
// before the COMMIT that holds its work, whose last act is to sync the log (https://sqlite.org/wal.html). Many callers
// share one COMMIT; each is answered by itself, and the mistake of one harms no other. Readers run beside the writer
// and each sees one snapshot. Several processes may have the same file open.
//
// The database, its -wal and its -shm are readable and writable by their owner only, in a directory that nobody else
// can enter, whatever the umask. A file that others could have written is refused, not repaired: what it says can no
// longer be believed, and only a person can decide that.
//
// # Not guaranteed
//
// A disk or a virtual machine that reports a sync before it is done can lose acknowledged writes with the power.
// The file must be on a local file system: WAL needs shared memory, which no network file system gives.
// After a crash the -wal is part of the database: copy it along, and remove it before a backup is put back.
//
// BUG(wetink): on Windows modes and owners are not checked; the directory's access list is all there is.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

var (
	// ErrInsecure: the file or its directory could be read or written by somebody else. The message says the fix.
	ErrInsecure = errors.New("not private")
	// ErrTorn: the log of a file that is gone. SQLite would replay it into a new one.
	ErrTorn = errors.New("log without its file")
	// ErrNewerSchema: a newer release has migrated the file. It comes from Open and, when the release is
	// changed under a running process, from Write, which has then written nothing.
	ErrNewerSchema = errors.New("written by a newer release")
	// ErrBusy: another process held the write lock for the whole BusyTimeout. Nothing was written.
	ErrBusy = errors.New("locked by another process")
	// ErrConstraint: a statement would break a UNIQUE, CHECK, NOT NULL or STRICT rule. It did nothing, and the
	// transaction goes on.
	ErrConstraint = errors.New("constraint")
	// ErrCommitUnknown: COMMIT failed, so the work is not acknowledged, and it is not certain that it is undone:
	// it is not visible now, but the log may hold it, and a crash before the next commit could bring it back.
	// Read again before deciding.
	ErrCommitUnknown = errors.New("commit failed, outcome unknown")
	// ErrClosed: the DB was closed. Nothing was read or written.
	ErrClosed = errors.New("database is closed")
)

// Options; the zero value is for production.
type Options struct {
	// Migrations are the whole schema: step i, one or more statements, takes user_version from i to i+1 in a
	// transaction of its own. A released step is never edited.
	Migrations []string
	// BusyTimeout is how long to wait for another process's transaction. 0: 10 s.
	BusyTimeout time.Duration
	// Poll is how often to look for another process's commits while somebody waits on Changed. 0: 100 ms.
	Poll time.Duration
	// Batch is the most callers that share one COMMIT. 0: 256.
	Batch int
	// Readers is the most Reads at once. 0: 4.
	Readers int
	// VFS is the name of a registered file layer, for tests that break it. "": the operating system.
	VFS string
}

// DB is one open file. Its methods may be called from any goroutine.
type DB struct {
	path    string
	options Options
	writer  writer
	readers chan *conn // as many as Options.Readers; nil: not opened yet
	changed changed

	close   sync.Once
	closing chan struct{}
}

// Open opens or creates the file at path, with every directory missing on the way, and brings its schema up to date.
// Any number of processes may do so at once. The errors a caller can act on wrap ErrInsecure, ErrTorn,
// ErrNewerSchema or ErrBusy.
func Open(path string, options *Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db := &DB{path: path, closing: make(chan struct{})}
	if options != nil {
		db.options = *options
	}
	o := &db.options
	defaults(&o.BusyTimeout, 10*time.Second)
	defaults(&o.Poll, 100*time.Millisecond)
	defaults(&o.Batch, 256)
	defaults(&o.Readers, 4)

	if err := db.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func defaults[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

func (db *DB) open() error {
	if err := db.secure(); err != nil {
		return err
	}
	c, err := db.connect(db.path, true)
	if err != nil {
		return err
	}
	if err := db.migrate(c); err != nil {
		return errors.Join(err, c.Close())
	}
	// Again, now that SQLite has made the files that it makes.
	if err := checkPrivate(db.path); err != nil {
		return errors.Join(err, c.Close())
	}
	db.readers = make(chan *conn, db.options.Readers)
	for range db.options.Readers {
		db.readers <- nil
	}
	db.changed.start(db)
	db.writer.start(db, c)
	return nil
}

// Close finishes every Write that was accepted and every Read that has begun, and closes the file.
func (db *DB) Close() error {
	var err error
	db.close.Do(func() {
		close(db.closing)
		db.writer.drain()
		for range db.options.Readers {
			err = errors.Join(err, (<-db.readers).Close())
		}
		err = errors.Join(err, db.changed.stop())
		if db.writer.c != nil {
			// The last connection of all moves the log into the file. This has it emptied then too: whoever copies
			// the file back from a backup does not expect that a log of later days is replayed into it.
			err = errors.Join(err, db.writer.c.run(`PRAGMA journal_size_limit = 0`), db.writer.c.Close())
		}
	})
	if err != nil {
		return fmt.Errorf("close %s: %w", db.path, err)
	}
	return nil
}

// connect opens one connection to a file that exists. Only one opened to write can, enforced by SQLite.
func (db *DB) connect(path string, write bool) (*conn, error) {
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
	if db.options.VFS != "" {
		uri.RawQuery = "vfs=" + db.options.VFS
	}
	flags := sqlite3.OPEN_URI | sqlite3.OPEN_READONLY
	if write {
		flags = sqlite3.OPEN_URI | sqlite3.OPEN_READWRITE
	}
	raw, err := sqlite3.OpenFlags(uri.String(), flags)
	if err != nil {
		return nil, wrap(err)
	}
	c := newConn(raw)
	if err := db.configure(c, write); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (db *DB) configure(c *conn, write bool) error {
	if err := c.BusyTimeout(db.options.BusyTimeout); err != nil {
		return wrap(err)
	}
	// The -wal and -shm stay when the last connection closes: whoever opens next would make them by its umask.
	// A -wal that is there already is also faster to sync than one that grows.
	if _, err := c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true); err != nil {
		return wrap(err)
	}
	// Sorting must not spill what people wrote into a temporary directory.
	if err := c.Exec(`PRAGMA temp_store = MEMORY`); err != nil {
		return wrap(err)
	}
	if !write {
		return nil
	}
	// Only a file that we did not create is not in this mode yet.
	mode, err := c.text(`PRAGMA journal_mode = WAL`)
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal mode is %q and cannot become wal: is this a local file system?", mode)
	}
	// fullfsync: on macOS a plain fsync leaves the data in the drive's cache.
	return wrap(c.Exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
		PRAGMA wal_autocheckpoint = 4000`))
}

func (db *DB) isClosing() bool {
	select {
	case <-db.closing:
		return true
	default:
		return false
	}
}

// wrap gives the driver's errors the sentinels of this package.
func wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.Is(err, sqlite3.CONSTRAINT):
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	}
	return err
}

// Read runs f in a read-only transaction: everything that it queries is of one moment, which is not before the call.
// It waits for nobody but for one of a few connections. When ctx ends, f's queries end too, and Read returns its error.
// f must not take long, because the log cannot be recycled while a snapshot is open; it must not keep the Tx.
func (db *DB) Read(ctx context.Context, f func(*Tx) error) (err error) {
	var c *conn
	select {
	case <-db.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case c = <-db.readers:
	}
	defer func() { db.readers <- c }()
	if db.isClosing() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c == nil {
		if c, err = db.connect(db.path, false); err != nil {
			return err
		}
	}
	if err := c.run(`BEGIN`); err != nil {
		return err
	}
	tx := &Tx{c: c}
	c.SetInterrupt(ctx)
	defer func() {
		tx.c = nil
		c.SetInterrupt(context.Background())
		if rollback := c.run(`ROLLBACK`); rollback != nil {
			err = errors.Join(err, rollback, c.Close())
			c = nil
		}
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	return f(tx)
}
