package render

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

//go:embed sheet.html
var templates embed.FS

var sheetTemplate = template.Must(template.New("sheet.html").ParseFS(templates, "sheet.html"))

// HTML writes what a person approves from, as a fragment of a page: the outcome, every warning, what else stands on those
// days, every field that changes, how far it can be undone, the agent's own words, who asks and where, what the record
// will say of the approval, and the exact bytes. Nothing is cut. It has no form and no script, and no id of its own.
//
// The error is wetink.ErrTampered if the row and what was signed differ, or the writer's.
func HTML(w io.Writer, v View, o *Options) error {
	t, err := v.Change.Terms()
	if err != nil {
		return err
	}
	if v.Now.IsZero() {
		v.Now = time.Now()
	}
	return sheetTemplate.Execute(w, newSheet(v, t, o.orDefault()))
}

// sheet is a Change as the template draws it. What came from outside went through Reveal.
type sheet struct {
	Title   template.HTML
	Where   template.HTML
	Risks   []template.HTML
	Week    *week
	Ops     []opSheet
	Undo    []template.HTML
	Says    template.HTML // the agent's own words
	Client  template.HTML
	Facts   []fact
	Strokes [5]bool
	Needs   string
	Will    template.HTML
	Done    []template.HTML // approvals so far
	Bytes   []template.HTML
	Digest  string
	Why     template.HTML
}

type fact struct {
	Label string
	Value template.HTML
}

// opSheet is one operation.
type opSheet struct {
	Heading   template.HTML // "" for the only one
	Gone      bool
	Rows      []row
	Texts     []lineDiff
	Shapes    []shape
	Unchanged []fact
	Post      *postSheet
	Outcome   template.HTML
}

// row is one field.
type row struct {
	Label     template.HTML
	Was, Will template.HTML
	Note      template.HTML
	Opaque    bool
}

// lineDiff is a text of several lines.
type lineDiff struct {
	Label template.HTML
	Lines []diffLine
}

type diffLine struct {
	Sign rune
	Text template.HTML
	Note template.HTML // what becomes of the line
}

func newSheet(v View, t wetink.Terms, o Options) sheet {
	c := v.Change
	s := sheet{Title: template.HTML(template.HTMLEscapeString(headline(c, t, o))), Digest: c.Statement.Digest().String()}
	e := o.explain(t, c.Before)
	owner := Reveal(string(t.Account))
	if e.Owner != "" {
		owner = Reveal(e.Owner) + " (" + owner + ")"
	}
	s.Where = Reveal(t.Target) + ", account " + owner
	for _, w := range t.Warnings {
		s.Risks = append(s.Risks, Reveal(w))
	}
	seen := map[string]bool{}
	badges := func(text string) {
		for _, b := range Badges(text) {
			if !seen[b] {
				seen[b] = true
				s.Risks = append(s.Risks, Reveal(b))
			}
		}
	}
	order := make([]int, len(t.Ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { // what goes comes first
		return boolInt(t.Ops[b].Action == "delete") - boolInt(t.Ops[a].Action == "delete")
	})
	s.Week = newWeek(e, t)
	for _, i := range order {
		op := t.Ops[i]
		var told wetink.OpExplanation
		if i < len(e.Ops) {
			told = e.Ops[i]
		}
		d := o.Diff(op, c.Before[i])
		for _, f := range d {
			for _, raw := range []json.RawMessage{f.Before, f.After} {
				if text, ok := text(raw); ok {
					badges(text)
				}
			}
		}
		s.Ops = append(s.Ops, newOp(v, t, i, d, told, e.Zone, o))
		s.Bytes = append(s.Bytes, exact(op, told))
	}
	if n := opaque(s.Ops); n > 0 {
		s.Risks = append(s.Risks, template.HTML(template.HTMLEscapeString(count(n, "field")+" that nobody here can explain: shown as it stands, and marked")))
	}
	s.undo(t)
	s.Says = says(c)
	s.Client = Reveal(t.Client)
	asked := Reveal(t.Client)
	if t.Requester != "" {
		asked += ", for " + Reveal(string(t.Requester))
	}
	s.Facts = append(s.Facts, fact{"Asked by", asked}, fact{"Changes", s.Where})
	if !c.Created.IsZero() {
		s.Facts = append(s.Facts, fact{"Proposed", at(v, c.Created)})
	}
	if !t.NotBefore.IsZero() {
		s.Facts = append(s.Facts, fact{"Starts", "not before " + at(v, t.NotBefore)})
	}
	for _, l := range []struct {
		label string
		id    wetink.ChangeID
	}{{"Undoes", t.Undoes}, {"Replaces", t.Replaces}} {
		if l.id != "" {
			s.Facts = append(s.Facts, fact{l.label, Reveal(string(l.id))})
		}
	}
	s.Facts = append(s.Facts, fact{"Number", Reveal(string(t.Change))})
	s.proof(t, c)
	if c.Why != "" {
		s.Why = Reveal(c.Why)
	}
	return s
}

func opaque(ops []opSheet) (n int) {
	for _, op := range ops {
		for _, r := range op.Rows {
			n += boolInt(r.Opaque)
		}
	}
	return n
}

func at(v View, t time.Time) template.HTML {
	t = t.In(v.Now.Location())
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, t.UTC().Format(time.RFC3339), template.HTMLEscapeString(t.Format("Mon 2 Jan 2006, 15:04 MST"))))
}

