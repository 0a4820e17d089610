package gateway

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/wetink/wetink/internal/strictyaml"
	target "github.com/wetink/wetink/target/upstream"
)

// Config is a wetink.yaml: which servers are guarded, and how.
type Config struct {
	Servers []Server
	Ask     target.Ask    // of a tool that says nothing itself; without a word: no more than the policy demands
	TTL     time.Duration // of a preview; 0: the engine's
	UndoFor time.Duration // after a change was applied; 0: a day
}

// Server is one that is guarded.
type Server struct {
	Upstream
	Extra    []string // of its environment, NAME=value, besides what this process has
	Recipe   string   // the one that was used; "": none
	Pass     []string
	Rules    target.Rules
	Version  string // of what is declared of it
	Observe  bool   // nothing is guarded: what would have been asked is logged
	UI       bool   // its _meta.ui stays
	Unlisted Unlisted
	Flight   time.Duration
	// PreparedAsError answers a guarded call as a tool error, for hosts that would tell their person that it was done.
	PreparedAsError bool
}

// Unlisted says what becomes of tools that neither pass nor have a rule.
type Unlisted string

// Hints of a server decide nothing by themselves: a tool passes only where its name says that it reads, too.
const (
	UnlistedAsk  Unlisted = "ask"  // guarded, but for those that say by hint and by name that they only read
	UnlistedAll  Unlisted = "all"  // guarded, all of them
	UnlistedDeny Unlisted = "deny" // refused, and not shown
)

// Recipe is what is known of a published server.
type Recipe struct {
	Name  string
	Pass  []string
	Rules target.Rules
	Src   []byte // as it stands in its file, for the version
}

// Version is a digest of the Recipe.
func (r *Recipe) Version() string { return fmt.Sprintf("%x", sha256.Sum256(r.Src)) }

// Recipes finds the Recipe of a server by the name that an entry gives ("" to go by the command), or answers nil.
type Recipes func(name string, command []string) (*Recipe, error)

// ConfigError lists all that is wrong with a file.
type ConfigError struct {
	File     string
	Problems []strictyaml.Problem
}

func (e *ConfigError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, p.Line, p.Column, p.Says))
	}
	return strings.Join(lines, "\n")
}

const maxConfig = 1 << 20

// ParseConfig reads a wetink.yaml. file is its name, for errors, which are *ConfigError. env gives the variables that
// ${NAME} stands for: credentials of the servers stay out of the file.
//
// A server's program is started as its entry says, by nobody else's word (MCP's stdio transport runs what a configuration
// names): nothing that arrives over a connection changes it.
func ParseConfig(file string, src []byte, env func(string) (string, bool), recipes Recipes) (*Config, error) {
	c := &reader{Reader: strictyaml.NewReader(src), env: env, recipes: recipes, src: src}
	cfg := c.config()
	if problems := c.Problems(); len(problems) > 0 {
		return nil, &ConfigError{file, problems}
	}
	return cfg, nil
}

type reader struct {
	*strictyaml.Reader
	env     func(string) (string, bool)
	recipes Recipes
	src     []byte
}

func (c *reader) config() *Config {
	body := c.Document(maxConfig)
	if body == nil {
		return nil
	}
	top, ok := c.Mapping(body, "the file", "version", "defaults", "servers")
	if !ok {
		return nil
	}
	c.Version(body, top["version"])
	cfg := &Config{}
	unlisted := UnlistedAsk
	if n := top["defaults"]; n != nil {
		if m, ok := c.Mapping(n, "defaults", "ask", "expires", "undo_for", "unlisted"); ok {
			cfg.Ask = c.ask(m["ask"])
			cfg.TTL = c.duration(m["expires"], "expires", time.Minute, time.Hour)
			cfg.UndoFor = c.duration(m["undo_for"], "undo_for", time.Minute, 30*24*time.Hour)
			unlisted = c.unlisted(m["unlisted"], unlisted)
		}
	}
	if top["servers"] == nil {
		c.Bad(body.GetToken(), "servers is missing: name one at least")
		return cfg
	}
	entries, _ := c.Entries(top["servers"], "servers")
	for _, e := range entries {
		if !upstreamName.MatchString(e.Key) || len(e.Key) > 32 {
			c.Bad(e.At, "%q: a server is named by a-z, 0-9, - and single _, 32 at most", e.Key)
			continue
		}
		if s := c.server(e, unlisted); s != nil {
			cfg.Servers = append(cfg.Servers, *s)
		}
	}
	return cfg
}

