//go:build services && unix

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	approval "github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
)

var pictures = flag.String("pictures", "", "folder for pictures of the pages")

// chrome is one profile of Debian's Chromium. The profile is chromedp's to make and remove: Chromium goes on writing to it
// for a moment after it was told to end, and a folder of the test's would not be empty then.
func chrome(t *testing.T) context.Context {
	t.Helper()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath("chromium"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), o...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(stop)
	return ctx
}

func browse(t *testing.T, ctx context.Context, what string, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var text string
		_ = chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &text))
		t.Fatalf("%s: %v\n%s", what, err, text)
	}
}

// authenticator gives the browser one that verifies its user, as a phone or a laptop does.
func authenticator() chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := webauthn.Enable().Do(ctx); err != nil {
			return err
		}
		_, err := webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2,
			Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}).Do(ctx)
		return err
	})
}

// until waits for what a script says of the page. A page that is left meanwhile is asked again when the next is there.
func until(script string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		for {
			var holds bool
			if err := chromedp.Evaluate(script, &holds).Do(ctx); err == nil && holds {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", script, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

func says(text string) chromedp.Action {
	return until(fmt.Sprintf(`!!document.body && document.readyState === "complete" && document.body.innerText.includes(%q)`, text))
}

// press clicks a button once it is not deaf any more.
//
// The place of a button is asked for and then pressed: after another size of the window both have to be of one drawing.
func press(sel string) chromedp.Action {
	drawn := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	return chromedp.Tasks{
		chromedp.ScrollIntoView(sel, chromedp.ByQuery),
		chromedp.Evaluate(`new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))`, nil, drawn),
		until(fmt.Sprintf(`(() => { const b = document.querySelector(%q); return !!b && getComputedStyle(b).pointerEvents !== "none" && performance.now() > 900 })()`, sel)),
		chromedp.Click(sel, chromedp.ByQuery),
	}
}

// axe checks a page against WCAG 2.2 A and AA and the best practices that axe-core knows.
func axe(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "tools", "npm", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("run `make setup`: %v", err)
	}
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	browse(t, ctx, "axe on "+name, chromedp.Evaluate(string(source)+";0", nil), chromedp.Evaluate(`axe.run().then(r => r.violations)`, &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range found {
		t.Errorf("%s: %s: %s %v", name, v.ID, v.Help, v.Nodes)
	}
}

// look checks a page in both sizes and themes, and takes its picture if somebody wants one.
func look(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	for _, size := range [][2]int64{{1280, 800}, {390, 844}} {
		for _, theme := range []string{"light", "dark"} {
			var wide int64
			browse(t, ctx, name, emulation.SetDeviceMetricsOverride(size[0], size[1], 1, size[0] < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
				chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
			if wide > size[0] {
				t.Errorf("%s at %d px is %d px wide", name, size[0], wide)
			}
			axe(t, ctx, fmt.Sprintf("%s, %d px, %s", name, size[0], theme))
			if *pictures != "" {
				var png []byte
				browse(t, ctx, name, chromedp.ActionFunc(func(ctx context.Context) (err error) {
					png, err = page.CaptureScreenshot().Do(ctx)
					return err
				}))
				if err := os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("%s-%d-%s.png", name, size[0], theme)), png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// freeOrigin is a page of its own for each test.
func freeOrigin(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("http://localhost:%d", l.Addr().(*net.TCPAddr).Port)
}

// people of the stage's home: what setup does, without a terminal.
func (s *stage) people(origin string) *people {
	s.t.Helper()
	cfg, err := loadConfig(func(k string) string {
		return map[string]string{"WETINK_HOME": s.home, "WETINK_PAGE_URL": origin}[k]
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return peopleOf(s.t, cfg)
}

func TestAPersonWithABrowserAndAPasskey(t *testing.T) {
	origin := freeOrigin(t)
	s := newStage(t, "WETINK_APPROVAL=passkey", "WETINK_PAGE_URL="+origin)
	who := s.people(origin)
	if err := who.known(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	link, err := approval.Invite(t.Context(), who, origin, "", "ana", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sv := s.serve()
	ctx := chrome(t)

	browse(t, ctx, "open the one-time link", authenticator(), chromedp.Navigate(link), says("Welcome, ana"))
	look(t, ctx, "enrol")
	browse(t, ctx, "enrol", chromedp.SendKeys(`input[name=name]`, "laptop", chromedp.ByQuery), press(`[data-enrol]`), says("Nothing waits for you"))
	look(t, ctx, "empty")

	p := sv.must("preview_event_change", moveTo(next(0)))
	id := p["preview_id"].(string)
	url := p["approval"].(map[string]any)["url"].(string)
	if !strings.HasPrefix(url, origin+"/c/") {
		t.Fatalf("the preview leads to %q", url)
	}
	browse(t, ctx, "the inbox fills by itself", says("1 change waits for you"))
	look(t, ctx, "inbox")
	browse(t, ctx, "open the change", chromedp.Navigate(url), says("Needs A5, your passkey"))
	look(t, ctx, "change")
	browse(t, ctx, "approve it", press(`#approve .go`), says("Applied, and read back."))
	look(t, ctx, "applied")
	if m := sv.must("get_event_change_status", map[string]any{"operation_id": id}); m["status"] != "applied" ||
		!strings.Contains(fmt.Sprint(m["approved"]), "A passkey registered to ana signed this exact change") {
		t.Errorf("%v", m)
	}
	if s.effects() != 1 {
		t.Errorf("%d effects", s.effects())
	}
	browse(t, ctx, "undo it", press(`form[action$="/undo"] button`), says("Undo: "), says("Needs A5, your passkey"))
	look(t, ctx, "undo")
	browse(t, ctx, "approve the undo", press(`#approve .go`), says("Applied, and read back."))
	if m := sv.must("get_event_change_status", map[string]any{"operation_id": id}); m["status"] != "undone" {
		t.Errorf("%v", m)
	}
	if s.effects() != 2 {
		t.Errorf("%d effects", s.effects())
	}
	for _, path := range []string{"history", "settings", "doubt"} {
		browse(t, ctx, path, chromedp.Navigate(origin+"/"+path), chromedp.WaitReady("#main", chromedp.ByQuery))
		look(t, ctx, path)
	}

	// Somebody else's browser with the same link.
	other := chrome(t)
	var text string
	browse(t, other, "another profile", chromedp.Navigate(url), says("Sign in"), chromedp.Evaluate(`document.documentElement.outerHTML`, &text))
	look(t, other, "signin")
	for _, of := range []string{"event", "sha", id, "Applied", "claims to be"} {
		if strings.Contains(text, of) {
			t.Errorf("another profile sees %q", of)
		}
	}
	// A framed page does not load.
	browse(t, other, "framed", chromedp.Navigate("about:blank"), chromedp.Evaluate(`document.body.innerHTML = '<iframe id=f src=`+url+`></iframe>'; 0`, nil), chromedp.Sleep(0))
	var nodes []*cdp.Node
	browse(t, other, "framed", chromedp.Nodes(`iframe`, &nodes, chromedp.ByQuery))
	if len(nodes) == 1 && nodes[0].ContentDocument != nil && strings.HasPrefix(nodes[0].ContentDocument.DocumentURL, origin) {
		t.Error("the page loads in a frame")
	}
}

func TestWithoutScriptsAPersonApprovesDeclinesAndUndoes(t *testing.T) {
	origin := freeOrigin(t)
	s := newStage(t, "WETINK_APPROVAL=page", "WETINK_PAGE_URL="+origin)
	who := s.people(origin)
	if err := who.known(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	if why, err := who.passphrases.Set(t.Context(), "", "ana", secret.New([]byte("five words make a phrase"))); why != "" || err != nil {
		t.Fatal(why, err)
	}
	sv := s.serve()
	ctx := chrome(t)
	browse(t, ctx, "sign in", emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(origin+"/"), chromedp.WaitVisible(`input[name=user]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=user]`, "ana", chromedp.ByQuery), chromedp.SendKeys(`input[name=pass]`, "five words make a phrase", chromedp.ByQuery),
		chromedp.Click(`form:has(input[name=user]) button`, chromedp.ByQuery), says("Nothing waits for you"))
	click := func(what, sel string) {
		t.Helper()
		browse(t, ctx, what, chromedp.WaitVisible(sel, chromedp.ByQuery), chromedp.Sleep(time.Second), chromedp.Click(sel, chromedp.ByQuery))
	}
	first := sv.must("preview_event_change", moveTo(next(0)))
	browse(t, ctx, "open", chromedp.Navigate(first["approval"].(map[string]any)["url"].(string)))
	click("approve", `#approve .go`)
	sv.until(first["preview_id"].(string), "applied")
	browse(t, ctx, "open again", chromedp.Navigate(first["approval"].(map[string]any)["url"].(string)))
	click("undo", `form[action$="/undo"] button`)
	click("approve the undo", `#approve .go`)
	sv.until(first["preview_id"].(string), "undone")
	second := sv.must("preview_event_change", moveTo(next(0)))
	browse(t, ctx, "open the second", chromedp.Navigate(second["approval"].(map[string]any)["url"].(string)),
		chromedp.WaitVisible(`textarea[name=reason]`, chromedp.ByQuery), chromedp.SendKeys(`textarea[name=reason]`, "not on a Friday", chromedp.ByQuery))
	click("decline", `#decline button`)
	sv.until(second["preview_id"].(string), "rejected")
	m := sv.must("get_event_change_status", map[string]any{"operation_id": second["preview_id"]})
	b, _ := json.Marshal(m)
	if !strings.Contains(string(b), "not on a Friday") {
		t.Errorf("the reason did not reach the agent: %s", b)
	}
	if s.effects() != 2 {
		t.Errorf("%d effects", s.effects())
	}
}
