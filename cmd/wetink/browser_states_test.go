//go:build services && unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/wetink/wetink"
	approval "github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/page/storetest"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

// letsIn lets everybody in: how one signs in is tested elsewhere.
type letsIn struct{}

func (letsIn) Has(context.Context, wetink.Tenant, wetink.Person) (bool, error) { return true, nil }
func (letsIn) Set(context.Context, wetink.Tenant, wetink.Person, secret.Bytes) (string, error) {
	return "", nil
}
func (letsIn) Check(context.Context, wetink.Tenant, wetink.Person, secret.Bytes) (bool, error) {
	return false, nil
}
func (letsIn) Approve(context.Context, wetink.Change, wetink.Person, string, time.Time, secret.Bytes) (wetink.Evidence, bool, error) {
	return wetink.Evidence{}, true, nil
}

// Every state of a change has a page, and each is for everybody (WCAG 2.2 AA, as far as axe-core can tell).
func TestThePageOfEveryStateIsAccessible(t *testing.T) {
	origin := freeOrigin(t)
	store := storetest.NewMemory()
	if err := store.AddPerson(t.Context(), approval.Person{ID: "ana", Approver: true, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	level := wetink.Session
	k := wetinktest.New(t, &wetink.Options{Policy: policyFunc(func() wetink.Require { return wetink.Require{Level: level, People: 1} })})
	pages, err := approval.New(t.Context(), origin, k.Engine, k.Ledger, store, &approval.Options{Passphrases: letsIn{},
		Exclude: func(wetink.Change, []int) (json.RawMessage, bool) { return nil, true }})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = serveHTTP(serving, strings.TrimPrefix(origin, "http://"), pages) }()
	for up := false; !up; {
		res, err := http.Get(origin + "/static/page.css")
		if up = err == nil; up {
			_ = res.Body.Close()
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}

	preview := func(args string) wetink.Change {
		t.Helper()
		c, _, err := k.Preview(t.Context(), "test", wetink.Request{By: wetink.Principal{Client: "claims to be agent 1"}, Args: []byte(args)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	apply := func(c wetink.Change) {
		t.Helper()
		if _, err := k.Approve(t.Context(), wetinktest.By, c.ID, wetinktest.Vouch(c, wetink.Session, "ana")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	put := func() { k.Target.Put("a", `{"n":1,"name":"Tempo"}`) }
	const set = `{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`
	put()
	bulk := preview(`{"ops":[{"action":"update","object":"a","set":{"name":"in\u202evoice\u200b"}},{"action":"create","object":"b","set":{"text":"one\ntwo"}}]}`)
	stale := preview(set)
	k.Target.Put("a", `{"n":7,"name":"Tempo"}`)
	apply(stale)
	put()
	doubt := preview(set)
	k.Target.OnExecute = func(int, wetink.Op, func() error) error { return errors.New("connection reset") }
	apply(doubt)
	k.Target.OnExecute = nil
	rejected := preview(set)
	if _, err := k.Reject(t.Context(), wetinktest.By, rejected.ID, "not today"); err != nil {
		t.Fatal(err)
	}
	superseded := preview(set)
	if _, _, err := k.Replace(t.Context(), wetinktest.By, superseded.ID, nil); err != nil {
		t.Fatal(err)
	}
	level = wetink.Reauth
	k.Target.SetPromise(wetink.Promise{Extent: wetink.NoUndo, Notes: []string{"It is gone for good."}})
	gone := preview(`{"ops":[{"action":"delete","object":"a"}]}`)

	ctx := chrome(t)
	browse(t, ctx, "sign in", chromedp.Navigate(origin+"/signin"), chromedp.WaitVisible(`input[name=user]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=user]`, "ana", chromedp.ByQuery), chromedp.SendKeys(`input[name=pass]`, "x", chromedp.ByQuery),
		chromedp.Click(`form:has(input[name=user]) button`, chromedp.ByQuery), says("wait for you"))
	look(t, ctx, "inbox-many")
	for name, c := range map[string]struct {
		change wetink.Change
		says   string
	}{
		"bulk": {bulk, "Leave some out"}, "stale": {stale, "It changed since you looked. Nothing was sent."}, "in-doubt": {doubt, "We do not know whether it took effect"},
		"rejected": {rejected, "It was declined. Nothing was sent."}, "superseded": {superseded, "A newer proposal takes its place"},
		"typed": {gone, "Type “1 deletion”"},
	} {
		browse(t, ctx, name, chromedp.Navigate(pages.Link(c.change)), says(c.says))
		look(t, ctx, name)
	}
	browse(t, ctx, "nothing there", chromedp.Navigate(origin+"/c/x.y"), says("There is no such change"))
	look(t, ctx, "message")
}

type policyFunc func() wetink.Require

// Decide implements wetink.Policy.
func (f policyFunc) Decide(context.Context, wetink.Terms, []wetink.Snapshot) (wetink.Decision, error) {
	return wetink.Decision{Require: f()}, nil
}
