package ledgertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

func events(t *testing.T, open opener) {
	open.that(t, "the ledger fills in what it knows and keeps what it was told", func(f *fixture) {
		c := row("chg_1")
		c.Tenant = "acme"
		c = f.bring(c, wetink.Pending)
		m := move(c, wetink.Approved)
		m.Event = wetink.Event{
			Kind: wetink.KindApproved, Digest: wetink.Digest{1, 254}, By: "bo", Client: "page <1>", Level: wetink.Passkey,
			Facts: map[string]string{"evidence": "page", "a": "\"&\u2028é", "z": ""},
			// These are the ledger's; what a caller puts there does not count.
			Seq: 77, At: start.AddDate(9, 0, 0), Tenant: "b", Change: "chg_9", Rev: 9, From: wetink.Failed, To: wetink.Failed,
		}
		want := m.Event
		want.Seq, want.At, want.Tenant, want.Change, want.Rev, want.From, want.To = 2, f.wall.forward(), "acme", "chg_1", 2, wetink.Pending, wetink.Approved
		got := f.advance(m)[0]
		if string(got.Bytes()) != string(want.Bytes()) {
			f.t.Errorf("got  %s\nwant %s", got.Bytes(), want.Bytes())
		}
	})
	open.that(t, "seqs begin at one and have no gaps, whoever writes and whatever is refused", func(f *fixture) {
		f.write(10)
		for i, e := range f.events(0) {
			if e.Seq != int64(i)+1 {
				f.t.Fatalf("event %d has seq %d", i, e.Seq)
			}
		}
	})
	open.that(t, "its head is the seq of the newest, and 0 before the first", func(f *fixture) {
		for n := range int64(3) {
			if head, err := f.l.Head(f.ctx); head != n || err != nil {
				f.t.Errorf("after %d events it is %d, %v", n, head, err)
			}
			f.advance(born(row(fmt.Sprintf("chg_%d", n)), wetink.Pending))
		}
	})
	open.that(t, "what is read is what was returned, to the byte, and its bytes are read as the same", func(f *fixture) {
		written := f.write(10)
		read := f.events(0)
		if len(read) != len(written) {
			f.t.Fatalf("%d were written, %d are read", len(written), len(read))
		}
		for i, e := range read {
			b := string(e.Bytes())
			if w := string(written[i].Bytes()); written[i].Seq != 0 && w != b {
				f.t.Errorf("returned %s\nread     %s", w, b)
			}
			back, err := wetink.ParseEvent([]byte(b))
			if err != nil || string(back.Bytes()) != b {
				f.t.Errorf("%s\nis parsed as %s: %v", b, back.Bytes(), err)
			}
		}
	})
	open.that(t, "reading begins behind any seq", func(f *fixture) {
		n := int64(len(f.write(10)))
		for after := range n + 3 {
			want := after + 1
			for _, e := range f.events(after) {
				if e.Seq != want {
					f.t.Fatalf("after %d: seq %d, want %d", after, e.Seq, want)
				}
				want++
			}
			if want != max(n, after)+1 {
				f.t.Errorf("after %d: it ended before %d, want %d", after, want, n+1)
			}
		}
		if ev := f.events(wetink.Newest); len(ev) != 0 {
			f.t.Errorf("behind the newest: %v", ev)
		}
	})
	open.that(t, "a reader may stop early, and may read and write between two events", func(f *fixture) {
		f.write(10)
		seen := 0
		for e, err := range f.l.Events(f.ctx, 0, false) {
			if err != nil {
				f.t.Fatal(err)
			}
			c := f.bring(row(fmt.Sprintf("chg_more_%d", e.Seq)), wetink.Pending)
			f.get(c)
			if seen++; seen == 3 {
				break
			}
		}
		f.write(1)
		if seen != 3 {
			f.t.Errorf("%d events", seen)
		}
	})
	open.that(t, "a long history is read whole", func(f *fixture) {
		const n = 1500
		for from := range n / 500 {
			list := make([]wetink.Move, 500)
			for i := range list {
				list[i] = born(row(fmt.Sprintf("chg_long_%05d", from*500+i)), wetink.Pending)
			}
			f.advance(list...)
		}
		if got := f.events(0); len(got) != n || got[n-1].Seq != n || got[n-1].Change != "chg_long_01499" {
			f.t.Errorf("%d events", len(got))
		}
	})
}

