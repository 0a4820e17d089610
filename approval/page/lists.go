package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// onPage is how many rows a list shows; more are a link away.
const onPage = 50

// list collects what the visitor may see, newest first.
func (p *Server) list(ctx context.Context, v visitor, f wetink.Filter, keep func(wetink.Change) bool) (rows []wetink.Change, more wetink.ChangeID, err error) {
	f.Tenant, f.Limit = v.person.Tenant, 100
	for {
		n := 0
		for c, err := range p.ledger.List(ctx, f) {
			if err != nil {
				return nil, "", err
			}
			n++
			f.Before = c.ID
			if !may(v.person, c) || keep != nil && !keep(c) {
				continue
			}
			if len(rows) == onPage {
				return rows, rows[onPage-1].ID, nil
			}
			rows = append(rows, c)
		}
		if n < f.Limit {
			return rows, "", nil
		}
	}
}

func (p *Server) inbox(w http.ResponseWriter, r *http.Request) {
	p.drawList(w, r, page{Title: "Waiting", Here: "waiting"}, wetink.Filter{Status: []wetink.Status{wetink.Pending}}, nil)
}

func (p *Server) doubt(w http.ResponseWriter, r *http.Request) {
	p.drawList(w, r, page{Title: "In doubt", Here: "doubt"}, wetink.Filter{Status: []wetink.Status{wetink.InDoubt}}, nil)
}

// filter is what somebody asked of the history.
type filter struct {
	State, Target, Client, Days string
	States, Targets             []string
}

var ended = []wetink.Status{wetink.Approved, wetink.Applying, wetink.Applied, wetink.Partial, wetink.Failed, wetink.InDoubt, wetink.Expired, wetink.Rejected, wetink.Superseded}

func (p *Server) history(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := filter{State: q.Get("state"), Target: q.Get("target"), Client: q.Get("client"), Days: q.Get("days")}
	statuses := ended
	for _, s := range ended {
		f.States = append(f.States, string(s))
		if f.State == string(s) {
			statuses = []wetink.Status{s}
		}
	}
	since := time.Time{}
	if n, err := strconv.Atoi(f.Days); err == nil && n > 0 && n < 10_000 {
		since = p.opt.Now().AddDate(0, 0, -n)
	}
	p.drawList(w, r, page{Title: "History", Here: "history", Filter: f}, wetink.Filter{Status: statuses, Target: f.Target},
		func(c wetink.Change) bool {
			return !c.Created.Before(since) && strings.Contains(strings.ToLower(c.Request.By.Client), strings.ToLower(f.Client))
		})
}

func (p *Server) drawList(w http.ResponseWriter, r *http.Request, d page, f wetink.Filter, keep func(wetink.Change) bool) {
	v, ctx := visiting(r), r.Context()
	head, err := p.ledger.Head(ctx) // before the look: what is committed from here on, the live page hears of
	if err != nil {
		p.fail(w, r, err)
		return
	}
	d.After = strconv.FormatInt(head, 10)
	f.Before = wetink.ChangeID(r.URL.Query().Get("before"))
	rows, more, err := p.list(ctx, v, f, keep)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	now, err := p.ledger.Now(ctx)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	for _, c := range rows {
		it, err := p.item(ctx, v, c, now)
		if err != nil {
			it = item{Path: p.path(c), Title: "A change that cannot be read: " + err.Error(), When: c.Created}
		}
		d.Rows = append(d.Rows, it)
		if !slices.Contains(d.Filter.Targets, c.Target) {
			d.Filter.Targets = append(d.Filter.Targets, c.Target)
		}
	}
	if slices.ContainsFunc(d.Rows, func(it item) bool { return it.Choose != "" }) {
		d.Form = p.freshForm(r, "undo", wetink.Change{})
	}
	if more != "" {
		q := r.URL.Query()
		q.Set("before", string(more))
		d.More = "?" + q.Encode()
	}
	d.Counts.Waiting = capped(len(rows), onPage)
	if d.Here == "waiting" {
		approved, total, median, err := p.store.Decisions(ctx, v.person.Tenant, v.person.ID, p.opt.Now().AddDate(0, 0, -30))
		if err == nil && total > 0 {
			d.Rate = fmt.Sprintf("Last 30 days: you approved %d of %d. You looked for %s at the median.", approved, total, render.Duration(median))
		}
	}
	p.draw(w, r, http.StatusOK, "list", d)
}

