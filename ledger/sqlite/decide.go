package sqlite

import (
	"fmt"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
)

// decider asks of a whole list whether it is allowed, before anything of it is written. That is safe because the
// transaction holds the write lock already. It keeps what the earlier Moves of the list will have done.
type decider struct {
	*turn
	rows   map[key]*state
	undone map[key]int64   // parent: by how much the number of its live undos grows
	taken  map[place]int64 // by how much a count grows
}

type key struct {
	tenant wetink.Tenant
	id     wetink.ChangeID
}

// state is what of a row decides.
type state struct {
	rev     int64
	status  wetink.Status
	claim   string
	account string
	undoes  []wetink.Undone
	place   *place
}

// decide returns a refusal, or nil if every Move of the list may be written.
func (t *turn) decide(list []entry) error {
	d := decider{t, map[key]*state{}, map[key]int64{}, map[place]int64{}}
	for i := range list {
		refusal, err := d.one(&list[i])
		if err != nil {
			return err
		}
		if refusal != nil {
			return sqlite.Refuse(refusal)
		}
	}
	return nil
}

func (d *decider) one(e *entry) (refusal, err error) {
	row, err := d.load(key{e.Tenant, e.ID})
	if err != nil {
		return nil, err
	}
	switch {
	case e.Rev == 0 && row != nil:
		return fmt.Errorf("%s exists: %w", e.ID, wetink.ErrConflict), nil
	case e.Rev > 0 && row == nil:
		return fmt.Errorf("%s: %w", e.ID, wetink.ErrNotFound), nil
	case row != nil && (row.rev != e.Rev || row.status != e.From):
		return fmt.Errorf("%s is %s at rev %d: %w", e.ID, row.status, row.rev, wetink.ErrConflict), nil
	case e.From == wetink.Applying && e.Claim != nil && e.Claim.ID != row.claim:
		return fmt.Errorf("%s has another claim: %w", e.ID, wetink.ErrConflict), nil
	case claims(e.Move) && row.claim != "":
		return fmt.Errorf("%s was claimed before and is approved again: %w", e.ID, wetink.ErrTampered), nil
	}
	if err := d.inTime(e.Move); err != nil {
		return fmt.Errorf("%s: %w", e.ID, err), nil
	}
	if e.New != nil {
		row = &state{account: string(e.New.Account), undoes: e.New.Undoes}
		if refusal, err := d.slot(e, row); refusal != nil || err != nil {
			return refusal, err
		}
	}
	if claims(e.Move) {
		if !writes(d.head.mode) {
			return fmt.Errorf("%s: %w", e.ID, wetink.ErrOff), nil
		}
		row.place = nil
		if refusal, err := d.cap(e, row); refusal != nil || err != nil {
			return refusal, err
		}
	}
	d.after(e, row)
	return nil, nil
}

const liveUndos = `SELECT count(*) FROM undos u CROSS JOIN changes c ON c.tenant = u.tenant AND c.id = u.undo
	WHERE u.parent = ? AND u.tenant = ? AND c.` + isLive

// slot refuses a second undo of one parent while the first may still take effect, or has.
func (d *decider) slot(e *entry, row *state) (refusal, err error) {
	for _, u := range row.undoes {
		live, err := d.number(liveUndos, string(u.Change), string(e.Tenant))
		if err != nil {
			return nil, err
		}
		if live+d.undone[key{e.Tenant, u.Change}] > 0 {
			return fmt.Errorf("%s has an undo already: %w", u.Change, wetink.ErrConflict), nil
		}
	}
	return nil, nil
}

func (d *decider) cap(e *entry, row *state) (refusal, err error) {
	if e.Cap == nil {
		return nil, nil
	}
	row.place = placeOf(e.Tenant, row.account, e.Cap.Name, e.Day)
	n, err := d.number(`SELECT n FROM daycount WHERE tenant = ? AND account = ? AND name = ? AND day = ?`,
		string(e.Tenant), row.account, e.Cap.Name, e.Day)
	if err != nil {
		return nil, err
	}
	if n+d.taken[*row.place] >= int64(e.Cap.Max) {
		return fmt.Errorf("%s: %d %s on %s: %w", e.ID, e.Cap.Max, e.Cap.Name, e.Day, wetink.ErrCapped), nil
	}
	return nil, nil
}

// after keeps what the Move will have done, for those behind it.
func (d *decider) after(e *entry, row *state) {
	for _, u := range row.undoes {
		parent := key{e.Tenant, u.Change}
		if e.From != "" && e.From.Live() {
			d.undone[parent]--
		}
		if e.To.Live() {
			d.undone[parent]++
		}
	}
	if row.place != nil {
		d.taken[*row.place] += weight(e.Move)
	}
	row.rev, row.status = e.Rev+1, e.To
	if e.Claim != nil {
		row.claim = e.Claim.ID
	}
	d.rows[key{e.Tenant, e.ID}] = row
}

// load returns nil for a row that does not exist.
func (d *decider) load(k key) (*state, error) {
	if s, ok := d.rows[k]; ok {
		return s, nil
	}
	for row, err := range d.tx.Query(`SELECT rev, status, claim, account, undoes, cap, day FROM changes WHERE tenant = ? AND id = ?`,
		string(k.tenant), string(k.id)) {
		if err != nil {
			return nil, err
		}
		s := &state{rev: row.Int64(0), status: statuses[row.Int64(1)], claim: row.Text(2), account: row.Text(3)}
		if s.undoes, err = unpackUndoes(row.Text(4)); err != nil {
			return nil, fmt.Errorf("%s: undoes: %w: %w", k.id, wetink.ErrTampered, err)
		}
		if !row.Null(5) {
			s.place = placeOf(k.tenant, s.account, row.Text(5), row.Text(6))
		}
		return s, nil
	}
	return nil, nil
}

func (d *decider) number(sql string, args ...any) (n int64, err error) {
	for row, err := range d.tx.Query(sql, args...) {
		if err != nil {
			return 0, err
		}
		n = row.Int64(0)
	}
	return n, nil
}
