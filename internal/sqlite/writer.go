package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Refuse marks an error as "I decided against it and wrote nothing", so that it disturbs none of the callers that
// share the transaction. The caller of Write gets it as it is; errors.Is sees through the mark.
func Refuse(err error) error { return refusal{err} }

type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Write runs f in a transaction and returns nil once that is durable.
//
// One goroutine runs the functions of all callers, in the order of the calls, and commits those that are waiting
// together. So f must not wait for anything, must not call Write, and sees what the functions before it wrote.
// f may run more than once: when another function in its batch fails, the batch is rolled back and f runs again in a
// transaction of its own. It must set its results each time and touch nothing else outside the transaction.
//
//   - f returns nil: Write returns nil after COMMIT, or an error that wraps ErrCommitUnknown if COMMIT fails.
//   - f returns an error marked by Refuse: Write returns it. It is an answer as of the order of the calls,
//     given after the COMMIT of what it may have seen.
//   - f returns any other error, or panics: all that f wrote is undone, and Write returns it, or panics with it.
//
// When ctx ends before f has begun, Write returns the context's error and f does not run. Once begun it is finished.
func (db *DB) Write(ctx context.Context, f func(*Tx) error) error {
	j := &job{f: f, done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.writer.add(j); err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

const (
	waiting int32 = iota
	begun
	abandoned // its caller has left
)

type job struct {
	f        func(*Tx) error
	state    atomic.Int32
	err      error
	panicked any
	done     chan struct{}
}

// begin reports whether the job is to be run; a job that has begun once may be run again.
func (j *job) begin() bool {
	return j.state.CompareAndSwap(waiting, begun) || j.state.Load() == begun
}

// writer owns the one connection that writes.
type writer struct {
	db *DB
	c  *conn // nil: lost by an error that left it unusable

	mu     sync.Mutex
	queue  []*job
	closed bool
	wake   chan struct{} // holds one token when the queue or closed has changed
	ended  chan struct{}
}

func (w *writer) start(db *DB, c *conn) {
	w.db, w.c = db, c
	w.wake, w.ended = make(chan struct{}, 1), make(chan struct{})
	go w.loop()
}

func (w *writer) add(j *job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.queue = append(w.queue, j)
	w.signal()
	return nil
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drain refuses new jobs and waits for those accepted.
func (w *writer) drain() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.ended
}

func (w *writer) loop() {
	drained := false
	defer func() {
		if !drained { // everybody who waits would wait for ever
			panic("sqlite: a function given to Write ended its goroutine; call FailNow and Goexit outside it")
		}
		close(w.ended)
	}()
	var batch []*job
	for {
		if batch = w.take(batch[:0]); len(batch) == 0 {
			drained = true
			return
		}
		w.run(batch)
		clear(batch)
	}
}

// take waits for jobs and takes those that are there. It does not wait for more: while one batch is on its way to
// the disk the next one gathers by itself, and a lone caller is not held up.
func (w *writer) take(batch []*job) []*job {
	for {
		w.mu.Lock()
		n := min(len(w.queue), w.db.options.Batch)
		closed := w.closed
		batch = append(batch, w.queue[:n]...)
		rest := copy(w.queue, w.queue[n:])
		clear(w.queue[rest:])
		w.queue = w.queue[:rest]
		w.mu.Unlock()
		if n > 0 || closed {
			return batch
		}
		<-w.wake
	}
}

// run answers every job of the batch.
func (w *writer) run(batch []*job) {
	failed := w.transact(batch)
	for _, j := range batch {
		if failed != nil && j != failed {
			w.transact([]*job{j})
		}
		if j.begin() {
			close(j.done)
		}
	}
}

// transact runs the jobs in one transaction and sets the error of each. If one fails, everything is undone, that one
// is returned, and nothing that the others were given counts.
func (w *writer) transact(batch []*job) (failed *job) {
	if err := w.begin(); err != nil {
		setAll(batch, err)
		return nil
	}
	before := w.c.TotalChanges()
	for _, j := range batch {
		if j.begin() && !w.call(j) {
			w.rollback()
			return j
		}
	}
	changed := w.c.TotalChanges() != before
	if err := w.c.run(`COMMIT`); err != nil {
		w.rollback()
		setAll(batch, fmt.Errorf("%w: %v", ErrCommitUnknown, err)) // not ErrBusy too, which says that nothing was written
		return nil
	}
	if changed {
		w.db.changed.broadcast()
	}
	return nil
}

func setAll(batch []*job, err error) {
	for _, j := range batch {
		j.err = err
	}
}

func (w *writer) begin() error {
	if w.c == nil {
		c, err := w.db.connect(w.db.path, true)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		w.c = c
	}
	if err := w.c.run(`BEGIN IMMEDIATE`); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	// A newer release may have migrated the file under us; what our statements mean there, nobody knows.
	if _, err := w.db.version(w.c); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// call runs one job's function and reports whether the transaction is still good.
func (w *writer) call(j *job) bool {
	before := w.c.TotalChanges()
	tx := &Tx{c: w.c}
	defer func() { tx.c = nil }()
	j.panicked, j.err = catch(j.f, tx)
	var refused refusal
	switch {
	case j.panicked != nil:
		return false
	case w.c.GetAutocommit():
		// SQLite ends the transaction by itself after some errors. What follows would commit piece by piece.
		if j.err == nil || errors.As(j.err, &refused) {
			j.err = errors.New("the transaction was ended inside the function")
		}
		return false
	case j.err == nil:
		return true
	case !errors.As(j.err, &refused):
		return false
	case w.c.TotalChanges() != before:
		j.err = fmt.Errorf("refused after it had written, so all was undone: %v", j.err)
		return false
	}
	return true
}

func catch(f func(*Tx) error, tx *Tx) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, f(tx)
}

// rollback leaves the connection without a transaction, or leaves no connection.
func (w *writer) rollback() {
	if w.c.GetAutocommit() {
		return
	}
	if err := w.c.run(`ROLLBACK`); err != nil {
		w.c.Close()
		w.c = nil
	}
}
