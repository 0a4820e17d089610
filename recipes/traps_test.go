package recipes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/wetink/wetink"
)

type answers = map[string]func(map[string]any) string

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// calendar answers as the real one does: JSON in a text, wrapped in "event", times given as objects and taken as texts.
func calendar(events map[string]map[string]any) answers {
	n := 0
	when := func(v any) any {
		s, _ := v.(string)
		o := map[string]any{}
		if json.Unmarshal([]byte(s), &o) == nil {
			return o
		}
		return map[string]any{"dateTime": strings.TrimSuffix(s, "+01:00") + "+01:00", "timeZone": "Europe/Berlin"}
	}
	set := func(e, args map[string]any) {
		for k, v := range args {
			switch k {
			case "calendarId", "eventId", "sendUpdates", "modificationScope", "account":
			case "start", "end":
				e[k] = when(v)
			default:
				e[k] = v
			}
		}
	}
	return answers{
		"get-event": func(args map[string]any) string {
			id := args["eventId"].(string)
			if events[id] == nil {
				return fmt.Sprintf("isError Event with ID '%s' not found in calendar 'primary'.", id)
			}
			return text(map[string]any{"event": events[id]})
		},
		"create-event": func(args map[string]any) string {
			n++
			e := map[string]any{"id": fmt.Sprintf("new%d", n)}
			set(e, args)
			events[e["id"].(string)] = e
			return text(map[string]any{"event": e})
		},
		"update-event": func(args map[string]any) string {
			e := maps.Clone(events[args["eventId"].(string)])
			set(e, args)
			events[args["eventId"].(string)] = e
			return text(map[string]any{"event": e})
		},
		"delete-event": func(args map[string]any) string {
			delete(events, args["eventId"].(string))
			return text(map[string]any{"success": true})
		},
	}
}

func ride() map[string]map[string]any {
	return map[string]map[string]any{"e1": {"id": "e1", "summary": "Ride", "start": map[string]any{"dateTime": "2026-12-09T10:00:00+01:00", "timeZone": "Europe/Berlin"},
		"end": map[string]any{"dateTime": "2026-12-09T11:00:00+01:00"}, "attendees": []any{map[string]any{"email": "bo@example.org", "responseStatus": "accepted"}}}}
}

func TestCalendarTimesGoBackAsTextsAndGuestsAsAddresses(t *testing.T) {
	events := ride()
	recipe(t, "google-calendar", calendar(events), func(k *kit) {
		c, ticket := k.change("update-event", `{"calendarId":"primary","eventId":"e1","summary":"Race","start":"2026-12-10T09:00:00","attendees":[],"sendUpdates":"none"}`)
		if c.Status != wetink.Applied {
			t.Fatalf("%s: %s", c.Status, c.Why)
		}
		if c.Compared() { // a text was asked for, and an object is read
			t.Error("it says that all of it was compared")
		}
		k.undo(c, ticket)
		want := `update-event {"calendarId":"primary","eventId":"e1","sendUpdates":"none","attendees":[{"email":"bo@example.org"}],` +
			`"start":"{\"dateTime\":\"2026-12-09T10:00:00+01:00\",\"timeZone\":\"Europe/Berlin\"}","summary":"Ride"}`
		if !k.sends(want) {
			t.Errorf("%s\nwas not sent, but\n%s", want, strings.Join(k.sent, "\n"))
		}
		if got := events["e1"]["start"].(map[string]any)["dateTime"]; got != "2026-12-09T10:00:00+01:00" {
			t.Errorf("it starts at %v", got)
		}
	})
}

func TestCalendarCreationIsDeletedAndNobodyIsMailed(t *testing.T) {
	events := map[string]map[string]any{}
	recipe(t, "google-calendar", calendar(events), func(k *kit) {
		c, ticket := k.change("create-event", `{"calendarId":"primary","summary":"Ride","start":"2026-12-09T10:00:00","end":"2026-12-09T11:00:00"}`)
		if c.Status != wetink.Applied || len(events) != 1 {
			t.Fatalf("%s: %s", c.Status, c.Why)
		}
		k.undo(c, ticket)
		if want := `delete-event {"calendarId":"primary","eventId":"new1","sendUpdates":"none"}`; !k.sends(want) || len(events) != 0 {
			t.Errorf("sent %q, left %v", k.sent, events)
		}
	})
}

