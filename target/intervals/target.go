package intervals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/workout"
)

// Version of the mapping from requests to effects. A change of what any action sends changes it.
const Version = "intervals/1"

// Target implements wetink.Target, Judge, Undoer, Differ and Explainer.
type Target struct {
	*Client
	undoWindow time.Duration
	now        func() time.Time
}

// Options of a Target.
type Options struct {
	UndoWindow time.Duration    // 0: 24 hours
	Now        func() time.Time // for "today" in the athlete's zone; nil: time.Now
}

// New returns the guarded calendar of the client's athlete.
func New(c *Client, o *Options) *Target {
	t := &Target{c, 24 * time.Hour, time.Now}
	if o != nil && o.UndoWindow > 0 {
		t.undoWindow = o.UndoWindow
	}
	if o != nil && o.Now != nil {
		t.now = o.Now
	}
	return t
}

// Account is the resolved athlete id: "0" is an alias, and two keys both look like it.
func (t *Target) Account(ctx context.Context) (wetink.Account, string, error) {
	a, err := t.owner(ctx)
	if err != nil {
		return "", "", err
	}
	return wetink.Account(a.ID), Version, nil
}

// owner is the athlete whose calendar it is.
type owner struct {
	ID       string
	TimeZone string
	Name     string
	uploads  map[string]bool // services that planned workouts are sent to
	sports   json.RawMessage // settings, by group of sports
}

func (t *Target) owner(ctx context.Context) (o owner, err error) {
	var raw map[string]json.RawMessage
	if err := t.get(ctx, "/athlete/"+url.PathEscape(t.athlete), nil, &raw); err != nil {
		return o, err
	}
	_ = json.Unmarshal(raw["id"], &o.ID)
	_ = json.Unmarshal(raw["timezone"], &o.TimeZone)
	_ = json.Unmarshal(raw["name"], &o.Name)
	o.sports = raw["sportSettings"]
	if o.ID == "" {
		return o, errors.New("the service did not say whose key this is; check INTERVALS_URL")
	}
	o.uploads = uploads(raw)
	return o, nil
}

// Observe implements wetink.Target. A create is looked up by its external_id, around its day: somebody
// may have moved it already. The id that an answer gave for it counts only if the external_id
// there is ours.
func (t *Target) Observe(ctx context.Context, acct wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	if op.Object != "" {
		s, err := t.observeID(ctx, acct, op.Object)
		if err != nil || op.Action != Create || !s.Absent && fields(s).text("external_id") == op.Key {
			return s, err
		}
	}
	var sent event
	if err := json.Unmarshal(op.Payload, &sent); err != nil {
		return wetink.Snapshot{}, fmt.Errorf("payload of a create: %w", err)
	}
	day, err := time.Parse(time.DateOnly, sent.day())
	if err != nil {
		return wetink.Snapshot{}, fmt.Errorf("day of a create: %w", err)
	}
	list, err := t.list(ctx, acct, day.AddDate(0, 0, -45), day.AddDate(0, 0, 45))
	if err != nil {
		return wetink.Snapshot{}, err
	}
	for _, e := range list {
		if e.text("external_id") == op.Key {
			// A list and a read of one event may differ; what is bound is always a read of the one.
			return t.observeID(ctx, acct, strconv.FormatInt(e.id(), 10))
		}
	}
	return wetink.Snapshot{Object: op.Object, Absent: true, At: time.Now().UTC()}, nil
}

func (t *Target) observeID(ctx context.Context, acct wetink.Account, id string) (wetink.Snapshot, error) {
	e, err := t.event(ctx, acct, id)
	var api *APIError
	if errors.As(err, &api) && api.Status == http.StatusNotFound {
		return wetink.Snapshot{Object: id, Absent: true, At: time.Now().UTC()}, nil
	}
	if err != nil {
		return wetink.Snapshot{}, err
	}
	s, err := e.snapshot()
	s.At = time.Now().UTC()
	return s, err
}

