package sqlite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
	ledger "github.com/wetink/wetink/ledger/sqlite"
)

func TestListsUseTheirIndex(t *testing.T) {
	path := newPath(t)
	lead(t, open(t, path, nil), wetink.Pending)
	due := time.UnixMilli(1)
	open4 := []wetink.Status{wetink.Pending, wetink.Approved, wetink.Applying, wetink.InDoubt}
	for name, c := range map[string]struct {
		filter wetink.Filter
		want   string // what the plan says
		sorts  bool   // it may sort what the index found
	}{
		"sweep of what is due": {wetink.Filter{AnyTenant: true, DueBefore: due, Status: open4}, "COVERING INDEX changes_due (status=? AND due<?)", true},
		"sweep of approved":    {wetink.Filter{AnyTenant: true, Status: []wetink.Status{wetink.Approved}}, "COVERING INDEX changes_due (status=?)", true},
		"pending of a tenant":  {wetink.Filter{Status: []wetink.Status{wetink.Pending}}, "changes_pending (tenant=?)", false},
		"next page of pending": {wetink.Filter{Status: []wetink.Status{wetink.Pending}, Before: "chg_1"}, "changes_pending (tenant=? AND id<?)", false},
		"pending of a target":  {wetink.Filter{Status: []wetink.Status{wetink.Pending}, Target: "t"}, "changes_pending (tenant=?)", false},
		"in doubt of a tenant": {wetink.Filter{Status: []wetink.Status{wetink.InDoubt}}, "COVERING INDEX changes_due (status=?)", true},
		"undoes":               {wetink.Filter{Undoes: "chg_1", Limit: 1}, "SEARCH undos USING PRIMARY KEY (parent=? AND tenant=?)", true},
		"account":              {wetink.Filter{Account: "a"}, "changes_account (tenant=? AND account=?)", false},
		"newest of a tenant":   {wetink.Filter{}, "USING PRIMARY KEY (tenant=?)", false},
		"next page":            {wetink.Filter{Before: "chg_1"}, "USING PRIMARY KEY (tenant=? AND id<?)", false},
		"settled":              {wetink.Filter{Status: []wetink.Status{wetink.Applied, wetink.Partial}}, "USING PRIMARY KEY (tenant=?)", false},
	} {
		t.Run(name, func(t *testing.T) {
			sql, args := ledger.Query(c.filter, 100)
			wantPlan(t, path, c.want, c.sorts, sql, args...)
		})
	}
}

func TestReadsAndWritesOfOneRowSeekIt(t *testing.T) {
	path := newPath(t)
	lead(t, open(t, path, nil), wetink.Pending)
	for _, s := range ledger.Statements {
		args := make([]any, strings.Count(s, "?"))
		db := direct(t, path)
		for _, step := range plan(t, db, s, args...) {
			if strings.HasPrefix(step, "SCAN") && step != "SCAN m" { // meta, of one row
				t.Errorf("%s: %s", s, step)
			}
		}
		db.Close()
	}
}

func wantPlan(t *testing.T, path, want string, sorts bool, sql string, args ...any) {
	t.Helper()
	db := direct(t, path)
	defer db.Close()
	steps := strings.Join(plan(t, db, sql, args...), "; ")
	if !strings.HasPrefix(steps, "SEARCH changes") || !strings.Contains(steps, want) || strings.Contains(steps, "SCAN") {
		t.Errorf("%s\nis planned as %s, want %s", sql, steps, want)
	}
	if !sorts && strings.Contains(steps, "TEMP B-TREE") {
		t.Errorf("%s\nsorts: %s", sql, steps)
	}
}

func plan(t *testing.T, db *sqlite.DB, sql string, args ...any) (steps []string) {
	t.Helper()
	err := db.Read(context.Background(), func(tx *sqlite.Tx) error {
		for row, err := range tx.Query(`EXPLAIN QUERY PLAN `+sql, args...) {
			if err != nil {
				return err
			}
			steps = append(steps, row.Text(3))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}
