package render

import (
	"cmp"
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

//go:embed sheet.html stale.html
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
	Weeks   []*week
	Far     bool // the days are too far apart to draw
	Gone    *goneSheet
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
}

type fact struct {
	Label template.HTML
	Value template.HTML
}

// goneSheet are the objects that go, one a row, with all that goes with them.
type goneSheet struct {
	Noun string
	Rows []goneRow
}

type goneRow struct {
	Name, When, Outcome template.HTML
	Lost                []fact
}

// opSheet is one operation that leaves an object behind.
type opSheet struct {
	Heading   template.HTML
	New       bool // there was nothing before: a column of what was would say "none" in each row
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
	Label, Note template.HTML
	New         bool // every line is
	Lines       []diffLine
}

type diffLine struct {
	Sign rune
	Text template.HTML
	Note template.HTML // what becomes of the line
}

func newSheet(v View, t wetink.Terms, o Options) sheet {
	c := v.Change
	e := o.explain(t, c.Before)
	s := sheet{Title: template.HTML(template.HTMLEscapeString(headline(c, t, e, o))), Digest: c.Statement.Digest().String(), Where: where(t, e)}
	for _, f := range findings(c, t, e, o) {
		s.Risks = append(s.Risks, shown(f))
	}
	s.Weeks, s.Far = newWeeks(e, t)
	for i, op := range t.Ops { // what goes comes first
		if op.Action == "delete" {
			s.gone(v, t, i, e, o)
			s.Bytes = append(s.Bytes, exact(op, toldOf(e, i)))
		}
	}
	for i, op := range t.Ops {
		if op.Action != "delete" {
			s.Ops = append(s.Ops, newOp(v, t, i, e, o))
			s.Bytes = append(s.Bytes, exact(op, toldOf(e, i)))
		}
	}
	s.undo(t)
	s.Says = says(c)
	s.Client = Reveal(t.Client)
	asked := s.Client
	if t.Client == "" {
		s.Client, asked = "The agent", "nobody who gave a name"
	}
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
	for _, u := range t.Undoes {
		s.Facts = append(s.Facts, fact{"Undoes", Reveal(string(u.Change))})
	}
	if t.Replaces != "" {
		s.Facts = append(s.Facts, fact{"Replaces", Reveal(string(t.Replaces))})
	}
	s.Facts = append(s.Facts, fact{"Number", Reveal(string(t.Change))})
	s.proof(t, c)
	return s
}

// where is the outside system and whose account it is.
func where(t wetink.Terms, e wetink.Explanation) template.HTML {
	owner := Reveal(string(t.Account))
	if e.Owner != "" {
		owner = Reveal(e.Owner) + " (" + owner + ")"
	}
	return Reveal(t.Target) + ", account " + owner
}

func at(v View, t time.Time) template.HTML {
	t = t.In(v.Now.Location())
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, t.UTC().Format(time.RFC3339), template.HTMLEscapeString(t.Format("Mon 2 Jan 2006, 15:04 MST"))))
}

// labelOf is how a field is called: by the target, else as it is.
func labelOf(told wetink.OpExplanation, field string) template.HTML {
	if m := told.Fields[field]; m.Label != "" {
		return Reveal(m.Label)
	}
	return shown(fieldName(field))
}

func nameOfOp(told wetink.OpExplanation, op wetink.Op, before wetink.Snapshot) template.HTML {
	switch n := cmp.Or(told.Name, name(op, before)); {
	case n != "":
		return Reveal(n)
	case op.Object != "":
		return "number " + Reveal(op.Object)
	}
	return ""
}

func outcomeOf(c wetink.Change, i int) template.HTML {
	step, ok := c.StepOf(i)
	if !ok {
		return ""
	}
	s := template.HTML(template.HTMLEscapeString(outcomes[step.Outcome]))
	if s == "" {
		s = Reveal(string(step.Outcome))
	}
	s += " (" + Reveal(step.How) + ")"
	if step.Why != "" {
		s += ": " + Reveal(step.Why)
	}
	return s
}

