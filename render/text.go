package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

// View is what is shown.
type View struct {
	Change wetink.Change
	Undo   *wetink.Change // the latest Change that undoes it, if any
	Now    time.Time      // its zone is the reader's; zero: time.Now()
}

// Options of a rendering. nil is the default.
type Options struct {
	// Diff explains an Op; nil: wetink.Diff. A wetink.Differ's method fits.
	Diff func(op wetink.Op, before wetink.Snapshot) []wetink.FieldChange
	// Explain says what the fields mean; nil: they are read as they stand. A wetink.Explainer's method fits.
	Explain func(t wetink.Terms, before []wetink.Snapshot) wetink.Explanation
	// Level is what a level is called where the reader sets it; nil: "level" and its name.
	Level  func(wetink.Level) string
	Noun   string // what one object is called, such as "event"; "": "object"
	All    bool   // show the fields that do not change, too
	Colour bool   // SGR sequences; without it no byte below 0x20 but line feeds is written
}

func (o *Options) orDefault() Options {
	d := Options{}
	if o != nil {
		d = *o
	}
	if d.Diff == nil {
		d.Diff = wetink.Diff
	}
	if d.Noun == "" {
		d.Noun = "object"
	}
	return d
}

func (o Options) explain(t wetink.Terms, before []wetink.Snapshot) wetink.Explanation {
	if o.Explain == nil {
		return wetink.Explanation{}
	}
	return o.Explain(t, before)
}

// Text writes a Change as a person reads it at a terminal: the outcome, where, every warning, every field that
// changes, how far it can be undone, what it needs, how long it is valid, its digest, and what became of it.
//
// The error is wetink.ErrTampered if the row and what was signed differ, or the writer's.
func Text(w io.Writer, v View, o *Options) error {
	t, err := v.Change.Terms()
	if err != nil {
		return err
	}
	if v.Now.IsZero() {
		v.Now = time.Now()
	}
	p := &page{o: o.orDefault()}
	p.e = p.o.explain(t, v.Change.Before)
	p.head(v, t)
	for i := range t.Ops {
		p.op(v.Change, t, i)
	}
	p.foot(v, t)
	_, err = io.WriteString(w, p.b.String())
	return err
}

// page collects lines.
type page struct {
	o Options
	e wetink.Explanation
	b strings.Builder
}

// SGR parameters.
const (
	plainText = ""
	bold      = "1"
	red       = "31"
	green     = "32"
	yellow    = "33"
)

func (p *page) line(style, format string, args ...any) {
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if p.o.Colour && style != plainText {
		s = "\x1b[" + style + "m" + s + "\x1b[0m"
	}
	p.b.WriteString(s)
	p.b.WriteByte('\n')
}

// row is a label of ours and what belongs to it.
func (p *page) row(label, format string, args ...any) {
	p.line(plainText, "  %-10s %s", label, fmt.Sprintf(format, args...))
}

func (p *page) head(v View, t wetink.Terms) {
	p.line(bold, "%s", headline(v.Change, t, p.e, p.o))
	where := fmt.Sprintf("in %s, account %s", quote(t.Target), quote(string(t.Account)))
	if p.e.Owner != "" {
		where += " of " + quote(p.e.Owner)
	}
	if t.Client != "" {
		where += ", asked for through " + quote(t.Client)
	}
	if t.Requester != "" {
		where += ", by " + quote(string(t.Requester))
	}
	p.line(plainText, "  %s", where)
	for _, f := range findings(v.Change, t, p.e, p.o) {
		p.line(yellow, "  ! %s", f)
	}
}

func (p *page) op(c wetink.Change, t wetink.Terms, i int) {
	op, before, told := t.Ops[i], c.Before[i], toldOf(p.e, i)
	diff := p.o.Diff(op, before)
	p.line(plainText, "")
	p.line(bold, "  %s", p.heading(t, i, before, diff, told))
	if told.Post != nil {
		p.post(told.Post)
	}
	for _, f := range diff {
		p.field(f, told)
	}
	for _, b := range op.Blobs {
		p.line(plainText, "    file of type %s, %d bytes, sha256 %s", quote(b.Type), b.Size, b.Digest)
	}
	for k, shape := range told.Shape {
		if shape != nil && (shape.Says != "" || shape.Load > 0) {
			p.line(plainText, "    %s %s", [2]string{"was:    ", "will be:"}[k], Line(profileSays(shape)))
		}
	}
	if len(op.Payload) > 0 { // without one all of the object goes
		p.unchanged(before, diff, told)
	}
	if s, ok := c.StepOf(i); ok {
		p.step(s)
	}
}

// profileSays is the shape of a workout in words.
func profileSays(s *wetink.Profile) string {
	out := s.Says
	if s.Load > 0 {
		out += fmt.Sprintf("; load %d", s.Load)
		if s.Estimate {
			out += " (our estimate)"
		}
	}
	return out
}

