package intervals

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/target/intervals/workout"
)

// plan collects what Prepare found.
type plan struct {
	wetink.Prepared
	t     *Target
	owner owner
	today string // YYYY-MM-DD in the athlete's zone
	days  map[string][]event
}

// Prepare implements wetink.Target: it expands every action into creates, updates and deletes of single
// events, reads each event that it touches, and refuses what must not be touched.
func (t *Target) Prepare(ctx context.Context, req wetink.Request) (wetink.Prepared, error) {
	o, err := t.owner(ctx)
	if err != nil {
		return wetink.Prepared{}, err
	}
	zone, err := zone(o.TimeZone)
	if err != nil {
		return wetink.Prepared{}, err
	}
	p := &plan{t: t, owner: o, today: t.now().In(zone).Format(time.DateOnly), days: map[string][]event{}}
	p.Account = wetink.Account(o.ID)
	p.Undo = wetink.Promise{Extent: wetink.FullUndo, Until: t.undoWindow}
	if req.Tool == wetink.ToolUndo {
		err = p.restore(ctx, req.Args)
	} else {
		err = p.change(ctx, req.Args)
	}
	if err != nil {
		return wetink.Prepared{}, err
	}
	p.devices(ctx)
	p.scene(ctx)
	p.Warnings = unique(p.Warnings)
	p.Undo.Notes = unique(p.Undo.Notes)
	return p.Prepared, nil
}

func (p *plan) change(ctx context.Context, raw json.RawMessage) error {
	var a Args
	if err := parseArgs(raw, &a); err != nil {
		return err
	}
	if err := refuseNulls(raw); err != nil {
		return err
	}
	uses := map[string][]string{Create: {"event"}, BulkCreate: {"events"}, Update: {"event_id", "set", "clear"}, Delete: {"event_id"},
		BulkDelete: {"event_ids"}, Swap: {"event_ids"}, CopyWeek: {"from", "to"}}
	allowed, ok := uses[a.Action]
	if !ok {
		return bad("action", fmt.Sprintf("%q is not an action", clean(a.Action)), "use one of "+strings.Join(slices.Sorted(maps.Keys(uses)), ", "))
	}
	for name, given := range map[string]bool{"event": a.Event != nil, "events": a.Events != nil, "event_id": a.EventID != nil,
		"event_ids": a.EventIDs != nil, "set": a.Set != nil, "clear": a.Clear != nil, "from": a.From != "", "to": a.To != ""} {
		switch {
		case given && !slices.Contains(allowed, name):
			return bad(name, "it does not belong to "+a.Action, "leave it out; "+a.Action+" takes "+strings.Join(allowed, ", "))
		case !given && slices.Contains(allowed, name) && a.Action != Update, !given && name == "event_id" && a.Action == Update:
			return bad(name, a.Action+" needs it", "add it")
		}
	}
	switch a.Action {
	case Create:
		p.OnFailure = wetink.UndoOnFailure
		return p.create(ctx, "event", a.Event)
	case BulkCreate:
		if err := bounded("events", len(a.Events), 1); err != nil {
			return err
		}
		p.OnFailure = wetink.UndoOnFailure
		for i := range a.Events {
			if err := p.create(ctx, fmt.Sprintf("events[%d]", i), &a.Events[i]); err != nil {
				return err
			}
		}
		return nil
	case Update:
		return p.update(ctx, *a.EventID, a.Set, a.Clear)
	case Delete:
		return p.delete(ctx, "event_id", *a.EventID)
	case BulkDelete:
		if err := distinct(a.EventIDs, 1); err != nil {
			return err
		}
		for i, id := range a.EventIDs {
			if err := p.delete(ctx, fmt.Sprintf("event_ids[%d]", i), id); err != nil {
				return err
			}
		}
		return nil
	case Swap:
		if len(a.EventIDs) != 2 {
			return bad("event_ids", fmt.Sprintf("%d ids", len(a.EventIDs)), "swap takes exactly two")
		}
		if err := distinct(a.EventIDs, 2); err != nil {
			return err
		}
		p.OnFailure = wetink.UndoOnFailure
		return p.swap(ctx, a.EventIDs[0], a.EventIDs[1])
	default:
		p.OnFailure = wetink.UndoOnFailure
		return p.copyWeek(ctx, a.From, a.To)
	}
}

func bounded(field string, n, least int) error {
	if n < least || n > MaxEvents {
		return bad(field, fmt.Sprintf("%d of them", n), fmt.Sprintf("use %d to %d in one change", least, MaxEvents))
	}
	return nil
}

