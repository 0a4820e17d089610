package notify_test

import (
	"net/http"
	"testing"

	"github.com/wetink/wetink/notify"
)

func TestNtfyGetsTitleTextAndLinkAndNoAction(t *testing.T) {
	url, got := receiver(t, http.StatusOK)
	for _, token := range []string{"tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2", ""} {
		n, err := notify.NewNtfy("phone", url+"/topic", notify.NewSecret([]byte(token)), loopback)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Send(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
		r := <-got
		if r.Method != "POST" || r.URL.Path != "/topic" || string(r.body) != "2 changes are waiting" {
			t.Errorf("%s %s: %s", r.Method, r.URL, r.body)
		}
		want := map[string]string{"Title": "wetink", "Click": message().Link, "X-Sequence-Id": message().ID, "Authorization": "", "User-Agent": "wetink",
			"Actions": "", "X-Actions": "", "Action": ""}
		if token != "" {
			want["Authorization"] = "Bearer " + token
		}
		for name, value := range want {
			if r.Header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, r.Header.Get(name), value)
			}
		}
	}
}

func TestNtfyWithoutALinkHasNothingToClick(t *testing.T) {
	url, got := receiver(t, http.StatusOK)
	n, err := notify.NewNtfy("phone", url+"/topic", notify.Secret{}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	m := message()
	m.Link = ""
	if err := n.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, ok := (<-got).Header["Click"]; ok {
		t.Error("there is an empty Click")
	}
}

func TestNtfyThatRefusesIsNotDelivered(t *testing.T) {
	url, _ := receiver(t, http.StatusForbidden)
	n, err := notify.NewNtfy("phone", url+"/topic", notify.Secret{}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Send(t.Context(), message()); err == nil {
		t.Error("403 counts as delivered")
	}
}
