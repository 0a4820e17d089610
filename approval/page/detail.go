package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/render"
)

// detail is one change as the template draws it.
type detail struct {
	Path, Alias string
	Rev         int64
	Digest      string
	State       string
	Says        template.HTML // what became of it
	Sheet       template.HTML
	Form        string
	Valid       string
	Short       bool // not much time is left (WCAG 2.2.1)
	Ends        time.Time
	Button      string
	Risky       bool
	Passphrase  bool
	Prove       string // name of the issuer where the visitor has to prove who they are first
	Proved      string // that they did
	Options     string // of a passkey
	NoPasskey   bool
	Typed       string // what has to be typed; "" if nothing has to
	Rows        []tick
	People      string
	Why         []string // why it needs that level
	Mine        bool     // the visitor approved it already
	CanDecide   bool
	CanAgain    bool
	CanUndo     bool
	UndoEnds    time.Time
	Undo        string // path of the latest undo
	Newer       string // path of the one that takes its place
	Open        []openOp
	Refresh     bool
	Off         bool // writes are off
}

type tick struct {
	Index int
	Label string
}

type openOp struct {
	Op    int
	Label string
}

// find returns the change of a link if the visitor may see it. Who may not learns nothing, not even that it is there.
func (p *Server) find(w http.ResponseWriter, r *http.Request) (wetink.Change, bool) {
	v := visiting(r)
	id, ok := p.unalias(v.person.Tenant, r.PathValue("alias"))
	if !ok {
		p.message(w, r, http.StatusNotFound, "There is no such change", "The link is not one of ours, or not for you.")
		return wetink.Change{}, false
	}
	c, err := p.ledger.Get(r.Context(), v.person.Tenant, id)
	if err != nil && !errors.Is(err, wetink.ErrNotFound) {
		p.fail(w, r, err)
		return c, false
	}
	if err != nil || !may(v.person, c) {
		if err == nil {
			p.opt.Log.WarnContext(r.Context(), "somebody opened a change that is not theirs", "person", v.person.ID, "change", c.ID)
		}
		p.message(w, r, http.StatusForbidden, "This change is not for you", "Only who asked for it, and approvers, see it.")
		return c, false
	}
	return c, true
}

func (p *Server) detail(w http.ResponseWriter, r *http.Request) {
	if c, ok := p.find(w, r); ok {
		p.drawDetail(w, r, http.StatusOK, c.ID, "")
	}
}

