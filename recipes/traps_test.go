package recipes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wetink/wetink"
)

// fake is a server that has the traps of a published one. twist makes it contradict its recipe.
type fake struct {
	objects map[string]map[string]any
	sent    []string // guarded calls that arrived, by tool
	twist   string
	tools   func(f *fake, tool string, a map[string]any) answer
}

type answer map[string]any

func text(s string) answer {
	return answer{"content": []any{map[string]any{"type": "text", "text": s}}}
}

func inText(v any) answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text(string(b))
}

func failed(s string) answer { a := text(s); a["isError"] = true; return a }

// Twists.
const (
	noID       = "a result without an id"
	otherNames = "other field names"
	falseDone  = "an error as a success"
)

// Call implements upstream.Server.
func (f *fake) Call(_ context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	var a map[string]any
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, false, err
	}
	reads := strings.HasPrefix(tool, "get") || strings.HasPrefix(tool, "list") || strings.Contains(tool, "retrieve") || strings.HasSuffix(tool, "_read") || tool == "read_records"
	if !reads {
		f.sent = append(f.sent, tool)
		if f.twist == falseDone {
			raw, err := json.Marshal(text(`{"status":"error","message":"it did not work"}`))
			return raw, true, err
		}
	}
	raw, err := json.Marshal(f.tools(f, tool, a))
	return raw, true, err
}

// Tools implements upstream.Server.
func (f *fake) Tools(context.Context) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{}, nil
}

// calendar has the traps of the Google Calendar server: results in `event` of a JSON text, few fields unless they are asked
// for, times that are read as objects and written as texts, guests that are mailed unless it is forbidden, deleted events that
// are still read and whose ids cannot be used again.
func calendar() *fake {
	f := &fake{objects: map[string]map[string]any{"e1": {"id": "e1", "summary": "Old", "description": "D", "status": "confirmed", "attendees": []any{map[string]any{"email": "b@example.org"}},
		"start": map[string]any{"dateTime": "2026-07-16T08:00:00+02:00"}, "end": map[string]any{"dateTime": "2026-07-16T09:00:00+02:00"}}}}
	f.tools = func(f *fake, tool string, a map[string]any) answer {
		id, _ := a["eventId"].(string)
		wrap := func(e map[string]any) answer {
			e = maps.Clone(e)
			name := "event"
			switch {
			case f.twist == otherNames && tool != "get-event":
				name = "item"
			case f.twist == noID:
				delete(e, "id")
			}
			return inText(map[string]any{name: e})
		}
		e := f.objects[id]
		if e == nil && tool != "create-event" {
			return failed("Event with ID '" + id + "' not found in calendar 'primary'.")
		}
		switch tool {
		case "get-event":
			e = maps.Clone(e)
			asked, _ := a["fields"].([]any)
			for _, name := range []string{"description", "recurrence", "colorId", "transparency"} {
				if !slices.Contains(asked, any(name)) {
					delete(e, name)
				}
			}
			return wrap(e)
		case "update-event", "create-event":
			if e == nil {
				e = map[string]any{"id": fmt.Sprintf("e%d", len(f.objects)+1), "status": "confirmed"}
				f.objects[e["id"].(string)] = e
			}
			for _, name := range []string{"summary", "description", "start", "end", "location", "attendees"} {
				v, ok := a[name]
				if !ok {
					continue
				}
				if name == "start" || name == "end" {
					s, isText := v.(string)
					if !isText {
						return failed(name + " must be a string")
					}
					at := map[string]any{"dateTime": s}
					if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &at) != nil {
						return failed(name + " is no time")
					}
					v = at
				}
				e[name] = v
			}
			return wrap(e)
		case "delete-event":
			e["status"] = "cancelled"
			return inText(map[string]any{"success": true, "eventId": id})
		}
		return failed("no such tool")
	}
	return f
}

func event(more map[string]any) map[string]any {
	a := map[string]any{"calendarId": "primary", "eventId": "e1"}
	maps.Copy(a, more)
	return a
}

func TestACalendarEventIsChangedMovedDeletedAndMade(t *testing.T) {
	f := calendar()
	was := fmt.Sprint(f.objects["e1"])
	s := guarded(t, "google-calendar", f)
	for _, args := range []map[string]any{
		{"summary": "New", "description": "Other"}, {"start": "2026-07-17T08:00:00+02:00", "end": "2026-07-17T09:00:00+02:00"},
	} {
		c := s.preview("google-calendar", "update-event", event(args))
		if terms, err := c.Terms(); err != nil || !slices.Contains(terms.Warnings, "emails guests") {
			t.Errorf("guests are mailed, and it says %q (%v)", terms.Warnings, err)
		}
		s.undo(s.ends(s.apply(c), wetink.Applied))
		if is := fmt.Sprint(f.objects["e1"]); is != was {
			t.Fatalf("undone it is %s, was %s", is, was)
		}
	}
	made := s.do("google-calendar", "create-event", map[string]any{"calendarId": "primary", "summary": "Fresh", "start": "2026-07-17T08:00:00", "end": "2026-07-17T09:00:00"})
	if s.undo(made); f.objects["e2"]["status"] != "cancelled" {
		t.Errorf("%v", f.objects["e2"])
	}
	gone := s.do("google-calendar", "delete-event", event(nil))
	s.undo(gone)
	if e := f.objects["e3"]; e["summary"] != "Old" || fmt.Sprint(e["start"]) != "map[dateTime:2026-07-16T08:00:00+02:00]" {
		t.Errorf("it came back as %v", e)
	}
}

