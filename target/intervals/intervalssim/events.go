package intervalssim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *Sim) listEvents(c *call) (any, *failure) {
	today := s.today(c.a)
	oldest, newest, f := c.span(today, 6)
	if f != nil {
		return nil, f
	}
	query := c.r.URL.Query()
	var wanted []string
	if q := query.Get("category"); q != "" {
		wanted = strings.Split(q, ",")
		for _, category := range wanted {
			if !slices.Contains(categories, category) {
				return nil, refuse(400, "JSON parse error: "+strconv.Quote(category)+" is not one of the values accepted for Enum class")
			}
		}
	}
	limit, f := c.number("limit", 0)
	if f != nil {
		return nil, f
	}
	list := []*event{}
	for _, e := range c.a.sorted(c.visible()) {
		if e.overlaps(oldest, newest) && (wanted == nil || slices.Contains(wanted, e.text("category"))) {
			list = append(list, s.shown(c.a, e, query.Get("resolve") == "true"))
		}
	}
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

func (s *Sim) getEvent(c *call) (any, *failure) {
	id, f := c.eventID()
	if f != nil {
		return nil, f
	}
	e, ok := c.visible()[id]
	if !ok || c.struck("list_detail_404") != nil {
		return nil, refuse(404, "Not found")
	}
	return s.shown(c.a, e, c.r.URL.Query().Get("resolve") == "true"), nil
}

func (s *Sim) createEvent(c *call) (any, *failure) {
	var sent map[string]json.RawMessage
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	e, f := s.store(c, sent, matching{uid: c.r.URL.Query().Get("upsertOnUid") == "true"})
	if f != nil {
		return nil, f
	}
	return s.shown(c.a, e, false), nil
}

func (s *Sim) updateEvent(c *call) (any, *failure) {
	e, f := s.addressed(c)
	if f != nil {
		return nil, f
	}
	var sent map[string]json.RawMessage
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	e, f = s.change(c, e, sent)
	if f != nil {
		return nil, f
	}
	return s.shown(c.a, e, false), nil
}

// change applies a sparse write to an event on the calendar.
func (s *Sim) change(c *call, old *event, sent map[string]json.RawMessage) (*event, *failure) {
	e := old.copy()
	if f := s.write(c.a, e, s.writing(c, sent)); f != nil {
		return nil, f
	}
	s.replace(c.cause, c.a, old, e)
	return e, nil
}

// deleteEvent deletes one event. notBefore protects the others only, never the event itself.
func (s *Sim) deleteEvent(c *call) (any, *failure) {
	e, f := s.addressed(c)
	if f != nil {
		return nil, f
	}
	s.remove(c.cause, c.a, e)
	if c.r.URL.Query().Get("others") == "true" {
		notBefore := c.r.URL.Query().Get("notBefore")
		for _, other := range c.a.sorted(c.a.events) {
			if other.batch == e.batch && other.day() >= notBefore {
				s.remove(c.cause, c.a, other)
			}
		}
	}
	return map[string]any{}, nil
}

// deleteRange deletes everything of some categories from a day on: without newest, all of the future.
func (s *Sim) deleteRange(c *call) (any, *failure) {
	query := c.r.URL.Query()
	for _, name := range []string{"oldest", "category"} {
		if query.Get(name) == "" {
			return nil, refuse(400, "Required request parameter '"+name+"' is not present")
		}
	}
	oldest, newest, f := c.span(s.today(c.a), 0)
	if f != nil {
		return nil, f
	}
	if query.Get("newest") == "" {
		newest = "9999-12-31"
	}
	wanted := strings.Split(query.Get("category"), ",")
	for _, e := range c.a.sorted(c.a.events) {
		if e.overlaps(oldest, newest) && slices.Contains(wanted, e.text("category")) {
			s.remove(c.cause, c.a, e)
		}
	}
	return map[string]any{}, nil
}

// hideEvents sets the two fields that may be set for a range.
func (s *Sim) hideEvents(c *call) (any, *failure) {
	if c.r.URL.Query().Get("oldest") == "" || c.r.URL.Query().Get("newest") == "" {
		return nil, refuse(400, "Required request parameter 'oldest' or 'newest' is not present")
	}
	oldest, newest, f := c.span("", 0)
	if f != nil {
		return nil, f
	}
	var sent map[string]json.RawMessage
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	maps.DeleteFunc(sent, func(name string, _ json.RawMessage) bool {
		return name != "hide_from_athlete" && name != "athlete_cannot_edit"
	})
	changed := []*event{}
	for _, old := range c.a.sorted(c.a.events) {
		if !old.overlaps(oldest, newest) {
			continue
		}
		e, f := s.change(c, old, sent)
		if f != nil {
			return nil, f
		}
		changed = append(changed, e)
	}
	return changed, nil
}

// addressed is the event that a write's path names, if it may be written.
func (s *Sim) addressed(c *call) (*event, *failure) {
	id, f := c.eventID()
	if f != nil {
		return nil, f
	}
	e, ok := c.a.events[id]
	if !ok {
		return nil, refuse(404, "Not found")
	}
	if e.is("athlete_cannot_edit") && s.opts.LockedForbidden {
		return nil, refuse(403, "Access denied")
	}
	return e, nil
}

func (c *call) eventID() (int64, *failure) {
	id, err := strconv.ParseInt(c.r.PathValue("event"), 10, 32)
	if err != nil {
		return 0, refuse(422, "Failed to convert value to required type 'int'")
	}
	return id, nil
}

// span reads oldest and newest, local dates, both included.
func (c *call) span(from string, days int) (oldest, newest string, f *failure) {
	query := c.r.URL.Query()
	oldest, newest = query.Get("oldest"), query.Get("newest")
	if oldest == "" {
		oldest = from
	}
	start, err := time.Parse(time.DateOnly, oldest)
	if err != nil {
		return "", "", refuse(422, "Text '"+oldest+"' could not be parsed at index 0")
	}
	if newest == "" {
		newest = start.AddDate(0, 0, days).Format(time.DateOnly)
	}
	if _, err := time.Parse(time.DateOnly, newest); err != nil {
		return "", "", refuse(422, "Text '"+newest+"' could not be parsed at index 0")
	}
	return oldest, newest, nil
}

func (c *call) number(name string, otherwise int) (int, *failure) {
	q := c.r.URL.Query().Get(name)
	if q == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(q)
	if err != nil {
		return 0, refuse(http.StatusInternalServerError, "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException: "+name)
	}
	return n, nil
}
