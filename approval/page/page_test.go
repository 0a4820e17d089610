package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

const origin = "http://localhost:7433"

// phrases is a Passphrases of plain words: what is tested here is what the page does with the answers.
type phrases map[wetink.Person]string

func (p phrases) Has(_ context.Context, _ wetink.Tenant, who wetink.Person) (bool, error) {
	return p[who] != "", nil
}

func (p phrases) Set(_ context.Context, _ wetink.Tenant, who wetink.Person, s secret.Bytes) (string, error) {
	if len(s.Reveal()) < 12 {
		return "it is too short", nil
	}
	p[who] = string(s.Reveal())
	return "", nil
}

func (p phrases) Check(_ context.Context, _ wetink.Tenant, who wetink.Person, s secret.Bytes) (bool, error) {
	return p[who] == "" || p[who] != string(s.Reveal()), nil
}

func (p phrases) Approve(ctx context.Context, c wetink.Change, who wetink.Person, client string, shown time.Time, s secret.Bytes) (wetink.Evidence, bool, error) {
	if wrong, _ := p.Check(ctx, "", who, s); wrong {
		return wetink.Evidence{}, true, nil
	}
	return wetink.Evidence{Kind: wetink.EvidenceReauth, Digest: c.Statement.Digest(), By: who, Client: client, Shown: shown}, false, nil
}

func (phrases) Verify(context.Context, wetink.Change, wetink.Terms, wetink.Evidence) (wetink.Level, error) {
	return wetink.Reauth, nil
}

func (phrases) Reach(context.Context) wetink.Level { return wetink.Reauth }

// office is a page with a ledger, a target and two people: ana is an approver, bo is not.
type office struct {
	t       *testing.T
	kit     *wetinktest.Kit
	store   *storetest.Memory
	server  *page.Server
	now     time.Time
	pass    phrases
	issuer  *counter
	company *page.SignOn
}

