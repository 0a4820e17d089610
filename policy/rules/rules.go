// Package rules is a wetink.Policy from a file: YAML with conditions in CEL (https://cel.dev).
//
//	version: 1
//	rules:
//	  - name: deletes need a passkey
//	    when: ops.exists(o, o.action == "delete")
//	    require: passkey
//	    why: Deleted events come back with other ids.
//
// Every rule whose condition holds counts, and the strictest wins: the highest level, the most people, the shortest time;
// a deny wins over all. A change takes one cap: of the name that comes first in the file, the smallest. Rules can only raise
// what the configuration demands (the floor), never lower it, and what cannot be undone needs reauth whatever they say.
// A condition that cannot be evaluated, or costs too much, counts as holding: it fails closed.
//
// Conditions see these, and nothing else: no clock, no network. So a Policy of rules is a pure function, and the claim
// asks it again.
//
//	change   id, target, client, requester, tenant, account, undoes, replaces, on_failure, warnings, undo.extent, undo.for
//	ops      a list: action, object, payload, key, blobs (a list: sha256, size, type)
//	before   a list, one an op: absent, object, body
//	account  the resolved account
//	risk     irreversible, partial_undo, deletes, creates, updates, objects, warnings
//
// Payload and body are JSON, or null. Integers are exact within 64 bits; other numbers are doubles, so two that differ far
// behind the point may be equal. A member that is missing is an error, and so the rule counts: ask has() first.
package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/wetink/wetink"
)

// ErrRules says that rules cannot be used. Parse's errors are of type *Error and wrap it.
var ErrRules = errors.New("rules")

// words are the configuration's, for levels.
var words = map[string]wetink.Level{
	"auto": wetink.Auto, "agent": wetink.Agent, "card": wetink.Host, "page": wetink.Session, "reauth": wetink.Reauth, "passkey": wetink.Passkey,
}

// Rule is one of a file. What is zero is not demanded.
type Rule struct {
	Name    string
	When    string // CEL; "": always
	Deny    string // reason
	Require string // auto, agent, card, page, reauth or passkey
	People  int
	Other   bool // the requester does not count
	TTL     time.Duration
	Cap     *wetink.Cap
	Why     string
	Line    int // of the file; 0: built in

	program cel.Program
}

// irreversible is built in: it counts whatever the file says.
var irreversible = Rule{Name: "what cannot be undone", Require: "reauth", Why: "It cannot be undone."}

// Rules implement wetink.Policy. They do not change, and are safe for concurrent use.
type Rules struct {
	rules   []Rule
	floor   wetink.Require
	version string
}

// List returns the rules in the order of the file.
func (r *Rules) List() []Rule { return slices.Clone(r.rules) }

// Version names the bytes of the file and the floor. It goes into the Statement.
func (r *Rules) Version() string { return r.version }

// Notes tell what is allowed and yet may surprise.
func (r *Rules) Notes() (notes []string) {
	var caps []string
	for _, rule := range r.rules {
		if rule.Cap != nil && !slices.Contains(caps, rule.Cap.Name) {
			caps = append(caps, rule.Cap.Name)
		}
	}
	if len(caps) > 1 {
		notes = append(notes, fmt.Sprintf("caps have %d names (%s): a change that several of them match takes only the one that comes first in the file",
			len(caps), strings.Join(caps, ", ")))
	}
	for _, rule := range r.rules {
		if level, ok := words[rule.Require]; ok && level < r.floor.Level && rule.Deny == "" {
			notes = append(notes, fmt.Sprintf("line %d: require %s has no effect: every change needs %s already", rule.Line, rule.Require, Word(r.floor.Level)))
		}
	}
	return notes
}

// Match is a rule that counts for a change. Err says that its condition could not be evaluated, and that it counts
// for that reason; it may hold content.
type Match struct {
	Rule Rule
	Err  error
}

