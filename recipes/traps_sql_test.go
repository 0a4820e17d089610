package recipes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wetink/wetink"
)

// repository has the traps of the GitHub server: the sha of a file stands in a sentence, the file in a resource beside it,
// a write is compared with the sha, and a new issue answers its id and url only.
func repository() *fake {
	f := &fake{objects: map[string]map[string]any{"a.md": {"text": "old\n", "sha": strings.Repeat("1", 40)}, "7": {"number": 7, "title": "Old", "body": "B", "state": "open"}}}
	writes := 1
	f.tools = func(f *fake, tool string, a map[string]any) answer {
		path, _ := a["path"].(string)
		file := f.objects[path]
		number := fmt.Sprint(a["issue_number"])
		switch tool {
		case "get_file_contents":
			if file == nil {
				return failed("Failed to get file contents. The path does not point to a file or directory, or the file does not exist in the repository.")
			}
			out := text(fmt.Sprintf("successfully downloaded text file (SHA: %s)", file["sha"]))
			if f.twist == otherNames {
				out = text("successfully downloaded text file")
			}
			out["content"] = append(out["content"].([]any), map[string]any{"type": "resource", "resource": map[string]any{"uri": "repo://x", "text": file["text"]}})
			return out
		case "create_or_update_file":
			if file != nil && a["sha"] != file["sha"] {
				return failed("409 sha does not match")
			}
			writes++
			f.objects[path] = map[string]any{"text": a["content"], "sha": strings.Repeat(fmt.Sprint(writes), 40)}
			if f.twist == noID {
				return inText(map[string]any{"commit": map[string]any{}})
			}
			return inText(map[string]any{"content": map[string]any{"sha": f.objects[path]["sha"]}})
		case "delete_file":
			delete(f.objects, path)
			return inText(map[string]any{"commit": map[string]any{}})
		case "issue_read":
			return inText(f.objects[number])
		case "issue_write":
			if a["method"] == "create" {
				f.objects["8"] = map[string]any{"number": 8, "title": a["title"], "state": "open"}
				if f.twist == noID {
					return inText(map[string]any{})
				}
				return inText(map[string]any{"id": "1008", "url": "https://github.example/o/r/issues/8"})
			}
			for _, name := range []string{"title", "body", "state"} {
				if v, ok := a[name]; ok {
					f.objects[number][name] = v
				}
			}
			return inText(map[string]any{"id": "1007", "url": "https://github.example/o/r/issues/" + number})
		}
		return failed("no such tool")
	}
	return f
}

func inRepository(more map[string]any) map[string]any {
	a := map[string]any{"owner": "o", "repo": "r"}
	for k, v := range more {
		a[k] = v
	}
	return a
}

func TestARepositorysFilesAndIssuesArePutBack(t *testing.T) {
	f := repository()
	s := guarded(t, "github", f)
	write := func(path string) map[string]any {
		return inRepository(map[string]any{"path": path, "branch": "main", "message": "m", "content": "new\n"})
	}
	c := s.do("github", "create_or_update_file", write("a.md"))
	if s.undo(c); f.objects["a.md"]["text"] != "old\n" {
		t.Errorf("undone it is %v", f.objects["a.md"])
	}
	c = s.do("github", "create_or_update_file", write("b.md"))
	if s.undo(c); f.objects["b.md"] != nil {
		t.Errorf("it stays: %v", f.objects["b.md"])
	}
	c = s.do("github", "issue_write", inRepository(map[string]any{"method": "update", "issue_number": 7, "title": "New", "state": "closed"}))
	if s.undo(c); f.objects["7"]["title"] != "Old" || f.objects["7"]["state"] != "open" {
		t.Errorf("undone it is %v", f.objects["7"])
	}
	c = s.do("github", "issue_write", inRepository(map[string]any{"method": "create", "title": "Fresh"}))
	if s.undo(c); f.objects["8"]["state"] != "closed" {
		t.Errorf("it is %v", f.objects["8"])
	}
}

