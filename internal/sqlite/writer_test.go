package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink/internal/sqlite"
)

// together holds the writer while the calls queue up in the given order, so that they share one batch.
func together(t *testing.T, db *sqlite.DB, calls ...func(*sqlite.Tx) error) []error {
	t.Helper()
	release := hold(t, db)
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	for i, f := range calls {
		queued := db.Queued()
		all.Go(func() { errs[i] = db.Write(t.Context(), f) })
		for db.Queued() == queued {
			runtime.Gosched()
		}
	}
	release()
	all.Wait()
	return errs
}

// hold keeps the writer inside a function until it is released.
func hold(t *testing.T, db *sqlite.DB) (release func()) {
	t.Helper()
	inside, leave := make(chan struct{}), make(chan struct{})
	var held sync.WaitGroup
	held.Go(func() {
		err := db.Write(context.Background(), func(*sqlite.Tx) error {
			close(inside)
			<-leave
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	return func() {
		close(leave)
		held.Wait()
	}
}

var errNo = errors.New("no")

func TestAFailingFunctionHarmsNoOtherInItsBatch(t *testing.T) {
	db := open(t, newPath(t), nil)
	failsAfterWriting := func(tx *sqlite.Tx) error {
		if _, err := tx.Exec(`INSERT INTO line (word) VALUES ('bad')`); err != nil {
			return err
		}
		return errNo
	}
	errs := together(t, db, insert("a"), failsAfterWriting, insert("b"), failsAfterWriting, insert("c"))
	for i, want := range []error{nil, errNo, nil, errNo, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	wantWords(t, db, "a", "b", "c")
}

func TestARefusalLeavesTheBatchAlone(t *testing.T) {
	db := open(t, newPath(t), nil)
	runs := 0
	counted := func(tx *sqlite.Tx) error {
		runs++
		return insert("a")(tx)
	}
	refuse := func(tx *sqlite.Tx) error {
		n, err := tx.Exec(`UPDATE line SET word = 'x' WHERE word = 'nobody'`)
		if err != nil || n != 0 {
			return fmt.Errorf("changed %d rows: %v", n, err)
		}
		return fmt.Errorf("update: %w", sqlite.Refuse(errNo))
	}
	duplicate := func(tx *sqlite.Tx) error {
		err := insert("a")(tx)
		if !errors.Is(err, sqlite.ErrConstraint) {
			return fmt.Errorf("a duplicate was stored: %v", err)
		}
		return sqlite.Refuse(err)
	}
	errs := together(t, db, counted, refuse, duplicate, insert("b"))
	for i, want := range []error{nil, errNo, sqlite.ErrConstraint, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	if runs != 1 {
		t.Errorf("a refusal made another function run %d times", runs)
	}
	wantWords(t, db, "a", "b")
}

func TestARefusalAfterAWriteIsUndoneAndIsNoRefusal(t *testing.T) {
	db := open(t, newPath(t), nil)
	errs := together(t, db, insert("a"), func(tx *sqlite.Tx) error {
		return errors.Join(insert("bad")(tx), sqlite.Refuse(errNo))
	}, insert("b"))
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("the others: %v, %v", errs[0], errs[2])
	}
	if errs[1] == nil || errors.Is(errs[1], errNo) || !strings.Contains(errs[1].Error(), "refused after it had written") {
		t.Errorf("got %v, which the caller could take for a refusal", errs[1])
	}
	wantWords(t, db, "a", "b")
}

func TestAPanicComesOutAtItsCallerAndHarmsNoOther(t *testing.T) {
	db := open(t, newPath(t), nil)
	release := hold(t, db)
	var all sync.WaitGroup
	all.Go(func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want boom", p)
			}
		}()
		db.Write(t.Context(), func(tx *sqlite.Tx) error {
			if err := insert("bad")(tx); err != nil {
				return err
			}
			panic("boom")
		})
	})
	all.Go(func() {
		if err := db.Write(t.Context(), insert("a")); err != nil {
			t.Error(err)
		}
	})
	release()
	all.Wait()
	wantWords(t, db, "a")
}

func TestAFunctionThatEndsTheTransactionDoesNotSplitTheBatch(t *testing.T) {
	db := open(t, newPath(t), nil)
	errs := together(t, db, insert("a"), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`ROLLBACK`)
		return err
	}, insert("b"))
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
	wantWords(t, db, "a", "b")
}