func open(t *testing.T, level wetink.Level, more ...func(*page.Options)) *office {
	t.Helper()
	o := &office{t: t, store: storetest.NewMemory(), now: time.Now().Add(time.Hour), pass: phrases{"ana": "five words make a phrase", "bo": "five other words here"}}
	o.issuer = &counter{}
	o.company = &page.SignOn{Issuer: o.issuer, Name: "Firm", Approvers: []string{"approvers", "board"}}
	o.kit = wetinktest.New(t, &wetink.Options{Policy: wetink.Floor{Level: level, People: 1}, TTL: 24 * time.Hour, Verifiers: map[string]wetink.Verifier{page.EvidenceSession: page.Verifier(o.store), wetink.EvidenceReauth: page.Entitled(o.store, o.pass), wetink.EvidenceRelogin: page.ReloginVerifier(o.store, "https://id.example")}})
	o.kit.Target.Put("a", `{"n":1,"secret":"only for ana"}`)
	for _, p := range []page.Person{{ID: "ana", Approver: true, Created: o.now}, {ID: "bo", Created: o.now}} {
		if err := o.store.AddPerson(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	opt := &page.Options{Passphrases: o.pass, SignOn: o.company, Now: func() time.Time { return o.now }, Zone: time.UTC}
	for _, f := range more {
		f(opt)
	}
	var err error
	if o.server, err = page.New(t.Context(), origin, o.kit.Engine, o.kit.Ledger, o.store, opt); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) preview(args string) wetink.Change { o.t.Helper(); return o.previewFor("ana", args) }

func (o *office) previewFor(who wetink.Person, args string) wetink.Change {
	o.t.Helper()
	by := wetinktest.By
	by.Person = who
	c, _, err := o.kit.Preview(o.t.Context(), "test", wetink.Request{By: by, Args: []byte(args)})
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

const setN2 = `{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`

// browser sends what a browser of somebody sends from our own page.
type browser struct {
	o      *office
	cookie string
}

func (o *office) browser() *browser { return &browser{o: o} }

func (o *office) signedIn(who string) *browser {
	b := o.browser()
	if code, _, _ := b.post("/signin", url.Values{"user": {who}, "pass": {o.pass[wetink.Person(who)]}}); code != http.StatusSeeOther {
		o.t.Fatalf("%s cannot sign in: %d", who, code)
	}
	return b
}

func (b *browser) send(r *http.Request) (int, string, http.Header) {
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	w := httptest.NewRecorder()
	b.o.server.ServeHTTP(w, r)
	res := w.Result()
	for _, c := range res.Cookies() {
		b.cookie = keep(b.cookie, c)
	}
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body), res.Header
}

// keep is a jar: cookies by name, without those that end.
func keep(jar string, c *http.Cookie) string {
	kept := slices.DeleteFunc(strings.Split(jar, "; "), func(s string) bool { return s == "" || strings.HasPrefix(s, c.Name+"=") })
	if c.MaxAge >= 0 {
		kept = append(kept, c.Name+"="+c.Value)
	}
	return strings.Join(kept, "; ")
}

func request(method, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:7433"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
	}
	return r
}

func (b *browser) get(path string) (int, string, http.Header) {
	return b.send(request("GET", path, nil))
}
func (b *browser) post(path string, form url.Values) (int, string, http.Header) {
	return b.send(request("POST", path, form))
}

func (o *office) path(c wetink.Change) string { return strings.TrimPrefix(o.server.Link(c), origin) }

// form is the hidden field of the page that a person looks at; armed says that they looked long enough.
func (b *browser) form(c wetink.Change, armed bool) string {
	b.o.t.Helper()
	code, body, _ := b.get(b.o.path(c))
	m := regexp.MustCompile(`name="form" value="([^"]+)"`).FindAllStringSubmatch(body, -1)
	if code != 200 || m == nil {
		b.o.t.Fatalf("%d: no form in %s", code, body)
	}
	if armed {
		b.o.now = b.o.now.Add(2 * time.Second)
	}
	return m[0][1]
}

func (o *office) status(c wetink.Change) wetink.Status {
	o.t.Helper()
	now, err := o.kit.Ledger.Get(o.t.Context(), "", c.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	return now.Status
}

func TestAPersonSeesAndApprovesAndItIsAppliedOnce(t *testing.T) {
	o := open(t, wetink.Session)
	c := o.preview(setN2)
	ana := o.signedIn("ana")
	if code, body, _ := ana.get("/"); code != 200 || !strings.Contains(body, o.path(c)) || !strings.Contains(body, "1 change waits for you") {
		t.Fatalf("%d %s", code, body)
	}
	code, _, h := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}})
	if code != http.StatusSeeOther || h.Get("Location") != o.path(c) || o.status(c) != wetink.Approved {
		t.Fatalf("%d %s %s", code, h.Get("Location"), o.status(c))
	}
	done, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil)
	if err != nil || done.Status != wetink.Applied {
		t.Fatalf("the claim did not verify the evidence again: %s %v", done.Status, err)
	}
	if got := done.Approvals[0].Sentence(); got != "A browser session of ana sent the approval for this exact change after it was shown." {
		t.Error(got)
	}
	// And back again: the plan is shown, and approved like any change.
	code, _, h = ana.post(o.path(c)+"/undo", url.Values{"form": {ana.form(c, true)}})
	if code != http.StatusSeeOther {
		t.Fatal(code)
	}
	_, body, _ := ana.get(h.Get("Location"))
	if !strings.Contains(body, "Undo: change 1 object") {
		t.Errorf("%s", body)
	}
	if n := len(o.kit.Target.Journal()); n != 1 {
		t.Errorf("%d effects", n)
	}
	_, body, _ = ana.get("/")
	if !strings.Contains(body, "you approved 1 of 1") {
		t.Errorf("the rate is not shown: %s", body)
	}
}

