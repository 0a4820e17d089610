package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/sqlite"
	"github.com/wetink/wetink/notify"
	"github.com/wetink/wetink/policy/rules"
	"github.com/wetink/wetink/target/intervals"
)

// Config is what every command of this binary agrees on. A variable of the environment wins over the file, the
// file over the default.
type Config struct {
	Home          string // holds the ledger, and what is known of people
	File          string // the configuration file that was read; "": none
	WriteMode     wetink.Mode
	WriteModeFrom string // who said so: a variable, the file's key, or "default"
	Approval      string // one of approvals; "": the safest that is set up
	People        int
	TTL           time.Duration
	UndoWindow    time.Duration
	Lease         time.Duration // of a claim: how long after a crash its change is called in doubt
	TerminalToken bool          // `show --token` may hand a person the confirmation token

	Page       *url.URL // origin of the approval page, as a person's browser sees it
	PageListen string   // where the page listens; "": it is not served
	OIDC       *OIDC    // where people of a company sign in; nil: nowhere

	Notify []notify.Channel

	Intervals struct{ URL, AthleteID string }

	// Key comes from INTERVALS_API_KEY only: a file that is shown around must not hold it. nil: there is none.
	Key *intervals.Key
}

// approvals are the configuration's words for levels.
var approvals = map[string]wetink.Level{
	"agent":   wetink.Agent,
	"card":    wetink.Host,
	"page":    wetink.Session,
	"reauth":  wetink.Reauth,
	"passkey": wetink.Passkey,
}

const (
	wantMode     = "off, guarded or observe"
	wantApproval = "agent, card, page, reauth or passkey"
	wantTTL      = "a duration from 1m to 60m, such as 15m"
	wantUndo     = "a duration from 1m to 720h, such as 24h"
	wantLease    = "a duration from 2s to 10m, such as 1m"
	wantPeople   = "1 or 2"
	wantPage     = "http://localhost:PORT, or https://HOST behind a proxy; browsers keep passkeys for names, not for addresses"
	wantListen   = "HOST:PORT, or off"
)

// file is the YAML. Durations are text, so that a bare number is not taken for nanoseconds.
type file struct {
	WriteMode     string `yaml:"write_mode"`
	Approval      string `yaml:"approval"`
	People        *int   `yaml:"people"`
	TTL           string `yaml:"ttl"`
	UndoWindow    string `yaml:"undo_window"`
	Lease         string `yaml:"lease"`
	TerminalToken bool   `yaml:"terminal_token"`
	Page          struct {
		URL    string    `yaml:"url"`
		Listen string    `yaml:"listen"`
		OIDC   *oidcFile `yaml:"oidc"`
	} `yaml:"page"`
	Notify    []channelFile `yaml:"notify"`
	Intervals struct {
		URL       string `yaml:"url"`
		AthleteID string `yaml:"athlete_id"`
	} `yaml:"intervals"`
}

// ErrConfig says that nothing was started because of the configuration.
var ErrConfig = errors.New("configuration")

func badSetting(name, value, want string) error {
	return fmt.Errorf("%w: %s is %q: want %s", ErrConfig, name, value, want)
}

// LoadConfig reads the environment, and the file that WETINK_CONFIG names, or else config.yaml in the home if
// there is one. Every error names the variable or the key, and what is allowed.
func LoadConfig() (Config, error) { return loadConfig(os.Getenv) }

func loadConfig(env func(string) string) (Config, error) {
	cfg := Config{WriteMode: wetink.ModeOff, WriteModeFrom: "default", People: 1, TTL: 15 * time.Minute, UndoWindow: 24 * time.Hour, Lease: time.Minute,
		Page: &url.URL{Scheme: "http", Host: "localhost:7433"}, PageListen: "localhost:7433"}
	var err error
	if cfg.Home, err = home(env); err != nil {
		return Config{}, err
	}
	f := file{}
	cfg.File = env("WETINK_CONFIG")
	optional := cfg.File == ""
	if optional {
		cfg.File = filepath.Join(cfg.Home, "config.yaml")
	}
	switch err := readFile(cfg.File, &f); {
	case optional && errors.Is(err, fs.ErrNotExist):
		cfg.File = ""
	case errors.Is(err, fs.ErrNotExist):
		return Config{}, badSetting("WETINK_CONFIG", cfg.File, "the name of a file that exists")
	case err != nil:
		return Config{}, err
	}

	for _, s := range []struct {
		variable, key, inFile string
		set                   func(name, value string) error
	}{
		{"WETINK_WRITE_MODE", "write_mode", f.WriteMode, cfg.setWriteMode},
		{"WETINK_APPROVAL", "approval", f.Approval, cfg.setApproval},
		{"WETINK_TTL", "ttl", f.TTL, between(&cfg.TTL, time.Minute, time.Hour, wantTTL)},
		{"WETINK_UNDO_WINDOW", "undo_window", f.UndoWindow, between(&cfg.UndoWindow, time.Minute, 30*24*time.Hour, wantUndo)},
		{"WETINK_LEASE", "lease", f.Lease, between(&cfg.Lease, 2*time.Second, 10*time.Minute, wantLease)},
		{"WETINK_PAGE_URL", "page.url", f.Page.URL, cfg.setPage},
		{"WETINK_PAGE_LISTEN", "page.listen", f.Page.Listen, cfg.setListen},
		{"INTERVALS_URL", "intervals.url", f.Intervals.URL, plain(&cfg.Intervals.URL)},
		{"INTERVALS_ATHLETE_ID", "intervals.athlete_id", f.Intervals.AthleteID, plain(&cfg.Intervals.AthleteID)},
	} {
		// The file is judged even where a variable wins: a mistake in it must not wait for the day it counts.
		if s.inFile != "" {
			if err := s.set(fmt.Sprintf("%s in %s", s.key, cfg.File), s.inFile); err != nil {
				return Config{}, err
			}
		}
		if v := env(s.variable); v != "" {
			if err := s.set(s.variable, v); err != nil {
				return Config{}, err
			}
		}
	}
	if f.People != nil {
		if *f.People < 1 || *f.People > 2 {
			return Config{}, badSetting("people in "+cfg.File, strconv.Itoa(*f.People), wantPeople)
		}
		cfg.People = *f.People
	}
	cfg.TerminalToken = f.TerminalToken
	if cfg.OIDC, err = f.Page.OIDC.signOn(cfg.File, cfg.Page); err != nil {
		return Config{}, err
	}
	if cfg.Notify, err = channels(f.Notify, env, cfg.File); err != nil {
		return Config{}, err
	}
	if k := strings.TrimSpace(env("INTERVALS_API_KEY")); k != "" {
		key := intervals.NewKey(k)
		cfg.Key = &key
	}
	return cfg, nil
}

