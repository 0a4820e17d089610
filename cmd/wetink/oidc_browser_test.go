//go:build services && unix

package main

import (
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/oidc"
	"github.com/wetink/wetink/approval/oidc/oidctest"
	approval "github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

// A real browser, because cookies (SameSite), the page's policy (form-action) and the way through another site are its
// business: the issuer is on 127.0.0.1, which is another site than localhost.
func TestAPersonWithABrowserSignsInAtTheIssuer(t *testing.T) {
	origin := freeOrigin(t)
	issuer := oidctest.New(t, origin+callbackPath)
	who := peopleOf(t, configured(t, map[string]string{"WETINK_HOME": filepath.Join(t.TempDir(), "home"), "WETINK_PAGE_URL": origin}))
	who.issuer = issuer.URL
	ledger, target := wetinktest.NewLedger(), wetinktest.NewTarget()
	target.Put("a", `{"n":1}`)
	k := wetinktest.On(ledger, target, &wetink.Options{Policy: wetink.Floor{Level: wetink.Reauth, People: 1}, Verifiers: who.verifiers()})
	at, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := oidc.New(oidc.Config{Issuer: issuer.URL, ClientID: oidctest.ClientID, Secret: secret.New([]byte(oidctest.Secret)), Redirect: origin + callbackPath}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := approval.New(t.Context(), origin, k.Engine, ledger, who, &approval.Options{Passphrases: who.passphrases, Passkeys: pagePasskeys{who.passkeys},
		SignOn: &approval.SignOn{Issuer: pageIssuer{client}, Name: "Firm", Approvers: []string{"approvers"}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+at.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })

	ctx := chrome(t)
	browse(t, ctx, "the sign-in", chromedp.Navigate(origin+"/"), says("Sign in with Firm"))
	look(t, ctx, "signin-issuer")
	browse(t, ctx, "to the issuer and back", press(`form[action="/signin/oidc"] button`), says("Nothing waits"),
		chromedp.Navigate("about:blank")) // a list that draws itself anew would end the way to the change
	c, _, err := k.Preview(t.Context(), "test", wetink.Request{By: wetink.Principal{Person: "bo", Client: "agent"}, Args: []byte(`{"ops":[{"action":"update","object":"a","set":{"n":2}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(p.Link(c), origin)
	browse(t, ctx, "the change", chromedp.Navigate(p.Link(c)), says("Sign in again with Firm"))
	look(t, ctx, "prove")
	browse(t, ctx, "the proof", press(`button[formaction$="/prove"]`), says("You proved who you are with Firm"))
	look(t, ctx, "proved")
	browse(t, ctx, "the press", press(`form[action="`+path+`/approve"] button.go`), says("Approved."))
	if done, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || done.Approvals[0].Level != wetink.Reauth {
		t.Errorf("%s %v", done.Status, err)
	}
	browse(t, ctx, "the settings", chromedp.Navigate(origin+"/settings"), says("prove again who you are"))
	look(t, ctx, "settings-issuer")
	browse(t, ctx, "again", press(`form[action="/signin/oidc"] button`), says("What do you call this device"))
}