// heading names one operation: its number and verb where there are several, the object, its id.
func (p *page) heading(t wetink.Terms, i int, before wetink.Snapshot, diff []wetink.FieldChange, told wetink.OpExplanation) string {
	op, noun := t.Ops[i], nounOf(p.e, told, p.o)
	label, id := cmp.Or(told.Name, name(op, before)), ""
	switch {
	case label == "" && op.Object == "":
		label = "a new " + noun
	case label == "":
		label = noun + " " + quote(op.Object)
	default:
		label = quote(label)
		if op.Object != "" {
			id = fmt.Sprintf(" (%s %s)", noun, quote(op.Object))
		}
	}
	if len(t.Ops) == 1 {
		return label + id
	}
	return fmt.Sprintf("%d. %s %s%s", i+1, verbOf(told, op, diff), label, id)
}

// post shows a text for others as it will appear, each line behind a bar.
func (p *page) post(s *wetink.Post) {
	p.line(plainText, "    as it will appear, by %s %s", quote(s.Author), quote(s.Handle))
	if s.Warning != "" {
		p.line(plainText, "    behind the warning %s", quote(s.Warning))
	}
	for l := range strings.SplitSeq(s.Text, "\n") {
		p.line(plainText, "      | %s", Line(l))
	}
	for _, sp := range s.Spans {
		on := "out of place in the text"
		if sp.From >= 0 && sp.From < sp.To && sp.To <= len(s.Text) {
			on = quote(s.Text[sp.From:sp.To])
		}
		p.line(plainText, "    %s %s goes to %s", Line(sp.Kind), on, quote(sp.URL))
	}
	if c := s.Card; c != nil && c.Title == "" {
		p.line(plainText, "    link card unknown: %s", quote(c.URL))
	} else if c != nil {
		p.line(plainText, "    link card %s, %s, of %s", quote(c.Title), quote(c.Description), quote(c.URL))
	}
	for _, i := range s.Images {
		alt := "no text for those who do not see it"
		if i.Alt != "" {
			alt = quote(i.Alt)
		}
		p.line(plainText, "    image of type %s, %d bytes, sha256 %s: %s", quote(i.Type), i.Size, i.Digest, alt)
	}
	for _, f := range []struct{ label, v string }{{"visible to", s.Audience}, {"reply to", s.Replies}, {"quotes", s.Quote}, {"language", strings.Join(s.Lang, ", ")}, {"length", postLength(s)}} {
		if f.v != "" {
			p.line(plainText, "    %s %s", f.label, quote(f.v))
		}
	}
}

func (p *page) field(f wetink.FieldChange, told wetink.OpExplanation) {
	m, known := told.Fields[f.Field]
	label := fieldName(f.Field)
	if m.Label != "" {
		label = Line(m.Label)
	}
	if p.o.Explain != nil && !known {
		label += " (UNINSPECTABLE: nobody here can say what it does)"
	}
	if m.Note != "" {
		label += " (" + Line(m.Note) + ")"
	}
	a, b := meaning(f.Before, m, p.e.Zone), meaning(f.After, m, p.e.Zone)
	if len(a) == 0 && len(b) == 0 {
		p.line(plainText, "    %s: stays empty", label)
		return
	}
	p.line(plainText, "    %s", label)
	list := make([]change, 0, len(a)+len(b))
	if len(a) > 1 && len(b) > 1 {
		list = diffLines(a, b)
	} else {
		for _, l := range a {
			list = append(list, change{'-', l})
		}
		for _, l := range b {
			list = append(list, change{'+', l})
		}
	}
	for _, l := range list {
		style := map[byte]string{'-': red, '+': green}[l.sign]
		p.line(style, "      %c %s", l.sign, l.line)
		if w := told.Shape[1]; w != nil && m.Kind == wetink.Prose && l.sign != '-' && ignored(w, l.line) {
			p.line(yellow, "      ! the line above is ignored there")
		}
	}
}

// ignored reports whether a line that quoted made is one that the target will ignore.
func ignored(w *wetink.Profile, line string) bool {
	return slices.ContainsFunc(w.Ignored, func(s string) bool { return strings.Trim(line, " \"") == Line(s) })
}

var simpleName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func fieldName(s string) string {
	switch {
	case s == "":
		return "(the whole)"
	case simpleName.MatchString(s):
		return s
	}
	return quote(s)
}