func TestAReasonReachesTheAgent(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	if code, _, _ := ana.post(o.path(c)+"/reject", url.Values{"form": {ana.form(c, false)}, "reason": {"not on a Friday"}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	now, _ := o.kit.Ledger.Get(t.Context(), "", c.ID)
	if now.Status != wetink.Rejected || now.Why != "not on a Friday" {
		t.Errorf("%s %q", now.Status, now.Why)
	}
}

func TestAPassphraseIsAskedForWhereTheChangeDemandsIt(t *testing.T) {
	o := open(t, wetink.Reauth)
	c, ana := o.preview(setN2), o.signedIn("ana")
	if _, body, _ := ana.get(o.path(c)); !strings.Contains(body, `name="pass"`) {
		t.Fatal("no field for it")
	}
	for _, wrong := range []string{"", "five words make a phrasE"} {
		code, body, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}, "pass": {wrong}})
		if code != http.StatusBadRequest || !strings.Contains(body, "Nothing was sent") || o.status(c) != wetink.Pending {
			t.Errorf("%q: %d %s", wrong, code, o.status(c))
		}
	}
	if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}, "pass": {"five words make a phrase"}}); code != http.StatusSeeOther || o.status(c) != wetink.Approved {
		t.Errorf("%d %s", code, o.status(c))
	}
}

// Alice's link in Bob's hands (T25): he sees that there is something, and nothing of it.
func TestALinkCarriesNoPower(t *testing.T) {
	o := open(t, wetink.Session)
	c := o.preview(setN2)
	path := o.path(c)
	stranger, bo := o.browser(), o.signedIn("bo")
	code, body, h := stranger.get(path)
	if code != http.StatusSeeOther || !strings.HasPrefix(h.Get("Location"), "/signin?next=") {
		t.Errorf("%d %s %s", code, h.Get("Location"), body)
	}
	code, body, _ = bo.get(path)
	for _, of := range []string{"only for ana", `"n"`, "Change 1 object", "test", "claims", c.Statement.Digest().String()} {
		if strings.Contains(body, of) {
			t.Errorf("bo sees %q", of)
		}
	}
	if code != http.StatusForbidden {
		t.Errorf("%d", code)
	}
	if _, body, _ = bo.get("/"); strings.Contains(body, "/c/") {
		t.Error("it is in bo's inbox")
	}
	anas := o.signedIn("ana").form(c, true)
	for _, verb := range []string{"approve", "reject", "again", "undo", "look", "resolve"} {
		if code, _, _ := bo.post(path+"/"+verb, url.Values{"form": {anas}}); code != http.StatusForbidden {
			t.Errorf("bo may %s: %d", verb, code)
		}
		if code, _, _ := stranger.post(path+"/"+verb, url.Values{"form": {anas}}); code != http.StatusUnauthorized {
			t.Errorf("a stranger may %s: %d", verb, code)
		}
	}
	for _, guess := range []string{path[:len(path)-1], path + "x", strings.Replace(path, ".", "", 1), "/c/" + strings.TrimPrefix(string(c.ID), "chg_"), "/c/" + string(c.ID)} {
		if code, _, _ := o.signedIn("ana").get(guess); code != http.StatusNotFound {
			t.Errorf("%s: %d", guess, code)
		}
	}
	if o.status(c) != wetink.Pending {
		t.Errorf("it is %s", o.status(c))
	}
}

func TestAFormIsGoodForWhatItWasDrawnFor(t *testing.T) {
	o := open(t, wetink.Session)
	c, other := o.preview(setN2), o.preview(setN2)
	ana, second := o.signedIn("ana"), o.signedIn("ana")
	refused := func(what string, b *browser, form string) {
		t.Helper()
		code, body, _ := b.post(o.path(c)+"/approve", url.Values{"form": {form}})
		if code == http.StatusSeeOther || o.status(c) != wetink.Pending {
			t.Errorf("%s: %d, and it is %s", what, code, o.status(c))
		}
		if code != http.StatusConflict || !strings.Contains(body, "othing was") {
			t.Errorf("%s: %d does not say that nothing was sent", what, code)
		}
	}
	good := ana.form(c, true)
	refused("none", ana, "")
	refused("of another change", ana, ana.form(other, true))
	refused("of another browser", second, good)
	refused("a changed one", ana, "A"+good[1:])
	refused("a part of one", ana, good[:40])
	refused("too early", ana, ana.form(c, false))
	old := ana.form(c, true)
	o.now = o.now.Add(31 * time.Minute)
	refused("too old", ana, old)
	// One more approval moves the row: what was drawn before is not what is decided now.
	moved := ana.form(c, true)
	if _, _, err := o.kit.Replace(t.Context(), wetinktest.By, c.ID, nil); err != nil {
		t.Fatal(err)
	}
	if code, body, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {moved}}); code != http.StatusConflict || !strings.Contains(body, "moved while you looked") {
		t.Errorf("of an earlier revision: %d", code)
	}
}