func TestEverybodyOf64CallersIsAnsweredOnceAndTruly(t *testing.T) {
	db := open(t, newPath(t), nil)
	const callers, writes = 64, 25
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range writes {
				word := fmt.Sprintf("%d-%d", c, i)
				f, want := insert(word), error(nil)
				switch i % 5 {
				case 3:
					f, want = func(*sqlite.Tx) error { return sqlite.Refuse(errNo) }, errNo
				case 4:
					f, want = func(tx *sqlite.Tx) error { return errors.Join(insert(word)(tx), errNo) }, errNo
				}
				if err := db.Write(t.Context(), f); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", word, err, want)
				}
			}
		})
	}
	all.Wait()
	if got, want := len(words(t, db)), callers*writes*3/5; got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

func TestAContextThatEndsInTheQueueMeansNotRun(t *testing.T) {
	db := open(t, newPath(t), nil)
	release := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		answer <- db.Write(ctx, func(*sqlite.Tx) error {
			t.Error("ran after its caller had left")
			return nil
		})
	}()
	for db.Queued() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while the writer was busy, want the context's error", err)
	}
	release()
	mustWrite(t, db, insert("a")) // the queue was worked off up to here
	if err := db.Write(ctx, insert("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that was over before: %v", err)
	}
	wantWords(t, db, "a")
}

func TestAWriteThatHasBegunIsFinished(t *testing.T) {
	db := open(t, newPath(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Write(ctx, func(tx *sqlite.Tx) error {
		cancel()
		return insert("a")(tx)
	})
	if err != nil {
		t.Errorf("got %v, want nil: it was committed", err)
	}
	wantWords(t, db, "a")
}

func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	path := newPath(t)
	db := open(t, path, nil)
	release := hold(t, db)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if err := db.Write(t.Context(), insert(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	for db.Queued() < 10 {
		runtime.Gosched()
	}
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if n := len(words(t, open(t, path, nil))); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
}

func TestAnotherProcessHoldingTheLockIsNamedAfterTheTimeout(t *testing.T) {
	path := newPath(t)
	mine := open(t, path, &sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	other := open(t, path, nil)
	release := hold(t, other)
	ran := false
	err := mine.Write(t.Context(), func(tx *sqlite.Tx) error {
		ran = true
		return nil
	})
	if !errors.Is(err, sqlite.ErrBusy) || ran {
		t.Errorf("got %v (ran: %v), want ErrBusy", err, ran)
	}
	wantWords(t, mine) // readers are not in the way of a writer, nor it in theirs
	release()
	mustWrite(t, mine, insert("a"))
}

func TestAFullDiskFailsTheWriteAndNotTheNext(t *testing.T) {
	db := open(t, newPath(t), nil)
	limit := func(pages int) func(*sqlite.Tx) error {
		return func(tx *sqlite.Tx) error {
			_, err := tx.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
			return err
		}
	}
	mustWrite(t, db, limit(8))
	errs := together(t, db, insert("a"), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO line (word, body) VALUES ('big', ?)`, make([]byte, 1<<20))
		return err
	}, insert("b"))
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("got %v, want an error for the big one only", errs)
	}
	if errors.Is(errs[1], sqlite.ErrCommitUnknown) {
		t.Errorf("%v: nothing was unknown, the statement failed", errs[1])
	}
	wantWords(t, db, "a", "b")
}

func TestAFollowerMissesNoCommitOfAnyProcess(t *testing.T) {
	path := newPath(t)
	mine := open(t, path, &sqlite.Options{Poll: time.Millisecond})
	other := open(t, path, nil)
	for i, writer := range []*sqlite.DB{mine, other, mine, other, other} {
		for {
			changed := mine.Changed()
			if len(words(t, mine)) > i {
				break
			}
			if len(words(t, mine)) == i {
				go writer.Write(context.Background(), insert(fmt.Sprint(i)))
			}
			<-changed
		}
	}
}

func TestAFollowerInTheSameProcessDoesNotWaitForThePoll(t *testing.T) {
	db := open(t, newPath(t), &sqlite.Options{Poll: 1000 * time.Hour})
	for i := range 3 {
		changed := db.Changed()
		mustWrite(t, db, insert(fmt.Sprint(i)))
		<-changed
	}
}
