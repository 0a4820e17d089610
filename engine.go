package wetink

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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
// args). The old Change becomes Superseded in the same transaction.
func (e *Engine) Replace(ctx context.Context, by Principal, old ChangeID, args []byte) (Change, Ticket, error) {
	c, err := e.ledger.Get(ctx, by.Tenant, old)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("replace %s: %w", old, err)
	}
	if c.Undoes != "" {
		return Change{}, Ticket{}, fmt.Errorf("replace %s: %w: it is an undo; reject it and undo again", old, ErrState)
	}
	if c.Status != Pending && c.Status != Approved && c.Status != Expired {
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
	undoes   *Change
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
		OnFailure: p.OnFailure, Undo: p.Undo, Warnings: p.Warnings, Ops: slices.Clone(p.Ops),
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
	if from.undoes != nil {
		t.Undoes = from.undoes.ID
	}
	d, err := e.opt.Policy.Decide(ctx, t, p.Before)
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
			if d.Require.Level == Reauth {
				how = "run `wetink setup` to choose a passphrase"
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
	if old := from.replaces; old != nil && old.Status != Expired {
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

// reach is the best level that a person can give here.
func (e *Engine) reach(ctx context.Context) Level {
	best := Agent
	if e.opt.AllowTokenAtTerminal {
		best = Host
	}
	for _, v := range e.opt.Verifiers {
		best = max(best, v.Reach(ctx))
	}
	return best
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

// approval verifies ev and makes the Move that records it.
func (e *Engine) approval(ctx context.Context, c Change, t Terms, ev Evidence) (Move, error) {
	if ev.Kind == EvidenceTicket && ev.Ticket.IsZero() { // the stored hash must never do for the secret
		return Move{}, ErrTicket
	}
	a, err := e.verify(ctx, c, t, ev)
	if err != nil {
		return Move{}, err
	}
	if a.Level < t.Require.Level {
		return Move{}, fmt.Errorf("%w: it reaches %s and the change needs %s", ErrLevel, a.Level, t.Require.Level)
	}
	if a.At, err = e.ledger.Now(ctx); err != nil {
		return Move{}, err
	}
	to, kind, due := Approved, KindApproved, t.StartBy
	if !t.Require.Met(t, append(slices.Clone(c.Approvals), a)) {
		to, kind, due = Pending, KindApproval, t.Expires
	}
	m := e.move(c, to, kind)
	m.Before, m.Due, m.Approval = t.Expires, due, &a
	m.Event.By, m.Event.Client, m.Event.Level = a.Evidence.By, a.Evidence.Client, a.Level
	m.Event.Facts = map[string]string{"evidence": a.Evidence.Kind}
	return m, nil
}

// verify computes the level of ev. It accepts evidence as it was presented and as it was stored.
func (e *Engine) verify(ctx context.Context, c Change, t Terms, ev Evidence) (Approval, error) {
	digest := c.Statement.Digest()
	switch ev.Kind {
	case EvidenceTicket:
		return e.verifyTicket(ctx, c, ev)
	case EvidencePolicy:
		if ev.Digest != digest {
			return Approval{}, ErrEvidence
		}
		return Approval{Evidence: ev, Level: Auto}, nil
	case EvidenceOrdered:
		return e.verifyOrdered(ctx, c, t, ev)
	}
	v := e.opt.Verifiers[ev.Kind]
	if v == nil {
		return Approval{}, fmt.Errorf("%w: nothing here can check evidence of kind %q", ErrEvidence, ev.Kind)
	}
	if ev.Digest != digest {
		return Approval{}, fmt.Errorf("%w: what was shown is not what is stored; look at it again", ErrEvidence)
	}
	level, err := v.Verify(ctx, c, t, ev)
	if err != nil {
		return Approval{}, fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	return Approval{Evidence: ev, Level: level}, nil
}

// verifyTicket checks a presented secret against the row that holds its seal: the Change itself, or the
// parent of an undo. Of the secret only its hash is kept, so a stored one is found by that.
func (e *Engine) verifyTicket(ctx context.Context, c Change, ev Evidence) (Approval, error) {
	holder, verb := c, VerbApply
	if c.Undoes != "" && ev.Via != DeliveredTerminal {
		p, err := e.ledger.Get(ctx, c.Tenant, c.Undoes)
		if err != nil {
			return Approval{}, err
		}
		if _, own := c.sealed(VerbApply); !own {
			holder, verb = p, VerbUndo
		}
	}
	s, ok := holder.sealed(verb)
	stored := ev.Ticket.IsZero() && len(ev.Data) > 0
	switch {
	case !ok:
		return Approval{}, fmt.Errorf("%w: none was issued for %s", ErrTicket, c.ID)
	case stored && string(ev.Data) != string(s.Hash[:]):
		return Approval{}, fmt.Errorf("%w: the stored evidence belongs to another token", ErrEvidence)
	case !stored && !s.Opens(ev.Ticket, holder.ID, holder.Statement.Digest()):
		return Approval{}, ErrTicket
	}
	return Approval{Level: s.level(), Evidence: Evidence{
		Kind: EvidenceTicket, Digest: c.Statement.Digest(), Client: ev.Client, Via: s.Delivered, Data: s.Hash[:],
	}}, nil
}

// verifyOrdered checks that the parent's own approved Terms order this clean-up.
func (e *Engine) verifyOrdered(ctx context.Context, c Change, t Terms, ev Evidence) (Approval, error) {
	p, err := e.ledger.Get(ctx, c.Tenant, c.Undoes)
	if err != nil {
		return Approval{}, fmt.Errorf("parent of %s: %w", c.ID, err)
	}
	pt, err := p.Terms()
	if err != nil {
		return Approval{}, err
	}
	if pt.OnFailure != UndoOnFailure || ev.Digest != p.Statement.Digest() || p.Claim.ID == "" {
		return Approval{}, fmt.Errorf("%w: %s did not order it", ErrEvidence, p.ID)
	}
	return Approval{Evidence: ev, Level: Auto}, nil
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

// freshUndo mints the undo ticket of an applied Change again; the older one dies. Its end stays.
func (e *Engine) freshUndo(ctx context.Context, c Change) (Ticket, error) {
	t, err := c.Terms()
	if err != nil {
		return Ticket{}, err
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if !e.ticketed(c, t) || !now.Before(c.Due) {
		return Ticket{}, nil
	}
	if u, err := e.undoOf(ctx, c); err != nil || u != nil && u.Status.Live() {
		return Ticket{}, err
	}
	ticket, sealed := mint(VerbUndo, DeliveredResult, c.ID, c.Statement.Digest(), c.Due)
	m := e.move(c, c.Status, KindTicket)
	m.Ticket, m.Due, m.Why = &sealed, c.Due, c.Why
	m.Event.Facts = map[string]string{"verb": VerbUndo, "delivered": DeliveredResult}
	if _, err := e.ledger.Advance(ctx, m); err != nil {
		return Ticket{}, fmt.Errorf("mint an undo ticket: %w", err)
	}
	return ticket, nil
}

// ticketed reports whether an undo of c may be approved by a ticket that the agent holds.
func (e *Engine) ticketed(c Change, t Terms) bool {
	return t.Require.Level <= Agent && t.Require.People <= 1 && t.Undo.Extent != NoUndo && c.Undoes == ""
}

// Undo plans the way back of an applied or partial Change as a new Change. Without evidence that Change
// waits for approval like any other (at level Agent with a ticket of its own, to Apply it); with the undo
// ticket it is approved and applied at once. It is refused after the time that the preview promised.
//
// Order of effects: mode, scopes, ticket → every object observed again; one that moved since refuses the
// whole, and nothing is overwritten → Invert → Prepare → Policy → one Advance: the parent's Rev and the
// ticket's end by the ledger's clock, the undo's birth, its approval and its claim → as Apply.
//
// BUG(wetink): an effect that lands after an undo took effect (see Shown: undo_partial) cannot be undone by a second
// one: a change has one undo at most. A person has to mend it in the outside system.
func (e *Engine) Undo(ctx context.Context, by Principal, id ChangeID, ev *Evidence) (Change, Ticket, error) {
	need := ScopePrepare
	if ev != nil {
		need = ScopeApply
	}
	if !by.May(need) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w: the connection lacks %s", id, ErrScope, need)
	}
	c, err := e.ledger.Get(ctx, by.Tenant, id)
	if err != nil {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
	}
	run := func(ctx context.Context) (Change, Ticket, error) {
		u, ticket, err := e.undo(ctx, by, c, ev)
		for n := 0; n < 8 && ev != nil && (errors.Is(err, ErrConflict) || n == 0 && errors.Is(err, ErrStale)); n++ { // another process was first: its answer is ours
			if c, err = e.ledger.Get(ctx, by.Tenant, id); err == nil {
				u, ticket, err = e.undo(ctx, by, c, ev)
			}
		}
		if err != nil {
			return u, Ticket{}, fmt.Errorf("undo %s: %w", id, err)
		}
		return u, ticket, nil
	}
	if ev == nil {
		return run(ctx)
	}
	s, ok := c.sealed(VerbUndo)
	if !ok || !s.Opens(ev.Ticket, c.ID, c.Statement.Digest()) {
		return Change{}, Ticket{}, fmt.Errorf("undo %s: %w", id, ErrTicket)
	}
	return e.join(ctx, VerbUndo, id, run)
}

func (e *Engine) undo(ctx context.Context, by Principal, c Change, ev *Evidence) (Change, Ticket, error) {
	none := Ticket{}
	live, err := e.undoOf(ctx, c)
	if err != nil {
		return Change{}, none, err
	}
	if ev != nil && live != nil && live.usedTicket(c) {
		return e.apply(ctx, *live, nil) // sent again: it tells what happened, also that it failed
	}
	var replaced *Change
	if live != nil && live.Status.Live() {
		switch {
		case live.Status == Pending: // planned before: the state may have moved, and a ticket decides at once
			replaced = live
		case live.Status == Approved && ev == nil:
			return *live, none, nil
		default: // another undo is on its way, or took effect: there is one at most
			return e.apply(ctx, *live, nil)
		}
	}
	t, err := c.Terms()
	if err != nil {
		return Change{}, none, err
	}
	switch {
	case c.Status != Applied && c.Status != Partial:
		return Change{}, none, stateError(c)
	case c.Undoes != "":
		return Change{}, none, fmt.Errorf("%w: it is an undo itself; make a new change", ErrNoUndo)
	case t.Undo.Extent == NoUndo:
		return Change{}, none, fmt.Errorf("%w, as its preview said", ErrNoUndo)
	}
	now, err := e.ledger.Now(ctx)
	if err != nil {
		return Change{}, none, err
	}
	if !now.Before(c.Due) {
		return Change{}, none, fmt.Errorf("%w: the time to undo it was over at %s; make a new change", ErrExpired, c.Due.Format(time.RFC3339))
	}
	if ev != nil {
		if err := e.writable(ctx); err != nil {
			return Change{}, none, err
		}
	}
	target, _, err := e.holds(ctx, t)
	if err != nil {
		return Change{}, none, err
	}
	req, err := e.wayBack(ctx, target, c, t, by)
	if err != nil {
		return Change{}, none, err
	}
	from := origin{undoes: &c, replaces: replaced}
	if ev != nil {
		from.approval = &Approval{Evidence: *ev}
	}
	u, ticket, list, err := e.draft(ctx, c.Target, req, from)
	if err != nil {
		return Change{}, none, err
	}
	// Looked at again after Prepare read what the Statement binds: an edit before that read is seen here, one
	// after it makes the undo stale.
	if _, err := e.wayBack(ctx, target, c, t, by); err != nil {
		return Change{}, none, err
	}
	parent := e.move(c, c.Status, KindUndoing)
	parent.Before, parent.Due, parent.Why = c.Due, c.Due, c.Why
	parent.Event.By, parent.Event.Client = by.Person, by.Client
	parent.Event.Facts = map[string]string{"undo": string(u.ID)}
	if ev == nil {
		if _, err := e.ledger.Advance(ctx, append(list, parent)...); err != nil {
			return Change{}, none, err
		}
		u, err = e.ledger.Get(ctx, u.Tenant, u.ID)
		return u, ticket, err
	}
	s, _ := c.sealed(VerbUndo)
	parent.Before = s.Expires
	u.Rev, u.Status = 1, Pending // as its birth in list makes it
	return e.claim(ctx, u, ev, append(list, parent)...)
}

// usedTicket reports whether c, an undo, was approved by the undo ticket that its parent holds now.
func (c Change) usedTicket(parent Change) bool {
	s, ok := parent.sealed(VerbUndo)
	return ok && slices.ContainsFunc(c.Approvals, func(a Approval) bool {
		return a.Evidence.Kind == EvidenceTicket && string(a.Evidence.Data) == string(s.Hash[:])
	})
}

// wayBack refuses when an object moved since c left it, and plans the undo from what was really done.
func (e *Engine) wayBack(ctx context.Context, target Target, c Change, t Terms, by Principal) (Request, error) {
	un, ok := target.(Undoer)
	if !ok {
		return Request{}, ErrNoUndo
	}
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	judge, _ := target.(Judge)
	steps := slices.Clone(c.Steps)
	var moved []string
	for i, s := range steps {
		if s.Outcome != TookEffect && s.Outcome != Differs {
			continue
		}
		now, err := target.Observe(ctx, c.Account, afterOp(t.Ops[s.Op], s))
		if err != nil {
			return Request{}, fmt.Errorf("read %s again: %w", s.Receipt.Object, err)
		}
		if s.Receipt.Object == "" {
			steps[i].Receipt.Object = now.Object
		}
		if unseen := !s.Receipt.After.Absent && s.Receipt.After.Body == nil; unseen && judge != nil {
			if v, _ := judge.Judge(t.Ops[s.Op], c.Before[s.Op], now); v == AsApproved {
				continue
			}
		}
		if same, fields := un.Unmoved(s.Receipt.After, now); !same {
			moved = append(moved, fmt.Sprintf("%s (%v)", s.Receipt.After.Object, fields))
		}
	}
	if moved != nil {
		return Request{}, fmt.Errorf("%w: %v; nothing was overwritten", ErrStale, moved)
	}
	req, _, err := un.Invert(t.Ops, c.Before, steps)
	if err != nil {
		return Request{}, err
	}
	req.By, req.Tool = by, ToolUndo
	return req, nil
}

// afterOp is op as it stands after it was executed: a create now has the id that the system gave.
func afterOp(op Op, s Step) Op {
	if op.Object == "" {
		op.Object = s.Receipt.Object
	}
	return op
}

// undoOf returns the latest Change that undoes c, or nil.
func (e *Engine) undoOf(ctx context.Context, c Change) (*Change, error) {
	for u, err := range e.ledger.List(ctx, Filter{Tenant: c.Tenant, Undoes: c.ID, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		return &u, nil
	}
	return nil, nil
}

// Status returns a Change and the latest one that undoes it. With wait it answers as soon as something
// moved, or after that time with what it is then.
func (e *Engine) Status(ctx context.Context, by Principal, id ChangeID, wait time.Duration) (c Change, undo *Change, err error) {
	if c, err = e.ledger.Get(ctx, by.Tenant, id); err != nil {
		return c, nil, fmt.Errorf("status of %s: %w", id, err)
	}
	if undo, err = e.undoOf(ctx, c); err != nil {
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

// asRequestError turns what strictjson says of outside JSON into what a caller is told. A request that is too
// long as a whole is told which text makes it so.
func asRequestError(args []byte, err error) error {
	var je *strictjson.Error
	if !errors.As(err, &je) {
		return &RequestError{Reason: err.Error()}
	}
	re := &RequestError{Field: je.Path, Reason: je.Reason}
	if errors.Is(err, strictjson.ErrLimit) && je.Path == "" {
		re.Field = longest(args)
		re.Fix = "shorten it"
	}
	return re
}

// longest is the path of the longest text in an oversized request, "" if it is none.
func longest(args []byte) (path string) {
	var v any
	if len(args) > 16<<20 || json.Unmarshal(args, &v) != nil {
		return ""
	}
	most := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case string:
			if len(v) > most {
				most, path = len(v), at
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), e)
			}
		case map[string]any:
			for k, e := range v {
				walk(strings.TrimPrefix(at+"."+k, "."), e)
			}
		}
	}
	walk("", v)
	return path
}
