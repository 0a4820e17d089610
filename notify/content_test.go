package notify_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/notify"
	"github.com/wetink/wetink/wetinktest"
)

// A change is full of planted words, and goes through a real engine and all five channels. What they sent is
// searched for each word in the spellings that a transport may give it.
func TestNoChannelSendsAnythingOfAChange(t *testing.T) {
	const (
		title, object, person, client, account, tenant = "PlantedTitle", "planted-object-77", "planted-person", "planted-client", "planted-account", "planted-tenant"
	)
	kit := wetinktest.New(t, nil)
	kit.Target.SetAccount(account)
	kit.Target.Put(object, `{"name":"PlantedBefore"}`)

	var mu sync.Mutex
	sent := map[string]string{} // by channel
	note := func(channel string, text string) { mu.Lock(); defer mu.Unlock(); sent[channel] += text }

	device := newBrowser(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		channel, _, _ := strings.Cut(r.URL.Path[1:], "/")
		note(channel, string(dump))
		if channel == "push" {
			_, body, _ := strings.Cut(string(dump), "\r\n\r\n")
			plain, err := device.decrypt([]byte(body))
			if err != nil {
				t.Error(err)
			}
			note(channel, string(plain))
		}
	}))
	defer server.Close()
	smtp := startSMTP(t, &smtpServer{starttls: true})
	argv := screen(t)

	subs := &subscriptions{}
	subs.add("x", device.subscription(server.URL+"/push/1"))
	hook, err := notify.NewWebhook("hook", server.URL+"/hook/1", []notify.Secret{whsec(1)}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	ntfy, err := notify.NewNtfy("ntfy", server.URL+"/ntfy/1", notify.Secret{}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	desk, err := notify.NewDesktop("desk")
	if err != nil {
		t.Fatal(err)
	}
	channels := []notify.Channel{hook, ntfy, webPush(t, subs, nil), email(t, smtp, nil), desk}

	c := newCursors()
	n := notify.New(kit.Ledger, c, channels, &notify.Options{Link: "https://wetink.example/", Gather: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	waitFor(t, "the cursors of all channels", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.at) == len(channels) })

	by := wetink.Principal{Tenant: tenant, Person: person, Client: client}
	change, _, err := kit.Preview(t.Context(), "test", wetink.Request{By: by, Tool: "test",
		Args: fmt.Appendf(nil, `{"ops":[{"action":"update","object":%q,"set":{"name":%q}}]}`, object, title)})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "every channel has sent", func() bool {
		for _, ch := range channels {
			if n.Counts()[ch.Name()].Sent == 0 {
				return false
			}
		}
		return true
	})
	cancel()
	<-done

	note("mail", smtp.heard())
	if text, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader((<-smtp.letters).data))); err == nil {
		note("mail", string(text))
	}
	shown, err := os.ReadFile(argv)
	if err != nil {
		t.Fatal(err)
	}
	note("desk", string(shown))

	words := []string{title, "PlantedBefore", object, person, client, account, tenant, string(change.ID), change.Statement.Digest().String(), kit.Ledger.ID()}
	for _, ch := range channels {
		text := sent[ch.Name()]
		if text == "" {
			t.Errorf("%s: nothing was recorded", ch.Name())
		}
		if ch.Name() != "desk" && !strings.Contains(text, "1 change is waiting") {
			t.Errorf("%s: what it says is not among what was recorded:\n%s", ch.Name(), text)
		}
		for _, word := range words {
			for _, spelling := range []string{word, url.QueryEscape(word), hex.EncodeToString([]byte(word)), base64.StdEncoding.EncodeToString([]byte(word)),
				base64.RawURLEncoding.EncodeToString([]byte(word))} {
				if strings.Contains(strings.ToLower(text), strings.ToLower(spelling)) {
					t.Errorf("%s tells %q:\n%s", ch.Name(), word, text)
				}
			}
		}
		for _, power := range []string{"approve", "confirm", "action", "token", "<a ", "html"} {
			if strings.Contains(strings.ToLower(text), power) {
				t.Errorf("%s says %q:\n%s", ch.Name(), power, text)
			}
		}
	}
}

// waitFor asks again until ok or the test's patience is over.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}