func (p *Server) drawDetail(w http.ResponseWriter, r *http.Request, code int, id wetink.ChangeID, problem string) {
	v, ctx := visiting(r), r.Context()
	c, undo, err := p.engine.Status(ctx, principal(v.person), id, 0)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	t, err := c.Terms()
	if err != nil {
		p.fail(w, r, err)
		return
	}
	now, err := p.ledger.Now(ctx)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	o := p.render(c.Target)
	view := render.View{Change: c, Undo: undo, Now: now.In(p.opt.Zone)}
	var sheet bytes.Buffer
	if found, stale := seenBefore(c); stale {
		err = render.Stale(&sheet, view, found, o)
	} else {
		err = render.HTML(&sheet, view, o)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	title, err := render.Headline(c, o)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	d := &detail{Path: p.path(c), Alias: p.alias(c.Tenant, c.ID), Rev: c.Rev, Digest: c.Statement.Digest().String(), State: wetink.Shown(c, undo),
		Sheet: template.HTML(sheet.String()), Form: p.freshForm(r, "decide", c)}
	if undo != nil {
		d.Undo = p.path(*undo)
	}
	if id, ok := strings.CutPrefix(c.Why, "replaced by "); ok && c.Status == wetink.Superseded {
		d.Newer = "/c/" + p.alias(c.Tenant, wetink.ChangeID(id))
	}
	d.Says = standing(c, undo, t, now)
	if p.opt.Why != nil {
		d.Why = p.opt.Why(ctx, c)
	}
	switch c.Status {
	case wetink.Pending:
		err = p.deciding(r, d, c, t, view, o, now)
	case wetink.Approved:
		d.Refresh = true
		mode, _ := p.engine.Mode(ctx)
		d.Off = mode != wetink.ModeGuarded
	case wetink.Applying:
		d.Refresh = true
	case wetink.Applied, wetink.Partial:
		d.CanUndo = undoable(c, undo, t, now)
		d.UndoEnds = c.Due.In(p.opt.Zone)
	case wetink.InDoubt:
		for _, op := range wetink.OpenOps(c, t) {
			d.Open = append(d.Open, openOp{op, fmt.Sprintf("%d. %s %s", op+1, t.Ops[op].Action, t.Ops[op].Object)})
		}
	case wetink.Expired, wetink.Failed:
		d.CanAgain = len(c.Undoes) == 0
	case wetink.Rejected, wetink.Superseded:
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.draw(w, r, code, "detail", page{Title: title, Problem: problem, Detail: d})
}

// undoable reports whether it is worth to offer an undo: whether nothing moved since is seen when it is planned.
func undoable(c wetink.Change, undo *wetink.Change, t wetink.Terms, now time.Time) bool {
	return (c.Status == wetink.Applied || c.Status == wetink.Partial) && t.Undo.Extent != wetink.NoUndo && now.Before(c.Due) &&
		(undo == nil || !undo.Status.Live())
}

// seenBefore is what was found before the first send, if that made the change stale: nothing was sent then.
func seenBefore(c wetink.Change) (now []wetink.Snapshot, stale bool) {
	now = slices.Clone(c.Before)
	for _, s := range c.Steps {
		if s.Outcome == wetink.NoEffect && s.How == wetink.HowStale && s.Op < len(now) {
			now[s.Op], stale = s.Receipt.After, true
		}
	}
	return now, stale && c.Status == wetink.Failed
}

// deciding adds what a person needs to decide.
func (p *Server) deciding(r *http.Request, d *detail, c wetink.Change, t wetink.Terms, view render.View, o *render.Options, now time.Time) (err error) {
	v, ctx := visiting(r), r.Context()
	leftOver := t.Expires.Sub(now)
	d.Ends = t.Expires.In(p.opt.Zone)
	d.Valid = left(leftOver)
	d.Short = leftOver < 2*time.Minute
	d.CanAgain = len(c.Undoes) == 0
	d.CanDecide = leftOver > 0
	if d.Button, err = render.Button(view, o); err != nil {
		return err
	}
	d.Risky = slices.ContainsFunc(t.Ops, func(op wetink.Op) bool { return op.Action == "delete" })
	d.Typed = p.mustType(c, t)
	counted := map[wetink.Person]bool{}
	for _, a := range c.Approvals {
		d.Mine = d.Mine || a.Evidence.By == v.person.ID
		if !t.Require.Other || a.Evidence.By != t.Requester {
			counted[a.Evidence.By] = true
		}
	}
	if t.Require.People > 1 {
		d.People = fmt.Sprintf("%d of %d people have approved it.", len(counted), t.Require.People)
	}
	if t.Require.Other && t.Requester == v.person.ID {
		d.CanDecide, d.People = false, "You asked for it, so somebody else has to approve it."
	}
	if d.Mine {
		d.CanDecide, d.People = false, d.People+" You have. One more person has to."
	}
	switch {
	case t.Require.Level == wetink.Reauth && p.byIssuer(v.session):
		p.offerIssuer(r, d, c)
	case t.Require.Level == wetink.Reauth:
		d.Passphrase = p.opt.Passphrases != nil
		if p.opt.Passphrases == nil {
			d.Passphrase, err = false, p.offer(ctx, d, c, v.person)
		}
	case t.Require.Level >= wetink.Passkey:
		err = p.offer(ctx, d, c, v.person)
	}
	if p.opt.Exclude != nil && len(t.Ops) > 1 && len(c.Undoes) == 0 {
		if _, can := p.opt.Exclude(c, []int{0}); can {
			for i, op := range t.Ops {
				d.Rows = append(d.Rows, tick{i, fmt.Sprintf("%d. %s %s", i+1, op.Action, op.Object)})
			}
		}
	}
	return err
}

// offer asks the visitor's passkeys for a signature of what is drawn.
func (p *Server) offer(ctx context.Context, d *detail, c wetink.Change, who Person) error {
	if p.opt.Passkeys == nil {
		d.NoPasskey, d.CanDecide = true, false
		return nil
	}
	has, err := p.opt.Passkeys.Has(ctx, who.Tenant, who.ID)
	if err != nil {
		return err
	}
	if !has {
		d.NoPasskey, d.CanDecide = true, false
		return nil
	}
	f, err := nonceOf(d.Form)
	if err != nil {
		return err
	}
	options, err := p.opt.Passkeys.BeginApproval(ctx, c, who.ID, f)
	d.Options = string(options)
	return err
}

// many objects that go at once, or one that does not come back: then what goes has to be typed.
const many = 10

func (p *Server) mustType(c wetink.Change, t wetink.Terms) string {
	if o := p.render(c.Target); o != nil && o.Explain != nil {
		for _, op := range o.Explain(t, c.Before).Ops {
			if op.Type != "" {
				return op.Type
			}
		}
	}
	gone := 0
	for _, op := range t.Ops {
		gone += map[string]int{"delete": 1}[op.Action]
	}
	if gone > many || gone > 0 && t.Undo.Extent == wetink.NoUndo {
		return plural(gone, "deletion")
	}
	return ""
}

// standing says what became of a change, and whether anything was sent.
func standing(c wetink.Change, undo *wetink.Change, t wetink.Terms, now time.Time) template.HTML {
	why := template.HTML("")
	if c.Why != "" {
		why = " (" + render.Reveal(c.Why) + ")"
	}
	switch c.Status {
	case wetink.Pending:
		if !now.Before(t.Expires) {
			return "This proposal ran out. Nothing was sent."
		}
		return ""
	case wetink.Approved:
		return "Approved. It starts as soon as the process that reaches it takes it up."
	case wetink.Applying:
		return "It is being carried out."
	case wetink.Applied:
		if undo != nil && undo.Status == wetink.Applied {
			return "It was applied, and undone."
		}
		if !c.Compared() {
			return "Sent once, and answered as done. What it left could not be compared with what was approved."
		}
		return "Applied, and read back."
	case wetink.Failed:
		if _, stale := seenBefore(c); stale {
			return "It changed since you looked. Nothing was sent." // what changed stands below
		}
		return "Nothing of it took effect." + why
	case wetink.Partial:
		return "Not exactly what was approved took effect." + why
	case wetink.InDoubt:
		return "We do not know whether it took effect. It is never sent again by itself." + why
	case wetink.Expired:
		return "This proposal ran out. Nothing was sent."
	case wetink.Rejected:
		if c.Why != "" {
			why = " The reason: " + render.Reveal(c.Why)
		}
		return "It was declined. Nothing was sent." + why
	case wetink.Superseded:
		return "A newer proposal takes its place. Nothing was sent."
	}
	return ""
}

// decision is what every POST on a change begins with: the form that was drawn for this visitor, and the row as it is now.
func (p *Server) decision(w http.ResponseWriter, r *http.Request, arm time.Duration) (c wetink.Change, f form, ok bool) {
	if c, ok = p.find(w, r); !ok {
		return c, f, false
	}
	f, err := p.unseal(r.FormValue("form"), "decide", visiting(r).session.Hash, c, arm)
	switch {
	case err != nil:
		p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err))
		return c, f, false
	case f.Rev != c.Rev:
		p.drawDetail(w, r, http.StatusConflict, c.ID, "It moved while you looked, so nothing was decided. This is how it stands now.")
		return c, f, false
	}
	return c, f, true
}

