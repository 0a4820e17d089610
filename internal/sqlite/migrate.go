package sqlite

import (
	"errors"
	"fmt"
)

// migrate runs the steps that the file lacks. The version is read again inside each step's transaction, so that of
// several processes that start together one runs it and the others find it done.
func (db *DB) migrate(c *conn) error {
	for {
		version, err := db.version(c)
		if err != nil || version == int64(len(db.options.Migrations)) {
			return err
		}
		if err := db.step(c); err != nil {
			return err
		}
	}
}

func (db *DB) step(c *conn) (err error) {
	if err := c.run(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil && !c.GetAutocommit() {
			err = errors.Join(err, c.run(`ROLLBACK`))
		}
	}()
	version, err := db.version(c)
	if err != nil {
		return err
	}
	if version < int64(len(db.options.Migrations)) {
		if err := c.Exec(db.options.Migrations[version]); err != nil {
			return fmt.Errorf("schema step %d: %w", version+1, wrap(err))
		}
		if err := c.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, version+1)); err != nil {
			return wrap(err)
		}
	}
	return c.run(`COMMIT`)
}

// version reads user_version and refuses one that this release does not know.
func (db *DB) version(c *conn) (int64, error) {
	version, err := c.int64(`PRAGMA user_version`)
	if err != nil {
		return 0, err
	}
	if known := int64(len(db.options.Migrations)); version < 0 || version > known {
		return 0, fmt.Errorf("%w: its schema has version %d and this one knows %d; install that release, or restore a backup made by this one",
			ErrNewerSchema, version, known)
	}
	return version, nil
}