func (s *sheet) gone(v View, t wetink.Terms, i int, e wetink.Explanation, o Options) {
	op, before, told := t.Ops[i], v.Change.Before[i], toldOf(e, i)
	noun := capital(nounOf(e, told, o))
	switch {
	case s.Gone == nil:
		s.Gone = &goneSheet{Noun: noun}
	case s.Gone.Noun != noun:
		s.Gone.Noun = "What"
	}
	r := goneRow{Name: nameOfOp(told, op, before), Outcome: outcomeOf(v.Change, i)}
	if told.Was != nil {
		r.When = "the whole day"
		if told.Was.Start != "" {
			r.When = Reveal(told.Was.Start)
		}
		if day, ok := localTime(told.Was.Day); ok {
			r.When = template.HTML(day) + ", " + r.When
		} else {
			r.When = Reveal(told.Was.Day) + ", " + r.When
		}
	}
	for _, f := range o.Diff(op, before) {
		label := labelOf(told, f.Field)
		if _, known := told.Fields[f.Field]; o.Explain != nil && !known {
			label += " (UNINSPECTABLE)"
		}
		r.Lost = append(r.Lost, fact{label, joined(meaning(f.Before, told.Fields[f.Field], e.Zone))})
	}
	s.Gone.Rows = append(s.Gone.Rows, r)
}

func newOp(v View, t wetink.Terms, i int, e wetink.Explanation, o Options) opSheet {
	op, before, told := t.Ops[i], v.Change.Before[i], toldOf(e, i)
	d := o.Diff(op, before)
	s := opSheet{Heading: nameOfOp(told, op, before), New: before.Absent, Outcome: outcomeOf(v.Change, i)}
	if len(t.Ops) > 1 {
		s.Heading = template.HTML(template.HTMLEscapeString(fmt.Sprintf("%d. %s ", i+1, capital(verbOf(told, op, d))))) + s.Heading
	}
	for _, f := range d {
		m, known := told.Fields[f.Field]
		if o.Explain != nil && !known {
			s.Rows = append(s.Rows, row{Label: labelOf(told, f.Field), Was: struck("del", value(f.Before)), Will: struck("ins", value(f.After)), Opaque: true})
			continue
		}
		note := template.HTML("")
		if m.Note != "" {
			note = Reveal(m.Note)
		}
		if lines, ok := prose(f, m.Kind); ok {
			added := !slices.ContainsFunc(lines, func(c change) bool { return c.sign != '+' })
			s.Texts = append(s.Texts, lineDiff{labelOf(told, f.Field), note, added, noted(lines, told.Shape[1])})
			continue
		}
		r := row{Label: labelOf(told, f.Field), Note: note}
		was, will := meaning(f.Before, m, e.Zone), meaning(f.After, m, e.Zone)
		if len(was) == 1 && len(will) == 1 && m.Kind == wetink.Plain {
			r.Was, r.Will = wordDiff(was[0], will[0])
		} else {
			r.Was, r.Will = struck("del", was), struck("ins", will)
		}
		s.Rows = append(s.Rows, r)
	}
	for _, b := range op.Blobs {
		s.Rows = append(s.Rows, row{Label: "File", Was: "none", Will: template.HTML(fmt.Sprintf("<ins>%s, %d bytes, sha256 <code>%s</code></ins>", Reveal(b.Type), b.Size, b.Digest))})
	}
	if len(op.Payload) > 0 {
		s.Unchanged = unchangedFields(before, d, told, e.Zone)
	}
	s.Shapes = shapes(told.Shape)
	s.Post = newPost(told.Post)
	return s
}

// joined are the lines of a value, one under the other.
func joined(lines []string) template.HTML {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br>\n")
		}
		b.WriteString(string(shown(l)))
	}
	return template.HTML(b.String())
}

// shown wraps a line that Line made already: its tokens become chips.
func shown(line string) template.HTML { return apart(chips(line)) }

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