func (t *Target) event(ctx context.Context, acct wetink.Account, id string) (event, error) {
	var e event
	if err := t.get(ctx, eventPath(acct, id), nil, &e); err != nil {
		return nil, err
	}
	if strconv.FormatInt(e.id(), 10) != id {
		return nil, fmt.Errorf("asked for event %s and was given %d", id, e.id())
	}
	return e, nil
}

func (t *Target) list(ctx context.Context, acct wetink.Account, oldest, newest time.Time) ([]event, error) {
	var list []event
	err := t.get(ctx, "/athlete/"+url.PathEscape(string(acct))+"/events",
		url.Values{"oldest": {oldest.Format(time.DateOnly)}, "newest": {newest.Format(time.DateOnly)}}, &list)
	return list, err
}

func eventPath(acct wetink.Account, id string) string {
	return "/athlete/" + url.PathEscape(string(acct)) + "/events/" + url.PathEscape(id)
}

// Execute implements wetink.Target. The payload is sent as it stands.
func (t *Target) Execute(ctx context.Context, acct wetink.Account, op wetink.Op, _ wetink.BlobReader) (wetink.Receipt, error) {
	switch op.Action {
	case Create:
		return t.create(ctx, acct, op)
	case Update:
		b, err := t.write(ctx, http.MethodPut, eventPath(acct, op.Object), op.Payload)
		if err != nil {
			return wetink.Receipt{}, err
		}
		var e event
		if json.Unmarshal(b, &e) != nil || strconv.FormatInt(e.id(), 10) != op.Object {
			return wetink.Receipt{}, &AnswerError{http.StatusOK, "not event " + op.Object}
		}
		return wetink.Receipt{Object: op.Object}, nil
	case Delete:
		// Never with others=true, and never by range: the service deletes far more then.
		_, err := t.write(ctx, http.MethodDelete, eventPath(acct, op.Object), nil)
		return wetink.Receipt{Object: op.Object}, err
	}
	return wetink.Receipt{}, fmt.Errorf("action %q: %w", op.Action, wetink.ErrNotApplied)
}

// create goes through the bulk endpoint: upsert by external_id is the one idempotent write there is.
func (t *Target) create(ctx context.Context, acct wetink.Account, op wetink.Op) (wetink.Receipt, error) {
	body := append(append([]byte{'['}, op.Payload...), ']')
	b, err := t.write(ctx, http.MethodPost, "/athlete/"+url.PathEscape(string(acct))+"/events/bulk?upsert=true", body)
	if err != nil {
		return wetink.Receipt{}, err
	}
	var list []event
	if json.Unmarshal(b, &list) != nil {
		return wetink.Receipt{}, &AnswerError{http.StatusOK, "not a list of events"}
	}
	for _, e := range list {
		if e.text("external_id") == op.Key && e.id() > 0 {
			return wetink.Receipt{Object: strconv.FormatInt(e.id(), 10)}, nil
		}
	}
	// It answered, so the request is over; but our event is not in the answer. What is there decides.
	s, err := t.Observe(ctx, acct, op)
	switch {
	case err != nil:
		return wetink.Receipt{}, fmt.Errorf("the answer came back short, and looking for the event failed: %w", err)
	case s.Absent && len(list) == 0:
		return wetink.Receipt{}, fmt.Errorf("the answer came back short: the service did not create the event: %w", wetink.ErrNotApplied)
	case s.Absent:
		return wetink.Receipt{}, errors.New("the answer speaks of another event")
	}
	return wetink.Receipt{Object: s.Object}, nil
}

// Flight implements wetink.Judge: the client's timeout, and as much again for what a proxy may still hold.
func (t *Target) Flight() time.Duration { return 2 * Timeout }