// approve adds the visitor's yes.
//
// Order of effects: the form fits row, session and digest → what has to be typed is right → the hour's budget → evidence
// of the level that the change demands → Engine.Approve, which verifies it and moves the row at its revision → the decision
// is counted → the page again. Whatever fails before Engine.Approve decides nothing.
func (p *Server) approve(w http.ResponseWriter, r *http.Request) {
	c, f, ok := p.decision(w, r, p.opt.Arm)
	if !ok {
		return
	}
	v, ctx := visiting(r), r.Context()
	refuse := func(code int, why string) { p.drawDetail(w, r, code, c.ID, why) }
	t, err := c.Terms()
	if err != nil {
		refuse(http.StatusConflict, sentence(err))
		return
	}
	if keep, changed := kept(r, len(t.Ops)); changed {
		p.narrow(w, r, c, keep)
		return
	}
	if r.FormValue("update") != "" { // also what Enter on a tick presses
		refuse(http.StatusBadRequest, "Every row is ticked, so the list is as it was. Nothing was decided. Untick what should be left out.")
		return
	}
	if want := p.mustType(c, t); want != "" && strings.TrimSpace(r.FormValue("typed")) != want {
		refuse(http.StatusBadRequest, "Type “"+want+"” to go on. Nothing was sent.")
		return
	}
	yes, _, _, err := p.store.Decisions(ctx, v.person.Tenant, v.person.ID, p.opt.Now().Add(-time.Hour))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if yes >= p.opt.Budget {
		refuse(http.StatusTooManyRequests, fmt.Sprintf("You approved %s in the last hour, which is the most that is taken. Nothing was sent. Take a pause, or decline some.", plural(yes, "change")))
		return
	}
	ev, problem, err := p.evidence(r, c, t, f)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if problem != "" {
		refuse(http.StatusBadRequest, problem)
		return
	}
	if _, err := p.engine.Approve(context.WithoutCancel(ctx), principal(v.person), c.ID, ev); err != nil {
		refuse(http.StatusConflict, sentence(err))
		return
	}
	if ev.Kind == wetink.EvidenceRelogin {
		http.SetCookie(w, p.proofCookie("", -time.Second)) // it has served
	}
	p.decided(r, c, f, true)
	http.Redirect(w, r, p.path(c), http.StatusSeeOther)
}

