package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/wetinktest"
)

// settingsForm is the hidden field of the settings page.
func (b *browser) settingsForm() string {
	b.o.t.Helper()
	_, body, _ := b.get("/settings")
	m := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		b.o.t.Fatal("no form in the settings")
	}
	return m[1]
}

// Who finds an open browser has its session, and must not make more of it: a record that says "re-authenticated" would
// then say more than was proved.
func TestAnOpenBrowserIsNotEnoughToChangeHowOneSignsIn(t *testing.T) {
	o := open(t, wetink.Session)
	ana := o.signedIn("ana")
	add := url.Values{"do": {"add"}, "pass": {"an attacker's own words"}, "pass2": {"an attacker's own words"}}
	add.Set("form", "x")
	if code, _, _ := ana.post("/settings", add); code != http.StatusConflict || o.pass["ana"] != "five words make a phrase" {
		t.Errorf("without a form of ours: %d", code)
	}
	o.now = o.now.Add(11 * time.Minute)
	add.Set("form", ana.settingsForm())
	if code, body, _ := ana.post("/settings", add); code != http.StatusForbidden || o.pass["ana"] != "five words make a phrase" || !strings.Contains(body, "sign out and in again first") {
		t.Errorf("in an old session: %d", code)
	}
	again := o.signedIn("ana")
	add.Set("form", again.settingsForm())
	add["pass"], add["pass2"] = []string{"another five words here"}, []string{"another five words here"}
	if code, _, _ := again.post("/settings", add); code != http.StatusSeeOther || o.pass["ana"] != "another five words here" {
		t.Errorf("just signed in: %d", code)
	}
}

func TestOnlyOnesOwnSessionsAreEnded(t *testing.T) {
	o := open(t, wetink.Session)
	ana, bo := o.signedIn("ana"), o.signedIn("bo")
	list, err := o.store.ListSessions(t.Context(), "", "ana")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	end := func(b *browser) {
		b.post("/settings", url.Values{"do": {"end"}, "form": {b.settingsForm()}, "session": {list[0].Hash.String()}})
	}
	end(bo)
	if code, _, _ := ana.get("/"); code != 200 {
		t.Error("bo ended ana's session")
	}
	second := o.signedIn("ana")
	end(second)
	if code, _, _ := ana.get("/"); code == 200 {
		t.Error("ana could not end her own")
	}
}

func TestOnHTTPSTheCookieIsForThisHostAlone(t *testing.T) {
	o := open(t, wetink.Session)
	s, err := page.New(t.Context(), "https://ink.example", o.kit.Engine, o.kit.Ledger, o.store, &page.Options{Passphrases: o.pass, Now: func() time.Time { return o.now }})
	if err != nil {
		t.Fatal(err)
	}
	r := request("POST", "/signin", url.Values{"user": {"ana"}, "pass": {"five words make a phrase"}})
	r.Host = "ink.example"
	r.Header.Set("Origin", "https://ink.example")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if c := w.Header().Get("Set-Cookie"); w.Code != http.StatusSeeOther || !strings.HasPrefix(c, "__Host-wetink=") || !strings.Contains(c, "Secure") || strings.Contains(c, "Domain") {
		t.Errorf("%d %s", w.Code, c)
	}
	if h := w.Header(); h.Get("Strict-Transport-Security") == "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", h)
	}
}

func TestABodyThatNobodyTypesIsNotRead(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	form := url.Values{"pad": {strings.Repeat("x", 80<<10)}, "form": {ana.form(c, true)}}
	if code, _, _ := ana.post(o.path(c)+"/approve", form); code == http.StatusSeeOther || o.status(c) != wetink.Pending {
		t.Errorf("%d, and it is %s", code, o.status(c))
	}
}

// stream is an open /events of a browser.
type stream struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	done chan struct{}
	stop context.CancelFunc
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ResponseRecorder.Write(b)
}

func (s *stream) said(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.Body.String(), text)
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Body.String()
}

func (b *browser) listen() *stream { return b.listenTo("/events", "") }

func (b *browser) listenTo(path, last string) *stream {
	ctx, stop := context.WithCancel(b.o.t.Context())
	s := &stream{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{}), stop: stop}
	r := request("GET", path, nil).WithContext(ctx)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	r.Header.Set("Cookie", b.cookie)
	go func() {
		defer close(s.done)
		b.o.server.ServeHTTP(s, r)
	}()
	b.o.t.Cleanup(func() {
		stop()
		<-s.done
	})
	return s
}