// unchanged counts, or lists, the fields that were observed and do not change.
func (p *page) unchanged(before wetink.Snapshot, diff []wetink.FieldChange, told wetink.OpExplanation) {
	var was map[string]json.RawMessage
	if json.Unmarshal(before.Body, &was) != nil {
		return
	}
	var rest []string
	for f, v := range was {
		if value(v) != nil && !slices.ContainsFunc(diff, func(d wetink.FieldChange) bool { return d.Field == f }) {
			rest = append(rest, f)
		}
	}
	slices.Sort(rest)
	switch {
	case len(rest) == 0:
	case !p.o.All:
		p.line(plainText, "    %s unchanged", count(len(rest), "field"))
	default:
		for _, f := range rest {
			label, m := fieldName(f), told.Fields[f]
			if m.Label != "" {
				label = Line(m.Label)
			}
			p.line(plainText, "    %s, unchanged", label)
			for _, l := range staying(was[f], m, p.e.Zone) {
				p.line(plainText, "        %s", l)
			}
		}
	}
}

// outcomes in words.
var outcomes = map[wetink.Outcome]string{
	wetink.TookEffect: "took effect as approved",
	wetink.Differs:    "took effect, but not as approved",
	wetink.NoEffect:   "had no effect",
	wetink.Unknown:    "nobody knows yet whether it took effect",
}

func (p *page) step(s wetink.Step) {
	text, ok := outcomes[s.Outcome]
	if !ok {
		text = quote(string(s.Outcome))
	}
	style := yellow
	if s.Outcome == wetink.TookEffect {
		style = green
	}
	p.line(style, "    = %s (%s)", text, Line(s.How))
	if s.Why != "" {
		p.line(plainText, "      %s", Line(s.Why))
	}
}

func (p *page) foot(v View, t wetink.Terms) {
	c := v.Change
	p.line(plainText, "")
	p.undo(t)
	if len(t.Ops) > 1 {
		p.row("On failure", "%s", map[wetink.OnFailure]string{
			wetink.StopOnFailure: "it stops; what took effect stays",
			wetink.UndoOnFailure: "what took effect is undone, which this approval orders too",
		}[t.OnFailure])
	}
	if !t.NotBefore.IsZero() {
		p.row("Starts", "not before %s", p.time(v, t.NotBefore))
	}
	p.row("Needs", "%s", needs(t.Require, p.o.Level))
	switch c.Status {
	case wetink.Pending:
		if left := t.Expires.Sub(v.Now); left > 0 {
			p.row("Valid", "%s, until %s", Duration(left), p.time(v, t.Expires))
		} else {
			p.row("Valid", "no longer: it ended at %s", p.time(v, t.Expires))
		}
	case wetink.Approved:
		p.row("Valid", "it has to be started before %s", p.time(v, t.StartBy))
	case wetink.Applying, wetink.Applied, wetink.Failed, wetink.Partial, wetink.InDoubt,
		wetink.Expired, wetink.Rejected, wetink.Superseded: // its time is no longer of interest
	}
	p.row("Status", "%s", wetink.Shown(c, v.Undo))
	if c.Why != "" {
		p.row("", "%s", Line(c.Why))
	}
	for _, a := range c.Approvals {
		p.row("Approval", "%s", Line(a.Sentence()))
		p.row("", "recorded %s", p.time(v, a.At))
	}
	for _, u := range t.Undoes {
		p.row("Undoes", "%s", Line(string(u.Change)))
	}
	if t.Replaces != "" {
		p.row("Replaces", "%s", Line(string(t.Replaces)))
	}
	if v.Undo != nil {
		p.row("Undone by", "%s, which is %s", Line(string(v.Undo.ID)), v.Undo.Status)
	}
	p.row("Id", "%s", Line(string(c.ID)))
	sum := c.Statement.Digest().String()
	p.row("sha256", "%s…%s  %s", sum[:4], sum[len(sum)-4:], sum)
}

func (p *page) undo(t wetink.Terms) {
	until := ""
	if t.Undo.Until > 0 {
		until = ", for " + Duration(t.Undo.Until) + " after it was applied"
	}
	switch t.Undo.Extent {
	case wetink.FullUndo:
		p.row("Undo", "all of it%s", until)
	case wetink.PartialUndo:
		p.row("Undo", "a part of it%s", until)
	case wetink.NoUndo:
		p.row("Undo", "none: it cannot be undone")
	default:
		p.row("Undo", "%s", quote(string(t.Undo.Extent)))
	}
	for _, n := range t.Undo.Notes {
		p.row("", "%s", Line(n))
	}
}

// needs says in words what Require demands.
func needs(r wetink.Require, called func(wetink.Level) string) string {
	s := "level " + r.Level.String()
	if called != nil {
		s = called(r.Level)
	}
	if r.People > 1 {
		s += fmt.Sprintf(", from %d people", r.People)
	}
	if r.Other {
		s += ", other than who asked for it"
	}
	return s
}

func (p *page) time(v View, t time.Time) string {
	return t.In(v.Now.Location()).Format("Mon 2 Jan 2006 15:04 MST")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
