package upstream

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wetink/wetink"
)

// Rule says how a tool is guarded. The zero Rule shows the call as it is, and knows no way back.
type Rule struct {
	Line int // in its file

	When    *Expression // nil: always
	Read    *Template   // reads what the tool writes; nil: nothing can
	At      []string    // where in what Read returns the object stands
	Watch   [][]string  // what an approval is bound to, if Only; else it is everything
	Only    bool
	Absent  string // part of the error that says that it does not exist yet
	Failed  string // how a text begins that tells of a failure, from a server that answers failures as successes
	Pick    []Pick // values that stand in a text only
	Show    string // one of shows
	Risks   []Risk
	Ask     Ask
	Typed   *Expression // when it has to be typed what is done
	Preview *Template   // the server's own dry run
	Bind    []argument  // arguments that carry the observed version into the call
	Undo    *Template   // nil: there is none
	Created *Template   // the way back where nothing was there before; nil: Undo
	NoUndo  bool        // said to be none
	Note    string      // how far an undo can go
	As      map[string]*Expression
	Limit   int // applied changes of this tool for one account and day; 0: any number
}

// Pick takes a value out of a text.
type Pick struct {
	Name    string
	Pattern *regexp.Regexp
}

// Risk is told to the person when it holds.
type Risk struct {
	Name string
	When *Expression
}

// Ask is what a Rule demands of an approval.
type Ask struct {
	Word    string // as it stands in the file; "": the default counts
	Require wetink.Require
	Deny    bool
	Type    bool
}

// asks are the words for it. never, inbox, two and typed are what people write; the others are the configuration's.
var asks = map[string]Ask{
	"auto":    {Require: wetink.Require{Level: wetink.Auto, People: 1}},
	"never":   {Require: wetink.Require{Level: wetink.Auto, People: 1}},
	"agent":   {Require: wetink.Require{Level: wetink.Agent, People: 1}},
	"card":    {Require: wetink.Require{Level: wetink.Host, People: 1}},
	"page":    {Require: wetink.Require{Level: wetink.Session, People: 1}},
	"inbox":   {Require: wetink.Require{Level: wetink.Session, People: 1}},
	"typed":   {Require: wetink.Require{Level: wetink.Session, People: 1}, Type: true},
	"reauth":  {Require: wetink.Require{Level: wetink.Reauth, People: 1}},
	"passkey": {Require: wetink.Require{Level: wetink.Passkey, People: 1}},
	"two":     {Require: wetink.Require{Level: wetink.Session, People: 2}},
	"deny":    {Deny: true},
}

// ParseAsk reads one of the words.
func ParseAsk(word string) (Ask, bool) {
	a, ok := asks[word]
	a.Word = word
	return a, ok
}

var shows = []string{"file", "markdown", "event", "post", "sql", "fields"}

// Rules are those of one server, by tool. Of several for a tool, the first counts whose When holds.
type Rules map[string][]*Rule

// match finds the Rule of a call. A When that cannot be evaluated refuses the call: what is not understood is not sent.
func (r Rules) match(tool string, args map[string]any) (*Rule, error) {
	for _, rule := range r[tool] {
		if rule.When == nil {
			return rule, nil
		}
		holds, err := rule.When.holds(known{args: args})
		if err != nil {
			return nil, &wetink.RequestError{Reason: fmt.Sprintf("the rule for %s in line %d cannot be judged: %v", tool, rule.Line, err),
				Fix: "give the arguments that its `when` asks for"}
		}
		if holds {
			return rule, nil
		}
	}
	return &Rule{}, nil
}

// wayBack is what undoes a call under rule: nil if nothing does.
func (rule *Rule) wayBack(created bool) *Template {
	if created && rule.Created != nil {
		return rule.Created
	}
	return rule.Undo
}

// reader is the Rule that reads what a call under rule left: its own, or that of the tool that takes it back, which has
// to find what was created.
func (r Rules) reader(rule *Rule) *Rule {
	if rule.Read != nil {
		return rule
	}
	for _, back := range []*Template{rule.Undo, rule.Created} {
		if back == nil {
			continue
		}
		for _, other := range r[back.Tool] {
			if other.Read != nil {
				return other
			}
		}
	}
	return nil
}

// tools are all that the rules call or guard.
func (r Rules) tools() (names []string) {
	for tool, list := range r {
		names = append(names, tool)
		for _, rule := range list {
			for _, t := range []*Template{rule.Read, rule.Preview, rule.Undo, rule.Created} {
				if t != nil {
					names = append(names, t.Tool)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Words say what the Rule does, in one line.
func (rule *Rule) Words() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if rule.When != nil {
		add("when %s", rule.When.Text)
	}
	switch {
	case rule.Ask.Deny:
		add("refused")
		return strings.Join(parts, "; ")
	case rule.Read == nil:
		add("shown as it is, because nothing reads what it changes")
	case len(rule.Watch) == 0:
		add("bound to all that %s returns", rule.Read)
	default:
		names := make([]string, len(rule.Watch))
		for i, w := range rule.Watch {
			names[i] = strings.Join(w, ".")
		}
		add("bound to %s of what %s returns", strings.Join(names, ", "), rule.Read)
	}
	if rule.Preview != nil {
		add("tried with %s", rule.Preview)
	}
	for _, r := range rule.Risks {
		add("warns of %q", r.Name)
	}
	if rule.Ask.Word != "" {
		add("asks %s", rule.Ask.Word)
	}
	switch {
	case rule.Undo != nil && rule.Created != nil:
		add("undone by %s, a creation by %s", rule.Undo, rule.Created)
	case rule.Undo != nil:
		add("undone by %s", rule.Undo)
	case rule.Created != nil:
		add("a creation is undone by %s", rule.Created)
	default:
		add("no undo")
	}
	if rule.Limit > 0 {
		add("at most %d a day", rule.Limit)
	}
	return strings.Join(parts, "; ")
}