func TestAnEditOfACalendarEventIsNeverOverwritten(t *testing.T) {
	f := calendar()
	s := guarded(t, "google-calendar", f)
	c := s.preview("google-calendar", "update-event", event(map[string]any{"summary": "New"}))
	f.objects["e1"]["description"] = "edited"
	s.ends(s.apply(c), wetink.Failed)
	c = s.do("google-calendar", "update-event", event(map[string]any{"summary": "New"}))
	f.objects["e1"]["description"] = "edited again"
	s.noUndo(c, wetink.ErrStale)
}

// unclaimed fails if c says more than was seen: a change that had no effect may be in doubt, or taken at the server's word
// and marked so.
func unclaimed(t *testing.T, what string, c wetink.Change) {
	t.Helper()
	switch {
	case c.Status == wetink.InDoubt:
	case c.Status == wetink.Applied && c.Steps[0].How == wetink.HowAnswered:
	default:
		t.Errorf("%s: it is %s (%s), known by %q", what, c.Status, c.Why, c.Steps[0].How)
	}
}

func TestACalendarThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	synctest.Test(t, aCalendarThatContradictsItsRecipeIsNotBelieved) // the old state is read back several times
}

func aCalendarThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	create := map[string]any{"calendarId": "primary", "summary": "Fresh", "start": "2026-07-17T08:00:00", "end": "2026-07-17T09:00:00"}
	for _, twist := range []string{noID, otherNames, falseDone} {
		f := calendar()
		f.twist = twist
		s := guarded(t, "google-calendar", f)
		c := s.apply(s.preview("google-calendar", "create-event", create))
		unclaimed(t, twist+", create-event", c)
		if _, _, err := s.Undo(t.Context(), wetink.Principal{Person: "ana"}, c.ID, nil); err == nil {
			t.Errorf("%s: an undo is planned of what nobody knows", twist)
		}
	}
	f := calendar()
	f.twist = falseDone
	s := guarded(t, "google-calendar", f)
	for tool, args := range map[string]map[string]any{"update-event": {"summary": "New"}, "delete-event": nil} {
		s.ends(s.apply(s.preview("google-calendar", tool, event(args))), wetink.InDoubt) // the old state is read back
	}
}

// notebook has the traps of the local Notion server: JSON in a text, errors as successes, formulas that cannot be written.
func notebook() *fake {
	f := &fake{objects: map[string]map[string]any{"p1": {"object": "page", "id": "p1", "in_trash": false, "properties": map[string]any{"Sum": "formula"}}}}
	f.tools = func(f *fake, tool string, a map[string]any) answer {
		id, _ := a["page_id"].(string)
		ordered := func(p map[string]any) answer { // Notion begins with the kind of object
			b, err := json.Marshal(p)
			if err != nil {
				panic(err)
			}
			kind := p["object"].(string)
			return text(fmt.Sprintf(`{"object":%q,%s`, kind, b[1:]))
		}
		p := f.objects[id]
		if p == nil && tool != "API-post-page" || f.twist == otherNames {
			return text(`{"status":"error","object":"error","code":"object_not_found"}`) // and no isError
		}
		switch tool {
		case "API-retrieve-a-page":
			p = maps.Clone(p)
			p["parent"] = "x"
			return ordered(p)
		case "API-patch-page":
			if v, ok := a["in_trash"]; ok {
				p["in_trash"] = v
			}
			return ordered(p)
		case "API-post-page":
			p = map[string]any{"object": "page", "id": "p9", "in_trash": false}
			if f.objects["p9"] = p; f.twist == noID {
				return text(`{"object":"page"}`)
			}
			return ordered(p)
		}
		return failed("no such tool")
	}
	return f
}

func TestANotionPageIsTrashedMadeAndPutBack(t *testing.T) {
	f := notebook()
	s := guarded(t, "notion", f)
	c := s.do("notion", "API-patch-page", map[string]any{"page_id": "p1", "in_trash": true})
	if s.undo(c); f.objects["p1"]["in_trash"] != false {
		t.Error("it is in the trash")
	}
	c = s.do("notion", "API-post-page", map[string]any{"parent": map[string]any{"page_id": "p1"}, "properties": map[string]any{}})
	if s.undo(c); f.objects["p9"]["in_trash"] != true {
		t.Error("the new page stays")
	}
}

func TestANotionThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	synctest.Test(t, aNotionThatContradictsItsRecipeIsNotBelieved) // the old state is read back several times
}

func aNotionThatContradictsItsRecipeIsNotBelieved(t *testing.T) {
	for _, twist := range []string{noID, falseDone} {
		f := notebook()
		f.twist = twist
		s := guarded(t, "notion", f)
		unclaimed(t, twist, s.apply(s.preview("notion", "API-post-page", map[string]any{"parent": map[string]any{}, "properties": map[string]any{}})))
	}
	f := notebook()
	f.twist = falseDone
	s := guarded(t, "notion", f)
	s.ends(s.apply(s.preview("notion", "API-patch-page", map[string]any{"page_id": "p1", "in_trash": true})), wetink.InDoubt)
	f.twist = otherNames
	if _, err := s.try("notion", "API-patch-page", map[string]any{"page_id": "p1", "in_trash": true}); err == nil || !strings.Contains(err.Error(), "object is not in what it returns") {
		t.Errorf("an error was taken for the page: %v", err)
	}
}
