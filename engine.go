package wetink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/wetink/wetink/internal/crashpoint"
	"github.com/wetink/wetink/internal/strictjson"
)

// Options of an Engine. The zero value is the production default.
type Options struct {
	Policy    Policy              // nil: level Session for everything
	Verifiers map[string]Verifier // by Evidence.Kind; tickets are built in
	// AllowTokenAtTerminal lets HandOut give a confirmation token to a person, who hands it to the agent.
	AllowTokenAtTerminal bool

	Mode  Mode          // what counts until somebody set the ledger's switch; unset: ModeOff
	TTL   time.Duration // of a preview; 0: 15 minutes
	Start time.Duration // how long after Expires an approved Change may still be started; 0: 15 minutes
	Lease time.Duration // of a claim, renewed with every step; 0: 60 s. One send must fit into two thirds of it.
	Sweep time.Duration // how often Run looks at what is due; 0: 1 s

	Blobs BlobReader
	Owner string // names this process in claims, for people
	Log   *slog.Logger
}

// Engine has the verbs. It keeps no state of its own but calls in flight: any number of Engines, in any
// number of processes, may share a Ledger. All methods are safe for concurrent use.
type Engine struct {
	ledger  Ledger
	targets map[string]Target
	opt     Options

	mu      sync.Mutex
	flights map[string]*flight // by verb and change id
}

// New returns an Engine for the targets that this process holds. A process without targets can still show,
// approve and reject; another one executes.
func New(l Ledger, targets map[string]Target, o *Options) *Engine {
	e := &Engine{ledger: l, targets: targets, flights: map[string]*flight{}}
	if o != nil {
		e.opt = *o
	}
	if e.opt.Policy == nil {
		e.opt.Policy = Floor{Level: Session, People: 1}
	}
	if e.opt.Mode == ModeUnset {
		e.opt.Mode = ModeOff
	}
	if e.opt.Log == nil {
		e.opt.Log = slog.New(slog.DiscardHandler)
	}
	for d, def := range map[*time.Duration]time.Duration{
		&e.opt.TTL: 15 * time.Minute, &e.opt.Start: 15 * time.Minute, &e.opt.Lease: time.Minute, &e.opt.Sweep: time.Second,
	} {
		if *d == 0 {
			*d = def
		}
	}
	return e
}

// Mode is the one that counts now: the ledger's switch, or this process's default while nobody set it.
func (e *Engine) Mode(ctx context.Context) (Mode, error) {
	m, err := e.ledger.Mode(ctx)
	if err != nil {
		return ModeOff, fmt.Errorf("read write mode: %w", err)
	}
	if m == ModeUnset {
		m = e.opt.Mode
	}
	return m, nil
}

// Preview prepares req and writes a Pending Change. It writes nothing outside, and works in every mode.
// The Ticket is zero unless the level is Agent.
//
// Order of effects: limits → Target.Prepare (reads only) → Policy decides → a level that nobody here can
// give is refused → Statement → ticket → one Advance (row and event), durable before the answer.
func (e *Engine) Preview(ctx context.Context, target string, req Request) (Change, Ticket, error) {
	return e.prepare(ctx, target, req, origin{})
}

// Replace previews again: an edited request, some rows only, or the same against the present state (nil
// args). The old Change becomes Superseded in the same transaction; one that ended without any effect stays as it is.
func (e *Engine) Replace(ctx context.Context, by Principal, old ChangeID, args []byte) (Change, Ticket, error) {
	c, err := e.ledger.Get(ctx, by.Tenant, old)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("replace %s: %w", old, err)
	}
	if len(c.Undoes) > 0 {
		return Change{}, Ticket{}, fmt.Errorf("replace %s: %w: it is an undo; reject it and undo again", old, ErrState)
	}
	if c.Status != Pending && c.Status != Approved && c.Status != Expired && c.Status != Failed {
		return Change{}, Ticket{}, fmt.Errorf("replace %s: %w", old, stateError(c))
	}
	req := Request{By: by, Tool: c.Request.Tool, Args: c.Request.Args}
	if args != nil {
		req.Args = args
	}
	return e.prepare(ctx, c.Target, req, origin{replaces: &c})
}