func TestCalendarDeletionComesBackWithANewID(t *testing.T) {
	events := ride()
	recipe(t, "google-calendar", calendar(events), func(k *kit) {
		c, ticket := k.change("delete-event", `{"calendarId":"primary","eventId":"e1"}`)
		if c.Status != wetink.Applied || len(events) != 0 {
			t.Fatalf("%s: %s", c.Status, c.Why)
		}
		u := k.undo(c, ticket)
		if u.Status != wetink.Applied || events["new1"]["summary"] != "Ride" {
			t.Errorf("%s: %s; %v", u.Status, u.Why, events)
		}
	})
}

// The sum stands in a sentence, and the file beside it. The sum goes into the call and into its undo, so that GitHub itself refuses when
// somebody was faster.
func TestGitHubFileIsReplacedAndPutBackOnlyIfItIsTheOneThatWasSeen(t *testing.T) {
	sums := map[string]string{"old": strings.Repeat("0", 40), "new": strings.Repeat("1", 40)}
	file, there := "old", true
	on := answers{
		"get_file_contents": func(map[string]any) string {
			if !there {
				return "isError Failed to get file contents. The path does not point to a file or directory, or the file does not exist in the repository."
			}
			return text(map[string]any{"content": []any{map[string]any{"type": "text", "text": "successfully downloaded text file (SHA: " + sums[file] + ")"},
				map[string]any{"type": "resource", "resource": map[string]any{"uri": "repo://o/r/a.txt", "text": file}}}})
		},
		"create_or_update_file": func(args map[string]any) string {
			if there && args["sha"] != sums[file] {
				return "isError 409 does not match"
			}
			file, there = args["content"].(string), true
			return text(map[string]any{"commit": map[string]any{}})
		},
		"delete_file": func(map[string]any) string { there = false; return text(map[string]any{"commit": map[string]any{}}) },
	}
	const at = `"owner":"o","repo":"r","path":"a.txt","branch":"main"`
	recipe(t, "github", on, func(k *kit) {
		c, ticket := k.change("create_or_update_file", `{`+at+`,"message":"m","content":"new"}`)
		if c.Status != wetink.Applied || !c.Compared() || !k.sends(`create_or_update_file {`+at+`,"message":"m","content":"new","sha":"`+sums["old"]+`"}`) {
			t.Errorf("%s: %s; sent %q", c.Status, c.Why, k.sent)
		}
		if u := k.undo(c, ticket); u.Status != wetink.Applied || file != "old" {
			t.Errorf("%s: %s; it reads %q, sent %q", u.Status, u.Why, file, k.sent)
		}
	})
	recipe(t, "github", on, func(k *kit) {
		c, ticket := k.change("delete_file", `{`+at+`,"message":"m"}`)
		if c.Status != wetink.Applied || there {
			t.Errorf("%s: %s", c.Status, c.Why)
		}
		if u := k.undo(c, ticket); u.Status != wetink.Applied || file != "old" || !there {
			t.Errorf("%s: %s; it reads %q", u.Status, u.Why, file)
		}
	})
}

// What the answer to a creation tells of the new issue is its address alone.
func TestGitHubIssueIsClosedByTheNumberInItsAddress(t *testing.T) {
	issue := map[string]any{}
	on := answers{
		"issue_write": func(args map[string]any) string {
			maps.Copy(issue, args)
			return `{"id":"987654321","url":"https://github.com/o/r/issues/42"}`
		},
		"issue_read": func(map[string]any) string {
			return text(map[string]any{"number": 42, "title": issue["title"], "state": map[bool]string{true: "closed", false: "open"}[issue["state"] == "closed"], "updated_at": "now"})
		},
	}
	recipe(t, "github", on, func(k *kit) {
		c, ticket := k.change("issue_write", `{"method":"create","owner":"o","repo":"r","title":"New"}`)
		if c.Status != wetink.Applied {
			t.Fatalf("%s: %s", c.Status, c.Why)
		}
		u := k.undo(c, ticket)
		if want := `issue_write {"method":"update","owner":"o","repo":"r","issue_number":42,"state":"closed"}`; u.Status != wetink.Applied || !k.sends(want) {
			t.Errorf("%s (%s); sent %q", u.Status, u.Why, k.sent)
		}
	})
}