func (p *Server) item(ctx context.Context, v visitor, c wetink.Change, now time.Time) (item, error) {
	t, err := c.Terms()
	if err != nil {
		return item{}, err
	}
	sum, err := render.Summarize(render.View{Change: c, Now: now.In(p.opt.Zone)}, p.render(c.Target))
	if err != nil {
		return item{}, err
	}
	names, err := render.Names(c)
	if err != nil {
		return item{}, err
	}
	it := item{Path: p.path(c), Title: sum.Title, Names: names, Risk: sum.Risk, Where: sum.Where, When: c.Created.In(p.opt.Zone)}
	var undo *wetink.Change
	switch c.Status {
	case wetink.Pending:
		it.Left = left(t.Expires.Sub(now))
	case wetink.Applied, wetink.Partial:
		if _, undo, err = p.engine.Status(ctx, principal(v.person), c.ID, 0); err != nil {
			return item{}, err
		}
		if undoable(c, undo, t, now) {
			it.Choose = p.alias(c.Tenant, c.ID)
		}
	case wetink.Approved, wetink.Applying, wetink.Failed, wetink.InDoubt, wetink.Expired, wetink.Rejected, wetink.Superseded:
	}
	it.State = wetink.Shown(c, undo)
	return it, nil
}

// events tells a live page that a change it may see has moved: its alias and its revision, and nothing of it. Something
// may move after the page was drawn and before this began, or while the browser had lost us: a page of one change is told
// at once where that stands, a list says which event it was drawn after, and a browser that comes back says itself which
// one it heard last (HTML, section 9.2: Last-Event-ID).
func (p *Server) events(w http.ResponseWriter, r *http.Request) {
	v := visiting(r)
	if !p.stream(v.session.Hash, 1) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer p.stream(v.session.Hash, -1)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	if _, err := fmt.Fprint(w, ": here\n\n"); err != nil || flush.Flush() != nil {
		return
	}
	tell := func(c wetink.Change, seq string) bool {
		_, err := fmt.Fprintf(w, "%sdata: {\"c\":%q,\"rev\":%d}\n\n", seq, p.alias(c.Tenant, c.ID), c.Rev)
		return err == nil && flush.Flush() == nil
	}
	events := p.ledger.Events(r.Context(), resume(r), true) // before the look, so that nothing is missed between
	if id, ok := p.unalias(v.person.Tenant, r.URL.Query().Get("c")); ok {
		if c, err := p.ledger.Get(r.Context(), v.person.Tenant, id); err == nil && may(v.person, c) && !tell(c, "") {
			return
		}
	}
	for ev, err := range events {
		if err != nil {
			return
		}
		if ev.Change == "" || ev.Tenant != v.person.Tenant {
			continue
		}
		if _, _, ok := p.signedIn(r); !ok { // signed out meanwhile
			return
		}
		c, err := p.ledger.Get(r.Context(), ev.Tenant, ev.Change)
		if err != nil || !may(v.person, c) {
			continue
		}
		if !tell(c, fmt.Sprintf("id: %d\n", ev.Seq)) {
			return
		}
	}
}

// resume is the event that a live page goes on after: the newest one that there is, if it does not say.
func resume(r *http.Request) int64 {
	for _, s := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return wetink.Newest
}

// maxStreams of one session.
const maxStreams = 8

func (p *Server) stream(session wetink.Digest, by int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.streams[session] + by
	if n > maxStreams {
		return false
	}
	if p.streams[session] = n; n <= 0 {
		delete(p.streams, session)
	}
	return true
}
