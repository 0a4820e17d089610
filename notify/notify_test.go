package notify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/notify"
)

// history is a ledger of which only the Events are there.
type history struct {
	id string

	mu      sync.Mutex
	events  []wetink.Event
	changed chan struct{}
	reads   int   // calls of Events
	yielded int   // events handed out
	fail    error // of the next read
}

func newHistory() *history { return &history{id: "ledger-1", changed: make(chan struct{})} }

func (h *history) ID() string { return h.id }

func (h *history) Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error] {
	return func(yield func(wetink.Event, error) bool) {
		h.mu.Lock()
		err := h.fail
		h.reads, h.fail = h.reads+1, nil
		h.mu.Unlock()
		if err != nil {
			yield(wetink.Event{}, err)
			return
		}
		for {
			h.mu.Lock()
			events, changed := h.events, h.changed
			h.mu.Unlock()
			for _, e := range events[min(int(after), len(events)):] {
				h.mu.Lock()
				h.yielded++
				h.mu.Unlock()
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if !follow {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(wetink.Event{}, ctx.Err())
				return
			}
		}
	}
}

// add commits one event, now.
func (h *history) add(kind string, id wetink.ChangeID, from, to wetink.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, wetink.Event{Seq: int64(len(h.events) + 1), At: time.Now().UTC(), Change: id, Kind: kind, From: from, To: to})
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) preview(ids ...wetink.ChangeID) {
	for _, id := range ids {
		h.add(wetink.KindPreviewed, id, "", wetink.Pending)
	}
}

func (h *history) reject(id wetink.ChangeID) {
	h.add(wetink.KindRejected, id, wetink.Pending, wetink.Rejected)
}

func (h *history) doubt(id wetink.ChangeID) {
	h.add(wetink.KindDoubted, id, wetink.Applying, wetink.InDoubt)
}

// cursors outlives a Notifier, as a store does.
type cursors struct {
	mu     sync.Mutex
	at     map[string]int64
	refuse bool // SetCursor fails
}

func newCursors() *cursors { return &cursors{at: map[string]int64{}} }

func (c *cursors) Cursor(_ context.Context, name string) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.at[name]; ok {
		return at, nil
	}
	return wetink.Newest, nil
}

func (c *cursors) SetCursor(_ context.Context, name string, seq int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return errors.New("the disk is full")
	}
	c.at[name] = seq
	return nil
}

func (c *cursors) setRefuse(on bool) { c.mu.Lock(); defer c.mu.Unlock(); c.refuse = on }

// inbox is a Channel that keeps what it was sent.
type inbox struct {
	name string
	send func(ctx context.Context, attempt int, m notify.Message) error // nil: takes everything

	mu       sync.Mutex
	attempts []notify.Message
	times    []time.Time
	got      []notify.Message
}

func (i *inbox) Name() string { return i.name }

func (i *inbox) Send(ctx context.Context, m notify.Message) error {
	i.mu.Lock()
	i.attempts, i.times = append(i.attempts, m), append(i.times, time.Now())
	n := len(i.attempts)
	i.mu.Unlock()
	if i.send != nil {
		if err := i.send(ctx, n, m); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, m)
	return nil
}

func (i *inbox) texts() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, m := range i.got {
		all = append(all, m.Text())
	}
	return all
}

func (i *inbox) ids() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, m := range i.attempts {
		all = append(all, m.ID)
	}
	return all
}

func (i *inbox) attempted() int { i.mu.Lock(); defer i.mu.Unlock(); return len(i.attempts) }

// run starts a Notifier; what it returns ends it, as the end of the process would, and waits for it.
func run(t *testing.T, h *history, c *cursors, o *notify.Options, channels ...notify.Channel) (*notify.Notifier, func()) {
	t.Helper()
	opt := notify.Options{}
	if o != nil {
		opt = *o
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	n := notify.New(h, c, channels, &opt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	synctest.Wait()
	return n, func() {
		t.Helper()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want the end of its context", err)
		}
	}
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func after(d time.Duration) { time.Sleep(d); synctest.Wait() }

func TestSeveralChangesWithinTheWindowAreOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box := newHistory(), &inbox{name: "box"}
		_, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		h.preview("a")
		after(5 * time.Second)
		h.preview("b")
		after(4 * time.Second)
		h.preview("c")
		want(t, "before the window is over", box.texts())
		after(time.Second)
		want(t, "ten seconds after the first", box.texts(), "3 changes are waiting")
		h.preview("d")
		after(10 * time.Second)
		want(t, "the next", box.texts(), "3 changes are waiting", "1 change is waiting")
		if ids := box.ids(); ids[0] == ids[1] {
			t.Errorf("two messages share the id %s", ids[0])
		}
	})
}