// Judge implements wetink.Judge: only intended fields are compared, after normalising both sides, because the
// service fills in and computes the others by design.
func (t *Target) Judge(op wetink.Op, before, now wetink.Snapshot) (wetink.Verdict, string) {
	if op.Action == Delete {
		switch {
		case now.Absent:
			return wetink.AsApproved, ""
		case now.Digest() == before.Digest():
			return wetink.Untouched, ""
		}
		return wetink.Foreign, "it is still there, and changed"
	}
	if now.Absent {
		if before.Absent {
			return wetink.Untouched, ""
		}
		return wetink.Foreign, "it is gone"
	}
	var sent event
	if err := json.Unmarshal(op.Payload, &sent); err != nil {
		return wetink.Foreign, "the stored payload is unreadable"
	}
	is, was := fields(now), fields(before)
	var wrong []string
	ours := 0
	for _, f := range sortedKeys(sent) {
		switch {
		case is.set(stepsField) && contains(recomputed, f): // an effect to report, not an intention
		case !same(f, sent[f], is[f]):
			wrong = append(wrong, fmt.Sprintf("%s is %s and not %s", f, shorten(is[f]), shorten(sent[f])))
		case before.Absent || !same(f, sent[f], was[f]):
			ours++
		}
	}
	if d, ok := sent["description"]; ok && same("description", d, is["description"]) {
		if why := steps(d, is); why != "" {
			wrong = append(wrong, why)
		}
	}
	_, moved := sent["start_date_local"]
	if _, end := sent["end_date_local"]; moved && !end && !before.Absent && !followed(was, is) {
		wrong = append(wrong, "end_date_local stayed at "+shorten(is["end_date_local"]))
	}
	switch {
	case len(wrong) == 0:
		return wetink.AsApproved, ""
	case now.Digest() == before.Digest():
		return wetink.Untouched, ""
	case ours == 0 && !before.Absent:
		return wetink.Foreign, join(wrong)
	}
	return wetink.Otherwise, join(wrong)
}

// followed tells whether the end of an event is where its start went: whether the service moves it is not documented.
func followed(was, is event) bool {
	from, to, err := was.span()
	start, end, err2 := is.span()
	if err != nil || err2 != nil {
		return true // there is no end
	}
	return end.Sub(start) == to.Sub(from) || end.Equal(nextMidnight(start))
}

// span is the local time from which and to which an event goes.
func (e event) span() (start, end time.Time, err error) {
	if start, err = time.Parse(localLayout, e.text("start_date_local")); err == nil {
		end, err = time.Parse(localLayout, e.text("end_date_local"))
	}
	return start, end, err
}

const localLayout = "2006-01-02T15:04:05"

// nextMidnight is the end that the service gives to an event of one day.
func nextMidnight(start time.Time) time.Time { return start.Truncate(24*time.Hour).AddDate(0, 0, 1) }

// steps compares our reading of the workout text with what the service made of it.
func steps(description json.RawMessage, is event) string {
	var text string
	if json.Unmarshal(description, &text) != nil {
		return ""
	}
	doc := workout.Parse(text)
	want, got := "", is.text(stepsField)
	if len(doc.Steps) > 0 {
		want = doc.StepsDigest()
	}
	switch {
	case want == got:
		return ""
	case got == "":
		return fmt.Sprintf("the service reads no steps where there are %d", doc.Summary().Steps)
	case want == "":
		return "the service reads steps where there are none"
	}
	return "the service reads other steps than the preview showed"
}

// Unmoved implements wetink.Undoer.
func (t *Target) Unmoved(after, now wetink.Snapshot) (bool, []string) {
	if after.Absent || now.Absent {
		if after.Absent != now.Absent {
			return false, []string{"existence"}
		}
		return true, nil
	}
	was, is := fields(after), fields(now)
	structured := was.set(stepsField) && bytes.Equal(was[stepsField], is[stepsField])
	var moved []string
	all := event{}
	for k := range was {
		all[k] = nil
	}
	for k := range is {
		all[k] = nil
	}
	for _, k := range sortedKeys(all) {
		if structured && contains(recomputed, k) {
			continue
		}
		if !same(k, was[k], is[k]) {
			moved = append(moved, k)
		}
	}
	return len(moved) == 0, moved
}
