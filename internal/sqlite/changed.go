package sqlite

import (
	"sync"
	"time"
)

// Changed returns a channel that is closed after the next commit of this process or another, or when the DB closes.
// To follow without missing anything: take the channel, read, and wait on it only if there was nothing new.
// It may be closed without a reason; it is never left open after one. Another process's commit is seen within
// Options.Poll.
func (db *DB) Changed() <-chan struct{} { return db.changed.wait() }

// changed wakes whoever waits. This process's commits tell it; for those of others it asks SQLite, and only while
// somebody waits.
type changed struct {
	db *DB
	c  *conn // of the poll goroutine

	mu      sync.Mutex
	next    chan struct{} // nil: nobody waits
	started bool
	asked   chan struct{} // holds one token when somebody has begun to wait
	ended   chan struct{}
}

func (n *changed) start(db *DB) {
	n.db = db
	n.asked, n.ended = make(chan struct{}, 1), make(chan struct{})
}

func (n *changed) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.db.isClosing() {
		return n.db.closing
	}
	if n.next == nil {
		n.next = make(chan struct{})
		select {
		case n.asked <- struct{}{}:
		default:
		}
	}
	if !n.started {
		n.started = true
		go n.poll()
	}
	return n.next
}

func (n *changed) broadcast() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

func (n *changed) waited() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next != nil
}

func (n *changed) stop() error {
	n.mu.Lock()
	started := n.started
	n.started = true // nothing starts any more
	n.mu.Unlock()
	if started {
		<-n.ended
	}
	n.broadcast()
	return n.c.Close()
}

// poll compares SQLite's data_version, a number of the connection that changes with every commit of another
// connection (https://sqlite.org/pragma.html#pragma_data_version). A commit between two waits is told in the
// second: too often rather than too seldom.
func (n *changed) poll() {
	defer close(n.ended)
	ticks := time.NewTicker(n.db.options.Poll)
	defer ticks.Stop()
	var known int64
	for {
		select {
		case <-n.db.closing:
			return
		case <-n.asked:
		}
		for n.waited() {
			select {
			case <-n.db.closing:
				return
			case <-ticks.C:
			}
			version, err := n.version()
			if err != nil || version != known { // with an error the follower reads, and meets it itself
				known = version
				n.broadcast()
			}
		}
	}
}

func (n *changed) version() (int64, error) {
	if n.c == nil {
		c, err := n.db.connect(n.db.path, false)
		if err != nil {
			return 0, err
		}
		n.c = c
	}
	return n.c.int64(`PRAGMA data_version`)
}
