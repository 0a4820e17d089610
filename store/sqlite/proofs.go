package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/sqlite"
)

// PassphraseRecord implements passphrase.Records: nil if there is none.
func (s *Store) PassphraseRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (record []byte, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { record = r.Blob(0); return nil },
		`SELECT t.record FROM passphrase t JOIN person p ON p.tenant = t.tenant AND p.id = t.person WHERE t.tenant = ? AND t.person = ? AND p.removed = 0`,
		string(tenant), string(person))
	return record, err
}

// PutPassphraseRecord implements passphrase.Records. For somebody who is not there it is ErrUnknown: a record that
// nobody reads would look set up, and would begin to count with whoever is added by that name.
func (s *Store) PutPassphraseRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, record []byte) error {
	if err := named(string(tenant), string(person)); err != nil {
		return err
	}
	n, err := s.write(ctx, `INSERT INTO passphrase (tenant, person, record) SELECT tenant, id, ? FROM person WHERE tenant = ? AND id = ? AND removed = 0
		ON CONFLICT DO UPDATE SET record = excluded.record`,
		record, string(tenant), string(person))
	if err == nil && n == 0 {
		err = fmt.Errorf("passphrase of %.50q: %w", person, page.ErrUnknown)
	}
	return err
}

// AnyPassphrase implements passphrase.Records: of somebody who was not removed.
func (s *Store) AnyPassphrase(ctx context.Context) (any bool, err error) {
	return s.any(ctx, "passphrase")
}

// AnyPasskey implements passkey.Records: of somebody who was not removed.
func (s *Store) AnyPasskey(ctx context.Context) (any bool, err error) { return s.any(ctx, "passkey") }

func (s *Store) any(ctx context.Context, table string) (found bool, err error) {
	err = s.read(ctx, func(*sqlite.Row) error { found = true; return nil },
		`SELECT 1 FROM `+table+` t JOIN person p ON p.tenant = t.tenant AND p.id = t.person WHERE p.removed = 0 LIMIT 1`)
	return found, err
}

// PasskeyRecords implements passkey.Records.
func (s *Store) PasskeyRecords(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (list [][]byte, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { list = append(list, r.Blob(0)); return nil },
		`SELECT k.record FROM passkey k JOIN person p ON p.tenant = k.tenant AND p.id = k.person WHERE k.tenant = ? AND k.person = ? AND p.removed = 0`,
		string(tenant), string(person))
	return list, err
}

// PasskeyRecord implements passkey.Records. One of somebody who was removed is not there.
func (s *Store) PasskeyRecord(ctx context.Context, id []byte) (tenant wetink.Tenant, person wetink.Person, record []byte, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error {
		tenant, person, record = wetink.Tenant(r.Text(0)), wetink.Person(r.Text(1)), r.Blob(2)
		return nil
	}, `SELECT k.tenant, k.person, k.record FROM passkey k JOIN person p ON p.tenant = k.tenant AND p.id = k.person WHERE k.id = ? AND p.removed = 0`, id)
	if err == nil && record == nil {
		err = fmt.Errorf("passkey: %w", page.ErrUnknown)
	}
	return tenant, person, record, err
}

// PutPasskeyRecord implements passkey.Records. An id that is somebody else's stays theirs, and somebody who is not there
// gets none: ErrTaken and ErrUnknown.
func (s *Store) PutPasskeyRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id, record []byte) error {
	if err := named(string(tenant), string(person)); err != nil {
		return err
	}
	if len(id) == 0 || len(id) > 1023 { // WebAuthn, section 6.1: at most 1023 bytes
		return errors.New("passkey: an id has 1 to 1023 bytes")
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		there := false
		for _, err := range tx.Query(selectPerson+` AND id = ?`, string(tenant), string(person)) {
			if err != nil {
				return err
			}
			there = true
		}
		if !there {
			return sqlite.Refuse(fmt.Errorf("passkey of %.50q: %w", person, page.ErrUnknown))
		}
		n, err := tx.Exec(`INSERT INTO passkey (id, tenant, person, record) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET record = excluded.record WHERE tenant = excluded.tenant AND person = excluded.person`,
			id, string(tenant), string(person), record)
		if err == nil && n == 0 {
			return sqlite.Refuse(fmt.Errorf("passkey: %w", page.ErrTaken))
		}
		return err
	})
}

// RemovePasskeyRecord implements passkey.Records.
func (s *Store) RemovePasskeyRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id []byte) error {
	n, err := s.write(ctx, `DELETE FROM passkey WHERE id = ? AND tenant = ? AND person = ?`, id, string(tenant), string(person))
	if err == nil && n == 0 {
		err = fmt.Errorf("passkey: %w", page.ErrUnknown)
	}
	return err
}

// AddDecision implements page.Decisions.
func (s *Store) AddDecision(ctx context.Context, tenant wetink.Tenant, person wetink.Person, change wetink.ChangeID, yes bool, looked time.Duration, at time.Time) error {
	if err := named(string(tenant), string(person), string(change)); err != nil {
		return err
	}
	_, err := s.write(ctx, `INSERT INTO decision (tenant, person, at, change, yes, looked) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		string(tenant), string(person), millis(at), string(change), flag(yes), looked.Milliseconds())
	return err
}

// Decisions implements page.Decisions.
func (s *Store) Decisions(ctx context.Context, tenant wetink.Tenant, person wetink.Person, since time.Time) (approved, total int, median time.Duration, err error) {
	var looked []int64
	err = s.read(ctx, func(r *sqlite.Row) error {
		total++
		if r.Bool(0) {
			approved++
		}
		looked = append(looked, r.Int64(1))
		return nil
	}, `SELECT yes, looked FROM decision WHERE tenant = ? AND person = ? AND at >= ?`, string(tenant), string(person), millis(since))
	if slices.Sort(looked); len(looked) > 0 {
		median = time.Duration(looked[len(looked)/2]) * time.Millisecond
	}
	return approved, total, median, err
}

// PutSubscription stores where a browser wants to be told; for notify.
func (s *Store) PutSubscription(ctx context.Context, tenant wetink.Tenant, person wetink.Person, endpoint string, record []byte) error {
	if err := named(string(tenant), string(person), endpoint); err != nil {
		return err
	}
	_, err := s.write(ctx, `INSERT INTO subscription (endpoint, tenant, person, record) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET tenant = excluded.tenant, person = excluded.person, record = excluded.record`,
		endpoint, string(tenant), string(person), record)
	return err
}

// Subscriptions implements notify.Subscriptions.
func (s *Store) Subscriptions(ctx context.Context) (list [][]byte, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { list = append(list, r.Blob(0)); return nil }, `SELECT record FROM subscription`)
	return list, err
}

// RemoveSubscription implements notify.Subscriptions.
func (s *Store) RemoveSubscription(ctx context.Context, endpoint string) error {
	_, err := s.write(ctx, `DELETE FROM subscription WHERE endpoint = ?`, endpoint)
	return err
}
