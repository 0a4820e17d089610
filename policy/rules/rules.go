// Package rules is a wetink.Policy from a file: YAML with conditions in CEL (https://cel.dev).
//
//	version: 1
//	rules:
//	  - name: deletes need a passkey
//	    when: ops.exists(o, o.action == "delete")
//	    require: passkey
//	    why: Deleted events come back with other ids.
//
// Every rule whose condition holds counts, and the strictest wins: the highest level, the most people, the shortest time,
// the smallest cap; a deny wins over all. Rules can only raise what the configuration demands (the floor), never lower it.
// A condition that cannot be evaluated, or takes too long, counts as holding: it fails closed.
//
// Conditions see change, ops, before, account and risk, and nothing else: no clock, no network. So a Policy of rules is a
// pure function, and the claim asks it again. Integers of payloads are exact within 64 bits; other numbers are doubles.
package rules

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/wetink/wetink"
)

// ErrRules says that a file of rules cannot be used. Its message names file and line.
var ErrRules = errors.New("rules")

// Levels are the configuration's words.
var Levels = map[string]wetink.Level{
	"auto": wetink.Auto, "agent": wetink.Agent, "card": wetink.Host, "page": wetink.Session, "reauth": wetink.Reauth, "passkey": wetink.Passkey,
}

// file is the YAML.
type file struct {
	Version int    `yaml:"version"`
	Rules   []Rule `yaml:"rules"`
}

// Rule is one of the file.
type Rule struct {
	Name    string `yaml:"name"`
	When    string `yaml:"when"` // CEL; "": always
	Deny    string `yaml:"deny"`
	Require string `yaml:"require"`
	People  int    `yaml:"people"`
	Other   bool   `yaml:"other"`
	TTL     string `yaml:"ttl"`
	Cap     *Cap   `yaml:"cap"`
	Why     string `yaml:"why"`

	line    int
	level   wetink.Level
	ttl     time.Duration
	program cel.Program
}

// Cap of a rule.
type Cap struct {
	Name string `yaml:"name"`
	Max  int    `yaml:"max"`
}

// Rules implement wetink.Policy. They are safe for concurrent use.
type Rules struct {
	Rules   []Rule
	floor   wetink.Require
	version string
}

// maxCost of one condition: far above what a condition over twenty-five operations takes, far below a noticeable time.
const maxCost = 1_000_000

// maxPeople that a rule may ask for: more is a mistake.
const maxPeople = 10