func TestASessionEnds(t *testing.T) {
	o := open(t, wetink.Session)
	in := func(b *browser) bool { code, _, _ := b.get("/"); return code == 200 }
	idle, old, out, gone := o.signedIn("ana"), o.signedIn("ana"), o.signedIn("ana"), o.signedIn("bo")
	planted := o.browser()
	planted.cookie = "wetink-7433=planted"
	if in(planted) {
		t.Error("a planted cookie is a session")
	}
	if code, _, _ := out.post("/signout", nil); code != http.StatusSeeOther || in(out) {
		t.Error("signed out and still in")
	}
	if err := o.store.UpdatePerson(t.Context(), page.Person{ID: "bo", Removed: o.now}); err != nil || in(gone) {
		t.Errorf("removed and still in: %v", err)
	}
	for hour := range 8 * 24 {
		o.now = o.now.Add(time.Hour)
		if stays := hour < 7*24-1; in(old) != stays {
			t.Errorf("used every hour, after %d hours it is open: %t", hour+1, !stays)
			break
		}
		if hour == 12 && in(idle) {
			t.Error("not used for 13 hours, and open")
		}
	}
}

func TestSigningInLeadsToOurOwnPagesOnly(t *testing.T) {
	o := open(t, wetink.Session)
	for next, want := range map[string]string{"/history": "/history", "": "/", "https://evil.example/": "/", "//evil.example": "/", "/\\evil.example": "/",
		"javascript:alert(1)": "/", "/signin?next=/signin": "/", "///evil.example": "/", "/%5Cevil.example": "/%5Cevil.example", "/%09/evil.example": "/%09/evil.example", "https://evil.example/c/x": "/c/x", "/c/x": "/c/x", "evil": "/", "\t//evil.example": "/"} {
		_, _, h := o.browser().post("/signin", url.Values{"user": {"ana"}, "pass": {"five words make a phrase"}, "next": {next}})
		if got := h.Get("Location"); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
	codes := map[string]bool{}
	for _, who := range []string{"ana", "nobody", ""} {
		code, body, _ := o.browser().post("/signin", url.Values{"user": {who}, "pass": {"wrong"}})
		state := regexp.MustCompile(`value="[^"]*"`).ReplaceAllString(body, "")
		codes[fmt.Sprint(code, state)] = true
	}
	if len(codes) != 1 {
		t.Error("a wrong name and a wrong passphrase are told apart")
	}
}

func TestAnInvitationWorksOnceAndLookingUsesNothingUp(t *testing.T) {
	o := open(t, wetink.Session)
	delete(o.pass, "bo")
	link, err := o.server.Invite(t.Context(), "", "bo")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(link, origin)
	scanner := o.browser()
	for range 3 {
		if code, _, _ := scanner.get(path); code != 200 {
			t.Fatal(code)
		}
	}
	b := o.browser()
	if code, body, _ := b.post(path, url.Values{"pass": {"short"}, "pass2": {"short"}}); code != http.StatusBadRequest || !strings.Contains(body, "too short") {
		t.Errorf("%d", code)
	}
	if code, _, _ := b.post(path, url.Values{"pass": {"five other words now"}, "pass2": {"not the same words"}}); code != http.StatusBadRequest {
		t.Errorf("%d", code)
	}
	if code, _, _ := b.post(path, url.Values{"pass": {"five other words now"}, "pass2": {"five other words now"}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if code, _, _ := b.get("/"); code != 200 {
		t.Errorf("not signed in: %d", code)
	}
	if code, _, _ := o.browser().post(path, url.Values{"pass": {"an attacker's words"}, "pass2": {"an attacker's words"}}); code != http.StatusNotFound || o.pass["bo"] != "five other words now" {
		t.Errorf("a used link: %d, %q", code, o.pass["bo"])
	}
	late, err := o.server.Invite(t.Context(), "", "bo")
	if err != nil {
		t.Fatal(err)
	}
	o.now = o.now.Add(2 * time.Hour)
	if code, _, _ := o.browser().get(strings.TrimPrefix(late, origin)); code != http.StatusNotFound {
		t.Errorf("an old link: %d", code)
	}
}

func TestTheHoursBudgetHoldsApprovals(t *testing.T) {
	o := open(t, wetink.Session, func(p *page.Options) { p.Budget = 3 })
	ana := o.signedIn("ana")
	for i := range 4 {
		c := o.preview(setN2)
		code, body, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}})
		if held := code == http.StatusTooManyRequests; held != (i == 3) || held && !strings.Contains(body, "Nothing was sent") {
			t.Errorf("approval %d: %d", i+1, code)
		}
		if i < 3 {
			continue
		}
		o.now = o.now.Add(2 * time.Hour)
		if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}}); code != http.StatusSeeOther {
			t.Errorf("after a pause: %d", code)
		}
	}
}

