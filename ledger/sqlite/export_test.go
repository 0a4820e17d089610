package sqlite

import "github.com/wetink/wetink"

// What tests of the file itself need.
var (
	Migrations = migrations
	Codes      = codes
	Query      = func(f wetink.Filter, n int) (string, []any) { return query(f, nil, n) }
	Statements = []string{selectChange, selectFacts, selectHead, liveUndos, moveRow, claimRow, renewRow}
)
