package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// Get implements wetink.Ledger.
func (l *Ledger) Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (c wetink.Change, err error) {
	err = l.db.Read(ctx, func(tx *sqlite.Tx) error {
		c, err = load(tx, key{tenant, id})
		return err
	})
	if err != nil {
		return wetink.Change{}, err
	}
	return c, nil
}

const selectChange = `SELECT c.rev, c.status, c.target, c.account, c.undoes, c.replaces, c.claim, c.owner, c.lease, c.due,
	c.created, c.updated, c.content, b.statement, b.request, b.before
	FROM changes c LEFT JOIN content b ON b.no = c.content WHERE c.tenant = ? AND c.id = ?`

const selectFacts = `SELECT rev, kind, bytes FROM facts WHERE change = ? ORDER BY no`

// load reads one whole Change.
func load(tx *sqlite.Tx, k key) (c wetink.Change, err error) {
	broken := func(what string, err error) error {
		return fmt.Errorf("%s: %s: %w: %w", k.id, what, wetink.ErrTampered, err)
	}
	var no int64
	for row, err := range tx.Query(selectChange, string(k.tenant), string(k.id)) {
		if err != nil {
			return c, err
		}
		status, known := statuses[row.Int64(1)]
		switch {
		case !known:
			return c, broken("status", fmt.Errorf("no status has the code %d", row.Int64(1)))
		case row.Null(13):
			return c, broken("content", errors.New("it is gone"))
		}
		no = row.Int64(12)
		c = wetink.Change{
			ID: k.id, Tenant: k.tenant, Rev: row.Int64(0), Status: status,
			Statement: row.Blob(13), Target: row.Text(2), Account: wetink.Account(row.Text(3)),
			Replaces: wetink.ChangeID(row.Text(5)),
			Claim:    wetink.Claim{ID: row.Text(6), Owner: row.Text(7), Lease: millisAt(row, 8)},
			Due:      millisAt(row, 9), Created: millisAt(row, 10), Updated: millisAt(row, 11),
		}
		if c.Undoes, err = unpackUndoes(row.Text(4)); err != nil {
			return c, broken("undoes", err)
		}
		if c.Request, err = unpackRequest(row.Blob(14)); err != nil {
			return c, broken("request", err)
		}
		if c.Before, err = unpackSnapshots(row.Blob(15)); err != nil {
			return c, broken("snapshots", err)
		}
	}
	if c.ID == "" {
		return c, fmt.Errorf("%s: %w", k.id, wetink.ErrNotFound)
	}
	for row, err := range tx.Query(selectFacts, no) {
		if err != nil {
			return c, err
		}
		if err := addFact(&c, row.Int64(0), row.Int64(1), row.Blob(2)); err != nil {
			return c, broken(fmt.Sprintf("fact of rev %d", row.Int64(0)), err)
		}
	}
	return c, nil
}

// addFact reads facts in the order in which they were added: of steps and tickets the latest counts.
func addFact(c *wetink.Change, rev, kind int64, b []byte) error {
	switch kind {
	case factApproval:
		var a wetink.Approval
		if _, err := unpack(b, &a); err != nil {
			return err
		}
		c.Approvals = append(c.Approvals, a)
	case factStep:
		s, err := unpackStep(b)
		if err != nil {
			return err
		}
		c.Steps = append(slices.DeleteFunc(c.Steps, func(old wetink.Step) bool { return old.Op == s.Op }), s)
		slices.SortFunc(c.Steps, func(a, b wetink.Step) int { return cmp.Compare(a.Op, b.Op) })
	case factTicket:
		var t wetink.Sealed
		if _, err := unpack(b, &t); err != nil {
			return err
		}
		c.Tickets = append(slices.DeleteFunc(c.Tickets, func(old wetink.Sealed) bool { return old.Verb == t.Verb }), t)
	case factWhy:
		if rev == c.Rev { // a Move that names no reason has none
			c.Why = string(b)
		}
	default:
		return fmt.Errorf("no kind of fact has the code %d", kind)
	}
	return nil
}

// page is how many rows of a List are read in one transaction; none is open while they are yielded.
const page = 100