// evidence of the level that the change demands, from what the browser sent. problem is for the person.
func (p *Server) evidence(r *http.Request, c wetink.Change, t wetink.Terms, f form) (ev wetink.Evidence, problem string, err error) {
	v, ctx := visiting(r), r.Context()
	switch {
	case r.FormValue("passkey") != "" && p.opt.Passkeys != nil:
		ev, err = p.opt.Passkeys.FinishApproval(ctx, c, v.person.ID, f.Nonce, f.Shown, []byte(r.FormValue("passkey")))
		if err != nil {
			return ev, "The passkey was not taken. Nothing was sent. (" + err.Error() + ")", nil
		}
		return ev, "", nil
	case t.Require.Level >= wetink.Passkey:
		return ev, "It needs your passkey, which needs JavaScript. Nothing was sent.", nil
	case t.Require.Level == wetink.Reauth && p.byIssuer(v.session):
		proof, ok := p.proofOf(r, c)
		if !ok {
			return ev, "Prove first, with " + p.opt.SignOn.Name + ", who you are. Nothing was sent.", nil
		}
		ev, err = p.reloginEvidence(c, proof, f.Shown)
		return ev, "", err
	case t.Require.Level == wetink.Reauth && p.opt.Passphrases != nil:
		ev, wrong, err := p.opt.Passphrases.Approve(ctx, c, v.person.ID, "page", f.Shown, secret.New([]byte(r.FormValue("pass"))))
		switch {
		case err != nil:
			return ev, sentence(err), nil
		case wrong:
			return ev, "That is not your passphrase. Nothing was sent.", nil
		}
		return ev, "", nil
	}
	return p.sessionEvidence(c, v.person, v.session, f.Shown), "", nil
}

// decided counts a decision and how long it took; a count that is lost decides nothing.
func (p *Server) decided(r *http.Request, c wetink.Change, f form, yes bool) {
	who, now := visiting(r).person, p.opt.Now()
	err := p.store.AddDecision(context.WithoutCancel(r.Context()), who.Tenant, who.ID, c.ID, yes, now.Sub(f.Shown), now)
	if err != nil {
		p.opt.Log.WarnContext(r.Context(), "count a decision", "err", err)
	}
}

func (p *Server) reject(w http.ResponseWriter, r *http.Request) {
	c, f, ok := p.decision(w, r, 0)
	if !ok {
		return
	}
	why := strings.TrimSpace(r.FormValue("reason"))
	if len(why) > 2000 {
		p.drawDetail(w, r, http.StatusBadRequest, c.ID, "The reason is too long: 2,000 bytes at most. Nothing was decided.")
		return
	}
	if _, err := p.engine.Reject(context.WithoutCancel(r.Context()), principal(visiting(r).person), c.ID, strings.ToValidUTF8(why, "\ufffd")); err != nil {
		p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err))
		return
	}
	p.decided(r, c, f, false)
	http.Redirect(w, r, p.path(c), http.StatusSeeOther)
}

// again prepares the same request against the present state, in place of this one.
func (p *Server) again(w http.ResponseWriter, r *http.Request) {
	c, _, ok := p.decision(w, r, 0)
	if !ok {
		return
	}
	p.replace(w, r, c, nil)
}

// narrow prepares some of the rows only, as a new change: an approval of a part is an approval of something else.
func (p *Server) narrow(w http.ResponseWriter, r *http.Request, c wetink.Change, keep []int) {
	if p.opt.Exclude == nil || len(keep) == 0 {
		p.drawDetail(w, r, http.StatusBadRequest, c.ID, "Nothing would be left of it. Nothing was sent; decline it instead.")
		return
	}
	args, can := p.opt.Exclude(c, keep)
	if !can {
		p.drawDetail(w, r, http.StatusBadRequest, c.ID, "Its rows belong together. Nothing was sent.")
		return
	}
	p.replace(w, r, c, args)
}

