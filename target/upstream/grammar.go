package upstream

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/wetink/wetink/internal/strictyaml"
)

// words of a Rule, in the order of the documentation.
var words = []string{"when", "read", "at", "watch", "absent", "pick", "show", "preview", "risk", "ask", "typed_when", "bind", "undo", "undo_create", "undo_note", "as", "failed", "limit"}

// Words are those of a Rule.
func Words() []string { return slices.Clone(words) }

// ParseRules reads the mapping that stands under `guard`: a Rule for each tool, or a list of which the first counts whose
// `when` holds. pass are the patterns of the tools that only read: what a Rule reads with must be among them, because it
// is called without anybody being asked. Mistakes go to r.
func ParseRules(r *strictyaml.Reader, n ast.Node, pass []string) Rules {
	g := grammar{r, pass}
	rules := Rules{}
	entries, ok := r.Entries(n, "guard")
	if !ok {
		return nil
	}
	for _, e := range entries {
		switch v := e.Value.(type) {
		case *ast.NullNode: // shown as it is
			rules[e.Key] = []*Rule{{Line: e.At.Position.Line}}
		case *ast.SequenceNode:
			for i, one := range v.Values {
				if rule := g.rule(one, e.Key); rule != nil {
					if rules[e.Key] = append(rules[e.Key], rule); rule.When == nil && i < len(v.Values)-1 {
						r.Bad(strictyaml.First(one), "%s: no rule behind one without `when` is ever looked at", e.Key)
					}
				}
			}
		default:
			if rule := g.rule(v, e.Key); rule != nil {
				rules[e.Key] = []*Rule{rule}
			}
		}
		if Passes(pass, e.Key) {
			r.Bad(e.At, "%s stands in `pass`, too: say one or the other", e.Key)
		}
	}
	return rules
}

// Passes reports whether a pattern of the list names the tool.
func Passes(pass []string, tool string) bool {
	return slices.ContainsFunc(pass, func(p string) bool { ok, err := path.Match(p, tool); return err == nil && ok })
}

type grammar struct {
	*strictyaml.Reader
	pass []string
}

func (g grammar) rule(n ast.Node, tool string) *Rule {
	m, ok := g.Mapping(n, tool, words...)
	if !ok {
		return nil
	}
	rule := &Rule{Line: strictyaml.First(n).Position.Line}
	text := func(key string) (s string) {
		if v := m[key]; v != nil {
			s, _ = g.Text(v, key)
		}
		return s
	}
	rule.Absent, rule.Note, rule.Failed = text("absent"), text("undo_note"), text("failed")
	rule.When, rule.Typed = g.expression(m["when"], "when"), g.expression(m["typed_when"], "typed_when")
	if s := text("at"); s != "" {
		rule.At = strings.Split(s, ".")
	}
	if v := m["watch"]; v != nil {
		rule.Only = true
		for _, p := range g.Texts(v, "watch") {
			rule.Watch = append(rule.Watch, strings.Split(p, "."))
		}
	}
	if rule.Show = text("show"); rule.Show != "" && !slices.Contains(shows, rule.Show) {
		g.Bad(m["show"].GetToken(), "show is %q: want one of %s", rule.Show, strings.Join(shows, ", "))
	}
	if s := text("ask"); s != "" {
		if rule.Ask, ok = ParseAsk(s); !ok {
			g.Bad(m["ask"].GetToken(), "ask is %q: want never, agent, card, page, typed, reauth, passkey, two or deny", s)
		}
	}
	g.pick(m["pick"], rule)
	g.risks(m["risk"], rule)
	g.as(m["as"], rule)
	if v := m["limit"]; v != nil {
		if n, ok := g.Number(v, "limit"); ok && (n < 1 || n > 1_000_000) {
			g.Bad(v.GetToken(), "limit is %d: want 1 or more applied changes a day; to allow none, use ask: deny", n)
		} else {
			rule.Limit = int(n)
		}
	}
	rule.Read = g.template(m["read"], "read", "args")
	rule.Preview = g.template(m["preview"], "preview", "args", "before")
	if s, ok := m["undo"].(*ast.StringNode); ok && s.Value == "none" {
		rule.NoUndo = true
	} else {
		rule.Undo = g.template(m["undo"], "undo", "args", "before", "result", "id", "restore")
	}
	rule.Created = g.template(m["undo_create"], "undo_create", "args", "result", "id")
	if v := m["bind"]; v != nil {
		rule.Bind = g.arguments(v, "bind", false, "before")
	}
	g.sense(m, rule)
	return rule
}

