package render

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

var staleTemplate = template.Must(template.New("stale.html").ParseFS(templates, "stale.html"))

// Stale writes what a person sees of a Change whose objects moved: each field when they looked, as it is now, and as it was
// proposed, with what moved marked. now has one Snapshot an Op; what is missing at its end could not be read.
//
// It says that nothing was sent only where the Change proves it. The error is wetink.ErrTampered if the row and what was
// signed differ, or the writer's.
func Stale(w io.Writer, v View, now []wetink.Snapshot, o *Options) error {
	t, err := v.Change.Terms()
	if err != nil {
		return err
	}
	if v.Now.IsZero() {
		v.Now = time.Now()
	}
	return staleTemplate.Execute(w, newStale(v, t, now, o.orDefault()))
}

type staleSheet struct {
	Title  template.HTML
	Where  template.HTML
	Unsent bool
	Looked template.HTML // when
	Now    template.HTML
	Ops    []staleOp
}

type staleOp struct {
	Heading template.HTML
	Says    string // of the object as a whole; "": its fields tell
	Rows    []staleRow
	Same    []fact
}

type staleRow struct {
	Label              template.HTML
	Saw, Now, Proposed template.HTML
	Moved              bool
}

func newStale(v View, t wetink.Terms, now []wetink.Snapshot, o Options) staleSheet {
	c := v.Change
	e := o.explain(t, c.Before)
	s := staleSheet{Where: where(t, e), Now: at(v, v.Now), Looked: "when you looked", Unsent: unsent(c)}
	if !c.Created.IsZero() {
		s.Looked = at(v, c.Created)
	}
	moved := 0
	for i, op := range t.Ops {
		told := toldOf(e, i)
		x := staleOp{Heading: nameOfOp(told, op, c.Before[i])}
		if len(t.Ops) > 1 {
			x.Heading = template.HTML(template.HTMLEscapeString(fmt.Sprintf("%d. %s ", i+1, capital(verbOf(told, op, o.Diff(op, c.Before[i])))))) + x.Heading
		}
		switch {
		case i >= len(now):
			x.Says = "How it is now could not be read."
			moved++
		case c.Before[i].Absent && now[i].Absent:
			x.Says = "It is not there, as before."
		default:
			switch {
			case now[i].Absent:
				x.Says = "It is gone."
			case c.Before[i].Absent:
				x.Says = "It is there by now."
			}
			x.fields(op, c.Before[i], now[i], told, e.Zone, o)
			if x.Says != "" || slices.ContainsFunc(x.Rows, func(r staleRow) bool { return r.Moved }) {
				moved++
			}
		}
		s.Ops = append(s.Ops, x)
	}
	noun := e.Noun
	if noun == "" {
		noun = o.Noun
	}
	s.Title = template.HTML(template.HTMLEscapeString("Not done: " + count(moved, Line(noun)) + " changed meanwhile"))
	if moved == 0 {
		s.Title, s.Unsent = "Nothing changed meanwhile", false
	}
	return s
}

// unsent: no state but these proves it.
func unsent(c wetink.Change) bool {
	switch c.Status {
	case wetink.Pending, wetink.Approved, wetink.Expired, wetink.Rejected, wetink.Superseded:
		return true
	case wetink.Failed:
		return len(c.Steps) == 0
	case wetink.Applying, wetink.Applied, wetink.Partial, wetink.InDoubt:
	}
	return false
}

func (x *staleOp) fields(op wetink.Op, before, now wetink.Snapshot, told wetink.OpExplanation, zone string, o Options) {
	was, okWas := members(before)
	is, okIs := members(now)
	if !okWas || !okIs { // no objects: shown as they stand
		x.Rows = append(x.Rows, staleRow{Label: "(the whole)", Saw: joined(value(before.Body)), Now: joined(value(now.Body)),
			Proposed: joined(value(op.Payload)), Moved: string(before.Body) != string(now.Body)})
		return
	}
	proposed := map[string]wetink.FieldChange{}
	var names []string
	add := func(f string) {
		if !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	for _, f := range o.Diff(op, before) {
		proposed[f.Field] = f
		add(f.Field)
	}
	rest := len(names)
	for f := range was {
		add(f)
	}
	for f := range is {
		add(f)
	}
	slices.Sort(names[rest:])
	for _, f := range names {
		m := told.Fields[f]
		_, observed := is[f]
		if _, seen := was[f]; !seen && !observed { // a field that the target's Diff makes up of others
			continue
		}
		saw, present := meaning(was[f], m, zone), meaning(is[f], m, zone)
		p, changes := proposed[f]
		r := staleRow{Label: labelOf(told, f), Moved: !slices.Equal(value(was[f]), value(is[f])) && !now.Absent && !before.Absent}
		switch {
		case r.Moved:
			r.Saw, r.Now = sides(saw, present)
		case !changes && slices.Equal(saw, present):
			if len(saw) > 0 {
				x.Same = append(x.Same, fact{r.Label, joined(staying(was[f], m, zone))})
			}
			continue
		default:
			r.Saw, r.Now = none(saw), none(present)
		}
		r.Proposed = `<span class="dim">no change</span>`
		if changes {
			r.Proposed = struck("ins", meaning(p.After, m, zone))
		}
		x.Rows = append(x.Rows, r)
	}
}

func none(lines []string) template.HTML {
	if len(lines) == 0 {
		return "none"
	}
	return joined(lines)
}

func members(s wetink.Snapshot) (map[string]json.RawMessage, bool) {
	m := map[string]json.RawMessage{}
	if s.Absent || len(s.Body) == 0 {
		return m, true
	}
	return m, json.Unmarshal(s.Body, &m) == nil
}

// sides are two values with what differs marked: words in one line, whole lines in several.
func sides(a, b []string) (was, is template.HTML) {
	if len(a) == 1 && len(b) == 1 {
		if was, is, ok := wordMarks(a[0], b[0], "del", "mark"); ok {
			return was, is
		}
	}
	if len(a) == 0 || len(b) == 0 {
		return struck("del", a), struck("mark", b)
	}
	var w, n []string
	for _, l := range diffLines(a, b) {
		line := string(shown(l.line))
		switch l.sign {
		case '-':
			w = append(w, "<del>"+line+"</del>")
		case '+':
			n = append(n, "<mark>"+line+"</mark>")
		default:
			w, n = append(w, line), append(n, line)
		}
	}
	return template.HTML(strings.Join(w, "<br>\n")), template.HTML(strings.Join(n, "<br>\n"))
}