func TestWhatDoesNotComeBackHasToBeTyped(t *testing.T) {
	o := open(t, wetink.Session)
	o.kit.Target.SetPromise(wetink.Promise{Extent: wetink.NoUndo})
	c, ana := o.preview(`{"ops":[{"action":"delete","object":"a"}]}`), o.signedIn("ana")
	for typed, want := range map[string]int{"": http.StatusBadRequest, "1": http.StatusBadRequest, "delete": http.StatusBadRequest} {
		if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}, "typed": {typed}}); code != want || o.status(c) != wetink.Pending {
			t.Errorf("%q: %d", typed, code)
		}
	}
	if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}, "typed": {"1 deletion"}}); code != http.StatusSeeOther {
		t.Errorf("%d", code)
	}
}

func TestLeavingRowsOutIsANewProposalAndNeverAPartOfThisOne(t *testing.T) {
	o := open(t, wetink.Session, func(p *page.Options) {
		p.Exclude = func(c wetink.Change, keep []int) (json.RawMessage, bool) {
			var args struct {
				Ops []json.RawMessage `json:"ops"`
			}
			if json.Unmarshal(c.Request.Args, &args) != nil {
				return nil, false
			}
			var out []json.RawMessage
			for _, i := range keep {
				out = append(out, args.Ops[i])
			}
			b, err := json.Marshal(map[string]any{"ops": out})
			return b, err == nil
		}
	})
	c, ana := o.preview(`{"ops":[{"action":"update","object":"a","set":{"n":2}},{"action":"create","object":"b","set":{"n":3}}]}`), o.signedIn("ana")
	code, _, h := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}, "ticks": {"1"}, "keep": {"1"}})
	if code != http.StatusSeeOther || h.Get("Location") == o.path(c) || o.status(c) != wetink.Superseded {
		t.Fatalf("%d %s %s", code, h.Get("Location"), o.status(c))
	}
	_, body, _ := ana.get(h.Get("Location"))
	if !strings.Contains(body, "Create 1 object") || strings.Contains(body, "leave some out") {
		t.Errorf("%s", body)
	}
	same := o.preview(`{"ops":[{"action":"update","object":"a","set":{"n":2}},{"action":"create","object":"c","set":{"n":3}}]}`)
	if _, body, _ := ana.get(o.path(same)); !strings.Contains(body, `<button name="update" value="1">Update the list`) {
		t.Error("the button does not say what it is")
	}
	if code, body, _ := ana.post(o.path(same)+"/approve", url.Values{"form": {ana.form(same, true)}, "ticks": {"1"}, "keep": {"0", "1"}, "update": {"1"}}); code != http.StatusBadRequest || o.status(same) != wetink.Pending || !strings.Contains(body, "Nothing was decided") {
		t.Errorf("a list that was not changed: %d, %s", code, o.status(same))
	}
	whole := o.preview(setN2 + "")
	if code, _, _ := ana.post(o.path(whole)+"/approve", url.Values{"form": {ana.form(whole, true)}, "ticks": {"1"}}); code != http.StatusBadRequest || o.status(whole) != wetink.Pending {
		t.Errorf("nothing kept: %d, %s", code, o.status(whole))
	}
}