// origin says what a new Change comes from.
type origin struct {
	replaces *Change
	undoes   []Change
	approval *Approval // an undo that is approved as it is planned
}

func (e *Engine) prepare(ctx context.Context, target string, req Request, from origin) (Change, Ticket, error) {
	c, ticket, moves, err := e.draft(ctx, target, req, from)
	if err != nil {
		return Change{}, Ticket{}, err
	}
	crashpoint.Here(crashpoint.BeforePreview)
	if _, err := e.ledger.Advance(ctx, moves...); err != nil {
		return Change{}, Ticket{}, fmt.Errorf("store preview: %w", err)
	}
	crashpoint.Here(crashpoint.AfterPreview)
	c, err = e.ledger.Get(ctx, c.Tenant, c.ID)
	return c, ticket, err
}

// draft makes a new Change and the Moves that store it: the old one superseded, the new one pending.
func (e *Engine) draft(ctx context.Context, target string, req Request, from origin) (c Change, ticket Ticket, list []Move, err error) {
	if !req.By.May(ScopePrepare) {
		return c, ticket, nil, fmt.Errorf("preview: %w: the connection lacks %s", ErrScope, ScopePrepare)
	}
	if err := strictjson.Check(req.Args, strictjson.Default); err != nil {
		return c, ticket, nil, fmt.Errorf("preview: %w", asRequestError(req.Args, err))
	}
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	tgt, ok := e.targets[target]
	if !ok {
		return c, ticket, nil, fmt.Errorf("preview on %q: %w", target, ErrNoTarget)
	}
	acct, version, err := tgt.Account(ctx)
	if err != nil {
		return c, ticket, nil, fmt.Errorf("preview: ask %s for the account: %w", target, err)
	}
	p, err := tgt.Prepare(ctx, req)
	if err != nil {
		return c, ticket, nil, fmt.Errorf("preview: %w", err)
	}
	switch {
	case p.Account != acct:
		return c, ticket, nil, fmt.Errorf("preview: %w between two reads", ErrAccount)
	case len(p.Ops) == 0 || len(p.Ops) != len(p.Before):
		return c, ticket, nil, fmt.Errorf("preview: %s prepared %d operations with %d snapshots", target, len(p.Ops), len(p.Before))
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return c, ticket, nil, fmt.Errorf("preview: %w", err)
	}
	t := Terms{
		V: 1, Change: newChangeID(now), Nonce: make([]byte, 32), Ledger: e.ledger.ID(), Tenant: req.By.Tenant,
		Requester: req.By.Person, Client: req.By.Client, Target: target, Version: version, Account: acct,
		OnFailure: p.OnFailure, Undo: p.Undo, Warnings: p.Warnings, Context: p.Context, Ops: slices.Clone(p.Ops),
	}
	rand.Read(t.Nonce)
	if t.OnFailure == "" {
		t.OnFailure = StopOnFailure
	}
	if t.Undo.Extent == "" {
		t.Undo.Extent = NoUndo
	}
	for i := range t.Ops {
		t.Ops[i].Before = p.Before[i].Digest()
		if t.Ops[i].Key == "" {
			t.Ops[i].Key = fmt.Sprintf("%s-%02d", t.Change, i)
		}
	}
	if from.replaces != nil {
		t.Replaces = from.replaces.ID
	}
	for _, parent := range from.undoes {
		t.Undoes = append(t.Undoes, Undone{parent.ID, parent.effects()})
	}
	d, err := e.decide(ctx, tgt, t, p.Before)
	if err != nil {
		return c, ticket, nil, fmt.Errorf("preview: ask the policy: %w", err)
	}
	if d.Deny != "" {
		return c, ticket, nil, fmt.Errorf("preview: %w: %s", ErrDenied, d.Deny)
	}
	ordered := from.approval != nil && from.approval.Evidence.Kind == EvidenceOrdered
	if ordered { // the parent's approval covers it
		d.Require = Require{Level: Auto, People: 1}
	}
	if d.Require.Level > Agent {
		if reach := e.reach(ctx); reach < d.Require.Level {
			how := "ask for a level that can be reached, or set up a way to approve at that one"
			if d.Require.Level == Session || d.Require.Level == Reauth {
				how = "run `wetink setup` to choose a passphrase, which is enough for it"
			}
			return c, ticket, nil, fmt.Errorf("preview: %w: this change needs level %s, and what is set up gives %s; %s",
				ErrNoChannel, d.Require.Level, reach, how)
		}
	}
	ttl := e.opt.TTL
	if d.TTL > 0 {
		ttl = d.TTL
	}
	t.Policy, t.Require = d.Version, d.Require
	t.Expires, t.StartBy = now.Add(ttl), now.Add(ttl+e.opt.Start)
	s, err := Encode(t)
	if err != nil {
		return c, ticket, nil, fmt.Errorf("preview: %w", err)
	}
	c = Change{
		ID: t.Change, Tenant: t.Tenant, Request: req, Statement: s, Before: p.Before,
		Target: target, Account: acct, Undoes: t.Undoes, Replaces: t.Replaces,
	}
	birth := Move{
		Tenant: c.Tenant, ID: c.ID, To: Pending, New: &c, Due: t.Expires,
		Event: Event{Kind: KindPreviewed, By: t.Requester, Client: t.Client, Digest: s.Digest()},
	}
	if ordered {
		birth.To, birth.Due, birth.Approval, birth.Event.Kind = Approved, t.StartBy, from.approval, KindOrdered
	}
	if from.approval == nil && t.Require.Level <= Agent && t.Require.People <= 1 {
		var sealed Sealed
		ticket, sealed = mint(VerbApply, DeliveredResult, c.ID, s.Digest(), t.Expires)
		birth.Ticket = &sealed
	}
	if old := from.replaces; old != nil && (old.Status == Pending || old.Status == Approved) {
		m := e.move(*old, Superseded, KindSuperseded)
		m.Event.By, m.Event.Client = req.By.Person, req.By.Client
		m.Event.Facts = map[string]string{"by": string(c.ID)}
		m.Why = "replaced by " + string(c.ID)
		list = append(list, m)
	}
	return c, ticket, append(list, birth), nil
}