// wait until it holds, or fail after a while.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestALivePageHearsOfWhatItMaySeeAndOfNothingElse(t *testing.T) {
	o := open(t, wetink.Session)
	ana, bo := o.signedIn("ana"), o.signedIn("bo")
	hers, his := ana.listen(), bo.listen()
	for _, s := range []*stream{hers, his} {
		wait(t, "the stream does not begin", func() bool { return s.said(": here") })
	}
	c := o.preview(setN2)
	alias := strings.TrimPrefix(o.path(c), "/c/")
	wait(t, "ana does not hear of it", func() bool { return hers.said(alias) })
	if hers.said("only for ana") || hers.said("claims") || hers.said(string(c.ID)) {
		t.Errorf("it holds more than an alias: %s", hers.Body)
	}
	by := wetinktest.By
	by.Person = "bo"
	own, _, err := o.kit.Preview(t.Context(), "test", wetink.Request{By: by, Args: []byte(setN2)})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, "bo does not hear of his own", func() bool { return his.said(strings.TrimPrefix(o.path(own), "/c/")) })
	if his.said(alias) {
		t.Error("bo hears of hers")
	}
	wait(t, "ana, an approver, does not hear of his", func() bool { return strings.Count(hers.text(), "data:") == 2 })
	ana.post("/signout", nil)
	if _, err := o.kit.Reject(t.Context(), wetinktest.By, c.ID, ""); err != nil {
		t.Fatal(err)
	}
	select { // signed out: the next event ends it
	case <-hers.done:
	case <-time.After(10 * time.Second):
		t.Error("it goes on after she signed out")
	}
	if strings.Count(hers.text(), "data:") != 2 && !t.Failed() {
		t.Errorf("it tells of more: %s", hers.Body)
	}
}

// What comes between the drawing of a list and the first word of its stream is not missed, and what the list shows
// already is not told again: a page that is drawn anew for what it shows would never rest.
func TestALiveListMissesNothingBetweenItsDrawingAndItsStream(t *testing.T) {
	o := open(t, wetink.Session)
	ana := o.signedIn("ana")
	shown := o.preview(setN2)
	_, body, _ := ana.get("/")
	after := regexp.MustCompile(`data-after="(\d+)"`).FindStringSubmatch(body)
	if after == nil {
		t.Fatalf("the list does not say what it was drawn after: %s", body)
	}
	between := o.preview(setN2)
	s := ana.listenTo("/events?c=&after="+after[1], "")
	wait(t, "what came between is missed", func() bool { return s.said(strings.TrimPrefix(o.path(between), "/c/")) })
	if s.said(strings.TrimPrefix(o.path(shown), "/c/")) {
		t.Error("it is told of what it shows")
	}
	// A browser that lost its stream goes on after what it heard last, whatever its address says.
	id := regexp.MustCompile(`id: (\d+)`).FindStringSubmatch(s.text())
	if id == nil {
		t.Fatalf("no event has an id: %s", s.text())
	}
	s.stop()
	<-s.done
	later := o.preview(setN2)
	back := ana.listenTo("/events?c=&after="+after[1], id[1])
	wait(t, "what came while it was away is missed", func() bool { return back.said(strings.TrimPrefix(o.path(later), "/c/")) })
	if back.said(strings.TrimPrefix(o.path(between), "/c/")) {
		t.Error("it is told twice")
	}
	for _, odd := range []string{"/events?after=x", "/events?after=-1", "/events?after=99999999"} {
		s := ana.listenTo(odd, "")
		wait(t, odd+" does not begin", func() bool { return s.said(": here") })
	}
}

func TestABrowserHasEightLivePagesAtMost(t *testing.T) {
	o := open(t, wetink.Session)
	ana := o.signedIn("ana")
	var list []*stream
	for range 8 {
		s := ana.listen()
		wait(t, "the stream does not begin", func() bool { return s.said(": here") })
		list = append(list, s)
	}
	ninth := ana.listen()
	wait(t, "a ninth is neither refused nor begun", func() bool { return ninth.said("too many") || ninth.said(": here") })
	if ninth.said(": here") {
		t.Error("a ninth begins")
	}
	list[0].stop()
	<-list[0].done
	s := ana.listen()
	wait(t, "one went, and there is no place for another", func() bool { return s.said(": here") })
}