func distinct(ids []EventID, least int) error {
	if err := bounded("event_ids", len(ids), least); err != nil {
		return err
	}
	seen := map[EventID]bool{}
	for i, id := range ids {
		if seen[id] {
			return bad(fmt.Sprintf("event_ids[%d]", i), fmt.Sprintf("%d stands there twice", id), "name each event once")
		}
		seen[id] = true
	}
	return nil
}

func (p *plan) create(ctx context.Context, at string, f *Fields) error {
	if err := f.normalise(at, "00:00:00"); err != nil {
		return err
	}
	if err := f.complete(at); err != nil {
		return err
	}
	e := f.members()
	if e.day() < p.today {
		return bad(at+".start_date_local", fmt.Sprintf("%s is in the past; today is %s in %s", e.day(), p.today, p.owner.TimeZone), "use today or later")
	}
	p.readText(at, e, e.text("type"))
	if err := p.collisions(ctx, e); err != nil {
		return err
	}
	return p.add(e)
}

// add plans the create of e, with an external_id by which it is found again.
func (p *plan) add(e event) error {
	key := "wetink-" + strings.ToLower(rand.Text())
	e["external_id"] = quote(key)
	payload, err := encode(e)
	if err != nil {
		return err
	}
	p.Ops = append(p.Ops, wetink.Op{Action: Create, Payload: payload, Key: key})
	p.Before = append(p.Before, wetink.Snapshot{Absent: true})
	return nil
}

// collisions warns of an event of that name on that day: two previews of one wish are two events.
func (p *plan) collisions(ctx context.Context, e event) error {
	list, ok := p.days[e.day()]
	if !ok {
		day, err := time.Parse(time.DateOnly, e.day())
		if err != nil {
			return err
		}
		if list, err = p.t.list(ctx, p.Account, day, day); err != nil {
			return err
		}
		p.days[e.day()] = list
	}
	for _, other := range list {
		if strings.EqualFold(other.text("name"), e.text("name")) {
			p.warn("%s has an event of that name already: %s", e.day(), other.label())
		}
	}
	return nil
}

// readText reads a description as the service will. What it computes from steps is not sent: it would be
// ignored, and look like a failure afterwards.
func (p *plan) readText(at string, e event, sport string) {
	if !e.set("description") {
		return
	}
	text := e.text("description")
	for _, f := range workout.Lint(text, sport) {
		where := at + ".description"
		if f.Line > 0 {
			where += fmt.Sprintf(": line %d, %s", f.Line, f.Text)
		}
		p.warn("%s: %s", where, f.Message)
	}
	if len(workout.Parse(text).Steps) == 0 {
		if _, sent := e["distance"]; sent {
			delete(e, "distance") // the service takes it from the text, and there is none
			p.warn("%s.distance is left out: the service sets it to 0 where the description has no steps", at)
		}
		return
	}
	for _, f := range []string{"moving_time", "distance", "icu_training_load"} {
		if _, sent := e[f]; sent {
			delete(e, f)
			p.warn("%s.%s is left out: the service computes it from the steps", at, f)
		}
	}
}

