package sqlite

// migrations are the whole schema. A released step is never edited. Times are milliseconds since 1970, UTC; a row of
// which the time is 0 has none.
//
// Secrets are hashed, but for three that the process itself needs: the one that binds links, forms and the evidence of
// a session, and the two halves that are never apart, a Web Push key and the subscriptions it speaks to.
var migrations = []string{`
CREATE TABLE person (
	tenant   TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	approver INTEGER NOT NULL,
	admin    INTEGER NOT NULL,
	no_keys  INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	removed  INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
	hash    BLOB    PRIMARY KEY,
	tenant  TEXT    NOT NULL,
	person  TEXT    NOT NULL,
	how     TEXT    NOT NULL,
	agent   TEXT    NOT NULL,
	created INTEGER NOT NULL,
	seen    INTEGER NOT NULL,
	expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_person ON session (tenant, person);

CREATE TABLE invitation (
	hash    BLOB    PRIMARY KEY,
	tenant  TEXT    NOT NULL,
	person  TEXT    NOT NULL,
	expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE passphrase (
	tenant TEXT NOT NULL,
	person TEXT NOT NULL,
	record BLOB NOT NULL,
	PRIMARY KEY (tenant, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE passkey (
	id     BLOB PRIMARY KEY,
	tenant TEXT NOT NULL,
	person TEXT NOT NULL,
	record BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_person ON passkey (tenant, person);

CREATE TABLE decision (
	tenant TEXT    NOT NULL,
	person TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	change TEXT    NOT NULL,
	yes    INTEGER NOT NULL,
	looked INTEGER NOT NULL,  -- milliseconds
	PRIMARY KEY (tenant, person, at, change)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursor (
	name TEXT    PRIMARY KEY,
	seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE subscription (
	endpoint TEXT PRIMARY KEY,
	tenant   TEXT NOT NULL,
	person   TEXT NOT NULL,
	record   BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE secret (
	name  TEXT PRIMARY KEY,
	bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
`, `
CREATE TABLE identity (
	tenant  TEXT NOT NULL,
	issuer  TEXT NOT NULL,
	subject TEXT NOT NULL,
	person  TEXT NOT NULL,
	PRIMARY KEY (tenant, issuer, subject),
	UNIQUE (tenant, issuer, person)
) STRICT, WITHOUT ROWID;
`}