// List implements wetink.Ledger. Each hundred rows are of one moment. Rows that cannot be read come last, as one
// error.
func (l *Ledger) List(ctx context.Context, f wetink.Filter) iter.Seq2[wetink.Change, error] {
	return func(yield func(wetink.Change, error) bool) {
		left := f.Limit
		if left <= 0 {
			left = 100
		}
		var broken []error
		var last *key
		for left > 0 {
			var rows []wetink.Change
			n := min(left, page)
			keys := 0
			err := l.db.Read(ctx, func(tx *sqlite.Tx) error {
				found, err := find(tx, f, last, n)
				if err != nil {
					return err
				}
				if keys = len(found); keys > 0 {
					last = &found[keys-1]
				}
				for _, k := range found {
					c, err := load(tx, k)
					switch {
					case err == nil:
						rows = append(rows, c)
					case errors.Is(err, wetink.ErrTampered):
						broken = append(broken, err)
					default:
						return err
					}
				}
				return nil
			})
			if err != nil {
				yield(wetink.Change{}, err)
				return
			}
			for _, c := range rows {
				if !yield(c, nil) {
					return
				}
			}
			if left -= keys; keys < n {
				break
			}
		}
		if broken != nil {
			yield(wetink.Change{}, errors.Join(broken...))
		}
	}
}

// find returns the keys of a page, newest first, behind after.
func find(tx *sqlite.Tx, f wetink.Filter, after *key, n int) (found []key, err error) {
	sql, args := query(f, after, n)
	for row, err := range tx.Query(sql, args...) {
		if err != nil {
			return nil, err
		}
		found = append(found, key{wetink.Tenant(row.Text(0)), wetink.ChangeID(row.Text(1))})
	}
	return found, nil
}

// query names the index itself. Left to the planner, a list would be as slow as the planner is wrong, and nobody
// would know before the table has grown.
func query(f wetink.Filter, after *key, n int) (sql string, args []any) {
	var where []string
	and := func(condition string, a ...any) {
		where, args = append(where, condition), append(args, a...)
	}
	if !f.AnyTenant {
		and(`tenant = ?`, string(f.Tenant))
	}
	if f.Account != "" {
		and(`account = ?`, string(f.Account))
	}
	if f.Target != "" {
		and(`target = ?`, f.Target)
	}
	if len(f.Status) > 0 {
		and(oneOf(f.Status))
	}
	if f.Undoes != "" && f.AnyTenant {
		and(`(id, tenant) IN (SELECT undo, tenant FROM undos WHERE parent = ?)`, string(f.Undoes))
	} else if f.Undoes != "" {
		and(`id IN (SELECT undo FROM undos WHERE parent = ? AND tenant = ?)`, string(f.Undoes), string(f.Tenant))
	}
	if !f.DueBefore.IsZero() {
		and(`due < ?`, millis(f.DueBefore))
	}
	if f.Before != "" {
		and(`id < ?`, string(f.Before))
	}
	if after != nil {
		and(`(id, tenant) < (?, ?)`, string(after.id), string(after.tenant))
	}

	from := ``
	open := len(f.Status) > 0 && !slices.ContainsFunc(f.Status, func(s wetink.Status) bool { return s.Settled() })
	switch {
	case f.Undoes != "":
		from = ` NOT INDEXED` // the primary key, by the list of undos
	case open && !f.AnyTenant && f.DueBefore.IsZero() && len(f.Status) == 1 && f.Status[0] == wetink.Pending:
		from = ` INDEXED BY changes_pending`
	case open:
		from = ` INDEXED BY changes_due`
		and(isOpen)
	case f.Account != "" && !f.AnyTenant:
		from = ` INDEXED BY changes_account`
	case !f.AnyTenant:
		from = ` NOT INDEXED` // the primary key
	}
	sql = `SELECT tenant, id FROM changes` + from
	if len(where) > 0 {
		sql += ` WHERE ` + strings.Join(where, ` AND `)
	}
	sql += ` ORDER BY id DESC, tenant DESC LIMIT ?`
	return sql, append(args, n)
}
