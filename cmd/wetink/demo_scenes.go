package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wetink/wetink"
)

// scene is one story. play returns the status that people and agents are shown at its end.
type scene struct {
	name    string
	title   string
	status  string // expected
	effects int    // expected, by the simulator's journal
	play    func(ctx context.Context, d *demo) (status string, err error)
}

// sceneResult is one line of --json.
type sceneResult struct {
	Scene   string `json:"scene"`
	OK      bool   `json:"ok"`
	Status  string `json:"status"`
	Effects int    `json:"effects"`
	Error   string `json:"error,omitempty"`
}

const (
	tempoID = 70010001
	easyID  = 70010002
	longID  = 70010005
)

var demoScenes = []scene{
	{"move", "Move Tempo from Thursday to Friday, then undo it", "undone", 2, playMove},
	{"stale", "The session is swapped in the web app while the person is asked", "apply_failed", 0, playStale},
	{"paired", "A watch sync pairs the session while the person is asked", "apply_failed", 0, playPaired},
	{"bulk", "A week of four sessions, of which the service refuses the third", "apply_failed", 4, playBulk},
	{"lost_answer", "The connection drops after the write took effect", "applied", 1, playLostAnswer},
	{"five_times", "The agent sends the same apply five times at once", "applied", 1, playFiveTimes},
}

func (d *demo) play(ctx context.Context, s scene) sceneResult {
	d.say("\n== %s\n", s.title)
	before := d.ours()
	status, err := s.play(ctx, d)
	r := sceneResult{Scene: s.name, Status: status, Effects: d.ours() - before}
	r.OK = err == nil && r.Status == s.status && r.Effects == s.effects
	switch {
	case errors.Is(err, errDeclined): // a no is no failure, of the first question or of a later one
		r.OK, r.Status = true, "rejected"
		d.say("  declined; the calendar counts %d change(s) of ours\n", r.Effects)
	case err != nil:
		r.Error = err.Error()
		d.say("  %v\n", err)
	default:
		d.say("  => %s; the calendar counts %d change(s) of ours\n", r.Status, r.Effects)
	}
	return r
}

// preview is the agent preparing a change.
func (d *demo) preview(ctx context.Context, args map[string]any) (string, error) {
	p, err := d.call(ctx, "preview_event_change", args)
	if err != nil {
		return "", err
	}
	id, ok := p["preview_id"].(string)
	if !ok {
		return "", fmt.Errorf("no preview_id in %v", p)
	}
	return id, nil
}

// day of an event, moved by some days, as the agent reads and asks for it.
func (d *demo) day(ctx context.Context, id, shift int) (string, error) {
	e, err := d.call(ctx, "get_event", map[string]any{"event_id": id})
	if err != nil {
		return "", err
	}
	start, _ := e["start_date_local"].(string)
	at, err := time.Parse("2006-01-02T15:04:05", start)
	if err != nil {
		return "", fmt.Errorf("start of event %d: %w", id, err)
	}
	return at.AddDate(0, 0, shift).Format(time.DateOnly), nil
}

func (d *demo) move(ctx context.Context, id, shift int) (string, error) {
	day, err := d.day(ctx, id, shift)
	if err != nil {
		return "", err
	}
	return d.preview(ctx, map[string]any{"action": "update", "event_id": id, "set": map[string]any{"start_date_local": day}})
}

func playMove(ctx context.Context, d *demo) (string, error) {
	id, err := d.move(ctx, tempoID, 1)
	if err != nil {
		return "", err
	}
	if err := d.approve(ctx, id); err != nil {
		return "", err
	}
	if m, err := d.settled(ctx, id); err != nil || m["status"] != "applied" {
		return fmt.Sprint(m["status"]), err
	}
	d.say("\n  The person changes their mind. The agent prepares the undo; the person approves that, too.\n")
	u, err := d.call(ctx, "undo_event_change", map[string]any{"operation_id": id})
	if err != nil {
		return "", err
	}
	plan, _ := u["undo"].(map[string]any)
	undo, _ := plan["preview_id"].(string)
	if err := d.approve(ctx, undo); err != nil {
		return "", err
	}
	if _, err := d.settled(ctx, undo); err != nil {
		return "", err
	}
	m, err := d.settled(ctx, id)
	return fmt.Sprint(m["status"]), err
}

