package notify_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/wetink/wetink/notify"
)

// received is a request and its body.
type received struct {
	*http.Request
	body []byte
}

// receiver answers with status and hands over what came.
func receiver(t *testing.T, status int) (url string, got chan received) {
	t.Helper()
	got = make(chan received, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- received{r, body}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

var loopback = &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: true}

func whsecText(n byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32))
}

func whsec(n byte) notify.Secret { return notify.NewSecret([]byte(whsecText(n))) }

func TestTheOfficialLibraryVerifiesAWebhook(t *testing.T) {
	url, got := receiver(t, http.StatusNoContent)
	w, err := notify.NewWebhook("hook", url+"/in?x=1", []notify.Secret{whsec(1), whsec(2)}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	r := <-got
	for n, good := range map[byte]bool{1: true, 2: true, 3: false} { // both secrets of a rotation, and one that is not ours
		official, err := standardwebhooks.NewWebhook(whsecText(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := official.Verify(r.body, r.Header); (err == nil) != good {
			t.Errorf("secret %d: %v, want good: %t", n, err, good)
		}
		if err := official.Verify(append([]byte(" "), r.body...), r.Header); err == nil {
			t.Error("a changed body was verified")
		}
	}
	if r.Method != "POST" || r.URL.String() != "/in?x=1" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Webhook-Id") != message().ID {
		t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
	}
	const want = `{"type":"change.waiting","timestamp":"2026-03-05T07:08:09.12Z","data":{"id":"msg_0123456789abcdef_42",` +
		`"text":"2 changes are waiting","waiting":2,"in_doubt":0,"link":"https://wetink.example/?a=1&b=2"}}`
	if string(r.body) != want || !json.Valid(r.body) {
		t.Errorf("body is\n%s, want\n%s", r.body, want)
	}
}

func TestTheTimestampIsThatOfTheAttempt(t *testing.T) {
	url, got := receiver(t, http.StatusOK)
	now := time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)
	w, err := notify.NewWebhook("hook", url, []notify.Secret{whsec(1)}, &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Send(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
		if at := (<-got).Header.Get("Webhook-Timestamp"); at != fmt.Sprint(now.Unix()) {
			t.Errorf("timestamp %s, want %d", at, now.Unix())
		}
		now = now.Add(time.Hour)
	}
}

func TestAnythingBut2xxIsNotDelivered(t *testing.T) {
	for status, good := range map[int]bool{200: true, 202: true, 204: true, 299: true, 300: false, 304: false, 400: false, 401: false, 404: false, 410: false, 429: false, 500: false, 503: false} {
		url, got := receiver(t, status)
		w, err := notify.NewWebhook("hook", url, []notify.Secret{whsec(1)}, loopback)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Send(t.Context(), message()); (err == nil) != good {
			t.Errorf("status %d: %v", status, err)
		}
		if len(got) != 1 {
			t.Errorf("status %d: %d requests", status, len(got))
		}
	}
}

func TestSecretsThatAreNoneAreRefusedWithoutSayingThem(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(make([]byte, 65))
	for _, text := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!!!!", "whsec_" + long} {
		_, err := notify.NewWebhook("hook", "https://hook.example.com/", []notify.Secret{notify.NewSecret([]byte(text))}, nil)
		if err == nil || len(text) > 6 && strings.Contains(err.Error(), text[6:]) {
			t.Errorf("secret %q: %v", text, err)
		}
	}
	if _, err := notify.NewWebhook("hook", "https://hook.example.com/", nil, nil); err == nil {
		t.Error("a webhook without a secret was not refused")
	}
}

func TestNoChannelPrintsItsSecret(t *testing.T) {
	w, err := notify.NewWebhook("hook", "https://hook.example.com/", []notify.Secret{whsec('s')}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := notify.NewNtfy("ntfy", "https://ntfy.example.com/x", notify.NewSecret([]byte("ssssssss")), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := notify.NewEmail("mail", "mail.example.com", "a@example.com", "b@example.com", &notify.EmailOptions{Username: "u", Password: notify.NewSecret([]byte("ssssssss"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []any{w, n, e, *w, *n, *e} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			if s := fmt.Sprintf(format, c); strings.Contains(s, "ssss") || strings.Contains(s, "115 115") || strings.Contains(s, "73737373") {
				t.Errorf("%T with %s: %s", c, format, s)
			}
		}
	}
}
