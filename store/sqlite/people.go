package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/sqlite"
)

const selectPerson = `SELECT tenant, id, name, approver, admin, no_keys, created, removed FROM person WHERE tenant = ? AND removed = 0`

func person(r *sqlite.Row) page.Person {
	return page.Person{Tenant: wetink.Tenant(r.Text(0)), ID: wetink.Person(r.Text(1)), Name: r.Text(2), Approver: r.Bool(3),
		Admin: r.Bool(4), NoKeys: r.Bool(5), Created: at(r, 6), Removed: at(r, 7)}
}

// Person implements page.People.
func (s *Store) Person(ctx context.Context, tenant wetink.Tenant, id wetink.Person) (p page.Person, err error) {
	found := false
	err = s.read(ctx, func(r *sqlite.Row) error { p, found = person(r), true; return nil }, selectPerson+` AND id = ?`, string(tenant), string(id))
	if err == nil && !found {
		err = fmt.Errorf("person %.50q: %w", id, page.ErrUnknown)
	}
	return p, err
}

// AddPerson implements page.People.
func (s *Store) AddPerson(ctx context.Context, p page.Person) error {
	if err := named(string(p.Tenant), string(p.ID), p.Name); err != nil {
		return err
	}
	if p.ID == "" {
		return errors.New("people: a person needs a name")
	}
	_, err := s.write(ctx, `INSERT INTO person (tenant, id, name, approver, admin, no_keys, created, removed) VALUES (?, ?, ?, ?, ?, ?, ?, 0)`,
		string(p.Tenant), string(p.ID), p.Name, flag(p.Approver), flag(p.Admin), flag(p.NoKeys), millis(p.Created))
	if errors.Is(err, sqlite.ErrConstraint) { // also of somebody who was removed: records name them still
		return fmt.Errorf("person %q: %w", p.ID, page.ErrTaken)
	}
	return err
}