// meanwhile previews a move, lets somebody act on the event, and approves what the person still sees.
func (d *demo) meanwhile(ctx context.Context, act string) (string, error) {
	id, err := d.move(ctx, easyID, 1)
	if err != nil {
		return "", err
	}
	if _, err := d.sim.Act(act, map[string]any{"event_id": easyID}); err != nil {
		return "", err
	}
	d.say("  meanwhile, elsewhere: %s\n", act)
	if err := d.approve(ctx, id); err != nil {
		return "", err
	}
	m, err := d.settled(ctx, id)
	if err == nil {
		d.say("  why: %v\n", m["reason"])
	}
	return fmt.Sprint(m["status"]), err
}

func playStale(ctx context.Context, d *demo) (string, error) {
	return d.meanwhile(ctx, "swap_for_easy_run")
}

func playPaired(ctx context.Context, d *demo) (string, error) { return d.meanwhile(ctx, "pair") }

func playBulk(ctx context.Context, d *demo) (string, error) {
	first, err := d.day(ctx, longID, 8)
	if err != nil {
		return "", err
	}
	monday, err := time.Parse(time.DateOnly, first)
	if err != nil {
		return "", err
	}
	var events []map[string]any
	for i, name := range []string{"Endurance", "Sweet spot", "Intervals", "Recovery"} {
		events = append(events, map[string]any{"category": "WORKOUT", "type": "Ride", "name": name,
			"start_date_local": monday.AddDate(0, 0, i).Format(time.DateOnly), "description": "- 1h 65%"})
	}
	id, err := d.preview(ctx, map[string]any{"action": "bulk_create", "events": events})
	if err != nil {
		return "", err
	}
	if err := d.sim.Fault("422@POST#3", 1); err != nil {
		return "", err
	}
	d.say("  fault: the service will refuse the third create\n")
	if err := d.approve(ctx, id); err != nil {
		return "", err
	}
	// The two that were created are deleted again, because the approved change says all or nothing.
	for range 50 {
		m, err := d.settled(ctx, id)
		if err != nil || m["status"] != "apply_partial" {
			return fmt.Sprint(m["status"]), err
		}
		if _, _, err := d.engine.Status(ctx, wetink.Principal{}, wetink.ChangeID(fmt.Sprint(m["undo_id"])), time.Second); err != nil {
			return "", err
		}
	}
	return "apply_partial", nil
}

func playLostAnswer(ctx context.Context, d *demo) (string, error) {
	id, err := d.move(ctx, longID, -1)
	if err != nil {
		return "", err
	}
	if err := d.sim.Fault("apply_then_drop@PUT", 1); err != nil {
		return "", err
	}
	d.say("  fault: the service will do it and drop the connection\n")
	if err := d.approve(ctx, id); err != nil {
		return "", err
	}
	m, err := d.settled(ctx, id)
	if err != nil {
		return "", err
	}
	doubted := false
	for e, err := range d.ledger.Events(ctx, 0, false) {
		if err != nil {
			return "", err
		}
		if e.Change == wetink.ChangeID(id) {
			d.say("  history: %s %s → %s\n", e.Kind, e.From, e.To)
			doubted = doubted || e.To == wetink.InDoubt
		}
	}
	if !doubted {
		return "", errors.New("it was never in doubt: the outcome was guessed")
	}
	return fmt.Sprint(m["status"]), nil
}

func playFiveTimes(ctx context.Context, d *demo) (string, error) {
	id, err := d.move(ctx, tempoID, 2)
	if err != nil {
		return "", err
	}
	c, err := d.person(ctx, id)
	if err != nil {
		return "", err
	}
	ticket, err := d.engine.HandOut(ctx, wetink.Principal{Person: wetink.Person(d.user)}, c.ID)
	if err != nil {
		return "", err
	}
	d.say("  this time the person hands the agent a confirmation token, as `wetink show %s --token` gives it\n", id)
	var wg sync.WaitGroup
	answers := make([]string, 5)
	errs := make([]error, len(answers))
	for i := range answers {
		wg.Go(func() {
			m, err := d.call(ctx, "apply_event_change", map[string]any{"preview_id": id, "confirmation_token": ticket.Reveal()})
			answers[i], errs[i] = fmt.Sprint(m["status"], m["operation_id"]), err
		})
	}
	wg.Wait()
	for i := range answers {
		if errs[i] != nil {
			return "", errs[i]
		}
		if answers[i] != answers[0] {
			return "", fmt.Errorf("two answers: %s and %s", answers[0], answers[i])
		}
	}
	m, err := d.settled(ctx, id)
	return fmt.Sprint(m["status"]), err
}
