package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/gateway"
	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/policy/rules"
	"github.com/wetink/wetink/render"
)

// CheckCmd validates rules, and what is guarded, before they count.
type CheckCmd struct {
	Output
	File   string `arg:"" optional:"" help:"A file of rules, or a wetink.yaml; those of the home without one."`
	Schema bool   `help:"Print the JSON Schema of a wetink.yaml, for editors."`
	Change string `help:"Tell which rules match a stored change, and what it would need."`
}

// Run implements the command.
func (c *CheckCmd) Run(ctx context.Context) error {
	if c.Schema {
		_, err := os.Stdout.Write(gateway.Schema)
		return err
	}
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	path := c.File
	if path == "" {
		path = s.cfg.rulesFile()
		if _, err := os.Stat(gatewayFile(s.cfg, "")); err == nil && c.Change == "" {
			if err := c.guarded(s, gatewayFile(s.cfg, "")); err != nil {
				return err
			}
		}
	} else if guards(path) {
		return c.guarded(s, path)
	}
	floor, err := s.cfg.floor(s.people)(ctx)
	if err != nil {
		return err
	}
	r, err := rules.Load(path, floor)
	found := "is good"
	if c.File == "" && errors.Is(err, fs.ErrNotExist) { // which is how most homes are
		r, err = rules.Parse(path, []byte("version: 1\n"), floor)
		found = "is not there, so there are no rules"
	}
	if err != nil {
		return c.refuse(s, err)
	}
	if c.Change != "" {
		return c.match(ctx, s, r)
	}
	return c.list(ctx, s, path, found, r, floor)
}

// refuse says what is wrong. As JSON it is the object of every error, and the mistakes one by one, for an editor.
func (c *CheckCmd) refuse(s *session, err error) error {
	var bad *rules.Error
	if !s.json || !errors.As(err, &bad) {
		return err
	}
	p := explain(err)
	if err := s.printJSON(struct {
		problem
		File     string          `json:"file"`
		Problems []rules.Problem `json:"problems"`
	}{p, bad.File, bad.Problems}); err != nil {
		return err
	}
	return exit(p.Exit)
}

// guards reports a file that says what is guarded: its name says so, or its first words do.
func guards(path string) bool {
	if filepath.Base(path) == "wetink.yaml" {
		return true
	}
	b, err := os.ReadFile(path)
	return err == nil && bytes.Contains(b, []byte("\nservers:"))
}

// guarded says what a wetink.yaml means.
func (c *CheckCmd) guarded(s *session, path string) error {
	gc, err := loadGateway(path)
	var bad *gateway.ConfigError
	if s.json && errors.As(err, &bad) {
		p := explain(err)
		if err := s.printJSON(struct {
			problem
			File     string               `json:"file"`
			Problems []strictyaml.Problem `json:"problems"`
		}{p, bad.File, bad.Problems}); err != nil {
			return err
		}
		return exit(p.Exit)
	}
	if err != nil {
		return err
	}
	if s.json {
		list := []map[string]any{}
		for _, v := range gc.Servers {
			list = append(list, map[string]any{"name": v.Name, "recipe": v.Recipe, "pass": v.Pass, "guard": slices.Sorted(maps.Keys(v.Rules)), "unlisted": v.Unlisted, "observe": v.Observe})
		}
		return s.printJSON(map[string]any{"file": path, "servers": list})
	}
	s.say("%s is good.\n", render.Line(path))
	for _, v := range gc.Servers {
		s.say("%s: %s\n", v.Name, render.Line(strings.TrimSpace(strings.Join(append(slices.Clone(v.Command), v.URL), " "))))
		if v.Recipe != "" {
			s.say("  by the recipe %s\n", v.Recipe)
		}
		if v.Observe {
			s.say("  only observed: nothing is guarded\n")
		}
		if len(v.Pass) > 0 {
			s.say("  passes: %s\n", render.Line(strings.Join(v.Pass, ", ")))
		}
		for _, tool := range slices.Sorted(maps.Keys(v.Rules)) {
			for _, rule := range v.Rules[tool] {
				s.say("  %s: %s\n", render.Line(tool), render.Line(rule.Words()))
			}
		}
		s.say("  other tools: %s\n", map[gateway.Unlisted]string{
			gateway.UnlistedAsk: "guarded as they are, but for those that say by hint and by name that they only read", gateway.UnlistedAll: "guarded as they are",
			gateway.UnlistedDeny: "refused",
		}[v.Unlisted])
	}
	return nil
}

// ruleJSON is a rule as --json prints it.
type ruleJSON struct {
	Name  string `json:"name"`
	Line  int    `json:"line,omitempty"` // absent: built in
	When  string `json:"when,omitempty"` // absent: always
	Words string `json:"words"`
	Why   string `json:"why,omitempty"`
	Error string `json:"error,omitempty"` // it counts because its condition could not be evaluated
}

func ruleAsJSON(r rules.Rule) ruleJSON {
	return ruleJSON{Name: r.Name, Line: r.Line, When: r.When, Words: r.Words(), Why: r.Why}
}