func TestAChangeThatWasDecidedMeanwhileIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box := newHistory(), &inbox{name: "box"}
		_, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		h.preview("a", "b")
		h.reject("a")
		after(10 * time.Second)
		want(t, "one of two is left", box.texts(), "1 change is waiting")
		h.preview("c")
		h.reject("c")
		after(time.Minute)
		want(t, "none is left", box.texts(), "1 change is waiting")
	})
}

func TestOnlyWaitingAndInDoubtAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box, silent := newHistory(), &inbox{name: "box"}, &inbox{name: "silent"}
		_, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		_, stopSilent := run(t, h, newCursors(), &notify.Options{WithoutDoubts: true}, silent)
		defer stopSilent()
		h.add(wetink.KindOrdered, "u", "", wetink.Approved)
		h.add(wetink.KindApproved, "a", wetink.Pending, wetink.Approved)
		h.add(wetink.KindClaimed, "a", wetink.Approved, wetink.Applying)
		h.add(wetink.KindSettled, "a", wetink.Applying, wetink.Applied)
		h.add(wetink.KindMode, "", "", "")
		after(time.Minute)
		want(t, "nobody has to do anything", box.texts())
		h.doubt("a")
		h.add(wetink.KindStep, "a", wetink.InDoubt, wetink.InDoubt)
		h.preview("b")
		after(10 * time.Second)
		want(t, "with doubts", box.texts(), "1 change is waiting, 1 in doubt")
		want(t, "without", silent.texts(), "1 change is waiting")
		h.doubt("c")
		h.add(wetink.KindSettled, "c", wetink.InDoubt, wetink.Applied)
		h.add(wetink.KindSettled, "d", wetink.Applying, wetink.InDoubt)
		after(10 * time.Second)
		told := []string{"1 change is waiting, 1 in doubt", "1 change is in doubt"}
		want(t, "a doubt that was solved at once", box.texts(), told...)
		h.add(wetink.KindStep, "a", wetink.InDoubt, wetink.InDoubt)
		after(time.Minute)
		want(t, "a doubt that goes on", box.texts(), told...)
	})
}

func TestACrashBetweenSendAndCursorSendsAgainWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c, box := newHistory(), newCursors(), &inbox{name: "box"}
		_, stop := run(t, h, c, nil, box)
		h.preview("a", "b")
		c.setRefuse(true) // what was sent is not recorded: for the next process it is as if this one had died
		after(10 * time.Second)
		stop()
		want(t, "before the crash", box.texts(), "2 changes are waiting")

		c.setRefuse(false)
		h.preview("c") // long after the window of the first two
		_, stop = run(t, h, c, nil, box)
		after(time.Minute)
		stop()
		want(t, "after it", box.texts(), "2 changes are waiting", "2 changes are waiting", "1 change is waiting")
		if ids := box.ids(); ids[0] != ids[1] || ids[1] == ids[2] {
			t.Errorf("ids are %q, want the first twice and another", ids)
		}

		_, stop = run(t, h, c, nil, box)
		after(time.Minute)
		stop()
		if n := box.attempted(); n != 3 {
			t.Errorf("%d attempts after a clean restart, want the 3 of before", n)
		}
	})
}

func TestACursorThatCannotBeMovedRepeatsNothingInTheSameProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c, box := newHistory(), newCursors(), &inbox{name: "box"}
		_, stop := run(t, h, c, nil, box)
		h.preview("a")
		c.setRefuse(true)
		after(time.Hour)
		if n := box.attempted(); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
		c.setRefuse(false)
		after(10 * time.Minute)
		stop()
		_, stop = run(t, h, c, nil, box)
		after(time.Minute)
		stop()
		if n := box.attempted(); n != 1 {
			t.Errorf("%d attempts once the cursor was moved, want 1", n)
		}
	})
}

func TestWhatHappensWhileNobodyRunsIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c, box := newHistory(), newCursors(), &inbox{name: "box"}
		h.preview("old-1", "old-2", "old-3")
		_, stop := run(t, h, c, nil, box)
		after(time.Hour)
		stop()
		want(t, "a new channel is not told the history", box.texts())
		h.preview("a")
		after(time.Hour)
		_, stop = run(t, h, c, nil, box)
		defer stop()
		after(time.Second)
		want(t, "what came after its first start", box.texts(), "1 change is waiting")
	})
}

func TestANewChannelFindsTheEndOfTheHistoryWithoutReadingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int{0, 1, 2, 3, 7, 8, 9, 1000, 1023, 1024, 1025} {
			h, c := newHistory(), newCursors()
			for range length {
				h.preview("old")
			}
			_, stop := run(t, h, c, nil, &inbox{name: "box"})
			stop()
			for name, at := range c.at {
				if at != int64(length) {
					t.Errorf("%s starts at %d of %d events", name, at, length)
				}
			}
			if len(c.at) != 1 || h.yielded > 30 {
				t.Errorf("%d events: %d cursors, %d events read; want 1 and few", length, len(c.at), h.yielded)
			}
		}
	})
}

func TestARestoredLedgerStartsItsOwnCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c, box := newHistory(), newCursors(), &inbox{name: "box"}
		_, stop := run(t, h, c, nil, box)
		h.preview("a", "b", "c", "d")
		after(time.Minute)
		stop()

		restored := newHistory()
		restored.id = "ledger-1, epoch 2"
		_, stop = run(t, restored, c, nil, box)
		defer stop()
		restored.preview("x", "y", "z")
		restored.preview("w")
		after(time.Minute)
		want(t, "positions of the old epoch say nothing", box.texts(), "4 changes are waiting", "4 changes are waiting")
		if ids := box.ids(); ids[0] == ids[1] {
			t.Errorf("two epochs share the id %s", ids[0])
		}
	})
}

func TestAChannelThatHangsDoesNotDelayAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, quick := newHistory(), &inbox{name: "quick"}
		hangs := &inbox{name: "hangs", send: func(ctx context.Context, _ int, _ notify.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		_, stop := run(t, h, newCursors(), nil, hangs, quick)
		defer stop()
		for i := range 3 {
			h.preview(wetink.ChangeID(fmt.Sprint(i)))
			after(10 * time.Second)
		}
		if n := len(quick.texts()); n != 3 {
			t.Errorf("%d messages in 30 s beside a channel that hangs, want 3", n)
		}
		if n := hangs.attempted(); n != 1 {
			t.Errorf("%d attempts of the one that hangs, want 1 that lasts a minute", n)
		}
		after(time.Minute)
		if n := hangs.attempted(); n != 2 {
			t.Errorf("%d attempts after its minute, want 2", n)
		}
	})
}

func TestRetriesKeepTheIDAndWaitLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		box := &inbox{name: "box", send: func(_ context.Context, attempt int, _ notify.Message) error {
			if attempt < 15 {
				return errors.New("not now")
			}
			return nil
		}}
		n, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		h.preview("a")
		after(time.Minute)
		h.preview("b") // does not slip into the message that is being tried
		after(2 * time.Hour)
		want(t, "delivered", box.texts(), "1 change is waiting", "1 change is waiting")
		ids := box.ids()
		for i, id := range ids[:15] {
			if id != ids[0] {
				t.Errorf("attempt %d has the id %s, the first %s", i+1, id, ids[0])
			}
		}
		for i := 1; i < 15; i++ {
			low := min(time.Second<<(i-1), 150*time.Second)
			if wait := box.times[i].Sub(box.times[i-1]); wait < low || wait > 2*low {
				t.Errorf("wait %d is %v, want %v to %v", i, wait, low, 2*low)
			}
		}
		if c := n.Counts()["box"]; c != (notify.Count{Sent: 2, Failed: 14}) {
			t.Errorf("counts are %+v", c)
		}
	})
}