func TestTheServerComparesTheShaThatWasSeen(t *testing.T) {
	f := repository()
	s := guarded(t, "github", f)
	c := s.preview("github", "create_or_update_file", inRepository(map[string]any{"path": "a.md", "branch": "main", "message": "m", "content": "new"}))
	terms, err := c.Terms()
	if err != nil || !strings.Contains(string(terms.Ops[0].Payload), strings.Repeat("1", 40)) {
		t.Errorf("the sha is not in the call: %s (%v)", terms.Ops[0].Payload, err)
	}
	f.objects["a.md"]["sha"] = strings.Repeat("a", 40) // the same text, committed anew
	s.ends(s.apply(c), wetink.Failed)
	if len(f.sent) != 0 {
		t.Errorf("sent: %q", f.sent)
	}
}

func TestARepositoryThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, twist := range []string{noID, falseDone} {
			f := repository()
			f.twist = twist
			s := guarded(t, "github", f)
			c := s.apply(s.preview("github", "issue_write", inRepository(map[string]any{"method": "create", "title": "Fresh"})))
			unclaimed(t, twist, c)
			if _, _, err := s.Undo(t.Context(), wetink.Principal{Person: "ana"}, c.ID, nil); err == nil {
				t.Errorf("%s: an undo is planned of what nobody knows", twist)
			}
		}
		write := inRepository(map[string]any{"path": "a.md", "branch": "main", "message": "m", "content": "new"})
		f := repository()
		f.twist = falseDone
		s := guarded(t, "github", f)
		s.ends(s.apply(s.preview("github", "create_or_update_file", write)), wetink.InDoubt)
		f = repository()
		f.twist = otherNames
		if _, err := guarded(t, "github", f).try("github", "create_or_update_file", write); err == nil {
			t.Error("a file without a sha is written over")
		}
		f = repository()
		f.twist = noID // the new sha is not answered, so no undo can name it
		s = guarded(t, "github", f)
		c := s.apply(s.preview("github", "create_or_update_file", write))
		s.noUndo(c, wetink.ErrNoUndo)
	})
}

// database has the traps of the Postgres server: EXPLAIN in front of whatever is given, so that a second statement runs, an
// error that is no error, and rows as Python writes them.
type database struct {
	*fake
	ran []string
}

func postgres() *database {
	d := &database{fake: &fake{}}
	d.tools = func(f *fake, tool string, a map[string]any) answer {
		sql, _ := a["sql"].(string)
		list := strings.Split(strings.TrimRight(sql, "; "), ";")
		if tool == "explain_query" && a["analyze"] != true {
			list = list[1:] // the first is only explained
		}
		for _, one := range list {
			d.ran = append(d.ran, strings.TrimSpace(one))
		}
		if tool == "explain_query" {
			return text("Update on t (cost=0.00..1.00)")
		}
		return text("[{'id': 1, 'at': datetime.date(2026, 7, 16)}]")
	}
	return d
}

func TestNoPreviewOfAStatementRunsAnything(t *testing.T) {
	for _, sql := range []string{
		"UPDATE t SET a = 1 WHERE id = 2", "UPDATE t SET a = 1 WHERE id = 2;", "UPDATE t SET a = 1 WHERE id = 2; DELETE FROM t WHERE id = 3",
		"SELECT 1; DELETE FROM t", "DROP TABLE t", "UPDATE t SET a = ';' WHERE id = 2; DROP TABLE t", "UPDATE t SET a = 1 /* ; */; DELETE FROM t -- ;",
	} {
		for _, tool := range []string{"execute_sql", "explain_query"} {
			d := postgres()
			c, err := guarded(t, "postgres", d).try("postgres", tool, map[string]any{"sql": sql})
			if err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			if len(d.ran) > 0 {
				t.Errorf("the preview of %s %q ran %q", tool, sql, d.ran)
			}
			if c.Status != wetink.Pending {
				t.Errorf("%s %q is %s", tool, sql, c.Status)
			}
		}
	}
}

func TestAStatementIsDoneByTheServersWordOnly(t *testing.T) {
	for _, twist := range []string{"", falseDone} {
		d := postgres()
		s := guarded(t, "postgres", d)
		c := s.preview("postgres", "execute_sql", map[string]any{"sql": "UPDATE t SET a = 1 WHERE id = 2"})
		d.twist = twist
		c = s.apply(c)
		unclaimed(t, twist, c)
		s.noUndo(c, wetink.ErrNoUndo)
	}
	d := postgres()
	s := guarded(t, "postgres", d)
	c := s.preview("postgres", "execute_sql", map[string]any{"sql": "UPDATE t SET a = 1 WHERE id = 2"})
	s.wire.lose = "execute_sql"
	s.ends(s.apply(c), wetink.InDoubt)
	if !slices.Equal(d.ran, []string{"UPDATE t SET a = 1 WHERE id = 2"}) {
		t.Errorf("ran %q", d.ran)
	}
}

