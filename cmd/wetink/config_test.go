package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
)

func configured(t *testing.T, vars map[string]string) Config {
	t.Helper()
	cfg, err := loadConfig(func(name string) string { return vars[name] })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func requirement(t *testing.T, cfg Config) wetink.Require {
	t.Helper()
	o, err := cfg.Options()
	if err != nil {
		t.Fatal(err)
	}
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
		cfg := configured(t, map[string]string{"WETINK_HOME": t.TempDir(), "WETINK_APPROVAL": word})
		if got := requirement(t, cfg); got != (wetink.Require{Level: level, People: 1}) {
			t.Errorf("%s asks for %+v", word, got)
		}
	}
}

func TestWithoutAWordTheSafestThatIsSetUpIsAsked(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	cfg := configured(t, map[string]string{"WETINK_HOME": home})
	o, err := cfg.Options()
	if err != nil {
		t.Fatal(err)
	}
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
	if err := terminal.Setup(home, "ana", terminal.NewPassphrase("five words make a phrase")); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != wetink.Reauth { // by the same Options: a running server sees it
		t.Errorf("with a passphrase: %s", got)
	}
}

func TestWritesAreOffAndPreviewsLastAQuarterOfAnHour(t *testing.T) {
	o, err := configured(t, map[string]string{"WETINK_HOME": t.TempDir()}).Options()
	if err != nil {
		t.Fatal(err)
	}
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