func newOp(v View, t wetink.Terms, i int, d []wetink.FieldChange, told wetink.OpExplanation, zone string, o Options) opSheet {
	op, before := t.Ops[i], v.Change.Before[i]
	s := opSheet{Gone: op.Action == "delete"}
	label := told.Name
	if label == "" {
		label = name(op, before)
	}
	switch {
	case len(t.Ops) > 1:
		s.Heading = template.HTML(template.HTMLEscapeString(fmt.Sprintf("%d. %s ", i+1, verbOf(told, op, d))))
		if label != "" {
			s.Heading += Reveal(label)
		} else {
			s.Heading += Reveal(op.Object)
		}
	case label != "":
		s.Heading = Reveal(label)
	}
	for _, f := range d {
		m, known := told.Fields[f.Field]
		if o.Explain != nil && !known {
			s.Rows = append(s.Rows, row{Label: Reveal(fieldName(f.Field)), Was: joined(value(f.Before)), Will: joined(value(f.After)), Opaque: true})
			continue
		}
		name := m.Label
		if name == "" {
			name = fieldName(f.Field)
		}
		if lines, ok := prose(f, m.Kind); ok {
			s.Texts = append(s.Texts, lineDiff{Reveal(name), noted(lines, told.Shape[1])})
			continue
		}
		r := row{Label: Reveal(name), Note: Reveal(m.Note)}
		if m.Note == "" {
			r.Note = ""
		}
		was, will := meaning(f.Before, m, zone), meaning(f.After, m, zone)
		if len(was) == 1 && len(will) == 1 && m.Kind == wetink.Plain {
			r.Was, r.Will = wordDiff(was[0], will[0])
		} else {
			r.Was, r.Will = struck("del", was), struck("ins", will)
		}
		s.Rows = append(s.Rows, r)
	}
	for _, b := range op.Blobs {
		s.Rows = append(s.Rows, row{Label: "File", Will: template.HTML(fmt.Sprintf("%s, %d bytes, sha256 <code>%s</code>", Reveal(b.Type), b.Size, b.Digest))})
	}
	if len(op.Payload) > 0 {
		s.Unchanged = unchangedFields(before, d)
	}
	s.Shapes = shapes(told.Shape)
	s.Post = newPost(told.Post)
	if step, ok := v.Change.StepOf(i); ok {
		s.Outcome = template.HTML(template.HTMLEscapeString(outcomes[step.Outcome])) + " (" + Reveal(step.How) + ")"
		if step.Why != "" {
			s.Outcome += ": " + Reveal(step.Why)
		}
	}
	return s
}

func verbOf(told wetink.OpExplanation, op wetink.Op, d []wetink.FieldChange) string {
	v := told.Verb
	if v == "" {
		v = verb(op, d)
	}
	return strings.ToUpper(v[:1]) + v[1:]
}

// joined are the lines of a value, one under the other.
func joined(lines []string) template.HTML {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br>")
		}
		b.WriteString(string(shown(l)))
	}
	return template.HTML(b.String())
}

// shown wraps a line that Line made already: its tokens become chips.
func shown(line string) template.HTML { return template.HTML("<bdi>" + chips(line) + "</bdi>") }

func struck(tag string, lines []string) template.HTML {
	if len(lines) == 0 {
		return "none"
	}
	return template.HTML("<"+tag+">") + joined(lines) + template.HTML("</"+tag+">")
}

// prose reports the lines of a text that is read as lines: of several lines, or said to be.
func prose(f wetink.FieldChange, k wetink.Kind) ([]change, bool) {
	a, okA := lines(f.Before)
	b, okB := lines(f.After)
	if !okA || !okB || k != wetink.Prose && k != wetink.Markdown && (len(a) < 2 && len(b) < 2) {
		return nil, false
	}
	return diffLines(a, b), true
}

// lines of a JSON text, as they are; none of null.
func lines(raw json.RawMessage) ([]string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	s, ok := text(raw)
	if !ok || raw[0] != '"' {
		return nil, false
	}
	return strings.Split(s, "\n"), true
}

// noted marks the lines that the target will ignore.
func noted(list []change, will *wetink.Profile) []diffLine {
	out := make([]diffLine, 0, len(list))
	for _, l := range list {
		d := diffLine{Sign: rune(l.sign), Text: Reveal(l.line)}
		if will != nil && l.sign != '-' && slices.Contains(will.Ignored, strings.TrimSpace(l.line)) {
			d.Note = "ignored there"
		}
		out = append(out, d)
	}
	return out
}

