//go:build services && unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/wetink/wetink"
	approval "github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

// letsIn lets everybody in who does not say "wrong": how one signs in is tested elsewhere.
type letsIn struct{}

func (letsIn) Has(context.Context, wetink.Tenant, wetink.Person) (bool, error) { return true, nil }
func (letsIn) Set(context.Context, wetink.Tenant, wetink.Person, secret.Bytes) (string, error) {
	return "", nil
}
func (letsIn) Check(_ context.Context, _ wetink.Tenant, _ wetink.Person, s secret.Bytes) (bool, error) {
	return string(s.Reveal()) == "wrong", nil
}
func (letsIn) Approve(context.Context, wetink.Change, wetink.Person, string, time.Time, secret.Bytes) (wetink.Evidence, bool, error) {
	return wetink.Evidence{}, true, nil
}

// gallery is a page, served, with an outside system that misbehaves on demand.
type gallery struct {
	*wetinktest.Kit
	t        *testing.T
	origin   string
	store    *storetest.Memory
	pages    *approval.Server
	decision wetink.Decision // of every change that is previewed from here on
}

func newGallery(t *testing.T) *gallery {
	t.Helper()
	g := &gallery{t: t, origin: freeOrigin(t), store: storetest.NewMemory(), decision: wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 1}}}
	if err := g.store.AddPerson(t.Context(), approval.Person{ID: "ana", Approver: true, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	g.Kit = wetinktest.New(t, &wetink.Options{Policy: g})
	behind := wetinktest.On(g.Ledger, g.Target, &wetink.Options{Policy: g, Verifiers: map[string]wetink.Verifier{approval.EvidenceSession: approval.Verifier(g.store)}})
	var err error
	g.pages, err = approval.New(t.Context(), g.origin, behind.Engine, g.Ledger, g.store, &approval.Options{Passphrases: letsIn{},
		Exclude: func(wetink.Change, []int) (json.RawMessage, bool) { return nil, true },
		Why: func(context.Context, wetink.Change) []string {
			return []string{"workouts. A moved workout is on the watch, too."}
		}})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serveHTTP(serving, strings.TrimPrefix(g.origin, "http://"), g.pages)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	for up := false; !up; {
		res, err := http.Get(g.origin + "/static/page.css")
		if up = err == nil; up {
			_ = res.Body.Close()
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Decide implements wetink.Policy.
func (g *gallery) Decide(context.Context, wetink.Terms, []wetink.Snapshot) (wetink.Decision, error) {
	return g.decision, nil
}

// put is the state of the two sessions that everything here is about.
func (g *gallery) put() {
	g.Target.Put("tempo", `{"name":"Tempo 3 x 10 min","day":"2026-07-16T08:00:00","load":62}`)
	g.Target.Put("easy", `{"name":"Easy run","day":"2026-07-18T07:30:00","load":31}`)
}

const (
	moveTempo = `{"ops":[{"action":"update","object":"tempo","set":{"day":"2026-07-17T08:00:00"}}]}`
	moveBoth  = `{"ops":[{"action":"update","object":"tempo","set":{"day":"2026-07-17T08:00:00"}},{"action":"update","object":"easy","set":{"day":"2026-07-19T07:30:00"}}]}`
)

func (g *gallery) preview(args string) wetink.Change {
	g.t.Helper()
	c, _, err := g.Preview(g.t.Context(), "test", wetink.Request{By: wetink.Principal{Person: "ana", Client: "claims to be Claude Desktop"}, Args: []byte(args)})
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (g *gallery) approve(c wetink.Change) wetink.Change {
	g.t.Helper()
	c, err := g.Approve(g.t.Context(), wetinktest.By, c.ID, wetinktest.Vouch(c, wetink.Session, "ana"))
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (g *gallery) apply(c wetink.Change, want wetink.Status) wetink.Change {
	g.t.Helper()
	done, _, err := g.Apply(g.t.Context(), wetinktest.By, g.approve(c).ID, nil)
	if err != nil || done.Status != want {
		g.t.Fatalf("%s, want %s: %v", done.Status, want, err)
	}
	return done
}

// fails applies c while the outside system answers as execute does.
func (g *gallery) fails(c wetink.Change, want wetink.Status, execute func(n int, op wetink.Op, do func() error) error) wetink.Change {
	g.t.Helper()
	g.Target.OnExecute = execute
	defer func() { g.Target.OnExecute = nil }()
	return g.apply(c, want)
}

func (g *gallery) undo(c wetink.Change) wetink.Change {
	g.t.Helper()
	u, _, err := g.Undo(g.t.Context(), wetinktest.By, c.ID, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return u
}

// exhibit is a change in some state, and words that its page has to say.
type exhibit struct {
	change wetink.Change
	says   string
}

// exhibits are one of every state that a change can be in.
func (g *gallery) exhibits() map[string]exhibit {
	g.t.Helper()
	ctx, list := g.t.Context(), map[string]exhibit{}

	// What runs out does so before anything else is there for Run to take up.
	g.put()
	g.decision.TTL = time.Millisecond
	expired := g.preview(moveTempo)
	g.decision.TTL = 0
	run, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- g.Run(run) }()
	if c, _, err := g.Status(ctx, wetinktest.By, expired.ID, 20*time.Second); err != nil || c.Status != wetink.Expired {
		g.t.Fatalf("%s %v", c.Status, err)
	}
	stop()
	<-ran
	list["expired"] = exhibit{expired, "This proposal ran out. Nothing was sent."}

	list["applied"] = exhibit{g.apply(g.preview(moveTempo), wetink.Applied), "Applied, and read back."}
	g.put()
	undone := g.apply(g.preview(moveTempo), wetink.Applied)
	g.apply(g.undo(undone), wetink.Applied)
	list["undone"] = exhibit{undone, "It was applied, and undone."}
	g.put()
	list["failed"] = exhibit{g.fails(g.preview(moveTempo), wetink.Failed, func(int, wetink.Op, func() error) error {
		return fmt.Errorf("the calendar is read-only today: %w", wetink.ErrNotApplied)
	}), "Nothing of it took effect."}
	g.put()
	list["partial"] = exhibit{g.fails(g.preview(moveBoth), wetink.Partial, func(n int, op wetink.Op, do func() error) error {
		if op.Object == "easy" {
			return fmt.Errorf("this session is locked: %w", wetink.ErrNotApplied)
		}
		return do()
	}), "Not exactly what was approved took effect."}
	g.put()
	stale := g.preview(moveTempo)
	g.Target.Put("tempo", `{"name":"Tempo 4 x 8 min","day":"2026-07-16T08:00:00","load":64}`)
	list["stale"] = exhibit{g.apply(stale, wetink.Failed), "It changed since you looked. Nothing was sent."}
	g.put()
	list["in-doubt"] = exhibit{g.fails(g.preview(moveTempo), wetink.InDoubt, func(int, wetink.Op, func() error) error { return errors.New("connection reset") }),
		"We do not know whether it took effect"}
	g.put()
	rejected := g.preview(moveTempo)
	if _, err := g.Reject(ctx, wetinktest.By, rejected.ID, "Friday is a rest day"); err != nil {
		g.t.Fatal(err)
	}
	list["rejected"] = exhibit{rejected, "It was declined. Nothing was sent."}
	superseded := g.preview(moveTempo)
	if _, _, err := g.Replace(ctx, wetinktest.By, superseded.ID, nil); err != nil {
		g.t.Fatal(err)
	}
	list["superseded"] = exhibit{superseded, "A newer proposal takes its place"}
	list["approved"] = exhibit{g.approve(g.preview(moveTempo)), "Approved. It starts as soon as"}

	// It is being sent for as long as the test takes.
	applying, sending, hold := g.approve(g.preview(moveTempo)), make(chan struct{}), make(chan struct{})
	g.Target.OnExecute = func(int, wetink.Op, func() error) error {
		close(sending)
		<-hold
		return errors.New("the test is over")
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _, _ = g.Apply(context.WithoutCancel(ctx), wetinktest.By, applying.ID, nil)
	}()
	<-sending
	g.t.Cleanup(func() {
		close(hold)
		<-sent
	})
	g.Target.OnExecute = nil
	list["applying"] = exhibit{applying, "It is being carried out."}

	waits := g.apply(g.preview(`{"ops":[{"action":"update","object":"easy","set":{"load":40}}]}`), wetink.Applied)
	list["undo-waits"] = exhibit{g.undo(waits), "Undo: "}
	list["waiting"] = exhibit{g.preview(`{"ops":[{"action":"update","object":"tempo","set":{"name":"Tem\u202epo\u200b 4 x 8 min"}}]}`), "Why this level"}
	list["bulk"] = exhibit{g.preview(`{"ops":[{"action":"delete","object":"easy"},{"action":"update","object":"tempo","set":{"day":"2026-07-17T08:00:00"}},{"action":"create","object":"new","set":{"name":"Long ride","text":"one\ntwo"}}]}`), "Leave some out"}
	g.decision.TTL = 90 * time.Second
	list["short"] = exhibit{g.preview(moveTempo), "Keep it longer"}
	g.decision = wetink.Decision{Require: wetink.Require{Level: wetink.Reauth, People: 2, Other: true}}
	list["four-eyes"] = exhibit{g.preview(moveTempo), "You asked for it, so somebody else has to approve it."}
	g.decision.Require = wetink.Require{Level: wetink.Reauth, People: 1}
	g.Target.SetPromise(wetink.Promise{Extent: wetink.NoUndo, Notes: []string{"It is gone for good."}})
	list["typed"] = exhibit{g.preview(`{"ops":[{"action":"delete","object":"tempo"}]}`), "Type “1 deletion”"}
	return list
}

func (g *gallery) signIn(ctx context.Context, pass string, then string) {
	g.t.Helper()
	browse(g.t, ctx, "sign in", chromedp.Navigate(g.origin+"/signin"), chromedp.WaitVisible(`input[name=user]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=user]`, "ana", chromedp.ByQuery), chromedp.SendKeys(`input[name=pass]`, pass, chromedp.ByQuery),
		chromedp.Click(`form:has(input[name=user]) button`, chromedp.ByQuery), says(then))
}

// Every state of a change has a page, and each is for everybody (WCAG 2.2 AA, as far as axe-core can tell).
func TestThePageOfEveryStateIsAccessible(t *testing.T) {
	g := newGallery(t)
	exhibits := g.exhibits()
	shown := map[string]bool{}
	for _, s := range exhibits {
		c, undo, err := g.Status(t.Context(), wetinktest.By, s.change.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		shown[string(c.Status)], shown[wetink.Shown(c, undo)] = true, true
	}
	for _, s := range append(wetink.Statuses(), "undone") {
		if !shown[string(s)] {
			t.Errorf("there is no picture of a change that is %s", s)
		}
	}

	ctx := chrome(t)
	g.signIn(ctx, "wrong", "That did not work")
	look(t, ctx, "signin-wrong")
	g.signIn(ctx, "x", "wait for you")
	look(t, ctx, "inbox-many")
	for name, s := range exhibits {
		browse(t, ctx, name, chromedp.Navigate(g.pages.Link(s.change)), says(s.says))
		look(t, ctx, name)
	}
	for name, at := range map[string][2]string{
		"history-all": {"/history", "History"}, "history-filtered": {"/history?state=applied&days=7&client=claude", "History"}, "doubt-one": {"/doubt", "1 in doubt"},
		"settings-plain": {"/settings", "Signed in"}, "no-change": {"/c/x.y", "There is no such change"}, "no-page": {"/nowhere", "There is no such page"},
		"old-link": {"/enrol/x", "This link is used or too old"},
	} {
		browse(t, ctx, name, chromedp.Navigate(g.origin+at[0]), says(at[1]))
		look(t, ctx, name)
	}

	// It moved while somebody looked: their press decides nothing, and they are told.
	moved := exhibits["bulk"].change
	browse(t, ctx, "look", chromedp.Navigate(g.pages.Link(moved)), says("Leave some out"), chromedp.Evaluate(`document.dispatchEvent(new Event("input"))`, nil))
	if _, _, err := g.Replace(t.Context(), wetinktest.By, moved.ID, nil); err != nil {
		t.Fatal(err)
	}
	browse(t, ctx, "it tells while one is typing", says("It moved while you were typing"))
	look(t, ctx, "moved-live")
	browse(t, ctx, "press", press(`#approve .go`), says("It moved while you looked, so nothing was decided."))
	look(t, ctx, "moved")

	// A session that ended: the press is answered with a page, too.
	gone := exhibits["waiting"].change
	browse(t, ctx, "look", chromedp.Navigate(g.pages.Link(gone)), says("Why this level"))
	list, err := g.store.ListSessions(t.Context(), "", "ana")
	for _, s := range list {
		err = errors.Join(err, g.store.EndSession(t.Context(), s.Hash))
	}
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	browse(t, ctx, "press", press(`#approve .go`), says("You are signed out"))
	look(t, ctx, "signed-out")
	if c, err := g.Ledger.Get(t.Context(), "", gone.ID); err != nil || c.Status != wetink.Pending {
		t.Errorf("%s %v", c.Status, err)
	}
}

// key presses one as a keyboard does.
func key(keys string, mod ...chromedp.KeyOption) chromedp.Action {
	return chromedp.KeyEvent(keys, mod...)
}

func TestKeysMoveAndOpenAndNoneOfThemDecides(t *testing.T) {
	g := newGallery(t)
	g.put()
	first := g.apply(g.preview(moveTempo), wetink.Applied)
	g.put()
	bulk := g.preview(`{"ops":[{"action":"delete","object":"easy"},{"action":"update","object":"tempo","set":{"load":70}}]}`)
	single := g.preview(`{"ops":[{"action":"update","object":"easy","set":{"load":32}}]}`)
	status := func(c wetink.Change) wetink.Status {
		t.Helper()
		c, err := g.Ledger.Get(t.Context(), "", c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Status
	}
	ctx := chrome(t)
	is := func(what, script string) {
		t.Helper()
		browse(t, ctx, what, until(script))
	}
	ctrl := chromedp.KeyModifiers(2) // input.ModifierCtrl
	g.signIn(ctx, "x", "2 changes wait")

	// In a list.
	browse(t, ctx, "j", key("j"))
	is("j goes to the first row", `document.activeElement === document.querySelectorAll(".rows a")[0]`)
	browse(t, ctx, "jj", key("j"), key("j"))
	is("and stops at the last", `document.activeElement === document.querySelectorAll(".rows a")[1]`)
	browse(t, ctx, "k", key("k"))
	is("k goes back", `document.activeElement === document.querySelectorAll(".rows a")[0]`)
	browse(t, ctx, "?", key("?"), says("No single key approves. On a Mac"))
	is("? lists the keys", `document.getElementById("keys").open`)
	look(t, ctx, "keys")
	browse(t, ctx, "j, with the list open", key("j"), key("\x1b"))
	is("Escape closes it, and j did nothing", `!document.getElementById("keys").open && document.activeElement === document.querySelectorAll(".rows a")[0]`)
	browse(t, ctx, "Enter", key("\r"), says("Decline…"))

	// On a change: no key that is pressed alone decides, wherever the focus is.
	at := func(c wetink.Change, words string) {
		t.Helper()
		browse(t, ctx, "open", chromedp.Navigate(g.pages.Link(c)), says(words), until(`performance.now() > 900`))
	}
	for _, c := range []wetink.Change{single, bulk} { // Enter on a tick presses "Update the list"
		at(c, "Decline…")
		for _, k := range []string{"a", "y", "z", "x", "j", "k", "d", "\r", " ", "\b", "o"} {
			browse(t, ctx, "the key "+k, key(k), chromedp.Sleep(100*time.Millisecond))
			if s := status(c); s != wetink.Pending {
				t.Fatalf("the key %q alone made it %s", k, s)
			}
		}
	}
	at(bulk, "Leave some out")
	browse(t, ctx, "j x", key("j"), key("x"))
	is("x leaves a row out", `[...document.querySelectorAll("[name=keep]")].map(b => b.checked).join() === "false,true"`)
	browse(t, ctx, "x", key("x"))
	is("and takes it in again", `[...document.querySelectorAll("[name=keep]")].every(b => b.checked)`)

	// In a field letters are letters, and Enter and Control+Enter approve nothing that is being declined.
	at(single, "Decline…")
	browse(t, ctx, "to the reason", key("\b", ctrl))
	is("Control+Backspace goes to the reason", `document.activeElement === document.querySelector("#decline textarea")`)
	browse(t, ctx, "write", key("jkxz?"), key("\r", ctrl))
	is("letters are written", `document.querySelector("#decline textarea").value.startsWith("jkxz?") && !document.getElementById("keys").open`)
	if s := status(single); s != wetink.Pending {
		t.Fatalf("Control+Enter in the reason made it %s", s)
	}
	at(single, "Decline…")
	browse(t, ctx, "approve", key("\r", ctrl), says("Approved. It starts as soon as"))
	if s := status(single); s != wetink.Approved {
		t.Errorf("Control+Enter made it %s", s)
	}

	// z shows the way back, to be approved like any change.
	g.Target.Put("tempo", `{"name":"Tempo 3 x 10 min","day":"2026-07-17T08:00:00","load":62}`)
	at(first, "Applied, and read back.")
	before := len(g.Target.Journal())
	browse(t, ctx, "z", key("z"), says("Undo: "), says("Decline…"))
	if n := len(g.Target.Journal()); n != before {
		t.Errorf("z alone made %d effects", n-before)
	}

	// Who turned keys off has none (WCAG 2.1.4).
	browse(t, ctx, "settings", chromedp.Navigate(g.origin+"/settings"), says("Single letters move in lists"), chromedp.Click(`input[name=keys]`, chromedp.ByQuery),
		chromedp.Click(`form:has(input[name=keys]) button`, chromedp.ByQuery), until(`!document.body.dataset.keys && document.readyState === "complete"`),
		chromedp.Navigate(g.origin+"/"), says("wait"), key("j"), key("?"))
	is("no key works any more", `!document.getElementById("keys") && document.activeElement === document.body`)
}

// Enter in a field presses the first button of a form. In that of a decision it is one that does nothing, also without scripts.
func TestEnterInAFieldApprovesNothing(t *testing.T) {
	g := newGallery(t)
	g.put()
	g.decision.Require.Level = wetink.Session
	g.Target.SetPromise(wetink.Promise{Extent: wetink.NoUndo})
	c := g.preview(`{"ops":[{"action":"delete","object":"tempo"}]}`)
	for _, scripts := range []bool{true, false} {
		ctx := chrome(t)
		g.signIn(ctx, "x", "1 change waits")
		browse(t, ctx, "type, and press Enter", emulation.SetScriptExecutionDisabled(!scripts), chromedp.Navigate(g.pages.Link(c)), chromedp.WaitVisible(`input[name=typed]`, chromedp.ByQuery),
			chromedp.Sleep(time.Second), chromedp.SendKeys(`input[name=typed]`, "1 deletion\r", chromedp.ByQuery), chromedp.Sleep(300*time.Millisecond))
		if now, err := g.Ledger.Get(t.Context(), "", c.ID); err != nil || now.Status != wetink.Pending {
			t.Errorf("scripts %t: %s %v", scripts, now.Status, err)
		}
	}
}