func TestEvidenceOfASessionIsForExactlyThisChange(t *testing.T) {
	o := open(t, wetink.Session)
	c, sibling, ana := o.preview(setN2), o.preview(setN2), o.signedIn("ana")
	if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	c, _ = o.kit.Ledger.Get(t.Context(), "", c.ID)
	good, v := c.Approvals[0].Evidence, page.Verifier(o.store)
	for name, spoil := range map[string]func(e *wetink.Evidence, c *wetink.Change){
		"another change": func(_ *wetink.Evidence, c *wetink.Change) { c.ID = sibling.ID },
		"another digest": func(e *wetink.Evidence, c *wetink.Change) {
			c.Statement = sibling.Statement
			e.Digest = sibling.Statement.Digest()
		},
		"another person":  func(e *wetink.Evidence, _ *wetink.Change) { e.By = "bo" },
		"another time":    func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = e.Shown.Add(time.Nanosecond) },
		"another session": func(e *wetink.Evidence, _ *wetink.Change) { e.Data[0] ^= 1 },
		"another MAC":     func(e *wetink.Evidence, _ *wetink.Change) { e.Data[len(e.Data)-1] ^= 1 },
		"no MAC":          func(e *wetink.Evidence, _ *wetink.Change) { e.Data = e.Data[:32] },
		"another kind":    func(e *wetink.Evidence, _ *wetink.Change) { e.Kind = wetink.EvidenceReauth },
		"another client":  func(e *wetink.Evidence, _ *wetink.Change) { e.Client = "x" },
	} {
		e, row := good, c
		e.Data = append([]byte{}, good.Data...)
		spoil(&e, &row)
		if level, err := v.Verify(t.Context(), row, wetink.Terms{}, e); err == nil || level != wetink.Auto {
			t.Errorf("%s: %v", name, level)
		}
	}
	if level, err := v.Verify(t.Context(), c, wetink.Terms{}, good); err != nil || level != wetink.Session {
		t.Errorf("the control: %v %v", level, err)
	}
	if err := o.store.UpdatePerson(t.Context(), page.Person{ID: "ana", Removed: o.now}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), c, wetink.Terms{}, good); err == nil {
		t.Error("ana was removed, and her approval still counts")
	}
}

