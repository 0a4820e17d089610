package intervalssim

import (
	"encoding/json"
	"strconv"
	"time"
)

// matching says what makes a create an update of an event that is there.
type matching struct {
	externalID bool // same external_id, and created by the same client
	uid        bool // same uid; the server hands out uids, so a client's own matches nothing
}

// createEvents answers in the order of the request. Unless bulk calls are atomic, what stands before a refused event stays.
func (s *Sim) createEvents(c *call) (any, *failure) {
	var sent []map[string]json.RawMessage
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	if len(sent) > s.opts.BulkLimit {
		return nil, refuse(422, "At most "+strconv.Itoa(s.opts.BulkLimit)+" events at once")
	}
	query := c.r.URL.Query()
	m := matching{externalID: query.Get("upsert") == "true"}
	m.uid = !m.externalID && query.Get("upsertOnUid") == "true"
	sent = sent[:max(0, len(sent)-c.argument("bulk_short", 0))]
	if s.opts.BulkAtomic {
		for _, item := range sent {
			if _, _, f := s.prepare(c, item, m); f != nil {
				return nil, f
			}
		}
	}
	failAfter := c.argument("500_after_n", len(sent))
	made := []*event{}
	for i, item := range sent {
		if i == failAfter {
			return nil, refuse(500, "Internal Server Error")
		}
		e, f := s.store(c, item, m)
		if f != nil {
			return nil, f
		}
		made = append(made, s.shown(c.a, e, false))
	}
	return made[:max(0, len(made)-c.argument("bulk_reply_short", 0))], nil
}

// store puts one sent event on the calendar: a new one, or onto the one it matches.
func (s *Sim) store(c *call, sent map[string]json.RawMessage, m matching) (*event, *failure) {
	old, e, f := s.prepare(c, sent, m)
	if f != nil {
		return nil, f
	}
	if old == nil {
		s.add(c.cause, c.a, e)
	} else {
		s.replace(c.cause, c.a, old, e)
	}
	return e, nil
}

// prepare makes the event that a create would store. old is the one it matches.
func (s *Sim) prepare(c *call, sent map[string]json.RawMessage, m matching) (old, e *event, f *failure) {
	old = c.match(sent, m)
	if old == nil {
		e = s.draft(c.a, c.client, c.oauth, c.request)
	} else {
		e = old.copy()
	}
	if f := s.write(c.a, e, s.writing(c, sent)); f != nil {
		return nil, nil, f
	}
	return old, e, nil
}

func (c *call) match(sent map[string]json.RawMessage, m matching) *event {
	value := func(name string) (v string) {
		_ = json.Unmarshal(sent[name], &v) // anything but a string matches nothing
		return v
	}
	for _, e := range c.a.sorted(c.a.events) {
		switch {
		case m.externalID && value("external_id") != "" && e.text("external_id") == value("external_id") && e.client == c.client:
			return e
		case m.uid && value("uid") != "" && e.text("uid") == value("uid"):
			return e
		case m.uid && value("category") == "TARGET" && e.text("category") == "TARGET" &&
			e.text("start_date_local") == value("start_date_local") && e.text("type") == value("type"):
			return e
		}
	}
	return nil
}

// deleteEvents deletes what is there and says how many that were.
func (s *Sim) deleteEvents(c *call) (any, *failure) {
	var doomed []struct {
		ID         *int64  `json:"id"`
		ExternalID *string `json:"external_id"`
	}
	if f := c.decode(&doomed); f != nil {
		return nil, f
	}
	deleted := 0
	for _, d := range doomed {
		for _, e := range c.a.sorted(c.a.events) {
			hit := d.ID != nil && e.id() == *d.ID
			if d.ExternalID != nil {
				hit = e.text("external_id") == *d.ExternalID && e.client == c.client
			}
			if hit {
				s.remove(c.cause, c.a, e)
				deleted++
			}
		}
	}
	return map[string]any{"eventsDeleted": deleted}, nil
}

// duplicateEvents copies events to later weeks.
func (s *Sim) duplicateEvents(c *call) (any, *failure) {
	var sent struct {
		NumCopies    int     `json:"numCopies"`
		WeeksBetween int     `json:"weeksBetween"`
		EventIDs     []int64 `json:"eventIds"`
	}
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	if sent.NumCopies < 1 || sent.NumCopies > 52 {
		return nil, refuse(422, "numCopies must be 1 to 52")
	}
	made := []*event{}
	for n := 1; n <= sent.NumCopies; n++ {
		for _, id := range sent.EventIDs {
			old, ok := c.a.events[id]
			if !ok {
				return nil, refuse(404, "Not found")
			}
			e := old.copy()
			fresh := s.draft(c.a, c.client, c.oauth, c.request)
			e.client, e.batch = fresh.client, fresh.batch
			e.set("uid", fresh.values["uid"])
			e.set("external_id", nil)
			e.set("paired_activity_id", nil)
			for _, name := range []string{"start_date_local", "end_date_local"} {
				e.set(name, weeksLater(e.text(name), n*max(1, sent.WeeksBetween)))
			}
			e.set("updated", stamp(s.now()))
			s.add(c.cause, c.a, e)
			made = append(made, s.shown(c.a, e, false))
		}
	}
	return made, nil
}

func weeksLater(local string, weeks int) string {
	t, err := time.Parse("2006-01-02T15:04:05", local)
	if err != nil {
		return local
	}
	return t.AddDate(0, 0, 7*weeks).Format("2006-01-02T15:04:05")
}
