package ledgertest

import (
	"testing"
	"time"

	"github.com/wetink/wetink"
)

func clock(t *testing.T, open opener) {
	open.that(t, "before is exclusive and after inclusive, to the millisecond", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		try := func(before, after time.Duration) wetink.Move {
			m, now := move(f.get(c), wetink.Pending), f.wall.forward()
			if before != never {
				m.Before = now.Add(before)
			}
			if after != never {
				m.After = now.Add(after)
			}
			return m
		}
		f.refused(wetink.ErrLate, try(0, never))
		f.refused(wetink.ErrLate, try(-time.Millisecond, never))
		f.refused(wetink.ErrEarly, try(never, time.Millisecond))
		f.refused(wetink.ErrEarly, try(time.Hour, time.Millisecond))
		f.refused(wetink.ErrLate, try(0, -time.Hour))
		f.advance(try(time.Millisecond, never))
		f.advance(try(never, 0))
		f.advance(try(time.Millisecond, 0))
		f.advance(try(never, never))
	})
	open.that(t, "every kind of move obeys the clock, also a birth and a claim", func(f *fixture) {
		approved := f.bring(row("chg_1"), wetink.Approved)
		applying := f.bring(row("chg_2"), wetink.Applying)
		for _, m := range []wetink.Move{
			born(row("chg_3"), wetink.Pending), move(approved, wetink.Applying), move(approved, wetink.Expired),
			move(applying, wetink.InDoubt), move(applying, wetink.Applied), move(applying, wetink.Applying),
		} {
			m.Before, m.After = f.wall.forward(), time.Time{}
			f.refused(wetink.ErrLate, m)
			m.Before, m.After = time.Time{}, f.wall.forward().Add(time.Minute)
			f.refused(wetink.ErrEarly, m)
		}
	})
	open.that(t, "a conflict is told before the time, so that a lost race is no expiry", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		f.step(c, wetink.Rejected)
		m := move(c, wetink.Approved)
		m.Before = start
		f.refused(wetink.ErrConflict, m)
	})
	open.that(t, "created and updated are the clock's, and the event's", func(f *fixture) {
		created := f.wall.forward()
		ev := f.advance(born(row("chg_1"), wetink.Pending))
		c := f.get(row("chg_1"))
		if !ev[0].At.Equal(created) || !c.Created.Equal(created) || !c.Updated.Equal(created) {
			f.t.Errorf("born at %v: event %v, created %v, updated %v", created, ev[0].At, c.Created, c.Updated)
		}
		updated := f.wall.forward()
		ev = f.advance(move(c, wetink.Rejected))
		if c = f.get(c); !ev[0].At.Equal(updated) || !c.Created.Equal(created) || !c.Updated.Equal(updated) {
			f.t.Errorf("moved at %v: event %v, created %v, updated %v", updated, ev[0].At, c.Created, c.Updated)
		}
		if now := f.now(); now.Before(updated) || now.Sub(updated) > time.Minute {
			f.t.Errorf("now is %v", now)
		}
	})
	open.that(t, "times are whole milliseconds in UTC", func(f *fixture) {
		f.wall.set(start.Add(123456 * time.Nanosecond).In(time.FixedZone("", -5*3600)))
		ev := f.advance(born(row("chg_1"), wetink.Pending))
		f.setMode(wetink.ModeGuarded)
		c := f.get(row("chg_1"))
		for _, at := range []time.Time{f.now(), ev[0].At, c.Created, c.Updated, f.events(0)[0].At, f.events(1)[0].At} {
			if at.Location() != time.UTC || at.Nanosecond()%1e6 != 0 {
				f.t.Errorf("%v", at)
			}
		}
	})
	open.that(t, "time never goes back when the wall clock does", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Pending)
		f.wall.forward()
		last := f.now()
		later := func(what string, at time.Time) {
			f.t.Helper()
			if at.Before(last) {
				f.t.Errorf("%s: %v, which is before %v", what, at, last)
			}
			last = at
		}
		for _, back := range []time.Duration{time.Millisecond, time.Second, time.Hour, 10000 * time.Hour} {
			f.wall.set(f.wall.read().Add(-back))
			later("event", f.advance(move(f.get(c), wetink.Pending))[0].At)
			later("row", f.get(c).Updated)
			later("now", f.now())
			f.setMode(wetink.ModeGuarded)
			ev := f.events(0)
			later("mode", ev[len(ev)-1].At)
			m := move(f.get(c), wetink.Pending)
			m.Before = start.Add(time.Hour)
			f.refused(wetink.ErrLate, m)
		}
	})
	open.that(t, "a wall clock that went back does not stop time, however often it is asked", func(f *fixture) {
		first, since := f.now(), time.Now()
		f.wall.set(start.AddDate(-1, 0, 0))
		for time.Since(since) < 50*time.Millisecond {
			f.now()
		}
		passed := time.Since(since)
		if told := f.now().Sub(first); told < passed-2*time.Millisecond {
			f.t.Errorf("after %v it is %v later", passed, told)
		}
	})
	open.that(t, "without a clock given it is the real time", func(f *fixture) {
		l := open(f.t, nil)
		from := time.Now().Add(-time.Millisecond)
		now, err := l.Now(f.ctx)
		if err != nil || now.Before(from) || now.After(time.Now()) {
			f.t.Errorf("%v, %v; it is %v", now, err, time.Now())
		}
	})
	open.that(t, "each ledger has an id of its own, and keeps it", func(f *fixture) {
		id := f.l.ID()
		f.bring(row("chg_1"), wetink.Pending)
		if id == "" || f.l.ID() != id || open(f.t, nil).ID() == id {
			f.t.Errorf("id %q, then %q", id, f.l.ID())
		}
	})
}

const never = time.Duration(-1 << 63)
