package sqlite

import (
	"strconv"
	"strings"

	"github.com/wetink/wetink"
)

// migrations are the whole schema. A released step is never edited.
//
// The rows of changes are small, because each Move rewrites one. What never changes (content), or is only added
// (facts, events), is appended to tables of its own and never updated or deleted. Who writes the file with other
// tools can still change all of it; what then happens at apply:
//
//   - tenant, id, target, account, undoes, replaces, content and all of table content but its request are bound
//     by the Statement, and that by the evidence in facts: a difference is refused.
//   - status gives nothing without evidence, and no second claim.
//   - rev, owner, due, created, updated, request and the Why in facts steer nothing that is sent.
//   - mode, daycount, cap and day, and the time of the newest event are believed. Whoever can write them could
//     also run the program that does.
var migrations = []string{`
CREATE TABLE meta (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	ledger TEXT    NOT NULL,  -- made here, once a file
	epoch  INTEGER NOT NULL,  -- +1 when a copy takes the file's place
	mode   TEXT    NOT NULL
) STRICT;
INSERT INTO meta VALUES (1, 'sqlite-' || lower(hex(randomblob(16))), 1, '');

CREATE TABLE changes (
	tenant   TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	rev      INTEGER NOT NULL,
	status   INTEGER NOT NULL,  -- see codes
	content  INTEGER NOT NULL,  -- content.no, which also is facts.change
	target   TEXT    NOT NULL,
	account  TEXT    NOT NULL,
	undoes   TEXT,              -- JSON: a list of wetink.Undone
	replaces TEXT,
	claim    TEXT,
	owner    TEXT,
	lease    INTEGER,           -- times are milliseconds since 1970, UTC
	due      INTEGER,
	cap      TEXT,              -- the place that the claim took, and gives back
	day      TEXT,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- In such a table each index ends with the key, so (tenant, id) order comes with it.
CREATE INDEX changes_due       ON changes (status, due)     WHERE status <= 4;
CREATE INDEX changes_pending   ON changes (tenant, id)      WHERE status = 1;
CREATE INDEX changes_account   ON changes (tenant, account);

-- Who undoes whom, to find it by the parent. A row edited here lets a second undo be planned, or hides one; each still
-- needs an approval of its own, and is stale where the first took effect.
CREATE TABLE undos (
	parent TEXT NOT NULL,
	tenant TEXT NOT NULL,
	undo   TEXT NOT NULL,
	PRIMARY KEY (parent, tenant, undo)
) STRICT, WITHOUT ROWID;

CREATE TABLE content (
	no        INTEGER PRIMARY KEY,
	statement BLOB NOT NULL,
	request   BLOB NOT NULL,
	before    BLOB NOT NULL
) STRICT;

CREATE TABLE facts (
	no     INTEGER PRIMARY KEY,
	change INTEGER NOT NULL,  -- changes.content
	rev    INTEGER NOT NULL,  -- that the Move made
	kind   INTEGER NOT NULL,
	bytes  BLOB    NOT NULL
) STRICT;
CREATE INDEX facts_change ON facts (change);

CREATE TABLE events (
	seq   INTEGER PRIMARY KEY,
	at    INTEGER NOT NULL,  -- what bytes says, for the clock
	bytes BLOB    NOT NULL   -- wetink.Event.Bytes
) STRICT;

CREATE TABLE daycount (
	tenant  TEXT    NOT NULL,
	account TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	day     TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (tenant, account, name, day)
) STRICT, WITHOUT ROWID;
`}

// codes of a Status in the file. They never change. Their order makes the conditions below one comparison each, which
// every write evaluates for every index.
var codes = map[wetink.Status]int64{
	wetink.Pending: 1, wetink.Approved: 2, wetink.Applying: 3, wetink.InDoubt: 4,
	wetink.Applied: 5, wetink.Partial: 6,
	wetink.Failed: 7, wetink.Expired: 8, wetink.Rejected: 9, wetink.Superseded: 10,
}

var statuses = func() map[int64]wetink.Status {
	m := map[int64]wetink.Status{}
	for s, code := range codes {
		m[code] = s
	}
	return m
}()

// The conditions of the partial indexes, as literal text: only then SQLite sees that a query keeps to one.
const (
	isOpen = `status <= 4` // not wetink.Status.Settled
	isLive = `status <= 6` // wetink.Status.Live
)

// oneOf is a condition on status. It is literal text for the same reason; a status without a code is no row's.
func oneOf(set []wetink.Status) string {
	list := make([]string, 0, len(set))
	for _, s := range set {
		list = append(list, strconv.FormatInt(codes[s], 10))
	}
	if len(list) == 1 {
		return `status = ` + list[0]
	}
	return `status IN (` + strings.Join(list, ",") + `)`
}

// Kinds of fact.
const (
	factApproval int64 = 1
	factStep     int64 = 2
	factTicket   int64 = 3
	factWhy      int64 = 4
)