// wordDiff marks the words that go and come in two lines that Line made.
func wordDiff(a, b string) (was, will template.HTML) {
	list := diffLines(splitWords(a), splitWords(b))
	if !slices.ContainsFunc(list, func(c change) bool { return c.sign == ' ' && strings.TrimSpace(c.line) != "" && c.line != `"` }) {
		return struck("del", []string{a}), struck("ins", []string{b})
	}
	side := func(sign byte, tag string) template.HTML {
		var out strings.Builder
		out.WriteString("<bdi>")
		for i := 0; i < len(list); i++ {
			switch list[i].sign {
			case ' ':
				out.WriteString(chips(list[i].line))
			case sign:
				out.WriteString("<" + tag + ">" + chips(list[i].line))
				for i+1 < len(list) && list[i+1].sign == sign {
					i++
					out.WriteString(chips(list[i].line))
				}
				out.WriteString("</" + tag + ">")
			}
		}
		out.WriteString("</bdi>")
		return template.HTML(out.String())
	}
	return side('-', "del"), side('+', "ins")
}

// splitWords keeps blanks as words of their own, so that nothing is lost.
func splitWords(s string) (out []string) {
	from := 0
	for i, r := range s {
		if r == ' ' || r == '"' {
			if from < i {
				out = append(out, s[from:i])
			}
			out = append(out, string(r))
			from = i + 1
		}
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

func unchangedFields(before wetink.Snapshot, diff []wetink.FieldChange) (out []fact) {
	var was map[string]json.RawMessage
	if json.Unmarshal(before.Body, &was) != nil {
		return nil
	}
	for f, raw := range was {
		v := value(raw)
		if v != nil && !slices.ContainsFunc(diff, func(d wetink.FieldChange) bool { return d.Field == f }) {
			out = append(out, fact{fieldName(f), joined(v)})
		}
	}
	slices.SortFunc(out, func(a, b fact) int { return strings.Compare(a.Label, b.Label) })
	return out
}

func (s *sheet) undo(t wetink.Terms) {
	until := ""
	if t.Undo.Until > 0 {
		until = ", for " + Duration(t.Undo.Until) + " after it was applied"
	}
	switch t.Undo.Extent {
	case wetink.FullUndo:
		s.Undo = append(s.Undo, template.HTML("All of it can be undone"+until+"."))
	case wetink.PartialUndo:
		s.Undo = append(s.Undo, template.HTML("<b>A part</b> of it can be undone"+until+"."))
	case wetink.NoUndo:
		s.Undo = append(s.Undo, "<b>It cannot be undone.</b>")
	default:
		s.Undo = append(s.Undo, Reveal(string(t.Undo.Extent)))
	}
	for _, n := range t.Undo.Notes {
		s.Undo = append(s.Undo, Reveal(n))
	}
	if len(t.Ops) > 1 && t.OnFailure == wetink.UndoOnFailure {
		s.Undo = append(s.Undo, "If a part of it fails, what took effect is undone, which this approval orders too.")
	}
}

// says are the agent's own words, if it gave any: a member "reason" of its request.
func says(c wetink.Change) template.HTML {
	var args struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(c.Request.Args, &args) != nil || args.Reason == "" {
		return ""
	}
	return Reveal(args.Reason)
}

// needsWords say what a level asks of a person.
var needsWords = map[wetink.Level]string{
	wetink.Auto: "nothing", wetink.Agent: "A1, the agent's token", wetink.Host: "A2, a press in the host or at a terminal",
	wetink.Session: "A3, this page", wetink.Reauth: "A4, your passphrase again", wetink.Passkey: "A5, your passkey",
}

func (s *sheet) proof(t wetink.Terms, c wetink.Change) {
	for i := range s.Strokes {
		s.Strokes[i] = i < int(t.Require.Level)
	}
	s.Needs = needsWords[t.Require.Level]
	if t.Require.People > 1 {
		s.Needs += fmt.Sprintf(", of %d people", t.Require.People)
	}
	if t.Require.Other {
		s.Needs += ", other than who asked for it"
	}
	for _, a := range c.Approvals {
		s.Done = append(s.Done, Reveal(a.Sentence()))
	}
	if len(c.Approvals) == 0 {
		kind := map[wetink.Level]string{wetink.Host: wetink.EvidenceTerminal}[t.Require.Level]
		will := wetink.Approval{Level: t.Require.Level, Evidence: wetink.Evidence{Kind: kind, By: "YOU"}}.Sentence()
		if t.Require.Level == wetink.Reauth {
			will = "YOU re-authenticated at THAT TIME for this exact change."
		}
		s.Will = template.HTML(template.HTMLEscapeString(will))
	}
}

// exact is what is sent, byte for byte.
func exact(op wetink.Op, told wetink.OpExplanation) template.HTML {
	call := told.Call
	if call == "" {
		call = strings.TrimSpace(op.Action + " " + op.Object)
	}
	out := "<p><code>" + Reveal(call) + "</code></p>"
	if len(op.Payload) > 0 {
		out += "<p><code>" + Reveal(string(op.Payload)) + "</code></p>"
	}
	return out
}

// Button is the text of the main button: what happens, never yes or OK.
func Button(v View, o *Options) (string, error) {
	t, err := v.Change.Terms()
	if err != nil {
		return "", err
	}
	s := headline(v.Change, t, o.orDefault())
	if t.Require.Level == wetink.Passkey {
		s += " with passkey"
	}
	return s, nil
}