func (p *Server) replace(w http.ResponseWriter, r *http.Request, c wetink.Change, args []byte) {
	by := principal(visiting(r).person)
	by.Client = c.Request.By.Client // who asked stays who asked
	by.Person = c.Request.By.Person
	fresh, _, err := p.engine.Replace(context.WithoutCancel(r.Context()), by, c.ID, args)
	if err != nil {
		p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err))
		return
	}
	http.Redirect(w, r, p.path(fresh), http.StatusSeeOther)
}

// kept reads the ticks; changed says that they are not all set. A form without ticks has none to read.
func kept(r *http.Request, ops int) (keep []int, changed bool) {
	if r.FormValue("ticks") == "" {
		return nil, false
	}
	for _, s := range r.Form["keep"] {
		if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < ops && !slices.Contains(keep, n) {
			keep = append(keep, n)
		}
	}
	slices.Sort(keep)
	return keep, len(keep) != ops
}

// undo plans the way back and shows it, to be approved like any change.
func (p *Server) undo(w http.ResponseWriter, r *http.Request) {
	c, _, ok := p.decision(w, r, 0)
	if !ok {
		return
	}
	p.planUndo(w, r, []wetink.ChangeID{c.ID}, func(err error) { p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err)) })
}

// undoChosen does so for what was chosen in the history, as one new change.
func (p *Server) undoChosen(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, why string) { p.message(w, r, code, "Nothing was undone", why) }
	v := visiting(r)
	if _, err := p.unseal(r.FormValue("form"), "undo", v.session.Hash, wetink.Change{}, 0); err != nil {
		refuse(http.StatusConflict, sentence(err))
		return
	}
	var ids []wetink.ChangeID
	for _, alias := range r.Form["c"] {
		id, ok := p.unalias(v.person.Tenant, alias)
		if ok {
			c, err := p.ledger.Get(r.Context(), v.person.Tenant, id)
			ok = err == nil && may(v.person, c)
		}
		if !ok {
			refuse(http.StatusForbidden, "One of the chosen changes is not there, or not for you.")
			return
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		refuse(http.StatusBadRequest, "Choose one change at least: tick it in the history.")
		return
	}
	p.planUndo(w, r, ids, func(err error) { refuse(http.StatusConflict, sentence(err)) })
}

func (p *Server) planUndo(w http.ResponseWriter, r *http.Request, ids []wetink.ChangeID, refuse func(error)) {
	ctx, by := context.WithoutCancel(r.Context()), principal(visiting(r).person)
	u, _, err := p.engine.UndoAll(ctx, by, ids...)
	if errors.Is(err, wetink.ErrNoTarget) {
		if err = p.engine.AskUndo(ctx, by, ids...); err == nil {
			p.message(w, r, http.StatusAccepted, "The undo is being planned", "The process that reaches it plans the way back; then it waits for you under Waiting. Nothing was sent.")
			return
		}
	}
	if err != nil {
		refuse(err)
		return
	}
	http.Redirect(w, r, p.path(u), http.StatusSeeOther)
}

// look asks the outside system about a change in doubt. It only reads there.
func (p *Server) look(w http.ResponseWriter, r *http.Request) {
	c, _, ok := p.decision(w, r, 0)
	if !ok {
		return
	}
	if _, _, err := p.engine.Reconcile(context.WithoutCancel(r.Context()), principal(visiting(r).person), c.ID); err != nil {
		p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err))
		return
	}
	http.Redirect(w, r, p.path(c), http.StatusSeeOther)
}

// resolve records what a person found out. The record says that they decided, not that it was read.
func (p *Server) resolve(w http.ResponseWriter, r *http.Request) {
	c, _, ok := p.decision(w, r, 0)
	if !ok {
		return
	}
	t, err := c.Terms()
	if err != nil {
		p.fail(w, r, err)
		return
	}
	var found []wetink.Step
	for _, op := range wetink.OpenOps(c, t) {
		o := wetink.Outcome(r.FormValue("op" + strconv.Itoa(op)))
		if !slices.Contains([]wetink.Outcome{wetink.TookEffect, wetink.Differs, wetink.NoEffect}, o) {
			p.drawDetail(w, r, http.StatusBadRequest, c.ID, "Say of each operation what you found. Nothing was recorded.")
			return
		}
		found = append(found, wetink.Step{Op: op, Outcome: o, Why: strings.ToValidUTF8(strings.TrimSpace(r.FormValue("why")), "\ufffd")})
	}
	if _, _, err := p.engine.Resolve(context.WithoutCancel(r.Context()), principal(visiting(r).person), c.ID, found); err != nil {
		p.drawDetail(w, r, http.StatusConflict, c.ID, sentence(err))
		return
	}
	http.Redirect(w, r, p.path(c), http.StatusSeeOther)
}