// sense finds what can be written and cannot be meant.
func (g grammar) sense(m map[string]ast.Node, rule *Rule) {
	for _, key := range []string{"at", "watch", "absent", "pick", "bind"} {
		if m[key] != nil && rule.Read == nil {
			g.Bad(m[key].GetToken(), "%s is about what `read` returns: give the rule a read", key)
		}
	}
	if rule.Read != nil && !Passes(g.pass, rule.Read.Tool) {
		g.Bad(m["read"].GetToken(), "%s is called without anybody being asked: put it into `pass` if it changes nothing", rule.Read.Tool)
	}
	if p := rule.Preview; p != nil && !Passes(g.pass, p.Tool) && !slices.ContainsFunc(p.args, func(a argument) bool { _, ok := a.node.(literal); return ok }) {
		g.Bad(m["preview"].GetToken(), "%s is called without anybody being asked: put it into `pass` if it changes nothing, or give the argument that makes it a dry run, as in dryRun: true", p.Tool)
	}
	if rule.Created != nil && (rule.Read == nil || rule.Absent == "") {
		g.Bad(m["undo_create"].GetToken(), "undo_create counts where nothing was before: the rule needs `read` and `absent` to see that")
	}
	if m["undo_note"] != nil && rule.Undo == nil && rule.Created == nil && !rule.NoUndo {
		g.Bad(m["undo_note"].GetToken(), "undo_note says how far the undo goes: give the rule an undo, or undo: none")
	}
	if !rule.Only {
		return
	}
	if len(rule.Watch) == 0 && len(rule.Pick) == 0 && m["watch"] != nil {
		g.Bad(m["watch"].GetToken(), "watch is empty: name what an approval is bound to, or leave it out for everything; with `pick`, [] binds to what that takes alone")
	}
	for key, t := range map[string]*Template{"undo": rule.Undo, "preview": rule.Preview} {
		if t == nil {
			continue
		}
		for _, ref := range t.references() {
			if ref.root == "before" && len(ref.path) > 0 && !rule.keeps(ref.path) {
				g.Bad(m[key].GetToken(), "%s is not kept: put it into `watch` or `pick`", ref.text)
			}
		}
	}
}

// keeps reports whether $before.path is in the snapshot.
func (rule *Rule) keeps(path []string) bool {
	return slices.ContainsFunc(rule.Watch, func(w []string) bool {
		return len(w) <= len(path) && slices.Equal(w, path[:len(w)])
	}) || slices.ContainsFunc(rule.Pick, func(p Pick) bool { return p.Name == path[0] })
}

func (g grammar) pick(n ast.Node, rule *Rule) {
	if n == nil {
		return
	}
	entries, _ := g.Entries(n, "pick")
	for _, e := range entries {
		s, ok := g.Text(e.Value, e.Key)
		if !ok {
			continue
		}
		p, err := regexp.Compile(s)
		if err != nil || p.NumSubexp() > 1 {
			g.Bad(e.Value.GetToken(), "pick.%s: want a pattern with one group in brackets at most (%v)", e.Key, err)
			continue
		}
		rule.Pick = append(rule.Pick, Pick{e.Key, p})
	}
}

func (g grammar) risks(n ast.Node, rule *Rule) {
	if n == nil {
		return
	}
	entries, _ := g.Entries(n, "risk")
	for _, e := range entries {
		if x := g.expression(e.Value, e.Key); x != nil {
			rule.Risks = append(rule.Risks, Risk{e.Key, x})
		}
	}
}

func (g grammar) as(n ast.Node, rule *Rule) {
	if n == nil {
		return
	}
	rule.As = map[string]*Expression{}
	entries, _ := g.Entries(n, "as")
	for _, e := range entries {
		if s, ok := g.Text(e.Value, e.Key); ok {
			x, err := compile(s, false, environment)
			if err != nil {
				g.Bad(e.Value.GetToken(), "as.%s: %v", e.Key, err)
				continue
			}
			rule.As[e.Key] = x
		}
	}
}

func (g grammar) expression(n ast.Node, key string) *Expression {
	if n == nil {
		return nil
	}
	s := ""
	if b, ok := n.(*ast.BoolNode); ok {
		s = b.Token.Value
	} else if t, ok := g.Text(n, key); ok {
		s = t
	} else {
		return nil
	}
	in := environment
	if key == "when" { // it chooses the rule that says what is read
		in = early
	}
	x, err := compile(s, true, in)
	if err != nil {
		g.Bad(n.GetToken(), "%s: %v", key, err)
		return nil
	}
	return x
}