func (p *plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// find reads an event that is about to change and refuses what must not be touched.
func (p *plan) find(ctx context.Context, at string, id EventID) (event, wetink.Snapshot, error) {
	e, err := p.t.event(ctx, p.Account, id.String())
	var api *APIError
	if errors.As(err, &api) && api.Status == http.StatusNotFound {
		return nil, wetink.Snapshot{}, bad(at, fmt.Sprintf("there is no event %d", id), "look it up with list_events")
	}
	if err != nil {
		return nil, wetink.Snapshot{}, err
	}
	if err := p.refuse(at, e); err != nil {
		return nil, wetink.Snapshot{}, err
	}
	s, err := e.snapshot()
	s.At = time.Now().UTC()
	return e, s, err
}

func (p *plan) refuse(at string, e event) error {
	switch {
	case e.set("paired_activity_id"):
		return bad(at, e.label()+" is paired with a completed activity", "unpair it in the web app first")
	case e.flag("athlete_cannot_edit"):
		return bad(at, e.label()+" is locked by a coach", "ask the coach")
	case e.flag("hide_from_athlete"):
		return bad(at, e.label()+" is hidden from the athlete by a coach", "ask the coach")
	case e.flag("structure_read_only"):
		return bad(at, e.label()+" has a structure that must not be edited", "change it where it comes from")
	case slices.Contains(modelled, e.text("category")):
		return bad(at, e.label()+" is a "+e.text("category")+" event, which rewrites the fitness model or the plan", "change it in the web app")
	case e.set("calendar_id") && string(e["calendar_id"]) != "1":
		return bad(at, e.label()+" belongs to another calendar", "change it there")
	case e.day() < p.today:
		return bad(at, fmt.Sprintf("%s is in the past; today is %s in %s", e.label(), p.today, p.owner.TimeZone), "past events are not changed here")
	}
	if e.set("plan_workout_id") || e.set("plan_folder_id") {
		p.warn("%s comes from a training plan; applying the plan again may bring it back", e.label())
	}
	return nil
}

func (p *plan) update(ctx context.Context, id EventID, set *Fields, clear []string) error {
	e, before, err := p.find(ctx, "event_id", id)
	if err != nil {
		return err
	}
	want := event{}
	if set != nil {
		clockTime := "00:00:00"
		if s := e.text("start_date_local"); len(s) == len("2006-01-02T15:04:05") {
			clockTime = s[11:] // a bare date moves the day and keeps the hour
		}
		if err := set.normalise("set", clockTime); err != nil {
			return err
		}
		want = set.members()
	}
	for i, f := range clear {
		v, ok := emptied(f)
		if _, twice := want[f]; twice {
			return bad(fmt.Sprintf("clear[%d]", i), f+" is set as well", "do one of the two")
		}
		if !ok {
			return bad(fmt.Sprintf("clear[%d]", i), fmt.Sprintf("%q cannot be emptied", clean(f)), "see the tool's input schema")
		}
		want[f] = v
	}
	category := e.text("category")
	if want.set("category") {
		category = want.text("category")
	}
	if category == "NOTE" && e.set("type") {
		return bad("set.category", "a note has no sport and no steps: they would be lost, and no undo brings them back", "create a note beside it")
	}
	if want.set("type") && category == "NOTE" {
		return bad("set.type", "a NOTE has no sport", "leave type out")
	}
	if s := want.day(); s != "" && s < p.today {
		return bad("set.start_date_local", fmt.Sprintf("%s is in the past; today is %s", s, p.today), "use today or later")
	}
	if want.set("description") {
		sport := e.text("type")
		if want.set("type") {
			sport = want.text("type")
		}
		p.readText("set", want, sport)
		p.losesSteps(e, want.text("description"))
	} else if _, clears := want["description"]; clears {
		p.losesSteps(e, "")
	} else if e.set("workout_doc") && len(workout.Parse(e.text("description")).Steps) > 0 {
		for _, f := range []string{"moving_time", "distance", "icu_training_load"} {
			if _, ok := want[f]; ok {
				return bad("set."+f, "the service computes it from the steps of this workout", "change the description")
			}
		}
	}
	p.shiftEnd(e, want)
	for f, v := range want {
		if same(f, v, e[f]) {
			delete(want, f)
		}
	}
	if len(want) == 0 {
		return bad("set", e.label()+" is like that already: nothing would change", "say what to change in set or clear")
	}
	for f := range want {
		if !e.set(f) && numeric[f] {
			p.Undo.Extent = wetink.PartialUndo
			p.Undo.Notes = append(p.Undo.Notes, f+" was empty; whether the service empties it again is known only afterwards")
		}
	}
	return p.put(id, want, before)
}

// losesSteps warns before a structured workout becomes prose.
func (p *plan) losesSteps(e event, text string) {
	old, err := workout.ServerSummary(e["workout_doc"])
	if err == nil && old.Steps > 0 && len(workout.Parse(text).Steps) == 0 {
		p.warn("%s loses its %d steps: the new description has none", e.label(), old.Steps)
	}
}

// shiftEnd moves the end of an event with its start. Of an event that ends at the next midnight the service does it.
func (p *plan) shiftEnd(e, want event) {
	if _, given := want["end_date_local"]; given || !want.set("start_date_local") {
		return
	}
	start, end, err := e.span()
	to, err2 := time.Parse(localLayout, want.text("start_date_local"))
	if err == nil && err2 == nil && !end.Equal(nextMidnight(start)) {
		want["end_date_local"] = quote(end.Add(to.Sub(start)).Format(localLayout))
	}
}

func (p *plan) put(id EventID, want event, before wetink.Snapshot) error {
	payload, err := encode(want)
	if err != nil {
		return err
	}
	p.Ops = append(p.Ops, wetink.Op{Action: Update, Object: id.String(), Payload: payload})
	p.Before = append(p.Before, before)
	return nil
}

func (p *plan) delete(ctx context.Context, at string, id EventID) error {
	e, before, err := p.find(ctx, at, id)
	if err != nil {
		return err
	}
	p.goes(id, before)
	if e.set("attachments") {
		p.warn("%s has attachments, which are lost", e.label())
	}
	return nil
}

// goes plans the deletion of an event.
func (p *plan) goes(id EventID, before wetink.Snapshot) {
	p.Ops = append(p.Ops, wetink.Op{Action: Delete, Object: id.String()})
	p.Before = append(p.Before, before)
	p.Undo.Extent = wetink.PartialUndo
	p.Undo.Notes = append(p.Undo.Notes, "a deleted event is created again with a new id; its pairing, its link to a plan, comments, attachments and copies on devices do not follow")
}

// swap exchanges the days; each event keeps its hour.
func (p *plan) swap(ctx context.Context, a, b EventID) error {
	ea, sa, err := p.find(ctx, "event_ids[0]", a)
	if err != nil {
		return err
	}
	eb, sb, err := p.find(ctx, "event_ids[1]", b)
	if err != nil {
		return err
	}
	if ea.day() == eb.day() {
		return bad("event_ids", fmt.Sprintf("both are on %s", ea.day()), "name two events of different days")
	}
	for _, m := range []struct {
		id     EventID
		e      event
		day    string
		before wetink.Snapshot
	}{{a, ea, eb.day(), sa}, {b, eb, ea.day(), sb}} {
		want := event{"start_date_local": quote(m.day + m.e.text("start_date_local")[10:])}
		p.shiftEnd(m.e, want)
		if err := p.put(m.id, want, m.before); err != nil {
			return err
		}
	}
	return nil
}

// copyWeek expands to creates, so that the diff lists every event and an undo knows each.
func (p *plan) copyWeek(ctx context.Context, from, to string) error {
	first, err := time.Parse(time.DateOnly, from)
	if err != nil {
		return bad("from", fmt.Sprintf("%q is no date", clean(from)), "use YYYY-MM-DD")
	}
	start, err := time.Parse(time.DateOnly, to)
	if err != nil {
		return bad("to", fmt.Sprintf("%q is no date", clean(to)), "use YYYY-MM-DD")
	}
	shift := start.Sub(first)
	if days := int(shift.Hours() / 24); days > -7 && days < 7 {
		return bad("to", "the two weeks overlap", "use a day at least 7 days away from from")
	}
	list, err := p.t.list(ctx, p.Account, first, first.AddDate(0, 0, 6))
	if err != nil {
		return err
	}
	for _, e := range list {
		day := e.day()
		switch {
		case day < from || day > first.AddDate(0, 0, 6).Format(time.DateOnly): // it overlaps the week, and began before
			p.warn("%s is not copied: it began before the week", e.label())
			continue
		case !slices.Contains(categories, e.text("category")):
			p.warn("%s is not copied: %s events are not created here", e.label(), e.text("category"))
			continue
		case e.set("calendar_id") && string(e["calendar_id"]) != "1":
			p.warn("%s is not copied: it belongs to another calendar", e.label())
			continue
		}
		c := recreate(e)
		for _, f := range []string{"start_date_local", "end_date_local"} {
			if at, err := time.Parse("2006-01-02T15:04:05", e.text(f)); err == nil {
				c[f] = quote(at.Add(shift).Format("2006-01-02T15:04:05"))
			}
		}
		if c.day() < p.today {
			return bad("to", fmt.Sprintf("%s is in the past; today is %s", c.day(), p.today), "copy to a coming week")
		}
		if err := p.collisions(ctx, c); err != nil {
			return err
		}
		if err := p.add(c); err != nil {
			return err
		}
	}
	if len(p.Ops) == 0 {
		return bad("from", "there is nothing to copy in the week of "+from, "look with list_events")
	}
	return bounded("from", len(p.Ops), 1)
}

// recreate keeps what can be written of an event. Computed values are sent, too: the service ignores those that
// it computes, and keeps those that it cannot, such as the load of a run by heart rate.
func recreate(e event) event {
	c := event{}
	for _, f := range writable {
		if !e.set(f) || f == "type" && e.text("category") == "NOTE" {
			continue
		}
		c[f] = e[f]
		if numeric[f] && string(e[f]) == "0" || flags[f] && !e.flag(f) || f == "training_availability" && e.text(f) == "NORMAL" {
			delete(c, f) // the service's own default
		}
	}
	return c
}