// UpdatePerson implements page.People. Who is removed loses sessions, invitations and subscriptions with the same commit.
func (s *Store) UpdatePerson(ctx context.Context, p page.Person) error {
	if err := named(p.Name); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		n, err := tx.Exec(`UPDATE person SET name = ?, approver = ?, admin = ?, no_keys = ?, removed = ? WHERE tenant = ? AND id = ? AND removed = 0`,
			p.Name, flag(p.Approver), flag(p.Admin), flag(p.NoKeys), millis(p.Removed), string(p.Tenant), string(p.ID))
		if err != nil {
			return err
		}
		if n == 0 {
			return sqlite.Refuse(fmt.Errorf("person %.50q: %w", p.ID, page.ErrUnknown))
		}
		if p.Removed.IsZero() {
			return nil
		}
		for _, table := range []string{"session", "invitation", "subscription"} {
			if _, err := tx.Exec(`DELETE FROM `+table+` WHERE tenant = ? AND person = ?`, string(p.Tenant), string(p.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ListPeople implements page.People, in the order of their ids.
func (s *Store) ListPeople(ctx context.Context, tenant wetink.Tenant) (list []page.Person, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { list = append(list, person(r)); return nil }, selectPerson+` ORDER BY id`, string(tenant))
	return list, err
}

// AnyPerson implements page.People.
func (s *Store) AnyPerson(ctx context.Context) (found bool, err error) {
	err = s.read(ctx, func(*sqlite.Row) error { found = true; return nil }, `SELECT 1 FROM person WHERE removed = 0 LIMIT 1`)
	return found, err
}

const selectSession = `SELECT hash, tenant, person, how, agent, created, seen, expires FROM session `

func session(r *sqlite.Row) page.Session {
	return page.Session{Hash: wetink.Digest(r.Blob(0)), Tenant: wetink.Tenant(r.Text(1)), Person: wetink.Person(r.Text(2)), How: r.Text(3),
		Agent: r.Text(4), Created: at(r, 5), Seen: at(r, 6), Expires: at(r, 7)}
}

// AddSession implements page.Sessions. Those that are over go with it.
func (s *Store) AddSession(ctx context.Context, n page.Session) error {
	if err := named(string(n.Tenant), string(n.Person), n.How, n.Agent); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		if _, err := tx.Exec(`DELETE FROM session WHERE expires < ?`, millis(n.Created)); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO session (hash, tenant, person, how, agent, created, seen, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			n.Hash[:], string(n.Tenant), string(n.Person), n.How, n.Agent, millis(n.Created), millis(n.Seen), millis(n.Expires))
		return err
	})
}

// Session implements page.Sessions.
func (s *Store) Session(ctx context.Context, hash wetink.Digest) (n page.Session, err error) {
	found := false
	err = s.read(ctx, func(r *sqlite.Row) error { n, found = session(r), true; return nil }, selectSession+`WHERE hash = ?`, hash[:])
	if err == nil && !found {
		err = fmt.Errorf("session: %w", page.ErrUnknown)
	}
	return n, err
}

// TouchSession implements page.Sessions.
func (s *Store) TouchSession(ctx context.Context, hash wetink.Digest, seen time.Time) error {
	_, err := s.write(ctx, `UPDATE session SET seen = max(seen, ?) WHERE hash = ?`, millis(seen), hash[:])
	return err
}

// EndSession implements page.Sessions.
func (s *Store) EndSession(ctx context.Context, hash wetink.Digest) error {
	_, err := s.write(ctx, `DELETE FROM session WHERE hash = ?`, hash[:])
	return err
}

// ListSessions implements page.Sessions, the newest first.
func (s *Store) ListSessions(ctx context.Context, tenant wetink.Tenant, id wetink.Person) (list []page.Session, err error) {
	err = s.read(ctx, func(r *sqlite.Row) error { list = append(list, session(r)); return nil },
		selectSession+`WHERE tenant = ? AND person = ? ORDER BY created DESC`, string(tenant), string(id))
	return list, err
}

// AddInvitation implements page.Invitations.
func (s *Store) AddInvitation(ctx context.Context, i page.Invitation) error {
	if err := named(string(i.Tenant), string(i.Person)); err != nil {
		return err
	}
	_, err := s.write(ctx, `INSERT INTO invitation (hash, tenant, person, expires) VALUES (?, ?, ?, ?)`,
		i.Hash[:], string(i.Tenant), string(i.Person), millis(i.Expires))
	return err
}

const selectInvitation = `SELECT hash, tenant, person, expires FROM invitation WHERE hash = ?`

func invitation(r *sqlite.Row) page.Invitation {
	return page.Invitation{Hash: wetink.Digest(r.Blob(0)), Tenant: wetink.Tenant(r.Text(1)), Person: wetink.Person(r.Text(2)), Expires: at(r, 3)}
}

// Invitation implements page.Invitations.
func (s *Store) Invitation(ctx context.Context, hash wetink.Digest) (i page.Invitation, err error) {
	found := false
	err = s.read(ctx, func(r *sqlite.Row) error { i, found = invitation(r), true; return nil }, selectInvitation, hash[:])
	if err == nil && !found {
		err = fmt.Errorf("invitation: %w", page.ErrUnknown)
	}
	return i, err
}

// TakeInvitation implements page.Invitations. Read and removed in one transaction: of two callers one finds it.
func (s *Store) TakeInvitation(ctx context.Context, hash wetink.Digest) (i page.Invitation, err error) {
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		found := false
		for r, err := range tx.Query(selectInvitation, hash[:]) {
			if err != nil {
				return err
			}
			i, found = invitation(r), true
		}
		if !found {
			return sqlite.Refuse(fmt.Errorf("invitation: %w", page.ErrUnknown))
		}
		_, err := tx.Exec(`DELETE FROM invitation WHERE hash = ?`, hash[:])
		return err
	})
	return i, err
}

// SweepInvitations implements page.Invitations.
func (s *Store) SweepInvitations(ctx context.Context, now time.Time) error {
	_, err := s.write(ctx, `DELETE FROM invitation WHERE expires <= ?`, millis(now))
	return err
}