func TestWhoMayNotDecideAnyMoreDoesNotCount(t *testing.T) {
	o := open(t, wetink.Session)
	cy := page.Person{ID: "cy", Approver: true, Created: o.now}
	if err := o.store.AddPerson(t.Context(), cy); err != nil {
		t.Fatal(err)
	}
	o.pass["cy"] = "some five words more"
	c, b := o.preview(setN2), o.signedIn("cy")
	if code, _, _ := b.post(o.path(c)+"/approve", url.Values{"form": {b.form(c, true)}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	cy.Approver, cy.Admin = false, true // who may invite people may not approve for them
	if err := o.store.UpdatePerson(t.Context(), cy); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrEvidence) {
		t.Errorf("it is applied: %v", err)
	}
	if code, _, _ := b.get(o.path(c)); code != http.StatusForbidden {
		t.Errorf("cy still sees it: %d", code)
	}
	if len(o.kit.Target.Journal()) != 0 {
		t.Error("something was sent")
	}
}

func TestTwoPeopleAreNeededAndTheRequesterIsNone(t *testing.T) {
	o := open(t, wetink.Session)
	for _, id := range []wetink.Person{"cy", "di"} {
		if err := o.store.AddPerson(t.Context(), page.Person{ID: id, Approver: true, Created: o.now}); err != nil {
			t.Fatal(err)
		}
		o.pass[id] = "five words of " + string(id)
	}
	k := wetinktest.On(o.kit.Ledger, o.kit.Target, &wetink.Options{Policy: wetink.Floor{Level: wetink.Session, People: 2, Other: true}, TTL: 24 * time.Hour,
		Verifiers: map[string]wetink.Verifier{page.EvidenceSession: page.Verifier(o.store)}})
	o.kit = k
	c := o.preview(setN2) // ana asks
	press := func(who string) (int, string) {
		b := o.signedIn(who)
		code, body, _ := b.post(o.path(c)+"/approve", url.Values{"form": {b.form(c, true)}})
		return code, body
	}
	if _, body, _ := o.signedIn("ana").get(o.path(c)); !strings.Contains(body, "You asked for it") || strings.Contains(body, `class="go`) {
		t.Errorf("ana is offered her own: %s", body)
	}
	press("ana")
	if o.status(c) != wetink.Pending {
		t.Fatalf("ana alone: %s", o.status(c))
	}
	if code, _ := press("cy"); code != http.StatusSeeOther || o.status(c) != wetink.Pending {
		t.Fatalf("cy: %d, %s", code, o.status(c))
	}
	if _, body, _ := o.signedIn("di").get(o.path(c)); !strings.Contains(body, "1 of 2 people have approved it") {
		t.Error("di is not told of cy")
	}
	press("cy")
	if o.status(c) != wetink.Pending {
		t.Fatalf("cy twice: %s", o.status(c))
	}
	if code, _ := press("di"); code != http.StatusSeeOther || o.status(c) != wetink.Approved {
		t.Errorf("di: %d, %s", code, o.status(c))
	}
}

// told remembers who wants to be told where.
type told map[string]wetink.Person

func (told) PublicKey(context.Context) (string, error) { return "BKey", nil }
func (p told) Subscribe(_ context.Context, _ wetink.Tenant, who wetink.Person, endpoint string, _ []byte) error {
	p[endpoint] = who
	return nil
}

func TestABrowserIsToldWhereItAskedForIt(t *testing.T) {
	list := told{}
	o := open(t, wetink.Session, func(p *page.Options) { p.Push = list })
	ana := o.signedIn("ana")
	if _, body, _ := ana.get("/settings"); !strings.Contains(body, `data-push="BKey"`) {
		t.Error("it is not offered")
	}
	for record, taken := range map[string]bool{
		`{"endpoint":"https://push.example/1","keys":{"p256dh":"a","auth":"b"}}`: true,
		`{"endpoint":"http://push.example/2","keys":{"p256dh":"a","auth":"b"}}`:  false,
		`{"endpoint":"https://push.example/3"}`:                                  false,
		`{"endpoint":"file:///etc/passwd","keys":{"p256dh":"a","auth":"b"}}`:     false,
		"": false, "x": false,
	} {
		code, _, _ := ana.post("/settings", url.Values{"do": {"push"}, "form": {ana.settingsForm()}, "subscription": {record}})
		if (code == http.StatusSeeOther) != taken {
			t.Errorf("%s: %d", record, code)
		}
	}
	if len(list) != 1 || list["https://push.example/1"] != "ana" {
		t.Errorf("%v", list)
	}
	if code, body, h := o.browser().get("/sw.js"); code != 200 || !strings.Contains(h.Get("Content-Type"), "javascript") || !strings.Contains(body, "showNotification") {
		t.Errorf("the service worker: %d", code)
	}
}