// noted marks the lines that the target will ignore, and in a line that takes the place of another the words that differ.
func noted(list []change, will *wetink.Profile) []diffLine {
	out := make([]diffLine, 0, len(list))
	for _, l := range list {
		d := diffLine{Sign: rune(l.sign), Text: Reveal(l.line)}
		if will != nil && l.sign != '-' && slices.Contains(will.Ignored, strings.TrimSpace(l.line)) {
			d.Note = "ignored there"
		}
		out = append(out, d)
	}
	for i := 0; i < len(list); {
		gone := run(list[i:], '-')
		come := run(list[i+gone:], '+')
		for k := range min(gone, come) {
			if a, b, ok := wordMarks(Line(list[i+k].line), Line(list[i+gone+k].line), "b", "b"); ok {
				out[i+k].Text, out[i+gone+k].Text = a, b
			}
		}
		i += max(gone+come, 1)
	}
	return out
}

// run counts the changes of one sign that a list begins with.
func run(list []change, sign byte) (n int) {
	for n < len(list) && list[n].sign == sign {
		n++
	}
	return n
}

// wordDiff marks the words that go and come in two lines that Line made.
func wordDiff(a, b string) (was, will template.HTML) {
	if was, will, ok := wordMarks(a, b, "del", "ins"); ok {
		return was, will
	}
	return struck("del", []string{a}), struck("ins", []string{b})
}

// wordMarks does it with any two elements; ok is false where the lines have no word in common.
func wordMarks(a, b, tagA, tagB string) (was, will template.HTML, ok bool) {
	list := diffLines(splitWords(a), splitWords(b))
	if !slices.ContainsFunc(list, func(c change) bool { return c.sign == ' ' && strings.TrimSpace(c.line) != "" && c.line != `"` }) {
		return "", "", false
	}
	side := func(sign byte, tag string) template.HTML {
		var out strings.Builder
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
		return apart(out.String())
	}
	return side('-', tagA), side('+', tagB), true
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

func unchangedFields(before wetink.Snapshot, diff []wetink.FieldChange, told wetink.OpExplanation, zone string) (out []fact) {
	var was map[string]json.RawMessage
	if json.Unmarshal(before.Body, &was) != nil {
		return nil
	}
	for f, raw := range was {
		v := staying(raw, told.Fields[f], zone)
		if v != nil && !slices.ContainsFunc(diff, func(d wetink.FieldChange) bool { return d.Field == f }) {
			out = append(out, fact{labelOf(told, f), joined(v)})
		}
	}
	slices.SortFunc(out, func(a, b fact) int { return strings.Compare(string(a.Label), string(b.Label)) })
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

// says are the agent's own words, if it gave any.
func says(c wetink.Change) template.HTML {
	words, _ := Reason(c.Request.Args)
	if words == "" {
		return ""
	}
	lines := strings.Split(words, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return joined(lines)
}

// needsWords say what a level asks of a person.
var needsWords = map[wetink.Level]string{
	wetink.Auto: "nothing", wetink.Agent: "A1, the agent's token", wetink.Host: "A2, a press in the host or at a terminal",
	wetink.Session: "A3, this page", wetink.Reauth: "A4, your passphrase or sign-in again", wetink.Passkey: "A5, your passkey",
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
		will := wetink.Approval{Level: t.Require.Level, Evidence: wetink.Evidence{By: "YOU"}}.Sentence()
		switch t.Require.Level {
		case wetink.Host: // whose terminal it is tells the evidence, which is not there yet
			will = "Someone at a terminal of this computer approved this exact change."
		case wetink.Reauth:
			will = "YOU re-authenticated at THAT TIME for this exact change."
		case wetink.Auto, wetink.Agent, wetink.Session, wetink.Passkey:
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
	d := o.orDefault()
	s := headline(v.Change, t, d.explain(t, v.Change.Before), d)
	if t.Require.Level == wetink.Passkey {
		s += " with passkey"
	}
	return s, nil
}