// Parse reads rules. name is the file's, for errors.
func Parse(name string, src []byte, floor wetink.Require) (*Rules, error) {
	var f file
	if err := yaml.UnmarshalWithOptions(src, &f, yaml.Strict(), yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("%w: %s: %s", ErrRules, name, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRules, name, err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("%w: %s:%d: version is %d: want 1", ErrRules, name, line(tree, "$.version"), f.Version)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRules, err)
	}
	var problems []error
	seen := map[string]bool{}
	for i := range f.Rules {
		r := &f.Rules[i]
		at := fmt.Sprintf("$.rules[%d]", i)
		bad := func(member, format string, args ...any) {
			l := line(tree, at+"."+member)
			if l == 0 {
				l = line(tree, at)
			}
			problems = append(problems, fmt.Errorf("%w: %s:%d: %s", ErrRules, name, l, fmt.Sprintf(format, args...)))
		}
		r.line = line(tree, at)
		switch {
		case r.Name == "":
			bad("name", "rule %d has no name", i+1)
		case seen[r.Name]:
			bad("name", "another rule is named %q", r.Name)
		}
		seen[r.Name] = true
		if r.Require != "" {
			level, ok := Levels[r.Require]
			if !ok {
				bad("require", "require is %q: want auto, agent, card, page, reauth or passkey", r.Require)
			}
			r.level = level
		}
		if r.People < 0 || r.People > maxPeople {
			bad("people", "people is %d: want 1 to %d", r.People, maxPeople)
		}
		if r.TTL != "" {
			if r.ttl, err = time.ParseDuration(r.TTL); err != nil || r.ttl < time.Minute || r.ttl > time.Hour {
				bad("ttl", "ttl is %q: want a duration from 1m to 60m", r.TTL)
			}
		}
		if r.Cap != nil && (r.Cap.Name == "" || r.Cap.Max < 1) {
			bad("cap", "a cap has a name and a max of 1 or more")
		}
		if r.Deny == "" && r.Require == "" && r.People == 0 && !r.Other && r.TTL == "" && r.Cap == nil {
			bad("name", "%q demands nothing: give it deny, require, people, other, ttl or cap", r.Name)
		}
		if r.When != "" {
			if r.program, err = compile(env, r.When); err != nil {
				bad("when", "%v", err)
			}
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	sum := sha256.Sum256(src)
	return &Rules{Rules: f.Rules, floor: floor, version: fmt.Sprintf("rules/%s+%s", hex.EncodeToString(sum[:8]), floor.Level)}, nil
}

// line of a node; 0 if there is none.
func line(tree *ast.File, path string) int {
	p, err := yaml.PathString(path)
	if err != nil {
		return 0
	}
	n, err := p.FilterFile(tree)
	if err != nil || n == nil || n.GetToken() == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

func environment() (*cel.Env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(cel.Variable("change", object), cel.Variable("ops", cel.ListType(object)), cel.Variable("before", cel.ListType(object)),
		cel.Variable("account", cel.StringType), cel.Variable("risk", object))
}

func compile(env *cel.Env, when string) (cel.Program, error) {
	tree, issues := env.Compile(when)
	if issues.Err() != nil {
		return nil, fmt.Errorf("the condition: %w", issues.Err())
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition is a %s: want true or false", t)
	}
	return env.Program(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(1000))
}

// Decide implements wetink.Policy.
func (r *Rules) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	d := wetink.Decision{Require: r.floor, Version: r.version}
	d.Require.People = max(d.Require.People, 1)
	if t.Undo.Extent == wetink.NoUndo { // what cannot be taken back is looked at twice, whatever the file says
		d.Require.Level = max(d.Require.Level, wetink.Reauth)
		d.Why = append(d.Why, "It cannot be undone.")
	}
	vars := variables(t, before)
	matched := slices.Clone(r.Rules)
	matched = slices.DeleteFunc(matched, func(rule Rule) bool { return !rule.holds(ctx, vars) })
	slices.SortStableFunc(matched, func(a, b Rule) int { return int(b.level) - int(a.level) })
	for _, rule := range matched {
		if rule.Deny != "" && d.Deny == "" {
			d.Deny = rule.Deny
		}
		d.Require = wetink.Stricter(d.Require, wetink.Require{Level: rule.level, People: rule.People, Other: rule.Other})
		if rule.ttl > 0 && (d.TTL == 0 || rule.ttl < d.TTL) {
			d.TTL = rule.ttl
		}
		if c := rule.Cap; c != nil && (d.Cap == nil || d.Cap.Name == c.Name && c.Max < d.Cap.Max) {
			d.Cap = &wetink.Cap{Name: c.Name, Max: c.Max}
		}
		d.Why = append(d.Why, strings.TrimSpace(rule.Name+". "+rule.Why))
	}
	return d, nil
}

// holds reports whether the condition holds. One that cannot be evaluated does.
func (rule Rule) holds(ctx context.Context, vars map[string]any) bool {
	if rule.program == nil {
		return true
	}
	out, _, err := rule.program.ContextEval(context.WithoutCancel(ctx), vars)
	if err != nil {
		return true
	}
	b, ok := out.Value().(bool)
	return !ok || b
}

// Matches lists the rules that count for a change, for `wetink check`.
func (r *Rules) Matches(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (names []string) {
	vars := variables(t, before)
	for _, rule := range r.Rules {
		if rule.holds(ctx, vars) {
			names = append(names, rule.Name)
		}
	}
	return names
}

func variables(t wetink.Terms, before []wetink.Snapshot) map[string]any {
	ops, was := []any{}, []any{}
	counts := map[string]int64{}
	for i, op := range t.Ops {
		counts[op.Action]++
		ops = append(ops, map[string]any{"action": op.Action, "object": op.Object, "payload": value(op.Payload), "key": op.Key, "blobs": int64(len(op.Blobs))})
		if i < len(before) {
			was = append(was, map[string]any{"absent": before[i].Absent, "object": before[i].Object, "body": value(before[i].Body)})
		}
	}
	warnings := make([]any, len(t.Warnings))
	for i, w := range t.Warnings {
		warnings[i] = w
	}
	return map[string]any{
		"change": map[string]any{"id": string(t.Change), "target": t.Target, "client": t.Client, "requester": string(t.Requester), "tenant": string(t.Tenant),
			"account": string(t.Account), "undoes": string(t.Undoes), "replaces": string(t.Replaces), "on_failure": string(t.OnFailure),
			"warnings": warnings, "undo": map[string]any{"extent": string(t.Undo.Extent), "seconds": int64(t.Undo.Until / time.Second)}},
		"ops": ops, "before": was, "account": string(t.Account),
		"risk": map[string]any{"irreversible": t.Undo.Extent == wetink.NoUndo, "partial_undo": t.Undo.Extent == wetink.PartialUndo, "objects": int64(len(t.Ops)),
			"deletes": counts["delete"], "creates": counts["create"], "updates": counts["update"], "warnings": int64(len(t.Warnings))},
	}
}

// value is JSON as CEL reads it: whole numbers within 64 bits are ints, others doubles. What is no JSON is null.
func value(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// Words says in words what a rule does.
func (rule Rule) Words() string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(rule.Deny != "", "deny: %s", rule.Deny)
	add(rule.Require != "", "require %s", rule.Require)
	add(rule.People > 0, "%d people", rule.People)
	add(rule.Other, "other than who asked")
	add(rule.ttl > 0, "valid for %s", rule.ttl)
	if rule.Cap != nil {
		add(true, "at most %d a day (%s)", rule.Cap.Max, rule.Cap.Name)
	}
	when := "always"
	if rule.When != "" {
		when = "when " + rule.When
	}
	return fmt.Sprintf("%d: %s: %s, %s", rule.line, rule.Name, strings.Join(parts, ", "), when)
}

// File is a Policy that follows a file. Each decision reads it: a rule that was added counts from the next one on. A file
// that became invalid is an error, never a reason to go on with older, laxer rules. Without a file the floor counts.
type File struct {
	path  string
	floor func(context.Context) (wetink.Require, error)

	mu    sync.Mutex
	src   []byte
	at    wetink.Require
	rules *Rules
}

// NewFile returns the Policy of a file that may come, go and change. floor is asked each time.
func NewFile(path string, floor func(context.Context) (wetink.Require, error)) *File {
	return &File{path: path, floor: floor}
}

// Decide implements wetink.Policy.
func (f *File) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	r, err := f.Rules(ctx)
	if err != nil {
		return wetink.Decision{}, err
	}
	return r.Decide(ctx, t, before)
}

// Rules are those of the file as it is now.
func (f *File) Rules(ctx context.Context) (*Rules, error) {
	floor, err := f.floor(ctx)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		src, err = []byte("version: 1\n"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRules, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules != nil && bytes.Equal(src, f.src) && f.at == floor {
		return f.rules, nil
	}
	r, err := Parse(f.path, src, floor)
	if err != nil {
		return nil, err
	}
	f.src, f.at, f.rules = src, floor, r
	return r, nil
}
