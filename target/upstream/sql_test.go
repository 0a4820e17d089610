package upstream

import "testing"

func TestASecondStatementIsSeen(t *testing.T) {
	for sql, want := range map[string]bool{"SELECT 1": true, "SELECT ';'": true, "DELETE FROM t;": true, "SELECT 1; DELETE FROM t": false, "SELECT 1 /*;*/": true} {
		if got, err := sqlSingle(sql); err != nil || got != want {
			t.Errorf("%s: %t %v", sql, got, err)
		}
	}
	for _, sql := range []string{"", ";", "ANALYZE DELETE FROM t", "(ANALYZE) DELETE FROM t", "PRAGMA foreign_keys"} {
		if got, err := sqlSingle(sql); err == nil {
			t.Errorf("%s: %t, and no parser reads it", sql, got)
		}
	}
}

func TestWhatSQLDoesIsReadByAParser(t *testing.T) {
	for _, c := range []struct {
		sql                       string
		readonly, unfiltered, ddl bool
	}{
		{"SELECT * FROM t", true, false, false},
		{"select 'delete from t; drop table t'", true, false, false},
		{"SELECT 1 -- ; DROP TABLE t", true, false, false},
		{"SELECT count(*), lower(name) FROM t GROUP BY 2", true, false, false},
		{"SELECT 1; DELETE FROM t", false, true, false},
		{"SELECT 1; DROP TABLE t", false, false, true},
		{"WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone", false, true, false},
		{"WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING *) SELECT * FROM gone", false, false, false},
		{"SELECT * INTO copy FROM t", false, false, false},
		{"SELECT * FROM t FOR UPDATE", false, false, false},
		{"SELECT nextval('s')", false, false, false},
		{"SELECT pg_terminate_backend(1)", false, false, false},
		{"SELECT evil.lower('x')", false, false, false},
		{"SELECT \"LOWER\"('x')", false, false, false},
		{"SELECT pg_catalog.lower('x')", true, false, false},
		{"EXPLAIN DELETE FROM t WHERE id = 1", true, false, false},
		{"EXPLAIN ANALYZE SELECT 1", true, false, false},
		{"EXPLAIN ANALYZE DELETE FROM t WHERE id = 1", false, false, false},
		{"SHOW server_version", true, false, false},
		{"UPDATE t SET a = 1", false, true, false},
		{"UPDATE t SET a = 1 WHERE true", false, true, false},
		{"UPDATE t SET a = 1 WHERE 1 = 1 OR 'x' = 'x'", false, true, false},
		{"UPDATE t SET a = 1 WHERE id = 7", false, false, false},
		{"/* WHERE */ DELETE FROM t", false, true, false},
		{"DELETE FROM t WHERE id IN (SELECT id FROM u)", false, false, false},
		{"INSERT INTO t VALUES (1)", false, false, false},
		{"TRUNCATE t", false, true, true},
		{"ALTER TABLE t ADD c int", false, false, true},
		{"GRANT ALL ON t TO public", false, false, true},
		{"DO $$ BEGIN DELETE FROM t; END $$", false, false, true},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", false, false, true},
		{"SET role postgres", false, false, true},
		{"VACUUM", false, false, true},
		{"CALL p()", false, false, true},
		{"COPY t TO PROGRAM 'sh'", false, false, false},
	} {
		for name, got := range map[string]func(string) (bool, error){"readonly": sqlReadOnly, "unfiltered": sqlUnfiltered, "ddl": sqlDefines} {
			want := map[string]bool{"readonly": c.readonly, "unfiltered": c.unfiltered, "ddl": c.ddl}[name]
			if is, err := got(c.sql); err != nil || is != want {
				t.Errorf("%s of %q: %t %v, want %t", name, c.sql, is, err, want)
			}
		}
	}
	for _, bad := range []string{"", "-- nothing", "SELEC 1", "SELECT 1; nonsense"} {
		if is, err := sqlReadOnly(bad); err == nil || is {
			t.Errorf("%q: %t %v", bad, is, err)
		}
	}
}
