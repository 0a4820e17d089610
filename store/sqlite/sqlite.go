// Package sqlite keeps what a server knows of people in one SQLite file: who they are, which browsers are signed in,
// how they prove who they are, and how far readers of events have come. It implements page.Store, and what
// approval/passphrase, approval/passkey and notify ask for.
//
// Guarantees are those of internal/sqlite: what was answered is on disk, the file is its owner's alone, and several
// processes may share it. Names may be any UTF-8 without NUL; other names are refused.
package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/internal/sqlite"
)

// Store is one open file. Its methods are safe for concurrent use.
type Store struct{ db *sqlite.DB }

var _ page.Store = (*Store)(nil)

// Open opens the file at path, or creates it, with the directories missing on the way.
func Open(path string) (*Store, error) {
	db, err := sqlite.Open(path, &sqlite.Options{Migrations: migrations})
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	return &Store{db}, nil
}

// Close finishes every call that has begun and closes the file.
func (s *Store) Close() error { return s.db.Close() }

// maxName of what somebody else chose, in bytes.
const maxName = 1024

func named(names ...string) error {
	for _, n := range names {
		if len(n) > maxName || !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			return fmt.Errorf("%.50q is no name that is stored", n)
		}
	}
	return nil
}

// write runs one statement; changes says how many rows it touched.
func (s *Store) write(ctx context.Context, sql string, args ...any) (changes int64, err error) {
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		changes, err = tx.Exec(sql, args...)
		return err
	})
	return changes, err
}

// read calls row for each row of a query.
func (s *Store) read(ctx context.Context, row func(*sqlite.Row) error, sql string, args ...any) error {
	return s.db.Read(ctx, func(tx *sqlite.Tx) error {
		for r, err := range tx.Query(sql, args...) {
			if err != nil {
				return err
			}
			if err := row(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(r *sqlite.Row, column int) time.Time {
	if ms := r.Int64(column); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Secret implements page.Store.
func (s *Store) Secret(ctx context.Context) (secret.Bytes, error) {
	fresh := make([]byte, 32)
	rand.Read(fresh)
	return s.keep(ctx, "page", fresh)
}

// KeepVAPIDKey implements notify.VAPIDKeys: the first key that anybody brings is kept.
func (s *Store) KeepVAPIDKey(ctx context.Context, fresh secret.Bytes) (secret.Bytes, error) {
	return s.keep(ctx, "vapid", fresh.Reveal())
}

// keep stores bytes once; whoever comes later gets those.
func (s *Store) keep(ctx context.Context, name string, fresh []byte) (secret.Bytes, error) {
	var kept []byte
	find := func(r *sqlite.Row) error { kept = r.Blob(0); return nil }
	if err := s.read(ctx, find, `SELECT bytes FROM secret WHERE name = ?`, name); err != nil || kept != nil {
		return secret.New(kept), err
	}
	if _, err := s.write(ctx, `INSERT INTO secret (name, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, fresh); err != nil {
		return secret.Bytes{}, err
	}
	err := s.read(ctx, find, `SELECT bytes FROM secret WHERE name = ?`, name)
	if err == nil && kept == nil {
		err = errors.New("people: a secret that was stored is not there")
	}
	return secret.New(kept), err
}

// Cursor implements notify.Cursors: a reader that never was anywhere begins with what comes next.
func (s *Store) Cursor(ctx context.Context, name string) (int64, error) {
	seq := wetink.Newest
	err := s.read(ctx, func(r *sqlite.Row) error { seq = r.Int64(0); return nil }, `SELECT seq FROM cursor WHERE name = ?`, name)
	return seq, err
}

// SetCursor implements notify.Cursors.
func (s *Store) SetCursor(ctx context.Context, name string, seq int64) error {
	if err := named(name); err != nil {
		return err
	}
	_, err := s.write(ctx, `INSERT INTO cursor (name, seq) VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq`, name, seq)
	return err
}
