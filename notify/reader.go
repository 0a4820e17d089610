package notify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wetink/wetink"
)

// reader brings Events to one channel.
type reader struct {
	*Notifier
	channel Channel
	name    string // of the cursor
	at      int64  // everything up to here is told, or not worth telling
	saved   int64  // what the cursor says
}

// A reader that finds nothing to tell still moves its cursor now and then, so that a restart does not read all again.
const saveEvery = 1000

// Attempts that a message gets even if it was too old when it was first seen: a machine that slept for two days has
// no network in its first second.
const minAttempts = 5

// follow tells one message after the other until ctx ends or the ledger or the cursors fail.
// It can be called again and goes on where it was.
func (r *reader) follow(ctx context.Context) error {
	if r.at == wetink.Newest {
		if err := r.open(ctx); err != nil {
			return err
		}
	}
	for {
		if err := r.save(ctx); err != nil {
			return err
		}
		first, err := r.first(ctx)
		if err != nil {
			return err
		}
		// The window is one of the ledger's time, not of ours: so that after a crash the same events make the same
		// message. An event that was stamped inside it and became visible after it is told in a message of its own.
		end := first.At.Add(r.opt.Gather)
		if !sleep(ctx, min(end.Sub(r.opt.Now()), r.opt.Gather)) {
			return ctx.Err()
		}
		if err := r.deliver(ctx, first, end); err != nil {
			return err
		}
	}
}

// open finds the position. A new channel starts behind what is there, so that nobody is told the whole history,
// and that position is made durable before anything is waited for: otherwise what happens while the process is
// down would be behind it too.
func (r *reader) open(ctx context.Context) error {
	at, err := r.cursors.Cursor(ctx, r.name)
	if err != nil {
		return fmt.Errorf("read the cursor: %w", err)
	}
	r.saved = at
	if at == wetink.Newest {
		if at, err = newest(ctx, r.events); err != nil {
			return fmt.Errorf("find the newest event: %w", err)
		}
	}
	r.at = at
	return nil
}

