package sqlite

import (
	"errors"
	"fmt"
	"iter"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// Tx is a transaction, valid only inside the function that was given it, on that function's goroutine.
//
// SQL should be constant text, because each statement is compiled once and kept; it holds one statement.
// Arguments are nil, bool, int, int64, string or []byte (nil is NULL, empty is an empty blob). Others are an error,
// so that no value is stored in a form that nobody chose.
type Tx struct {
	c *conn // nil once the function has returned
}

// Exec runs one statement and returns how many rows it changed, those changed by triggers included.
// After an error the statement has changed nothing; unless it wraps ErrConstraint, the function must return it.
func (tx *Tx) Exec(sql string, args ...any) (changes int64, err error) {
	s, err := tx.statement(sql, args)
	if err != nil {
		return 0, err
	}
	before := tx.c.TotalChanges()
	err = wrap(s.Exec())
	tx.c.release(s)
	if err != nil {
		return 0, err
	}
	return tx.c.TotalChanges() - before, nil
}

// Query runs one statement and yields its rows, then at most one error. A Row is valid until the next one.
// Other statements may run meanwhile; whether their changes appear in rows still to come is not defined.
func (tx *Tx) Query(sql string, args ...any) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		s, err := tx.statement(sql, args)
		if err != nil {
			yield(nil, err)
			return
		}
		c := tx.c
		defer c.release(s)
		row := &Row{s: s}
		for s.Step() {
			if !yield(row, nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(nil, wrap(err))
		}
	}
}

func (tx *Tx) statement(sql string, args []any) (*sqlite3.Stmt, error) {
	if tx.c == nil {
		return nil, errors.New("transaction is over")
	}
	s, err := tx.c.prepare(sql)
	if err != nil {
		return nil, err
	}
	if err := bind(s, args); err != nil {
		tx.c.release(s)
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	return s, nil
}

func bind(s *sqlite3.Stmt, args []any) error {
	if n := s.BindCount(); n != len(args) {
		return fmt.Errorf("%d arguments for %d parameters", len(args), n)
	}
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case nil:
			err = s.BindNull(i + 1)
		case bool:
			err = s.BindBool(i+1, v)
		case int:
			err = s.BindInt(i+1, v)
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = s.BindBlob(i+1, v)
		default:
			err = fmt.Errorf("a %T cannot be stored", arg)
		}
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return nil
}

// Row is one row of a result. Columns count from 0; what is returned is a copy.
type Row struct {
	s *sqlite3.Stmt
}

// Null reports whether a column is NULL, which the other methods read as their zero value.
func (r *Row) Null(column int) bool { return r.s.ColumnType(column) == sqlite3.NULL }

// Int64 reads an integer.
func (r *Row) Int64(column int) int64 { return r.s.ColumnInt64(column) }

// Bool reads an integer as true unless it is 0.
func (r *Row) Bool(column int) bool { return r.s.ColumnBool(column) }

// Text reads a text.
func (r *Row) Text(column int) string { return r.s.ColumnText(column) }

// Blob reads a blob; nil for NULL, not nil for an empty one.
func (r *Row) Blob(column int) []byte {
	if r.Null(column) {
		return nil
	}
	return r.s.ColumnBlob(column, []byte{})
}

// conn is a connection with its compiled statements, used by one goroutine at a time.
type conn struct {
	*sqlite3.Conn
	statements map[string]*sqlite3.Stmt // those not running
}

// maxStatements bounds what is kept when a caller builds SQL text after all.
const maxStatements = 256

func newConn(raw *sqlite3.Conn) *conn {
	return &conn{Conn: raw, statements: map[string]*sqlite3.Stmt{}}
}

// Close of nil does nothing.
func (c *conn) Close() error {
	if c == nil {
		return nil
	}
	var err error
	for _, s := range c.statements {
		err = errors.Join(err, s.Close())
	}
	c.statements = nil
	return errors.Join(err, c.Conn.Close())
}

// prepare takes the statement out of the cache, so that a query nested in one of the same text gets its own.
func (c *conn) prepare(sql string) (*sqlite3.Stmt, error) {
	if s := c.statements[sql]; s != nil {
		delete(c.statements, sql)
		return s, nil
	}
	s, tail, err := c.Prepare(sql)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", sql, wrap(err))
	case s == nil:
		return nil, fmt.Errorf("%q holds no statement", sql)
	case tail != "":
		s.Close()
		return nil, fmt.Errorf("%q holds more than one statement", sql)
	}
	return s, nil
}

// release ends a statement's run. Its error was reported by the step that met it.
func (c *conn) release(s *sqlite3.Stmt) {
	s.Reset()
	if s.BindCount() > 0 {
		s.ClearBindings() // a payload must not stay in memory until the next use
	}
	if _, taken := c.statements[s.SQL()]; taken || len(c.statements) >= maxStatements {
		s.Close()
		return
	}
	c.statements[s.SQL()] = s
}

func (c *conn) run(sql string) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer c.release(s)
	return wrap(s.Exec())
}

func (c *conn) text(sql string) (value string, err error) {
	for row, err := range (&Tx{c: c}).Query(sql) {
		if err != nil {
			return "", err
		}
		value = row.Text(0)
	}
	return value, nil
}

func (c *conn) int64(sql string) (value int64, err error) {
	for row, err := range (&Tx{c: c}).Query(sql) {
		if err != nil {
			return 0, err
		}
		value = row.Int64(0)
	}
	return value, nil
}