// bounded keeps a read outside from holding a verb for ever.
func (e *Engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.opt.Lease)
}

// HandOut mints a confirmation token for a person at a terminal, who may hand it to the agent: pasting it is
// the approval. It counts as Host and is recorded as delivered out of band. Refused unless configured.
func (e *Engine) HandOut(ctx context.Context, by Principal, id ChangeID) (Ticket, error) {
	if !e.opt.AllowTokenAtTerminal {
		return Ticket{}, fmt.Errorf("hand out a token for %s: %w: turn on `terminal_token` in the configuration", id, ErrNoChannel)
	}
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Ticket{}, fmt.Errorf("hand out a token for %s: %w", id, err)
	}
	if c.Status != Pending {
		return Ticket{}, fmt.Errorf("hand out a token for %s: %w: it is %s", id, ErrState, c.Status)
	}
	t, err := c.Terms()
	if err != nil {
		return Ticket{}, err
	}
	ticket, sealed := mint(VerbApply, DeliveredTerminal, c.ID, c.Statement.Digest(), t.Expires)
	if l := sealed.level(); l < t.Require.Level {
		return Ticket{}, fmt.Errorf("hand out a token for %s: %w: it reaches %s and the change needs %s; use `wetink approve %s`", id, ErrLevel, l, t.Require.Level, id)
	}
	m := e.move(c, Pending, KindTicket)
	m.Ticket, m.Before, m.Due = &sealed, t.Expires, t.Expires
	m.Event.By = by.Person
	m.Event.Facts = map[string]string{"verb": VerbApply, "delivered": DeliveredTerminal}
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return Ticket{}, fmt.Errorf("hand out a token for %s: %w", id, err)
	}
	return ticket, nil
}

// Approve adds evidence; when it is enough, the Change becomes Approved. It sends nothing.
//
// Order of effects: evidence verified against the stored Statement → one Advance, pending → pending (one
// more person) or pending → approved, refused by the ledger's clock after Expires.
func (e *Engine) Approve(ctx context.Context, by Principal, id ChangeID, ev Evidence) (Change, error) {
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, fmt.Errorf("approve %s: %w", id, err)
	}
	t, err := c.Terms()
	if err != nil {
		return c, err
	}
	if c.Status != Pending {
		return c, fmt.Errorf("approve %s: %w", id, stateError(c))
	}
	m, err := e.approval(ctx, c, t, ev)
	if err != nil {
		return c, fmt.Errorf("approve %s: %w", id, err)
	}
	crashpoint.Here(crashpoint.BeforeApprove)
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return c, fmt.Errorf("approve %s: %w", id, err)
	}
	crashpoint.Here(crashpoint.AfterApprove)
	return e.ledger.Get(ctx, by.Tenant, id)
}