func TestAStaleChangeShowsWhatMovedAndIsCheckedAgainWithoutTheAgent(t *testing.T) {
	o := open(t, wetink.Session)
	c, ana := o.preview(setN2), o.signedIn("ana")
	if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	o.kit.Target.Put("a", `{"n":7,"secret":"only for ana"}`)
	if done, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || done.Status != wetink.Failed {
		t.Fatalf("%s %v", done.Status, err)
	}
	_, body, _ := ana.get(o.path(c))
	for _, want := range []string{"Nothing was sent", "<mark>", "7", "Check again"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	code, _, h := ana.post(o.path(c)+"/again", url.Values{"form": {ana.form(c, false)}})
	if code != http.StatusSeeOther || h.Get("Location") == o.path(c) {
		t.Fatalf("%d %s", code, h.Get("Location"))
	}
	if _, body, _ = ana.get(h.Get("Location")); !strings.Contains(body, "Change 1 object") {
		t.Errorf("%s", body)
	}
	if _, old, _ := ana.get(o.path(c)); strings.Contains(old, "Nothing was sent. nothing") {
		t.Error("it says the same twice")
	}
	newer, _, err := o.kit.Replace(t.Context(), wetinktest.By, o.preview(`{"ops":[{"action":"update","object":"a","set":{"n":8}}]}`).ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	older, err := o.kit.Ledger.Get(t.Context(), "", newer.Replaces)
	if err != nil {
		t.Fatal(err)
	}
	if _, body, _ := ana.get(o.path(older)); !strings.Contains(body, `href="`+o.path(newer)+`">Look at that one`) {
		t.Errorf("what was replaced does not lead to what replaced it: %s", body)
	}
	if o.status(c) != wetink.Failed || len(o.kit.Target.Journal()) != 0 {
		t.Errorf("%s, %d effects", o.status(c), len(o.kit.Target.Journal()))
	}
}

func TestChosenChangesAreUndoneTogetherFromTheHistory(t *testing.T) {
	o := open(t, wetink.Session)
	o.kit.Target.Put("b", `{"n":1}`)
	ana := o.signedIn("ana")
	var done []wetink.Change
	for _, object := range []string{"a", "b"} {
		c := o.preview(`{"ops":[{"action":"update","object":"` + object + `","set":{"n":2}}]}`)
		if code, _, _ := ana.post(o.path(c)+"/approve", url.Values{"form": {ana.form(c, true)}}); code != http.StatusSeeOther {
			t.Fatal(code)
		}
		c, _, err := o.kit.Apply(t.Context(), wetinktest.By, c.ID, nil)
		if err != nil || c.Status != wetink.Applied {
			t.Fatal(c.Status, err)
		}
		done = append(done, c)
	}
	chosen := func(b *browser) url.Values {
		_, body, _ := b.get("/history")
		v := url.Values{"form": {formOf(t, body, "/undo")}}
		for _, m := range regexp.MustCompile(`name="c" value="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			v.Add("c", m[1])
		}
		return v
	}
	all := chosen(ana)
	if len(all["c"]) != 2 {
		t.Fatalf("the history offers %v", all["c"])
	}
	for name, spoil := range map[string]func(url.Values){
		"nothing chosen": func(v url.Values) { v.Del("c") },
		"no form":        func(v url.Values) { v.Del("form") },
		"a form of settings": func(v url.Values) {
			_, body, _ := ana.get("/settings")
			v.Set("form", regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(body)[1])
		},
		"a made-up link": func(v url.Values) { v.Add("c", strings.TrimPrefix(string(done[0].ID), "chg_")+".0000000000000000") },
	} {
		v := url.Values{"form": slices.Clone(all["form"]), "c": slices.Clone(all["c"])}
		spoil(v)
		if code, body, _ := ana.post("/undo", v); code < 400 || !strings.Contains(body, "Nothing was undone") {
			t.Errorf("%s: %d", name, code)
		}
	}
	bo := o.signedIn("bo")
	if code, _, _ := bo.post("/undo", all); code < 400 {
		t.Errorf("bo, with the form of ana: %d", code)
	}
	o.kit.Target.Put("c", `{"n":1}`)
	hers := o.previewFor("bo", `{"ops":[{"action":"update","object":"c","set":{"n":2}}]}`)
	if code, _, _ := ana.post(o.path(hers)+"/approve", url.Values{"form": {ana.form(hers, true)}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if _, _, err := o.kit.Apply(t.Context(), wetinktest.By, hers.ID, nil); err != nil {
		t.Fatal(err)
	}
	mixed := chosen(bo)
	if len(mixed["c"]) != 1 {
		t.Fatalf("bo is offered %v", mixed["c"])
	}
	mixed["c"] = append(mixed["c"], all["c"]...)
	if code, body, _ := bo.post("/undo", mixed); code != http.StatusForbidden || !strings.Contains(body, "not for you") {
		t.Errorf("bo, with changes of ana among them: %d", code)
	}
	code, _, h := ana.post("/undo", all)
	if code != http.StatusSeeOther {
		t.Fatal(code)
	}
	_, body, _ := ana.get(h.Get("Location"))
	for _, want := range []string{"Undo: ", string(done[0].ID), string(done[1].ID)} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of the undo lacks %q", want)
		}
	}
	if n := len(o.kit.Target.Journal()); n != 3 {
		t.Errorf("%d effects before the undo was approved", n)
	}
	if left := chosen(ana)["c"]; len(left) != 1 {
		t.Errorf("what waits to be undone is offered again: %v", left)
	}
}

// formOf is the form key of the form that is sent to action.
func formOf(t *testing.T, body, action string) string {
	t.Helper()
	m := regexp.MustCompile(`action="` + action + `"[^>]*>(?s:.*?)name="form" value="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no form for %s in %s", action, body)
	}
	return m[1]
}