func (c *CheckCmd) list(ctx context.Context, s *session, path, found string, r *rules.Rules, floor wetink.Require) error {
	signIn := []string{}
	if s.cfg.OIDC != nil {
		anybody, err := s.people.AnyIdentity(ctx, s.people.issuer)
		if err != nil {
			return err
		}
		signIn = s.cfg.OIDC.says(anybody)
	}
	if s.json {
		list := []ruleJSON{}
		for _, rule := range r.List() {
			list = append(list, ruleAsJSON(rule))
		}
		return s.printJSON(map[string]any{"sign_in": signIn, "file": path, "version": r.Version(), "floor": floor, "rules": list, "notes": append([]string{}, r.Notes()...)})
	}
	s.say("%s %s. Each change needs at least %s, of %s.\n", render.Line(path), found, called(floor.Level), persons(floor))
	for _, rule := range r.List() {
		s.say("%d: %s: %s\n", rule.Line, render.Line(rule.Name), render.Line(rule.Words()))
	}
	s.say("What cannot be undone needs reauth, whatever the rules say.\n")
	for _, line := range signIn {
		s.say("%s\n", line)
	}
	for _, n := range r.Notes() {
		s.say("note: %s\n", render.Line(n))
	}
	return nil
}

// match tells what today's rules say of a stored change. At the claim the stricter of that and its Statement counts.
func (c *CheckCmd) match(ctx context.Context, s *session, r *rules.Rules) error {
	found, err := s.find(ctx, c.Change)
	if err != nil {
		return err
	}
	t, err := found.Terms()
	if err != nil {
		return err
	}
	d, err := readable{r}.Decide(ctx, t, found.Before)
	if err != nil {
		return err
	}
	matches, err := r.Match(ctx, t, found.Before)
	if err != nil {
		return err
	}
	needs := wetink.Stricter(t.Require, d.Require)
	if s.json {
		list := []ruleJSON{}
		for _, m := range matches {
			j := ruleAsJSON(m.Rule)
			if m.Err != nil {
				j.Error = m.Err.Error()
			}
			list = append(list, j)
		}
		out := map[string]any{"change": found.ID, "rules": list, "require": d.Require, "signed": t.Require, "needs": needs,
			"deny": d.Deny, "why": append([]string{}, d.Why...), "version": d.Version}
		if d.TTL > 0 {
			out["ttl_seconds"] = int64(d.TTL.Seconds())
		}
		if d.Cap != nil {
			out["cap"] = d.Cap
		}
		return s.printJSON(out)
	}
	for _, m := range matches {
		s.say("matches: %s (%s)\n", render.Line(m.Rule.Name), render.Line(m.Rule.Words()))
		if m.Err != nil {
			s.say("  its condition could not be evaluated, so it counts: %s\n", render.Line(m.Err.Error()))
		}
	}
	if len(matches) == 0 {
		s.say("no rule matches\n")
	}
	if d.Deny != "" {
		s.say("denied: %s\n", render.Line(d.Deny))
		return nil
	}
	s.say("needs %s, of %s\n", called(needs.Level), persons(needs))
	if t.Require != d.Require {
		s.say("  it was proposed with %s, of %s; these rules ask for %s, of %s: the stricter counts\n",
			called(t.Require.Level), persons(t.Require), called(d.Require.Level), persons(d.Require))
	}
	if d.TTL > 0 {
		s.say("valid for %s after its preview\n", d.TTL)
	}
	if d.Cap != nil {
		s.say("counts as %s: at most %d a day\n", render.Line(d.Cap.Name), d.Cap.Max)
	}
	return nil
}

// called is a level in the word of the configuration and, where records call it otherwise, in theirs.
func called(l wetink.Level) string {
	for word, level := range approvals {
		if level == l && word != l.String() {
			return fmt.Sprintf("%s (level %s)", word, l)
		}
	}
	return "level " + l.String()
}

// why says why a change needs the level that it does, in order of weight. The ledger does not keep reasons, but a policy
// decides by its rules alone: what it says now is what it said then, as long as the version of the rules is the one that
// was signed. Afterwards nobody knows any more, and that is said.
func (c Config) why(who *people) func(context.Context, wetink.Change) []string {
	policy := c.Options(who).Policy
	return func(ctx context.Context, ch wetink.Change) []string {
		t, err := ch.Terms()
		if err != nil {
			return nil
		}
		d, err := policy.Decide(ctx, t, ch.Before)
		if err != nil || d.Version != t.Policy {
			return []string{"The rules are not those any more that it was proposed under, so their reasons are not known."}
		}
		return d.Why
	}
}

// persons says how many people have to agree.
func persons(r wetink.Require) string {
	who := "1 person"
	if r.People > 1 {
		who = fmt.Sprintf("%d people", r.People)
	}
	if r.Other {
		who += " other than who asked"
	}
	return who
}

// rulesFile is the file of rules of this home. It may be missing.
func (c Config) rulesFile() string { return filepath.Join(c.Home, "rules.yaml") }

// floor is what every change needs at least, whatever the rules say: what the configuration says, or else the page once
// anybody can sign in there, and until then somebody at a terminal, so that `wetink setup` counts from the next preview on,
// also for servers that run already.
func (c Config) floor(who *people) func(context.Context) (wetink.Require, error) {
	return func(ctx context.Context) (wetink.Require, error) {
		if level, ok := approvals[c.Approval]; ok {
			return wetink.Require{Level: level, People: c.People}, nil
		}
		enrolled, err := who.enrolled(ctx)
		if err != nil {
			return wetink.Require{}, err
		}
		if enrolled {
			return wetink.Require{Level: wetink.Session, People: c.People}, nil
		}
		return wetink.Require{Level: wetink.Host, People: c.People}, nil
	}
}

// readable denies what nobody would read: nothing is cut on the page, so a value has to fit.
type readable struct{ wetink.Policy }

// Decide implements wetink.Policy.
func (p readable) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	if long := render.TooLong(t, before); long != (render.Excess{}) {
		return wetink.Decision{Deny: long.String()}, nil
	}
	return p.Policy.Decide(ctx, t, before)
}