// home follows the XDG Base Directory Specification: state that outlives a restart and is not worth a backup
// elsewhere.
func home(env func(string) string) (string, error) {
	if h := env("WETINK_HOME"); h != "" {
		if !filepath.IsAbs(h) {
			return "", badSetting("WETINK_HOME", h, "an absolute path: each client starts servers in a folder of its own")
		}
		return filepath.Clean(h), nil
	}
	// The specification wants relative paths ignored.
	if s := env("XDG_STATE_HOME"); filepath.IsAbs(s) {
		return filepath.Join(s, "wetink"), nil
	}
	h := env("HOME")
	if h == "" {
		var err error
		if h, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("%w: WETINK_HOME is not set and %v: want an absolute path in WETINK_HOME", ErrConfig, err)
		}
	}
	return filepath.Join(h, ".local", "state", "wetink"), nil
}

// readFile refuses what others can write: whoever writes the configuration says who must approve.
func readFile(name string, f *file) error {
	h, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := trusted(name, info); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(h); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if len(bytes.TrimSpace(b.Bytes())) == 0 {
		return nil
	}
	if err := yaml.NewDecoder(&b, yaml.Strict()).Decode(f); err != nil {
		return fmt.Errorf("%w: %s: %s", ErrConfig, name, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return nil
}

func (c *Config) setWriteMode(name, v string) error {
	m := wetink.Mode(v)
	if !slices.Contains([]wetink.Mode{wetink.ModeOff, wetink.ModeGuarded, wetink.ModeObserve}, m) {
		return badSetting(name, v, wantMode)
	}
	c.WriteMode, c.WriteModeFrom = m, name
	return nil
}

func (c *Config) setApproval(name, v string) error {
	if _, ok := approvals[v]; !ok {
		return badSetting(name, v, wantApproval)
	}
	c.Approval = v
	return nil
}

// setPage takes the origin. On one machine the page listens where it says; behind a proxy page.listen tells.
func (c *Config) setPage(name, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" ||
		net.ParseIP(u.Hostname()) != nil || u.Scheme != "https" && !(u.Scheme == "http" && u.Hostname() == "localhost" && u.Port() != "") {
		return badSetting(name, v, wantPage)
	}
	c.Page = &url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.Scheme == "http" {
		c.PageListen = u.Host
	}
	return nil
}

func (c *Config) setListen(name, v string) error {
	if v == "off" {
		c.PageListen = ""
		return nil
	}
	if _, _, err := net.SplitHostPort(v); err != nil {
		return badSetting(name, v, wantListen)
	}
	c.PageListen = v
	return nil
}

func between(to *time.Duration, low, high time.Duration, want string) func(name, value string) error {
	return func(name, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < low || d > high {
			return badSetting(name, value, want)
		}
		*to = d
		return nil
	}
}

func plain(to *string) func(name, value string) error {
	return func(_, value string) error { *to = value; return nil }
}

// Options are those of this configuration, for every Engine of this binary: what the policy asks for, what can
// check an approval, and the mode that counts until somebody set the ledger's switch.
func (c Config) Options(who *people) *wetink.Options {
	o := &wetink.Options{
		Verifiers:            who.verifiers(),
		AllowTokenAtTerminal: c.TerminalToken,
		Mode:                 c.WriteMode,
		TTL:                  c.TTL,
		Lease:                c.Lease,
		Owner:                "pid " + strconv.Itoa(os.Getpid()),
	}
	o.Policy = readable{rules.NewFile(c.rulesFile(), c.floor(who))}
	return o
}

// IntervalsClient is the client of the calendar that the environment names. The key stands in no file of ours.
func (c Config) IntervalsClient() (*intervals.Client, error) {
	if c.Key == nil {
		return nil, fmt.Errorf("%w: INTERVALS_API_KEY is not set: want the key from Settings, Developer Settings on Intervals.icu", ErrConfig)
	}
	base, athlete := c.Intervals.URL, c.Intervals.AthleteID
	if base == "" {
		base = "https://intervals.icu"
	}
	u, err := url.Parse(base)
	loopback := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && loopback) {
		return nil, badSetting("INTERVALS_URL", base, "https://HOST, or http:// on loopback: the key travels with every request")
	}
	return intervals.NewClient(base, *c.Key, athlete), nil
}

// OpenLedger opens the one ledger of the home, and makes it if there is none.
func (c Config) OpenLedger() (*sqlite.Ledger, error) {
	l, err := sqlite.Open(filepath.Join(c.Home, "ledger.db"), nil)
	if err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w", c.Home, err)
	}
	return l, nil
}