// table has the traps of the SQLite server: a list of rows without a key, and a rowid that no tool takes.
func table() *fake {
	f := &fake{objects: map[string]map[string]any{"1": {"a": 1, "b": "x"}}}
	f.tools = func(f *fake, tool string, a map[string]any) answer {
		switch tool {
		case "read_records":
			rows := []any{}
			if r := f.objects["1"]; r != nil {
				rows = append(rows, r)
			}
			return inText(rows)
		case "update_records":
			data, _ := a["data"].(map[string]any)
			for k, v := range data {
				f.objects["1"][k] = v
			}
			return inText(map[string]any{"message": "Records updated successfully", "rowsAffected": 1})
		}
		return failed("no such tool")
	}
	return f
}

func TestRowsThatChangedSinceAreNotWrittenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := map[string]any{"table": "t", "data": map[string]any{"a": 2}, "conditions": map[string]any{"b": "x"}}
		f := table()
		s := guarded(t, "sqlite", f)
		c := s.preview("sqlite", "update_records", args)
		f.objects["1"]["a"] = json.Number("9")
		s.ends(s.apply(c), wetink.Failed)
		c = s.do("sqlite", "update_records", args)
		unclaimed(t, "rows cannot be compared", c)
		s.noUndo(c, wetink.ErrNoUndo)
		f.twist = falseDone
		f.objects["1"]["a"] = 1
		s.ends(s.apply(s.preview("sqlite", "update_records", args)), wetink.InDoubt)
	})
}

// agenda has the traps of the CalDAV server: uids as plain texts, and events that are listed by time only.
func agenda() *fake {
	f := &fake{objects: map[string]map[string]any{"u1": {"uid": "u1", "summary": "A", "status": "NEEDS-ACTION"}}}
	f.tools = func(f *fake, tool string, a map[string]any) answer {
		uid, _ := a["uid"].(string)
		switch tool {
		case "list-todos":
			list := []any{}
			for _, uid := range []string{"u1", "u2"} {
				if o := f.objects[uid]; o != nil {
					list = append(list, o)
				}
			}
			return inText(map[string]any{"todos": list, "total": len(list), "limit": 500, "offset": 0})
		case "create-event", "create-todo":
			f.objects["u2"] = map[string]any{"uid": "u2", "summary": a["summary"], "status": "NEEDS-ACTION"}
			if f.twist == noID {
				return text("")
			}
			return text("u2")
		case "complete-todo":
			f.objects[uid]["status"] = "COMPLETED"
			return text(uid)
		case "update-todo":
			f.objects[uid]["status"] = a["status"]
			return text(uid)
		case "delete-event", "delete-todo":
			if f.objects[uid] == nil {
				return failed("404")
			}
			delete(f.objects, uid)
			return text("Event deleted")
		}
		return failed("no such tool")
	}
	return f
}

func TestATaskIsOpenedAgainAndANewOneGoes(t *testing.T) {
	f := agenda()
	s := guarded(t, "caldav", f)
	c := s.do("caldav", "complete-todo", map[string]any{"calendarUrl": "/c/", "uid": "u1"})
	if s.undo(c); f.objects["u1"]["status"] != "NEEDS-ACTION" {
		t.Errorf("it is %v", f.objects["u1"])
	}
	for _, tool := range []string{"create-todo", "create-event"} {
		c = s.do("caldav", tool, map[string]any{"calendarUrl": "/c/", "summary": "B", "start": "2026-07-16T08:00:00Z", "end": "2026-07-16T09:00:00Z"})
		if s.undo(c); f.objects["u2"] != nil {
			t.Errorf("%s: it stays", tool)
		}
	}
}

func TestACalDAVServerThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tool := range []string{"create-todo", "create-event", "complete-todo", "delete-event"} {
			for _, twist := range []string{noID, falseDone} {
				f := agenda()
				f.twist = twist
				s := guarded(t, "caldav", f)
				unclaimed(t, tool+", "+twist, s.apply(s.preview("caldav", tool, map[string]any{"calendarUrl": "/c/", "uid": "u1", "summary": "B"})))
			}
		}
	})
}
