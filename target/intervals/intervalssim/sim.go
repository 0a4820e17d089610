package intervalssim

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options are the switches. The zero value is the service as far as it is known, with an empty calendar.
type Options struct {
	// Now is the clock; nil is time.Now. Fault clock:+16m moves it.
	Now func() time.Time
	// Seed names what is on the first athlete's calendar: "" nothing, "demo" two weeks around today (see seed.go).
	Seed string

	// NullSemantics of an event PUT: "ignore" (default) keeps the value, "clear" empties it. Not known of events; wellness
	// nulls are ignored.
	NullSemantics string
	// ShiftEnd: what a new start_date_local alone does to the end of a one-day event: "follow" (default) or "keep".
	ShiftEnd string
	// WorkoutDocWrite: "ignore" (default) a workout_doc that is sent, or "accept_without_description". Both are reported.
	WorkoutDocWrite string
	// UpdatedMovesByItself lets the server's own recomputation and device pushes touch `updated`.
	UpdatedMovesByItself bool
	// StrictUnknownKeys answers 400 to an event with a member that the schema lacks, instead of ignoring it.
	StrictUnknownKeys bool
	// BulkAtomic creates all events of a bulk call or, when one is refused, none. Otherwise those before it stay.
	BulkAtomic bool
	// LockedForbidden answers 403 to a write of an event with athlete_cannot_edit. Otherwise a key may write it.
	LockedForbidden bool
	// BulkLimit is the most events in one bulk call; 0 is 500.
	BulkLimit int
	// RecalcDelay is how long CTL and ATL lag behind a write; 0 not at all.
	RecalcDelay time.Duration
	// BurstPerSecond answers 429, without the headers, to more requests than this in one second; 0 to none. The service has 10.
	BurstPerSecond int
	// EnforceQuota answers 429 when the quota of the rate-limit headers is used up. Otherwise they only count down.
	EnforceQuota bool
	// QuotaQuarter and QuotaDay are requests per 15 minutes and per day; 0 is 2500 and 5000.
	QuotaQuarter, QuotaDay int
}

// Sim is a simulator. All methods may be called from any number of goroutines.
type Sim struct {
	opts    Options
	handler http.Handler
	first   *athlete

	mu       sync.Mutex // everything below
	offset   time.Duration
	athletes []*athlete
	tokens   map[string]token
	nextID   int64
	nextAct  int
	requests []Request
	effects  []Effect
	outbox   []Push
	faults   []*fault
	held     map[int]chan struct{} // by request
	holding  chan int              // requests that are newly held
	closed   chan struct{}
	second   time.Time // of the burst limit
	inSecond int
}

// token is an OAuth access token.
type token struct {
	athlete *athlete
	client  int64
	scopes  map[string]bool
}

// New makes a simulator with one athlete, i900001 in Europe/Madrid, and a key of its own. nil options are the zero ones.
// It panics on an option it does not know, for it is a test that gave it.
func New(o *Options) *Sim {
	s := &Sim{nextID: firstEvent, nextAct: 88001101, tokens: map[string]token{}, held: map[int]chan struct{}{}, holding: make(chan int, 1024), closed: make(chan struct{})}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	oneOf("NullSemantics", &s.opts.NullSemantics, "ignore", "clear")
	oneOf("ShiftEnd", &s.opts.ShiftEnd, "follow", "keep")
	oneOf("WorkoutDocWrite", &s.opts.WorkoutDocWrite, "ignore", "accept_without_description")
	orElse(&s.opts.BulkLimit, 500)
	orElse(&s.opts.QuotaQuarter, 2500)
	orElse(&s.opts.QuotaDay, 5000)
	s.handler = s.routes()
	s.first = s.addAthlete(AthleteOptions{ID: "i900001", Name: "Sam Sample", TimeZone: "Europe/Madrid", Seed: s.opts.Seed})
	return s
}

func oneOf(name string, value *string, first string, others ...string) {
	if *value == "" {
		*value = first
	}
	for _, o := range append(others, first) {
		if *value == o {
			return
		}
	}
	panic(fmt.Sprintf("intervalssim: Options.%s %q is none of %s %v", name, *value, first, others))
}

func orElse(value *int, otherwise int) {
	if *value == 0 {
		*value = otherwise
	}
}

// APIKey is the first athlete's key.
func (s *Sim) APIKey() string { return s.first.key }

// AthleteID is the first athlete's id.
func (s *Sim) AthleteID() string { return s.first.id }

// AthleteOptions describe another account.
type AthleteOptions struct {
	ID       string // "" is the next free one
	Name     string
	TimeZone string // IANA; "" is UTC
	FTP      int    // W; 0 is 250
	Seed     string // as Options.Seed
}

// AddAthlete adds an account with its own key and calendar.
func (s *Sim) AddAthlete(o AthleteOptions) (id, apiKey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.addAthlete(o)
	return a.id, a.key
}

// AddToken grants an OAuth application access to an athlete, with scopes such as CALENDAR:READ. Every token is another
// application: it upserts only what it created itself.
func (s *Sim) AddToken(athleteID string, scopes ...string) (accessToken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := token{client: int64(len(s.tokens) + 101), scopes: map[string]bool{}}
	for _, a := range s.athletes {
		if a.id == athleteID {
			t.athlete = a
		}
	}
	for _, scope := range scopes {
		t.scopes[scope] = true
	}
	accessToken = secret("")
	s.tokens[accessToken] = t
	return accessToken
}

func (s *Sim) addAthlete(o AthleteOptions) *athlete {
	zone, err := time.LoadLocation(o.TimeZone)
	if err != nil {
		panic(fmt.Sprintf("intervalssim: time zone of athlete %s: %v", o.ID, err))
	}
	if o.ID == "" {
		o.ID = fmt.Sprintf("i%d", 900001+len(s.athletes))
	}
	orElse(&o.FTP, 250)
	a := newAthlete(o, zone, secret(""))
	s.athletes = append(s.athletes, a)
	switch o.Seed {
	case "":
	case "demo":
		s.seedDemo(a)
	default:
		panic(fmt.Sprintf("intervalssim: no seed is called %q", o.Seed))
	}
	return a
}

// secret is a key that exists in this process only.
func secret(prefix string) string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return prefix + hex.EncodeToString(b)
}

// now is the simulator's time. mu is held.
func (s *Sim) now() time.Time { return s.opts.Now().Add(s.offset) }

// Serve listens on a loopback address, such as 127.0.0.1:0, and answers until ctx ends. It returns as soon as it listens.
func (s *Sim) Serve(ctx context.Context, listen string) (url string, err error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("listen on %q: %w", listen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("listen on %q: %w", listen, ErrNotLoopback)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return "", fmt.Errorf("listen on %q: %w", listen, err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		s.Close()
		_ = server.Close()
	}()
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// ErrNotLoopback refuses to put an unauthenticated admin surface on a network. Listen on 127.0.0.1.
var ErrNotLoopback = errors.New("the simulator listens on loopback addresses only, such as 127.0.0.1:0")

// Close lets go of requests that a hold or slow fault keeps; held writes are dropped. The handler answers on.
func (s *Sim) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}
