package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

func configured(t *testing.T, vars map[string]string) Config {
	t.Helper()
	cfg, err := loadConfig(func(name string) string { return vars[name] })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func peopleOf(t *testing.T, cfg Config) *people {
	t.Helper()
	who, err := cfg.OpenPeople()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = who.Close() })
	return who
}

func requirement(t *testing.T, cfg Config) wetink.Require {
	t.Helper()
	o := cfg.Options(peopleOf(t, cfg))
	d, err := o.Policy.Decide(context.Background(), wetink.Terms{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Require
}

func TestTheWordsOfTheConfigurationAreLevels(t *testing.T) {
	for word, level := range map[string]wetink.Level{
		"agent": wetink.Agent, "card": wetink.Host, "page": wetink.Session, "reauth": wetink.Reauth, "passkey": wetink.Passkey,
	} {
		cfg := configured(t, map[string]string{"WETINK_HOME": filepath.Join(t.TempDir(), "home"), "WETINK_APPROVAL": word})
		if got := requirement(t, cfg); got != (wetink.Require{Level: level, People: 1}) {
			t.Errorf("%s asks for %+v", word, got)
		}
	}
}

func TestWithoutAWordTheSafestThatIsSetUpIsAsked(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	cfg := configured(t, map[string]string{"WETINK_HOME": home})
	who := peopleOf(t, cfg)
	o := cfg.Options(who)
	ask := func() wetink.Level {
		d, err := o.Policy.Decide(t.Context(), wetink.Terms{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Require.Level
	}
	if got := ask(); got != wetink.Host {
		t.Errorf("with nothing set up: %s", got)
	}
	other := peopleOf(t, cfg) // another process
	if err := other.known(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	if why, err := other.passphrases.Set(t.Context(), "", "ana", secret.New([]byte("five words make a phrase"))); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if got := ask(); got != wetink.Session { // by the same Options: a running server sees it
		t.Errorf("with a passphrase: %s", got)
	}
}

func TestWritesAreOffAndPreviewsLastAQuarterOfAnHour(t *testing.T) {
	cfg := configured(t, map[string]string{"WETINK_HOME": filepath.Join(t.TempDir(), "home")})
	o := cfg.Options(peopleOf(t, cfg))
	if o.Mode != wetink.ModeOff || o.TTL.String() != "15m0s" || o.AllowTokenAtTerminal {
		t.Errorf("%+v", o)
	}
}

func TestNoMistakeInTheConfigurationPrintsTheKey(t *testing.T) {
	vars := map[string]string{"WETINK_HOME": t.TempDir(), "INTERVALS_API_KEY": "s3cret", "INTERVALS_URL": "http://s3cret-free.example"}
	cfg := configured(t, vars)
	_, err := cfg.IntervalsClient()
	if !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	for _, s := range []string{err.Error(), fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg)} {
		if strings.Contains(strings.ReplaceAll(s, "s3cret-free", ""), "s3cret") {
			t.Errorf("the key is in %s", s)
		}
	}
}

func TestTheCredentialsTravelOnlyWhereTheyAreSafe(t *testing.T) {
	for url, ok := range map[string]bool{
		"": true, "https://intervals.icu": true, "http://127.0.0.1:8080": true, "http://localhost:1": true, "http://[::1]:80": true,
		"http://intervals.icu": false, "ftp://127.0.0.1": false, "intervals.icu": false, "https://": false,
		"http://127.0.0.1.example": false, "http://localhost.example": false, "https://user:pass@intervals.icu": false,
	} {
		cfg := configured(t, map[string]string{"WETINK_HOME": t.TempDir(), "INTERVALS_API_KEY": "k", "INTERVALS_URL": url})
		if _, err := cfg.IntervalsClient(); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestAPageHasAnOriginThatBrowsersKeepPasskeysFor(t *testing.T) {
	for value, listens := range map[string]string{"http://localhost:7433": "localhost:7433", "http://localhost:80/": "localhost:80", "https://ink.example": "localhost:7433"} {
		cfg := configured(t, map[string]string{"WETINK_HOME": t.TempDir(), "WETINK_PAGE_URL": value})
		if got := cfg.Page.String(); got != strings.TrimSuffix(value, "/") || cfg.PageListen != listens {
			t.Errorf("%s became %s at %s", value, got, cfg.PageListen)
		}
	}
	for _, value := range []string{"http://127.0.0.1:7433", "http://localhost", "http://ink.example", "https://[::1]", "https://ink.example/path", "ink.example", "https://a@ink.example"} {
		_, err := loadConfig(func(name string) string {
			return map[string]string{"WETINK_HOME": t.TempDir(), "WETINK_PAGE_URL": value}[name]
		})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "WETINK_PAGE_URL") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestAChannelThatCannotWorkIsSaidWhenTheConfigurationIsRead(t *testing.T) {
	load := func(yaml string) (Config, error) {
		home := filepath.Join(t.TempDir(), "home")
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		return loadConfig(func(k string) string {
			return map[string]string{"WETINK_HOME": home, "HOOK": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}[k]
		})
	}
	cfg, err := load("notify:\n  - {name: ops, type: webhook, url: 'https://hooks.example/x', secret_env: [HOOK]}\n  - {type: ntfy, url: 'https://ntfy.example/topic'}\n")
	if err != nil || len(cfg.Notify) != 2 || cfg.Notify[0].Name() != "ops" || cfg.Notify[1].Name() != "ntfy" {
		t.Errorf("%v %v", cfg.Notify, err)
	}
	if s := fmt.Sprintf("%+v %#v", cfg, cfg); strings.Contains(s, "MfKQ9r8") {
		t.Error("the secret is printed")
	}
	for yaml, want := range map[string]string{
		"notify: [{type: pigeon}]":                                                                     wantChannel,
		"notify: [{type: webhook, url: 'https://hooks.example/x'}]":                                    "no secret",
		"notify: [{type: webhook, url: 'https://h.example', secret_env: [NONE]}]":                      "NONE is not set",
		"notify: [{type: ntfy, url: 'http://ntfy.example/x'}]":                                         "https",
		"notify: [{type: email, host: mail.example, from: nobody, to: a@b.example}]":                   "sender",
		"notify: [{type: desktop, colour: red}]":                                                       "colour",
		"notify: [{type: ntfy, url: 'https://a.example/x'}, {type: ntfy, url: 'https://a.example/y'}]": "another one named",
	} {
		if _, err := load(yaml); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
}

func TestAValueThatNobodyReadsIsRefusedAtPreview(t *testing.T) {
	cfg := configured(t, map[string]string{"WETINK_HOME": filepath.Join(t.TempDir(), "home")})
	o := cfg.Options(peopleOf(t, cfg))
	k := wetinktest.On(wetinktest.NewLedger(), wetinktest.NewTarget(), o)
	for size, refused := range map[int]bool{1000: false, 60 << 10: false, 70 << 10: true} {
		args := fmt.Sprintf(`{"ops":[{"action":"create","object":"o%d","set":{"text":%q}}]}`, size, strings.Repeat("a", size))
		_, _, err := k.Preview(t.Context(), "test", wetink.Request{Args: []byte(args)})
		if errors.Is(err, wetink.ErrDenied) != refused || refused && !strings.Contains(err.Error(), "ops[0].text has 71680 bytes, and more than 65536 nobody reads") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