// Reject ends a Pending or Approved Change. It loses against a claim and wins against everything before it.
func (e *Engine) Reject(ctx context.Context, by Principal, id ChangeID, why string) (Change, error) {
	for range 8 {
		c, err := e.ledger.Get(ctx, by.Tenant, id)
		if err != nil {
			return Change{}, fmt.Errorf("reject %s: %w", id, err)
		}
		if c.Status != Pending && c.Status != Approved {
			return c, fmt.Errorf("reject %s: %w", id, stateError(c))
		}
		m := e.move(c, Rejected, KindRejected)
		m.Why = why
		m.Event.By, m.Event.Client = by.Person, by.Client
		_, err = e.ledger.Advance(ctx, m)
		if errors.Is(err, ErrConflict) {
			continue // one more approval, or the claim, came first: decide again
		}
		if err != nil {
			return c, fmt.Errorf("reject %s: %w", id, err)
		}
		return e.ledger.Get(ctx, by.Tenant, id)
	}
	return Change{}, fmt.Errorf("reject %s: %w", id, ErrConflict)
}

// Apply claims a Change and executes it, here. A Change of level Agent or Host is approved by the ticket in
// ev, and both moves commit together; with nil it must be Approved already.
//
// Called again with the right ticket it waits and answers with the recorded outcome and a fresh undo ticket:
// a client that blindly sends the call again does no harm and learns what happened. The outcome is in the
// Change's Status; an error means that nothing was claimed by this call, and that nothing was burned.
func (e *Engine) Apply(ctx context.Context, by Principal, id ChangeID, ev *Evidence) (Change, Ticket, error) {
	if !by.May(ScopeApply) {
		return Change{}, Ticket{}, fmt.Errorf("apply %s: %w: the connection lacks %s", id, ErrScope, ScopeApply)
	}
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("apply %s: %w", id, err)
	}
	if ev == nil {
		return e.apply(ctx, c, nil)
	}
	if s, ok := c.sealed(VerbApply); !ok || !s.Opens(ev.Ticket, c.ID, c.Statement.Digest()) {
		return Change{}, Ticket{}, fmt.Errorf("apply %s: %w", id, ErrTicket)
	}
	// The same call sent five times at once gets one answer, with one undo ticket that lives.
	return e.join(ctx, VerbApply, id, func(ctx context.Context) (Change, Ticket, error) { return e.apply(ctx, c, ev) })
}

// flight is an Apply or Undo in progress that callers with the same right share.
type flight struct {
	done   chan struct{}
	change Change
	ticket Ticket
	err    error
}

// join runs f once for all that ask while it runs. It goes on when its caller goes away: a closed
// connection must not leave a claim half done.
func (e *Engine) join(ctx context.Context, verb string, id ChangeID, f func(context.Context) (Change, Ticket, error)) (Change, Ticket, error) {
	key := verb + " " + string(id)
	e.mu.Lock()
	fl := e.flights[key]
	if fl == nil {
		fl = &flight{done: make(chan struct{})}
		e.flights[key] = fl
		go func() {
			fl.change, fl.ticket, fl.err = f(context.WithoutCancel(ctx))
			e.mu.Lock()
			delete(e.flights, key)
			e.mu.Unlock()
			close(fl.done)
		}()
	}
	e.mu.Unlock()
	select {
	case <-fl.done:
		return fl.change, fl.ticket, fl.err
	case <-ctx.Done():
		return Change{}, Ticket{}, fmt.Errorf("%s %s: it goes on; ask for its status: %w", verb, id, ctx.Err())
	}
}