// A rollup cannot be written. Only what the call set goes back, and never the whole page.
func TestNotionPutsBackOnlyWhatTheCallSet(t *testing.T) {
	page := map[string]any{"id": "p1", "in_trash": false, "properties": map[string]any{"Sum": map[string]any{"rollup": 7}}, "last_edited_time": "1"}
	n := 1
	on := answers{
		"API-retrieve-a-page": func(map[string]any) string { return text(page) },
		"API-patch-page": func(args map[string]any) string {
			n++
			page = maps.Clone(page)
			page["in_trash"], page["last_edited_time"] = args["in_trash"], fmt.Sprint(n)
			return text(page)
		},
	}
	recipe(t, "notion", on, func(k *kit) {
		c, ticket := k.change("API-patch-page", `{"page_id":"p1","in_trash":true}`)
		if c.Status != wetink.Applied || !c.Compared() {
			t.Fatalf("%s: %s", c.Status, c.Why)
		}
		k.undo(c, ticket)
		if want := `API-patch-page {"page_id":"p1","in_trash":false}`; !k.sends(want) {
			t.Errorf("sent %q", k.sent)
		}
	})
}

// The server puts EXPLAIN before the text that it gets: what stands behind a semicolon would run, and nobody was asked.
func TestPostgresExplainsNoMoreThanOneStatement(t *testing.T) {
	on := answers{
		"explain_query": func(args map[string]any) string {
			if sql := args["sql"].(string); strings.Contains(sql, ";") || args["analyze"] != false {
				t.Errorf("explained: %v", args)
			}
			return "Update on orders (cost: 0.15..8.17)"
		},
		"execute_sql": func(args map[string]any) string {
			if strings.Contains(args["sql"].(string), "gone") {
				return `Error: relation "gone" does not exist`
			}
			return "[{'count': 1, 'at': datetime.date(2026, 12, 9)}]" // as Python prints it
		},
	}
	recipe(t, "postgres", on, func(k *kit) {
		for sql, want := range map[string]wetink.Status{
			"UPDATE orders SET paid = true WHERE id = 7": wetink.Applied, "SELECT 1; DELETE FROM orders": wetink.Applied, "DROP TABLE orders": wetink.Applied,
			"UPDATE gone SET paid = true WHERE id = 7": wetink.InDoubt, "DROP TABLE gone": wetink.InDoubt,
		} {
			c, _ := k.change("execute_sql", text(map[string]any{"sql": sql}))
			if c.Status != want || c.Status == wetink.Applied && c.Compared() {
				t.Errorf("%s: %s (%s), compared %t", sql, c.Status, c.Why, c.Compared())
			}
		}
	})
}

// An answer is the id and no more; nothing can read the event back.
func TestCalDAVEventIsDeletedByTheAnswersText(t *testing.T) {
	on := answers{"create-event": func(map[string]any) string { return "uid-1" }, "delete-event": func(map[string]any) string { return "Event deleted" }}
	recipe(t, "caldav", on, func(k *kit) {
		c, ticket := k.change("create-event", `{"calendarUrl":"/c/one/","summary":"Ride","start":"2026-12-09T10:00:00Z","end":"2026-12-09T11:00:00Z"}`)
		if c.Compared() {
			t.Error("it says that it was compared")
		}
		k.undo(c, ticket)
		if want := `delete-event {"calendarUrl":"/c/one/","uid":"uid-1"}`; !k.sends(want) {
			t.Errorf("sent %q", k.sent)
		}
	})
}

func TestCalDAVTaskIsBoundToTheListThatWasSeen(t *testing.T) {
	status, note := "NEEDS-ACTION", ""
	on := answers{
		"list-todos": func(map[string]any) string {
			return text(map[string]any{"todos": []any{map[string]any{"uid": "u1", "status": status, "note": note}}})
		},
		"complete-todo": func(map[string]any) string { status = "COMPLETED"; return "u1" },
		"update-todo":   func(args map[string]any) string { status = args["status"].(string); return "u1" },
	}
	recipe(t, "caldav", on, func(k *kit) {
		c, ticket := k.change("complete-todo", `{"calendarUrl":"/c/one/","uid":"u1"}`)
		note = "mine"
		if _, _, err := k.Undo(ctx, ctxBy, c.ID, &wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: ticket}); !errors.Is(err, wetink.ErrStale) {
			t.Errorf("undo: %v", err)
		}
		note = ""
		k.undo(c, ticket)
		if status != "NEEDS-ACTION" {
			t.Errorf("it is %s", status)
		}
	})
}
