package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// Advance implements wetink.Ledger.
//
// Order of effects: Check and encode, outside of the transaction → the clock, the mode and the next seq are read →
// decide → row, facts, counts and event of each Move → COMMIT, shared with other callers.
func (l *Ledger) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list := make([]entry, len(moves))
	for i, m := range moves {
		if err := m.Check(); err != nil {
			return nil, err
		}
		var err error
		if list[i], err = encode(m); err != nil {
			return nil, err
		}
	}
	if len(moves) == 0 {
		return nil, nil
	}
	var events []wetink.Event
	err := l.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		events, err = l.advance(tx, list)
		return err
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// turn is one list's share of a transaction.
type turn struct {
	tx   *sqlite.Tx
	head head
	now  time.Time
}

func (l *Ledger) advance(tx *sqlite.Tx, list []entry) ([]wetink.Event, error) {
	h, err := readHead(tx)
	if err != nil {
		return nil, err
	}
	t := turn{tx, h, l.clock.tell(h.at)}
	events := make([]wetink.Event, len(list))
	decided := false
	if len(list) > 1 || !t.decidable(list[0].Move) {
		if err := t.decide(list); err != nil {
			return nil, err
		}
		decided = true
	}
	for i := range list {
		met, err := t.row(&list[i])
		if err != nil {
			return nil, err
		}
		if !met { // the UPDATE has written nothing: ask which of its conditions it was
			if !decided {
				if err := t.decide(list); err != nil {
					return nil, err
				}
			}
			return nil, fmt.Errorf("%s: decided and then not found", list[i].ID)
		}
		if events[i], err = t.record(int64(i), &list[i]); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// decidable reports that the conditions of m's UPDATE are all there is to decide. A birth has to look for others,
// a cap counts, and what the clock or the mode refuse must still be told as a conflict if it is one.
func (t *turn) decidable(m wetink.Move) bool {
	return m.Rev > 0 && m.Cap == nil && t.inTime(m) == nil && (!claims(m) || writes(t.head.mode))
}

func (t *turn) inTime(m wetink.Move) error {
	switch {
	case !m.Before.IsZero() && !t.now.Before(m.Before):
		return wetink.ErrLate
	case !m.After.IsZero() && t.now.Before(m.After):
		return wetink.ErrEarly
	}
	return nil
}

func claims(m wetink.Move) bool { return m.From == wetink.Approved && m.To == wetink.Applying }

// writes is false for every mode that this release does not know.
func writes(m wetink.Mode) bool { return m == wetink.ModeUnset || m == wetink.ModeGuarded }

// No RETURNING: SQLite would collect it in a temporary table and keep a journal of the statement, which costs as much
// as the UPDATE. Most Moves need no answer but that their row was there.
const (
	setRow  = `UPDATE changes SET rev = ?, status = ?, updated = ?, due = ?`
	thatRow = ` WHERE tenant = ? AND id = ? AND rev = ? AND status = ?`

	moveRow  = setRow + thatRow
	claimRow = setRow + `, claim = ?, owner = ?, lease = ?, cap = ?, day = ?` + thatRow + ` AND claim IS NULL`
	renewRow = setRow + `, owner = ?, lease = ?` + thatRow + ` AND claim = ?`
)

// row writes the row of m; false: the conditions of its UPDATE were not met.
func (t *turn) row(e *entry) (met bool, err error) {
	if e.New != nil {
		return true, t.birth(e)
	}
	sql := moveRow
	args := append(make([]any, 0, 16), e.Rev+1, codes[e.To], t.now.UnixMilli(), millis(e.Due))
	switch {
	case claims(e.Move):
		sql = claimRow
		args = append(args, e.Claim.ID, e.Claim.Owner, millis(e.Claim.Lease))
		if e.Cap != nil {
			args = append(args, e.Cap.Name, e.Day)
		} else {
			args = append(args, nil, nil)
		}
	case e.Claim != nil:
		sql = renewRow
		args = append(args, e.Claim.Owner, millis(e.Claim.Lease))
	}
	args = append(args, string(e.Tenant), string(e.ID), e.Rev, codes[e.From])
	if sql == renewRow {
		args = append(args, e.Claim.ID)
	}
	n, err := t.tx.Exec(sql, args...)
	return n == 1, err
}

func (t *turn) birth(e *entry) error {
	c := e.New
	if _, err := t.tx.Exec(`INSERT INTO content (statement, request, before) VALUES (?, ?, ?)`,
		[]byte(c.Statement), e.request, e.before); err != nil {
		return err
	}
	now := t.now.UnixMilli()
	_, err := t.tx.Exec(`INSERT INTO changes (tenant, id, rev, status, content, target, account, undoes, replaces, due, created, updated)
		VALUES (?, ?, ?, ?, last_insert_rowid(), ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?)`,
		string(e.Tenant), string(e.ID), int64(1), codes[e.To], c.Target, string(c.Account),
		e.undoes, string(c.Replaces), millis(e.Due), now, now)
	for _, u := range c.Undoes {
		if err == nil {
			_, err = t.tx.Exec(`INSERT INTO undos (parent, tenant, undo) VALUES (?, ?, ?)`, string(u.Change), string(e.Tenant), string(e.ID))
		}
	}
	return err
}

// place is one of those that a cap counts.
type place struct {
	tenant             wetink.Tenant
	account, name, day string
}

func placeOf(tenant wetink.Tenant, account, name, day string) *place {
	return &place{tenant, account, name, day}
}

// weight is by how much m changes the count of its place: the claim takes it, a proof that nothing took effect
// gives it back, and a late receipt takes it again, over the cap if need be.
func weight(m wetink.Move) int64 {
	switch {
	case claims(m), m.From == wetink.Failed:
		return 1
	case m.To == wetink.Failed:
		return -1
	}
	return 0
}

func (t *turn) count(p place, by int64) error {
	_, err := t.tx.Exec(`INSERT INTO daycount (tenant, account, name, day, n) VALUES (?, ?, ?, ?, max(?, 0))
		ON CONFLICT DO UPDATE SET n = max(n + ?, 0)`, string(p.tenant), p.account, p.name, p.day, by, by)
	return err
}

// record appends what m adds, counts what it takes or gives back, and appends its event.
func (t *turn) record(i int64, e *entry) (wetink.Event, error) {
	by := weight(e.Move)
	if len(e.facts) > 0 || by < 0 || by > 0 && (!claims(e.Move) || e.Cap != nil) {
		if err := t.add(e, by); err != nil {
			return wetink.Event{}, err
		}
	}
	ev := e.Event
	ev.Seq, ev.At = t.head.seq+1+i, t.now
	return ev, insertEvent(t.tx, ev.Seq, ev.At, append([]byte(lineStart(ev.Seq, ev.At)), e.line...))
}

func (t *turn) add(e *entry, by int64) error {
	var no int64
	var place *place
	for row, err := range t.tx.Query(`SELECT content, account, cap, day FROM changes WHERE tenant = ? AND id = ?`, string(e.Tenant), string(e.ID)) {
		if err != nil {
			return err
		}
		no = row.Int64(0)
		if !row.Null(2) {
			place = placeOf(e.Tenant, row.Text(1), row.Text(2), row.Text(3))
		}
	}
	for _, f := range e.facts {
		if _, err := t.tx.Exec(`INSERT INTO facts (change, rev, kind, bytes) VALUES (?, ?, ?, ?)`, no, e.Rev+1, f.kind, f.bytes); err != nil {
			return err
		}
	}
	if place != nil && by != 0 {
		return t.count(*place, by)
	}
	return nil
}

func insertEvent(tx *sqlite.Tx, seq int64, at time.Time, line []byte) error {
	_, err := tx.Exec(`INSERT INTO events (seq, at, bytes) VALUES (?, ?, ?)`, seq, at.UnixMilli(), line)
	return err
}