// Match lists the rules that count for a change: the built-in one first, then in the order of the file. Its error says that
// nothing was decided: ctx ended, or t and before are not what an Engine would ask about.
func (r *Rules) Match(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (found []Match, err error) {
	vars, err := variables(t, before)
	if err != nil {
		return nil, err
	}
	if vars.irreversible {
		found = append(found, Match{Rule: irreversible})
	}
	for _, rule := range r.rules {
		holds, err := rule.holds(ctx, vars)
		// An evaluation that was interrupted looks like one that failed. It must not become an answer that depends on time.
		if ctx.Err() != nil {
			return nil, fmt.Errorf("evaluate rule %q: %w", rule.Name, ctx.Err())
		}
		if holds {
			found = append(found, Match{Rule: rule, Err: err})
		}
	}
	return found, nil
}

// Decide implements wetink.Policy.
func (r *Rules) Decide(ctx context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	found, err := r.Match(ctx, t, before)
	if err != nil {
		return wetink.Decision{}, err
	}
	d := wetink.Decision{Require: wetink.Stricter(r.floor, wetink.Require{People: 1}), Version: r.version}
	for _, m := range found {
		rule := m.Rule
		if rule.Deny != "" && d.Deny == "" {
			d.Deny = rule.Deny
			if m.Err != nil { // without the error, which may hold content: the reason goes to the agent
				d.Deny += fmt.Sprintf(" (rule %q could not be evaluated, so it counts)", rule.Name)
			}
		}
		d.Require = wetink.Stricter(d.Require, wetink.Require{Level: words[rule.Require], People: rule.People, Other: rule.Other})
		if rule.TTL > 0 && (d.TTL == 0 || rule.TTL < d.TTL) {
			d.TTL = rule.TTL
		}
		if c := rule.Cap; c != nil && (d.Cap == nil || d.Cap.Name == c.Name && c.Max < d.Cap.Max) {
			d.Cap = &wetink.Cap{Name: c.Name, Max: c.Max}
		}
	}
	slices.SortStableFunc(found, func(a, b Match) int { return a.Rule.compare(b.Rule) })
	for _, m := range found {
		d.Why = append(d.Why, m.why())
	}
	return d, nil
}

// compare sorts the stricter rule first.
func (rule Rule) compare(b Rule) int {
	yes := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(yes(b.Deny != ""), yes(rule.Deny != "")),
		cmp.Compare(words[b.Require], words[rule.Require]),
		cmp.Compare(b.People, rule.People),
		cmp.Compare(yes(b.Other), yes(rule.Other)),
		cmp.Compare(yes(b.TTL > 0), yes(rule.TTL > 0)),
		cmp.Compare(rule.TTL, b.TTL),
		cmp.Compare(yes(b.Cap != nil), yes(rule.Cap != nil)),
	)
}

func (m Match) why() string {
	if m.Rule.Line == 0 {
		return m.Rule.Why
	}
	s := strings.TrimRight(m.Rule.Name, ".") + "."
	if m.Rule.Why != "" {
		s += " " + m.Rule.Why
	} else if m.Rule.Deny != "" {
		s += " " + m.Rule.Deny
	}
	if m.Err != nil {
		s += fmt.Sprintf(" (Its condition could not be evaluated, so it counts: %v)", m.Err)
	}
	return s
}

// Word is the configuration's for a level.
func Word(l wetink.Level) string {
	for word, level := range words {
		if level == l {
			return word
		}
	}
	return l.String()
}

// Words say what a rule does.
func (rule Rule) Words() string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(rule.Deny != "", "deny: %s", rule.Deny)
	add(rule.Require != "", "require %s", rule.Require)
	add(rule.People == 1, "1 person")
	add(rule.People > 1, "%d people", rule.People)
	add(rule.Other, "other than who asked")
	add(rule.TTL > 0, "valid for %s", short(rule.TTL))
	if rule.Cap != nil {
		add(true, "at most %d a day (%s)", rule.Cap.Max, rule.Cap.Name)
	}
	when := "always"
	if rule.When != "" {
		when = "when " + strings.Join(strings.Fields(rule.When), " ")
	}
	return fmt.Sprintf("%s, %s", strings.Join(parts, ", "), when)
}

// short is a duration without the zeros that its String ends with.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
