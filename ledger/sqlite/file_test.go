package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
	ledger "github.com/wetink/wetink/ledger/sqlite"
)

// direct is the file without a Ledger around it.
func direct(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: ledger.Migrations})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rows runs a query past the ledger and returns the first column.
func rows(t testing.TB, path, sql string, args ...any) (out []string) {
	t.Helper()
	db := direct(t, path)
	defer db.Close()
	err := db.Read(context.Background(), func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(sql, args...) {
			if err != nil {
				return err
			}
			out = append(out, row.Text(0))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// edit changes the file behind the ledger's back, and returns how many rows it met.
func edit(path, sql string, args ...any) (n int64, err error) {
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: ledger.Migrations})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.Write(context.Background(), func(tx *sqlite.Tx) error {
		n, err = tx.Exec(sql, args...)
		return err
	})
	return n, err
}

func mustEdit(t testing.TB, path, sql string, args ...any) {
	t.Helper()
	if n, err := edit(path, sql, args...); err != nil || n == 0 {
		t.Fatalf("%s: %d rows, %v", sql, n, err)
	}
}

// all that can be read, as text.
func all(t testing.TB, l wetink.Ledger) string {
	t.Helper()
	var b strings.Builder
	for c, err := range l.List(context.Background(), wetink.Filter{AnyTenant: true, Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q\n", fmt.Sprintf("%+v", c))
	}
	for e, err := range l.Events(context.Background(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", e.Bytes())
	}
	m, err := l.Mode(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, m, l.ID())
	return b.String()
}

var ways = map[wetink.Status][]wetink.Status{
	wetink.Pending: {}, wetink.Approved: {wetink.Approved}, wetink.Applying: {wetink.Approved, wetink.Applying},
	wetink.Applied: {wetink.Approved, wetink.Applying, wetink.Applied}, wetink.Failed: {wetink.Approved, wetink.Applying, wetink.Failed},
	wetink.Partial: {wetink.Approved, wetink.Applying, wetink.Partial}, wetink.InDoubt: {wetink.Approved, wetink.Applying, wetink.InDoubt},
	wetink.Expired: {wetink.Expired}, wetink.Rejected: {wetink.Rejected}, wetink.Superseded: {wetink.Superseded},
}

// lead makes a Change with a fact of each kind and brings it to a status.
func lead(t testing.TB, l wetink.Ledger, to wetink.Status) wetink.ChangeID {
	t.Helper()
	c := newRow(time.Now())
	m := birth(c, wetink.Pending)
	m.Ticket = &wetink.Sealed{Verb: wetink.VerbApply, Delivered: wetink.DeliveredCard, Expires: m.Due, Hash: wetink.Digest{7}}
	m.Approval = &wetink.Approval{Level: wetink.Session, At: m.Due, Evidence: wetink.Evidence{Kind: "page", By: "bo", Data: []byte{0, 255}}}
	list := []wetink.Move{m}
	from := wetink.Pending
	for i, s := range ways[to] {
		m := move(c.ID, int64(i)+1, from, s)
		m.Why = "because"
		if from == wetink.Applying {
			m.Step = &wetink.Step{Outcome: wetink.TookEffect, How: "answer", Receipt: wetink.Receipt{Object: "a", Raw: []byte(`{ }`)}}
		}
		list, from = append(list, m), s
	}
	advance(t, l, list...)
	return c.ID
}

func TestAllIsThereAfterReopening(t *testing.T) {
	path := newPath(t)
	l, err := ledger.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range wetink.Statuses() {
		if got := get(t, l, lead(t, l, s)).Status; got != s {
			t.Fatalf("led to %s, want %s", got, s)
		}
	}
	if err := l.SetMode(context.Background(), wetink.ModeObserve, "ana"); err != nil {
		t.Fatal(err)
	}
	before := all(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if after := all(t, open(t, path, nil)); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAClockThatWasAheadIsNotBehindAfterARestart(t *testing.T) {
	path := newPath(t)
	ahead := time.Now().Add(time.Hour)
	l, err := ledger.Open(path, &ledger.Options{Now: func() time.Time { return ahead }})
	if err != nil {
		t.Fatal(err)
	}
	id := lead(t, l, wetink.Pending)
	at := get(t, l, id).Updated
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, path, nil)
	if now, err := l.Now(context.Background()); err != nil || now.Before(at) {
		t.Errorf("it is %v, and %v was told before (%v)", now, at, err)
	}
	if ev := advance(t, l, move(id, 1, wetink.Pending, wetink.Approved)); ev[0].At.Before(at) {
		t.Errorf("the next event is of %v, the one before of %v", ev[0].At, at)
	}
}

func TestDeadlinesAreNeverStoredEarlierThanPromised(t *testing.T) {
	l := open(t, newPath(t), nil)
	c := newRow(time.Now())
	m := birth(c, wetink.Pending)
	m.Due = time.UnixMilli(1900000000000).Add(time.Nanosecond)
	advance(t, l, m)
	if got := get(t, l, c.ID).Due; got.UnixNano() != 1900000000001e6 {
		t.Errorf("due %v, promised %v", got, m.Due)
	}
}

// The leaf of the audit log is the stored line, not what a later release makes of it.
func TestStoredEventsAreTheFrozenBytes(t *testing.T) {
	path := newPath(t)
	l := open(t, path, nil)
	m := birth(newRow(time.Now()), wetink.Pending)
	m.Event.Client, m.Event.Facts = "<\xff\u2028>", map[string]string{"z": "1", "a": "\xff\xfe"}
	ev := advance(t, l, m, move(m.ID, 1, wetink.Pending, wetink.Rejected))
	stored := rows(t, path, `SELECT CAST(bytes AS TEXT) FROM events ORDER BY seq`)
	for i, e := range ev {
		if string(e.Bytes()) != stored[i] {
			t.Errorf("returned %s\nstored   %s", e.Bytes(), stored[i])
		}
		back, err := wetink.ParseEvent([]byte(stored[i]))
		if err != nil || !bytes.Equal(back.Bytes(), []byte(stored[i])) {
			t.Errorf("%s is read as %s, %v", stored[i], back.Bytes(), err)
		}
	}
}

func TestEveryStatusHasItsCodeForEver(t *testing.T) {
	want := map[wetink.Status]int64{
		wetink.Pending: 1, wetink.Approved: 2, wetink.Applying: 3, wetink.InDoubt: 4, wetink.Applied: 5, wetink.Partial: 6,
		wetink.Failed: 7, wetink.Expired: 8, wetink.Rejected: 9, wetink.Superseded: 10,
	}
	for _, s := range wetink.Statuses() {
		code := ledger.Codes[s]
		if code == 0 || code != want[s] {
			t.Errorf("%s has the code %d, want %d", s, code, want[s])
		}
		if (code <= 4) == s.Settled() || (code <= 6) != s.Live() {
			t.Errorf("%s: the conditions of the indexes do not say settled %t, live %t", s, s.Settled(), s.Live())
		}
	}
	if len(ledger.Codes) != len(wetink.Statuses()) {
		t.Errorf("%d codes for %d statuses", len(ledger.Codes), len(wetink.Statuses()))
	}
}

func TestWhatCannotBeReadNamesTheChangeAndHidesNoOther(t *testing.T) {
	for name, sql := range map[string]string{
		"status":    `UPDATE changes SET status = 77 WHERE id = ?`,
		"content":   `UPDATE changes SET content = 77 WHERE id = ?`,
		"request":   `UPDATE content SET request = X'7B7D' WHERE no = (SELECT content FROM changes WHERE id = ?)`,
		"snapshots": `UPDATE content SET before = CAST(before || X'00' AS BLOB) WHERE no = (SELECT content FROM changes WHERE id = ?)`,
		"approval":  `UPDATE facts SET bytes = substr(bytes, 2) WHERE kind = 1 AND change = (SELECT content FROM changes WHERE id = ?)`,
		"step":      `UPDATE facts SET bytes = substr(bytes, 1, length(bytes)-1) WHERE kind = 2 AND change = (SELECT content FROM changes WHERE id = ?)`,
		"member":    `UPDATE facts SET bytes = CAST(replace(CAST(bytes AS TEXT), '"verb"', '"vreb"') AS BLOB) WHERE kind = 3 AND change = (SELECT content FROM changes WHERE id = ?)`,
		"ticket":    `UPDATE facts SET bytes = X'' WHERE kind = 3 AND change = (SELECT content FROM changes WHERE id = ?)`,
		"kind":      `UPDATE facts SET kind = 77 WHERE kind = 4 AND change = (SELECT content FROM changes WHERE id = ?)`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			l := open(t, path, nil)
			older, broken, newer := lead(t, l, wetink.Applied), lead(t, l, wetink.Applied), lead(t, l, wetink.Applied)
			mustEdit(t, path, sql, string(broken))

			_, err := l.Get(context.Background(), "", broken)
			if !errors.Is(err, wetink.ErrTampered) || !strings.Contains(err.Error(), string(broken)) {
				t.Errorf("get: %v", err)
			}
			var seen []wetink.ChangeID
			err = nil
			for c, e := range l.List(context.Background(), wetink.Filter{}) {
				if e != nil {
					err = e
					continue
				}
				seen = append(seen, c.ID)
			}
			if !slices.Equal(seen, []wetink.ChangeID{newer, older}) {
				t.Errorf("listed %v", seen)
			}
			if !errors.Is(err, wetink.ErrTampered) || !strings.Contains(err.Error(), string(broken)) {
				t.Errorf("list: %v", err)
			}
		})
	}
}

func TestAHistoryThatIsNotWholeIsAnError(t *testing.T) {
	for name, sql := range map[string]string{
		"a gap":         `DELETE FROM events WHERE seq = 2`,
		"another seq":   `UPDATE events SET bytes = (SELECT bytes FROM events WHERE seq = 3) WHERE seq = 2`,
		"not readable":  `UPDATE events SET bytes = X'7B7D' WHERE seq = 2`,
		"swapped lines": `UPDATE events SET seq = seq + 10 WHERE seq >= 2`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			l := open(t, path, nil)
			lead(t, l, wetink.Applied)
			mustEdit(t, path, sql)
			var seen int
			var err error
			for _, e := range l.Events(context.Background(), 0, true) {
				if e != nil {
					err = e
					continue
				}
				seen++
			}
			if seen != 1 || !errors.Is(err, wetink.ErrTampered) || !strings.Contains(err.Error(), "event 2") {
				t.Errorf("%d events, then %v", seen, err)
			}
		})
	}
}

func TestAClosedLedgerAnswersWithAnError(t *testing.T) {
	l, err := ledger.Open(newPath(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	events := l.Events(context.Background(), wetink.Newest, true)
	go func() {
		for _, err := range events {
			ended <- err
		}
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("a follower ended with %v", err)
	}
	if _, err := l.Get(context.Background(), "", "chg_1"); !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if _, err := l.Advance(context.Background(), birth(newRow(time.Now()), wetink.Pending)); !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("advance: %v", err)
	}
}