// write makes some history: n lives, two changes of mode and some refusals. What SetMode wrote has seq 0.
func (f *fixture) write(n int) (ev []wetink.Event) {
	f.t.Helper()
	f.setMode(wetink.ModeGuarded)
	ev = append(ev, wetink.Event{})
	for i := range n {
		c := row(fmt.Sprintf("chg_w%d_%02d", n, i))
		ev = append(ev, f.advance(born(c, wetink.Pending))...)
		c = f.get(c)
		f.refused(wetink.ErrConflict, move(after(c, move(c, wetink.Approved)), wetink.Rejected))
		yes := move(c, wetink.Approved)
		yes.Event.Facts = map[string]string{"n": fmt.Sprint(i), "<b>": "&"}
		ev = append(ev, f.advance(yes, move(after(c, yes), wetink.Rejected))...)
	}
	f.setMode(wetink.ModeOff)
	return append(ev, wetink.Event{})
}

func follow(t *testing.T, open opener) {
	open.that(t, "it tells what is there and then what comes, and ends with the context's error", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		f.bring(row("chg_0"), wetink.Approved)
		next := int64(1)
		for e, err := range f.l.Events(ctx, 0, true) {
			if err != nil {
				f.is(err, context.Canceled)
				f.is(err, ctx.Err())
				next = -1
				continue // an iterator that goes on after its error fails below
			}
			if e.Seq != next {
				f.t.Fatalf("seq %d, want %d", e.Seq, next)
			}
			next++
			switch {
			case e.Seq == 2: // from here it has to wait for each
				go f.writeLater("chg_1")
			case e.Seq == 3:
				go f.writeLater("chg_2", "chg_3")
			case e.Seq == 5:
				if err := f.l.SetMode(f.ctx, wetink.ModeOff, "ana"); err != nil {
					f.t.Error(err)
				}
			case e.Kind == wetink.KindMode:
				cancel()
			}
		}
		if next != -1 {
			f.t.Errorf("it ended before %d without an error", next)
		}
	})
	open.that(t, "from the newest on nothing is missed between the call and the look", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		defer cancel()
		f.bring(row("chg_1"), wetink.Approved)
		later := f.l.Events(ctx, wetink.Newest, true)
		f.bring(row("chg_2"), wetink.Pending) // after the call, before the first look
		for e, err := range later {
			if err != nil || e.Seq != 3 || e.Change != "chg_2" {
				f.t.Errorf("first: %s, %v", e.Bytes(), err)
			}
			break
		}
		f.bring(row("chg_3"), wetink.Pending)
	})
	open.that(t, "a deadline ends it as well", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 20*time.Millisecond)
		defer cancel()
		for e, err := range f.l.Events(ctx, wetink.Newest, true) {
			f.is(err, context.DeadlineExceeded)
			if e.Seq != 0 {
				f.t.Errorf("an event: %s", e.Bytes())
			}
		}
	})
	open.that(t, "many may follow at once", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 20*time.Second)
		defer cancel()
		const readers, n = 16, 50
		done := make(chan int64, readers)
		for range readers {
			events := f.l.Events(ctx, wetink.Newest, true)
			go func() {
				last := int64(0)
				for e, err := range events {
					if err != nil || e.Seq != last+1 {
						break
					}
					if last = e.Seq; last == n {
						break
					}
				}
				done <- last
			}()
		}
		for i := range n {
			f.bring(row(fmt.Sprintf("chg_%d", i)), wetink.Pending)
		}
		for range readers {
			if last := <-done; last != n {
				f.t.Errorf("a follower came to %d of %d", last, n)
			}
		}
	})
}

// writeLater is for other goroutines: it must not end the test.
func (f *fixture) writeLater(ids ...string) {
	list := make([]wetink.Move, len(ids))
	for i, id := range ids {
		list[i] = born(row(id), wetink.Pending)
	}
	if _, err := f.l.Advance(f.ctx, list...); err != nil {
		f.t.Error(err)
	}
}