// template reads {tool: {arguments}}. roots are the references that can be filled when it is called.
func (g grammar) template(n ast.Node, key string, roots ...string) *Template {
	if n == nil {
		return nil
	}
	entries, ok := g.Entries(n, key)
	if !ok {
		return nil
	}
	if len(entries) != 1 {
		g.Bad(n.GetToken(), "%s: want one tool, as in {get_x: {id}}", key)
		return nil
	}
	t := &Template{Tool: entries[0].Key, Line: entries[0].At.Position.Line}
	if _, none := entries[0].Value.(*ast.NullNode); !none {
		t.args = g.arguments(entries[0].Value, key+"."+t.Tool, slices.Contains(roots, "restore"), roots...)
	}
	return t
}

const restoreKey = "$restore"

func (g grammar) arguments(n ast.Node, what string, restore bool, roots ...string) (list []argument) {
	entries, _ := g.Entries(n, what)
	for _, e := range entries {
		if e.Key == restoreKey {
			s, _ := g.Text(e.Value, e.Key)
			if !restore || s != "changed" && s != "all" {
				g.Bad(e.At, "$restore: changed, or $restore: all, stands among the arguments of an undo")
				continue
			}
			list = append(list, argument{e.Key, restored{s == "all"}})
			continue
		}
		if v := g.node(e.Value, e.Key, e.At, roots, true); v != nil {
			list = append(list, argument{e.Key, v})
		}
	}
	return list
}

var dollar = regexp.MustCompile(`\$+[a-z]+`)

func (g grammar) node(n ast.Node, key string, at *token.Token, roots []string, member bool) node {
	switch n := n.(type) {
	case *ast.NullNode:
		if !member || !slices.Contains(roots, "args") {
			g.Bad(at, "%s is empty: say what goes there", key)
			return nil
		}
		return copied{key}
	case *ast.BoolNode:
		return literal{n.Value}
	case *ast.IntegerNode, *ast.FloatNode:
		s := n.GetToken().Value
		if !json.Valid([]byte(s)) {
			g.Bad(n.GetToken(), "%s: %s is no number of JSON", key, s)
			return nil
		}
		return literal{json.Number(s)}
	case *ast.SequenceNode:
		list := sequence{}
		for _, v := range n.Values {
			if e := g.node(v, key, v.GetToken(), roots, false); e != nil {
				list = append(list, e)
			}
		}
		return list
	case *ast.MappingNode, *ast.MappingValueNode:
		return object(g.arguments(n, key, false, roots...))
	case *ast.StringNode:
		return g.text(n.Value, n, roots)
	case *ast.LiteralNode:
		return g.text(n.Value.Value, n, roots)
	}
	g.Bad(at, "%s: want text, a number, true, false, a list or keys and values; anchors, aliases and tags are not read", key)
	return nil
}

func (g grammar) text(s string, n ast.Node, roots []string) node {
	may := func(root string) bool {
		if slices.Contains(roots, root) {
			return true
		}
		g.Bad(n.GetToken(), "$%s is not known here: want one of %s", root, strings.Join(roots, ", "))
		return false
	}
	ref, is, err := parseReference(s)
	if err != nil {
		g.Bad(n.GetToken(), "%v", err)
		return nil
	}
	if is {
		if !may(ref.root) {
			return nil
		}
		return ref
	}
	var parts joined
	rest := s
	for {
		at := dollar.FindStringIndex(rest)
		if at == nil {
			break
		}
		word := rest[at[0]:at[1]]
		if strings.HasPrefix(word, "$$") { // a dollar that is meant
			parts = append(parts, rest[:at[0]]+word[1:])
			rest = rest[at[1]:]
			continue
		}
		m := inText.FindStringSubmatchIndex(rest)
		if m == nil || m[0] != at[0] {
			g.Bad(n.GetToken(), "%s is not known: want $args, $before, $result or $id; a dollar that is meant is written $$", word)
			return nil
		}
		if !may(rest[m[2]:m[3]]) {
			return nil
		}
		ref := reference{root: rest[m[2]:m[3]], text: rest[m[0]:m[1]]}
		if m[4] < m[5] {
			ref.path = strings.Split(rest[m[4]+1:m[5]], ".")
		}
		parts = append(parts, rest[:m[0]], ref)
		rest = rest[m[1]:]
	}
	if parts == nil {
		return literal{s}
	}
	return append(parts, rest)
}

// String is the tool's name and the arguments that it takes from the call, for people.
func (t *Template) String() string { return fmt.Sprintf("%s(%s)", t.Tool, strings.Join(t.own(), ", ")) }