func TestBackOffHasJitterAndAnEnd(t *testing.T) {
	for failures := range 70 {
		seen := map[time.Duration]bool{}
		for range 50 {
			d := notify.BackOff(failures)
			if d < time.Second || d > 5*time.Minute {
				t.Fatalf("after %d failures it waits %v", failures, d)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("after %d failures there are only %d different waits of 50", failures, len(seen))
		}
	}
}

func TestAMessageThatCannotBeDeliveredForADayIsGivenUpAndTheNextGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h, c := newHistory(), newCursors()
		box := &inbox{name: "box", send: func(_ context.Context, _ int, m notify.Message) error {
			if strings.HasSuffix(m.ID, "_1") {
				return errors.New("never this one")
			}
			return nil
		}}
		n, stop := run(t, h, c, &notify.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, box)
		h.preview("a")
		after(23 * time.Hour)
		h.preview("b")
		if got := n.Counts()["box"]; got.GivenUp != 0 || len(box.texts()) != 0 {
			t.Errorf("gave up before a day was over: %+v", got)
		}
		after(2 * time.Hour)
		want(t, "the next", box.texts(), "1 change is waiting")
		if got := n.Counts()["box"]; got.GivenUp != 1 || got.Sent != 1 || got.Failed < 200 {
			t.Errorf("counts are %+v", got)
		}
		stop()
		if !strings.Contains(log.String(), "gave up on a message") {
			t.Error("no line of the log says that it gave up")
		}
	})
}

func TestAnOldMessageStillGetsSomeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHistory(), newCursors()
		box := &inbox{name: "box", send: func(_ context.Context, attempt int, _ notify.Message) error {
			if attempt < 4 {
				return errors.New("no network yet")
			}
			return nil
		}}
		_, stop := run(t, h, c, nil, box)
		stop()
		h.preview("a")
		after(72 * time.Hour)
		_, stop = run(t, h, c, nil, box)
		defer stop()
		after(time.Minute)
		want(t, "after three days asleep", box.texts(), "1 change is waiting")
	})
}

func TestAnAttemptTellsWhatIsTrueThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		box := &inbox{name: "box", send: func(_ context.Context, attempt int, _ notify.Message) error {
			if attempt == 1 {
				return errors.New("not now")
			}
			return nil
		}}
		_, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		h.preview("a", "b")
		after(10 * time.Second)
		h.reject("a")
		after(10 * time.Second)
		want(t, "the second attempt", box.texts(), "1 change is waiting")
	})
}

type look func(context.Context) (int, error)

func (l look) Waiting(ctx context.Context) (int, error) { return l(ctx) }

func TestWhoCanLookSaysWhatStillWaits(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		err  error
		want []string
	}{
		{"all", 9, nil, []string{"2 changes are waiting"}},
		{"one", 1, nil, []string{"1 change is waiting"}},
		{"none", 0, nil, nil},
		{"unknown", 0, errors.New("no"), []string{"2 changes are waiting"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, box := newHistory(), &inbox{name: "box"}
			_, stop := run(t, h, newCursors(), &notify.Options{Waiting: look(func(context.Context) (int, error) { return tc.n, tc.err })}, box)
			defer stop()
			h.preview("a", "b")
			after(time.Minute)
			want(t, tc.name, box.texts(), tc.want...)
		})
	}
}

func TestOnlyTheTenantsThatWereNamedAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box := newHistory(), &inbox{name: "box"}
		_, stop := run(t, h, newCursors(), &notify.Options{Tenants: []wetink.Tenant{"theirs"}}, box)
		defer stop()
		h.preview("a")
		after(time.Minute)
		want(t, "a change of another tenant", box.texts())
		h.mu.Lock()
		h.events = append(h.events, wetink.Event{Seq: 2, At: time.Now(), Tenant: "theirs", Change: "a", Kind: wetink.KindPreviewed, To: wetink.Pending})
		h.mu.Unlock()
		h.reject("a") // the same id, in the other tenant
		after(time.Minute)
		want(t, "one of theirs", box.texts(), "1 change is waiting")
	})
}

func TestALedgerThatFailsIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, box := newHistory(), &inbox{name: "box"}
		_, stop := run(t, h, newCursors(), nil, box)
		defer stop()
		h.preview("a")
		h.mu.Lock()
		h.fail = errors.New("the disk hiccups")
		h.mu.Unlock()
		after(time.Minute)
		want(t, "after the hiccup", box.texts(), "1 change is waiting")
	})
}