// newest returns the Seq of the last event, 0 if there is none. Seq has no gaps, so that doubling and halving
// finds it in a few dozen short reads instead of one of the whole history.
func newest(ctx context.Context, events Events) (int64, error) {
	has := func(seq int64) (bool, error) {
		for _, err := range events.Events(ctx, seq-1, false) {
			return err == nil, err
		}
		return false, nil
	}
	low, high := int64(0), int64(1) // low is there (or 0); high is not known yet
	for {
		there, err := has(high)
		if err != nil {
			return 0, err
		}
		if !there {
			break
		}
		low, high = high, high*2
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		there, err := has(middle)
		if err != nil {
			return 0, err
		}
		if there {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// first waits for the next event worth telling and moves over what is not.
func (r *reader) first(ctx context.Context) (wetink.Event, error) {
	for ev, err := range r.events.Events(ctx, r.at, true) {
		if err != nil {
			return wetink.Event{}, fmt.Errorf("read events: %w", err)
		}
		if r.notable(ev) {
			return ev, nil
		}
		r.at = ev.Seq
		if r.at-r.saved >= saveEvery {
			if err := r.save(ctx); err != nil {
				return wetink.Event{}, err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return wetink.Event{}, err
	}
	return wetink.Event{}, fmt.Errorf("read events: they ended after %d", r.at)
}

func (r *reader) notable(ev wetink.Event) bool {
	if r.opt.Tenants != nil && !slices.Contains(r.opt.Tenants, ev.Tenant) {
		return false
	}
	return waits(ev) || doubts(ev) && !r.opt.WithoutDoubts
}

func waits(ev wetink.Event) bool  { return ev.Kind == wetink.KindPreviewed && ev.To == wetink.Pending }
func doubts(ev wetink.Event) bool { return ev.To == wetink.InDoubt && ev.From != wetink.InDoubt }

// deliver sends what happened between first and end, until the channel took it or time is over.
func (r *reader) deliver(ctx context.Context, first wetink.Event, end time.Time) error {
	name := r.channel.Name()
	for attempt := 1; ; attempt++ {
		// Looked at again before each attempt: after an hour of trying most of it is decided.
		m, last, err := r.gather(ctx, first, end)
		if err != nil {
			return err
		}
		if m.Waiting == 0 && m.InDoubt == 0 {
			r.at = last
			return nil
		}
		if err = r.send(ctx, m); err == nil {
			r.count(name, func(c *Count) { c.Sent++ })
			r.at = last
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.count(name, func(c *Count) { c.Failed++ })
		if attempt >= minAttempts && r.opt.Now().Sub(first.At) >= r.opt.GiveUp {
			r.count(name, func(c *Count) { c.GivenUp++ })
			r.opt.Log.ErrorContext(ctx, "notify: gave up on a message", "channel", name, "id", m.ID, "attempts", attempt, "err", err)
			r.at = last
			return nil
		}
		wait := backOff(attempt - 1)
		r.opt.Log.WarnContext(ctx, "notify: not delivered; will try again", "channel", name, "id", m.ID, "attempt", attempt, "in", wait, "err", err)
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (r *reader) send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	return r.channel.Send(ctx, m)
}

func (r *reader) look(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	return r.opt.Waiting.Waiting(ctx)
}

// gather makes the message of what happened between first and end and is still so, and returns the last event
// that it covers. The id is that of this event: should the same events ever be cut otherwise (another Gather), the
// ids differ too, and no receiver drops a message that tells more than the one it knows.
func (r *reader) gather(ctx context.Context, first wetink.Event, end time.Time) (m Message, last int64, err error) {
	type key struct {
		tenant wetink.Tenant
		id     wetink.ChangeID
	}
	type told struct {
		waits, doubts bool
		now           wetink.Status
	}
	all := map[key]*told{}
	for ev, err := range r.events.Events(ctx, first.Seq-1, false) {
		if err != nil {
			return m, 0, fmt.Errorf("read events: %w", err)
		}
		k := key{ev.Tenant, ev.Change}
		if ev.At.Before(end) && r.notable(ev) {
			if all[k] == nil {
				all[k] = &told{}
			}
			all[k].waits, all[k].doubts = all[k].waits || waits(ev), all[k].doubts || doubts(ev)
			last, m.At = ev.Seq, ev.At
		}
		if all[k] != nil {
			all[k].now = ev.To // whatever happened since, also after the window
		}
	}
	if last == 0 {
		return m, 0, fmt.Errorf("read events: %d was there and is not any more", first.Seq)
	}
	m.ID = fmt.Sprintf("msg_%s_%d", r.hash, last)
	m.Link = r.opt.Link
	var only key
	for k, t := range all {
		switch {
		case t.waits && t.now == wetink.Pending:
			m.Waiting++
			only = k
		case t.doubts && t.now == wetink.InDoubt:
			m.InDoubt++
			only = k
		}
	}
	if r.opt.Waiting != nil && m.Waiting > 0 {
		n, err := r.look(ctx)
		if err != nil { // too many messages are better than none
			r.opt.Log.WarnContext(ctx, "notify: cannot look what still waits", "err", err)
		} else {
			m.Waiting = max(0, min(m.Waiting, n))
		}
	}
	if per := r.opt.LinkPerChangeSEENBYCARRIERS; per != nil && len(all) == 1 && m.Waiting+m.InDoubt == 1 {
		if link := per(only.tenant, only.id); link != "" {
			if err := checkLink(link); err != nil {
				r.opt.Log.ErrorContext(ctx, "notify: the link of a change cannot be used", "change", only.id, "err", err)
			} else {
				m.Link = link
			}
		}
	}
	return m, last, nil
}

// save makes the position durable. What was delivered was delivered, also when the process is about to end.
func (r *reader) save(ctx context.Context) error {
	if r.at == r.saved {
		return nil
	}
	if err := r.cursors.SetCursor(context.WithoutCancel(ctx), r.name, r.at); err != nil {
		return fmt.Errorf("move the cursor: %w", err)
	}
	r.saved = r.at
	return nil
}

const longestWait = 5 * time.Minute

// backOff is between 1 and 2 s after the first failure, twice that after the next, up to five minutes. The random
// part keeps channels that failed together from coming back together.
func backOff(failures int) time.Duration {
	d := longestWait
	if failures < 8 {
		d = min(d, 2*time.Second<<failures)
	}
	return d/2 + rand.N(d/2+1)
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