// apply decides by the row's status; only the first call of all finds Pending or Approved.
func (e *Engine) apply(ctx context.Context, c Change, ev *Evidence) (Change, Ticket, error) {
	id := c.ID
	for range 8 {
		switch c.Status {
		case Pending, Approved:
			done, ticket, err := e.claim(ctx, c, ev)
			if !errors.Is(err, ErrConflict) {
				return done, ticket, err
			}
		case Applying:
			if err := e.awaitClaim(ctx, c); err != nil {
				return c, Ticket{}, fmt.Errorf("apply %s: %w", id, err)
			}
		case Applied, Partial:
			ticket := Ticket{}
			if ev != nil {
				var err error
				if ticket, err = e.freshUndo(ctx, c); errors.Is(err, ErrConflict) {
					break
				} else if err != nil {
					return c, Ticket{}, fmt.Errorf("apply %s: %w", id, err)
				}
			}
			c, err := e.ledger.Get(ctx, c.Tenant, id)
			return c, ticket, err
		case Failed, InDoubt:
			return c, Ticket{}, nil
		case Expired, Rejected, Superseded:
			return c, Ticket{}, fmt.Errorf("apply %s: %w", id, stateError(c))
		}
		var err error
		if c, err = e.ledger.Get(ctx, c.Tenant, id); err != nil {
			return Change{}, Ticket{}, fmt.Errorf("apply %s: %w", id, err)
		}
	}
	return c, Ticket{}, fmt.Errorf("apply %s: %w", id, ErrConflict)
}

// Status returns a Change and the latest one that undoes it, or nil; an undo that was undone does not count. With
// wait it answers as soon as something moved, or after that time with what it is then.
func (e *Engine) Status(ctx context.Context, by Principal, id ChangeID, wait time.Duration) (c Change, undo *Change, err error) {
	if c, err = e.ledger.Get(ctx, by.Tenant, id); err != nil {
		return c, nil, fmt.Errorf("status of %s: %w", id, err)
	}
	if _, undo, err = e.inEffect(ctx, c); err != nil {
		return c, nil, fmt.Errorf("status of %s: %w", id, err)
	}
	watch := c
	if undo != nil {
		watch = *undo
	}
	if wait <= 0 || watch.Status.Settled() {
		return c, undo, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = e.await(ctx, watch, func(now Change) bool { return now.Status != watch.Status })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return c, undo, err
	}
	return e.Status(context.WithoutCancel(ctx), by, id, 0)
}

// await returns when done holds of the row, or with ctx's error.
func (e *Engine) await(ctx context.Context, c Change, done func(Change) bool) error {
	events := e.ledger.Events(ctx, Newest, true) // before the look, so that nothing is missed between
	for {
		now, err := e.ledger.Get(ctx, c.Tenant, c.ID)
		if err != nil || done(now) {
			return err
		}
		for ev, err := range events {
			if err != nil {
				return err
			}
			if ev.Change == c.ID {
				break
			}
		}
		events = e.ledger.Events(ctx, Newest, true)
	}
}

// awaitClaim waits for whoever claimed c, but not beyond the lease: then it says that the outcome is in doubt, so
// that nobody waits for a process that is gone.
func (e *Engine) awaitClaim(ctx context.Context, c Change) error {
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, c.Claim.Lease.Sub(now)+time.Millisecond)
	defer cancel()
	err = e.await(wait, c, func(c Change) bool { return c.Status != Applying })
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err := e.doubt(ctx, c); err != nil && !refused(err) { // refused: it moved, or the lease was renewed
		return err
	}
	return nil
}

// move starts a Move of the row as it is.
func (e *Engine) move(c Change, to Status, kind string) Move {
	return Move{Tenant: c.Tenant, ID: c.ID, Rev: c.Rev, From: c.Status, To: to,
		Event: Event{Kind: kind, Digest: c.Statement.Digest()}}
}

// stateError says why a verb is not possible, in the word that a person needs: expired is not declined.
func stateError(c Change) error {
	switch c.Status {
	case Expired:
		return fmt.Errorf("%w: nobody approved and started it in time; make a fresh preview", ErrExpired)
	case Rejected:
		return fmt.Errorf("%w: it was declined", ErrState)
	case Superseded:
		return fmt.Errorf("%w: it was %s", ErrState, c.Why)
	case Pending:
		return ErrNotApproved
	case Approved, Applying, Applied, Failed, Partial, InDoubt:
	}
	return fmt.Errorf("%w: it is %s", ErrState, Shown(c, nil))
}