func TestACursorMovesAlsoWhenThereIsNothingToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHistory(), newCursors()
		_, stop := run(t, h, c, nil, &inbox{name: "box"})
		defer stop()
		for range 2500 {
			h.add(wetink.KindRenewed, "a", wetink.Applying, wetink.Applying)
		}
		synctest.Wait()
		for name, at := range c.at {
			if at < 1500 {
				t.Errorf("%s is at %d of 2500", name, at)
			}
		}
	})
}

func TestTheLinkOfAChangeIsOnlyThereWhenAskedFor(t *testing.T) {
	const inboxLink, changeLink = "https://wetink.example/", "https://wetink.example/c/k3v9"
	per := func(_ wetink.Tenant, id wetink.ChangeID) string {
		if id == "bad" {
			return "javascript:alert(1)"
		}
		return changeLink
	}
	for _, tc := range []struct {
		name string
		per  func(wetink.Tenant, wetink.ChangeID) string
		ids  []wetink.ChangeID
		want string
	}{
		{"by default", nil, []wetink.ChangeID{"a"}, inboxLink},
		{"one change", per, []wetink.ChangeID{"a"}, changeLink},
		{"two changes", per, []wetink.ChangeID{"a", "b"}, inboxLink},
		{"a link that is none", per, []wetink.ChangeID{"bad"}, inboxLink},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, box := newHistory(), &inbox{name: "box"}
			_, stop := run(t, h, newCursors(), &notify.Options{Link: inboxLink, LinkPerChangeSEENBYCARRIERS: tc.per}, box)
			defer stop()
			h.preview(tc.ids...)
			after(time.Minute)
			if len(box.got) != 1 || box.got[0].Link != tc.want {
				t.Errorf("%s: %+v, want the link %s", tc.name, box.got, tc.want)
			}
		})
	}
}

func TestRunRefusesWhatCanNotBeRight(t *testing.T) {
	for _, link := range []string{
		"/inbox", "wetink.example", "javascript:alert(1)", "https:///x", "https://user:pw@wetink.example/", "https://wetink.example/ x",
		"https://wetink.example/\r\nBcc: x", "https://wetink.example/ü", `https://wetink.example/"`, "https://wetink.example/" + strings.Repeat("x", 500),
	} {
		err := notify.New(newHistory(), newCursors(), nil, &notify.Options{Link: link}).Run(t.Context())
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("link %q: %v, want a refusal", link, err)
		}
	}
	for _, names := range [][]string{{""}, {"a", "b", "a"}} {
		var channels []notify.Channel
		for _, name := range names {
			channels = append(channels, &inbox{name: name})
		}
		if err := notify.New(newHistory(), newCursors(), channels, nil).Run(t.Context()); err == nil {
			t.Errorf("channels named %q were not refused", names)
		}
	}
}

func TestAMessageSaysItInOneLine(t *testing.T) {
	for _, tc := range []struct {
		waiting, doubt int
		text, kind     string
	}{
		{1, 0, "1 change is waiting", "change.waiting"},
		{3, 0, "3 changes are waiting", "change.waiting"},
		{0, 1, "1 change is in doubt", "change.in_doubt"},
		{0, 2, "2 changes are in doubt", "change.in_doubt"},
		{2, 1, "2 changes are waiting, 1 in doubt", "change.waiting"},
	} {
		m := notify.Message{Waiting: tc.waiting, InDoubt: tc.doubt}
		if m.Text() != tc.text || m.Type() != tc.kind {
			t.Errorf("%d and %d: %q of type %s", tc.waiting, tc.doubt, m.Text(), m.Type())
		}
	}
}

func TestAMessageFitsIntoAKibibyte(t *testing.T) {
	m := message()
	m.Waiting, m.InDoubt, m.Link = 1<<40, 1<<40, "https://wetink.example/"+strings.Repeat("&", 489)
	b, err := m.Bytes()
	if err != nil || len(b) > 1024 {
		t.Errorf("the longest message that Run sends has %d bytes: %v", len(b), err)
	}
	m.Link += strings.Repeat("&", 1024)
	if _, err := m.Bytes(); err == nil {
		t.Error("a message over 1 KiB was not refused")
	}
}

// message is what the channels are tested with.
func message() notify.Message {
	return notify.Message{ID: "msg_0123456789abcdef_42", Waiting: 2, Link: "https://wetink.example/?a=1&b=2",
		At: time.Date(2026, 3, 5, 7, 8, 9, 120e6, time.UTC)}
}
