package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/wetink/wetink"
)

// Events is what a Notifier reads; every wetink.Ledger is one.
type Events interface {
	// Events yields what was committed after seq, as wetink.Ledger says.
	Events(ctx context.Context, after int64, follow bool) iter.Seq2[wetink.Event, error]
	// ID is the ledger's id and epoch. Message ids and cursors belong to it: a ledger that was restored from a copy
	// counts again from where the copy ended.
	ID() string
}

// Cursors keeps positions durably.
type Cursors interface {
	// Cursor returns wetink.Newest (not 0) for a name that was never set.
	Cursor(ctx context.Context, name string) (int64, error)
	// SetCursor is durable when it returns nil.
	SetCursor(ctx context.Context, name string, seq int64) error
}

// Channel brings a Message to somebody.
type Channel interface {
	// Name is stable and unique: the cursor hangs on it. A renamed channel is a new one.
	Name() string
	// Send returns nil once the message was accepted, and any error otherwise; then it is called again later with
	// the same Message.ID. It must end when ctx does. It is never called twice at once by one Notifier.
	Send(ctx context.Context, m Message) error
}

// Waiting may say more than the Events do: an expiry that nobody has written down yet, or that a change needs no
// person because its agent holds the ticket.
type Waiting interface {
	// Waiting returns how many changes wait for a person now.
	Waiting(ctx context.Context) (n int, err error)
}

// Options of a Notifier. The zero value tells of every change that waits or is in doubt, without a link.
type Options struct {
	// Link is where people look: the inbox. It must carry no power and no secret.
	Link string
	// LinkPerChangeSEENBYCARRIERS replaces Link in a message about exactly one change. Whoever carries the message can
	// then tell one change from another, and sees when the same one is told of again. "" stands for Link.
	LinkPerChangeSEENBYCARRIERS func(wetink.Tenant, wetink.ChangeID) string

	Gather        time.Duration   // what happens within this time after a first event is told in one message; 0: 10 s
	WithoutDoubts bool            // do not tell that an outcome is unknown
	Tenants       []wetink.Tenant // whose changes; nil: of everybody in this ledger
	Waiting       Waiting         // asked before each attempt; nil: only the Events count

	GiveUp  time.Duration // after this time since the event, a message that could not be delivered is dropped; 0: 24 h
	Timeout time.Duration // of one attempt; 0: 1 minute

	Now func() time.Time // nil: time.Now. Compared with Event.At.
	Log *slog.Logger     // nil: slog.Default
}

// Count says what became of the messages of a channel since Run began.
type Count struct {
	Sent    int // messages delivered
	Failed  int // attempts that failed
	GivenUp int // messages dropped after Options.GiveUp
}

// Notifier runs channels. Its methods are safe for concurrent use.
type Notifier struct {
	events   Events
	cursors  Cursors
	channels []Channel
	opt      Options
	hash     string // of the ledger's id, which is nobody's business outside

	mu     sync.Mutex
	counts map[string]Count
}

// New makes a Notifier. Nothing happens before Run.
func New(events Events, cursors Cursors, channels []Channel, o *Options) *Notifier {
	sum := sha256.Sum256([]byte("wetink/notify/v1\x00" + events.ID()))
	n := &Notifier{events: events, cursors: cursors, channels: channels, hash: hex.EncodeToString(sum[:8]), counts: map[string]Count{}}
	if o != nil {
		n.opt = *o
	}
	if n.opt.Gather == 0 {
		n.opt.Gather = 10 * time.Second
	}
	if n.opt.GiveUp == 0 {
		n.opt.GiveUp = 24 * time.Hour
	}
	if n.opt.Timeout == 0 {
		n.opt.Timeout = time.Minute
	}
	if n.opt.Now == nil {
		n.opt.Now = time.Now
	}
	if n.opt.Log == nil {
		n.opt.Log = slog.Default()
	}
	return n
}

// Run serves all channels until ctx ends and returns its error. It refuses to start with a link that is none or
// with two channels of one name; every other error is logged and tried again.
//
// Of several processes on one ledger only one should run it. If two do, each message is sent twice, under one id.
func (n *Notifier) Run(ctx context.Context) error {
	if err := checkLink(n.opt.Link); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	seen := map[string]bool{}
	for _, c := range n.channels {
		if c.Name() == "" || seen[c.Name()] {
			return fmt.Errorf("notify: two channels are named %q, or it is empty: give each its own name", c.Name())
		}
		seen[c.Name()] = true
	}
	var wg sync.WaitGroup
	for _, c := range n.channels {
		wg.Go(func() { n.serve(ctx, c) })
	}
	<-ctx.Done()
	wg.Wait()
	return ctx.Err()
}

// serve reads for one channel until ctx ends, however often the ledger or the store of cursors fails.
func (n *Notifier) serve(ctx context.Context, c Channel) {
	r := &reader{Notifier: n, channel: c, name: "notify/" + n.hash + "/" + c.Name(), saved: wetink.Newest, at: wetink.Newest}
	for failures := 0; ctx.Err() == nil; failures++ {
		before := r.at
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if r.at != before {
			failures = 0
		}
		if err == nil {
			err = errors.New("the ledger stopped")
		}
		wait := backOff(failures)
		n.opt.Log.ErrorContext(ctx, "notify: cannot read on; will try again", "channel", c.Name(), "in", wait, "err", err)
		sleep(ctx, wait)
	}
}

// Counts returns a copy, by the name of the channel.
func (n *Notifier) Counts() map[string]Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}

func (n *Notifier) count(channel string, add func(*Count)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counts[channel]
	add(&c)
	n.counts[channel] = c
}