func (c *reader) server(e strictyaml.Entry, unlisted Unlisted) *Server {
	m, ok := c.Mapping(e.Value, e.Key, "run", "env", "dir", "url", "headers", "recipe", "mode", "ui", "unlisted", "flight", "prepared_as_error", "pass", "guard")
	if !ok {
		return nil
	}
	s := &Server{Upstream: Upstream{Name: e.Key}, Unlisted: c.unlisted(m["unlisted"], unlisted)}
	if (m["run"] == nil) == (m["url"] == nil) {
		c.Bad(e.At, "%s: give it either `run`, the command that starts it, or `url`", e.Key)
	}
	if n := m["run"]; n != nil {
		s.Command = c.command(n)
	}
	if n := m["url"]; n != nil {
		s.URL = c.url(n)
	}
	if n := m["dir"]; n != nil {
		if s.Dir, _ = c.Text(n, "dir"); s.Dir != "" && !path.IsAbs(s.Dir) && !strings.Contains(s.Dir, ":\\") {
			c.Bad(n.GetToken(), "dir is %q: want an absolute path", s.Dir)
		}
	}
	c.variables(m["env"], "env", func(k, v string) { s.Extra = append(s.Extra, k+"="+v) })
	c.variables(m["headers"], "headers", func(k, v string) {
		if s.Header == nil {
			s.Header = http.Header{}
		}
		s.Header.Set(k, v)
	})
	if m["env"] != nil && m["run"] == nil {
		c.Bad(m["env"].GetToken(), "env is for a server that is started: want headers")
	}
	if m["headers"] != nil && m["url"] == nil {
		c.Bad(m["headers"].GetToken(), "headers are for a server with a url: want env")
	}
	if n := m["mode"]; n != nil {
		switch w, _ := c.Text(n, "mode"); w {
		case "guarded":
		case "observe":
			s.Observe = true
		default:
			c.Bad(n.GetToken(), "mode is %q: want guarded or observe", w)
		}
	}
	if n := m["ui"]; n != nil {
		s.UI = c.Bool(n, "ui")
	}
	if n := m["prepared_as_error"]; n != nil {
		s.PreparedAsError = c.Bool(n, "prepared_as_error")
	}
	s.Flight = c.duration(m["flight"], "flight", time.Second, 24*time.Hour)
	if n := m["pass"]; n != nil {
		for _, p := range c.Texts(n, "pass") {
			if _, err := path.Match(p, ""); err != nil {
				c.Bad(n.GetToken(), "pass: %q is no pattern: * stands for any letters", p)
			}
			s.Pass = append(s.Pass, p)
		}
	}
	c.recipe(m, s)
	if n := m["guard"]; n != nil {
		own := target.ParseRules(c.Reader, n, s.Pass)
		if s.Rules == nil {
			s.Rules = target.Rules{}
		}
		maps.Copy(s.Rules, own)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", s.Version) // of the recipe
	sum.Write(c.src)                      // any other edit of the file asks for fresh previews, too: it is simple to understand
	s.Version = fmt.Sprintf("%x", sum.Sum(nil)[:16])
	return s
}

// recipe adds what is known of the server: by the name that the entry gives, or, where the entry says nothing of any tool,
// by its command.
func (c *reader) recipe(m map[string]ast.Node, s *Server) {
	name := ""
	switch n := m["recipe"]; {
	case n != nil:
		if name, _ = c.Text(n, "recipe"); name == "" || name == "none" {
			return
		}
	case m["pass"] != nil || m["guard"] != nil:
		return
	}
	if c.recipes == nil {
		return
	}
	r, err := c.recipes(name, s.Command)
	switch {
	case err != nil:
		c.Bad(m["recipe"].GetToken(), "%v", err)
	case r != nil:
		s.Recipe, s.Rules = r.Name, maps.Clone(r.Rules)
		s.Pass = append(slices.Clone(r.Pass), s.Pass...)
		s.Version = r.Version()
	}
}

func (c *reader) ask(n ast.Node) (a target.Ask) {
	if n == nil {
		return a
	}
	w, _ := c.Text(n, "ask")
	a, ok := target.ParseAsk(w)
	if !ok {
		c.Bad(n.GetToken(), "ask is %q: want never, agent, card, page, typed, reauth, passkey, two or deny", w)
	}
	return a
}

func (c *reader) unlisted(n ast.Node, otherwise Unlisted) Unlisted {
	if n == nil {
		return otherwise
	}
	w, _ := c.Text(n, "unlisted")
	if !slices.Contains([]Unlisted{UnlistedAsk, UnlistedAll, UnlistedDeny}, Unlisted(w)) {
		c.Bad(n.GetToken(), "unlisted is %q: want ask, all or deny", w)
	}
	return Unlisted(w)
}

func (c *reader) duration(n ast.Node, key string, least, most time.Duration) time.Duration {
	if n == nil {
		return 0
	}
	s, ok := c.Text(n, key)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		c.Bad(n.GetToken(), "%s is %q: want a duration from %s to %s", key, s, least, most)
	}
	return d
}

// command splits a line at blanks. A line that wants more than that is written as a list.
func (c *reader) command(n ast.Node) []string {
	words := c.Texts(n, "run")
	if _, list := n.(*ast.SequenceNode); !list && len(words) == 1 {
		if strings.ContainsAny(words[0], "\"'`\\|&;<>*?") {
			c.Bad(n.GetToken(), "run is no shell: write a command with quotes or signs as a list, as in [npx, -y, \"a server\"]")
			return nil
		}
		words = strings.Fields(words[0])
	}
	for i, w := range words {
		words[i] = c.expand(w, n)
	}
	return words
}

func (c *reader) url(n ast.Node) string {
	s, _ := c.Text(n, "url")
	s = c.expand(s, n)
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		c.Bad(n.GetToken(), "url is %q: want https://HOST/PATH", s)
	case u.Scheme == "https":
	case u.Scheme != "http" || !loopback(u.Hostname()):
		c.Bad(n.GetToken(), "url is %q: want https, or http on this machine: what is sent is a credential's work", s)
	}
	return s
}

func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (c *reader) variables(n ast.Node, what string, set func(k, v string)) {
	if n == nil {
		return
	}
	entries, _ := c.Entries(n, what)
	for _, e := range entries {
		if v, ok := c.Text(e.Value, e.Key); ok {
			set(e.Key, c.expand(v, e.Value))
		}
	}
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func (c *reader) expand(s string, n ast.Node) string {
	return variable.ReplaceAllStringFunc(s, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := c.env(name)
		if !ok {
			c.Bad(n.GetToken(), "the variable %s is not set", name)
		}
		return v
	})
}
