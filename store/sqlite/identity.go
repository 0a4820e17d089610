package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/sqlite"
)

const selectIdentity = `SELECT person FROM identity WHERE tenant = ? AND issuer = ? AND subject = ?`

// Identity implements page.Identities.
func (s *Store) Identity(ctx context.Context, tenant wetink.Tenant, issuer, subject string) (person wetink.Person, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { person = wetink.Person(r.Text(0)); return nil }, selectIdentity, string(tenant), issuer, subject)
	if err == nil && person == "" {
		err = fmt.Errorf("subject %.50q: %w", subject, page.ErrUnknown)
	}
	return person, err
}

// BindIdentity implements page.Identities.
func (s *Store) BindIdentity(ctx context.Context, tenant wetink.Tenant, person wetink.Person, issuer, subject string) error {
	if err := named(string(tenant), string(person), issuer, subject); err != nil {
		return err
	}
	if issuer == "" || subject == "" {
		return errors.New("people: an identity needs an issuer and a subject")
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		there, has := false, wetink.Person("")
		for _, err := range tx.Query(selectPerson+` AND id = ?`, string(tenant), string(person)) {
			if err != nil {
				return err
			}
			there = true
		}
		if !there {
			return sqlite.Refuse(fmt.Errorf("identity of %.50q: %w", person, page.ErrUnknown))
		}
		for r, err := range tx.Query(selectIdentity, string(tenant), issuer, subject) {
			if err != nil {
				return err
			}
			has = wetink.Person(r.Text(0))
		}
		if has == person {
			return nil
		}
		n, err := tx.Exec(`INSERT INTO identity (tenant, issuer, subject, person) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			string(tenant), issuer, subject, string(person))
		if err == nil && n == 0 { // the subject is somebody else's, or the person has another one
			return sqlite.Refuse(fmt.Errorf("identity of %.50q: %w", person, page.ErrTaken))
		}
		return err
	})
}

// AnyIdentity implements page.Identities.
func (s *Store) AnyIdentity(ctx context.Context, issuer string) (found bool, err error) {
	err = s.read(ctx, func(*sqlite.Row) error { found = true; return nil },
		`SELECT 1 FROM identity t JOIN person p ON p.tenant = t.tenant AND p.id = t.person WHERE t.issuer = ? AND p.removed = 0 LIMIT 1`, issuer)
	return found, err
}

// HasIdentity reports whether somebody has signed in at an issuer.
func (s *Store) HasIdentity(ctx context.Context, tenant wetink.Tenant, person wetink.Person, issuer string) (found bool, err error) {
	err = s.read(ctx, func(*sqlite.Row) error { found = true; return nil },
		`SELECT 1 FROM identity WHERE tenant = ? AND issuer = ? AND person = ?`, string(tenant), issuer, string(person))
	return found, err
}
