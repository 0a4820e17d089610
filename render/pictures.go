package render

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

// week is the calendar's strip: two rows, as it was and as it will be.
type week struct {
	Caption string
	Days    []weekDay
}

type weekDay struct {
	Name      string
	Hit       bool
	Was, Will []weekEntry
}

type weekEntry struct {
	Short, More template.HTML
	Old, New    bool
}

// maxDays that a strip shows: two weeks. What is further apart is told by its dates alone.
const maxDays = 14

// newWeek draws the weeks that the Ops touch; nil if they stand in no calendar, or too far apart.
func newWeek(e wetink.Explanation, t wetink.Terms) *week {
	var first, last time.Time
	for _, op := range e.Ops {
		for _, at := range []*wetink.Entry{op.Was, op.Will} {
			if at == nil {
				continue
			}
			d, err := time.Parse(time.DateOnly, at.Day)
			if err != nil {
				continue
			}
			if first.IsZero() || d.Before(first) {
				first = d
			}
			if d.After(last) {
				last = d
			}
		}
	}
	if first.IsZero() {
		return nil
	}
	first = first.AddDate(0, 0, -(int(first.Weekday())+6)%7) // Monday (ISO 8601)
	last = last.AddDate(0, 0, 6-(int(last.Weekday())+6)%7)
	n := int(last.Sub(first).Hours()/24) + 1
	if n > maxDays {
		return nil
	}
	w := &week{Caption: first.Format("2 January") + " to " + last.Format("2 January 2006"), Days: make([]weekDay, n)}
	if e.Zone != "" {
		w.Caption += ", times in " + Line(e.Zone)
	}
	day := func(name string) *weekDay {
		d, err := time.Parse(time.DateOnly, name)
		if i := int(d.Sub(first).Hours() / 24); err == nil && i >= 0 && i < n {
			return &w.Days[i]
		}
		return nil
	}
	for i := range w.Days {
		w.Days[i].Name = first.AddDate(0, 0, i).Format("Mon 2")
	}
	entry := func(a wetink.Entry) weekEntry {
		more := a.Start
		if a.Name != a.Short {
			more = strings.TrimSpace(a.Start + " " + a.Name)
		}
		return weekEntry{Short: Reveal(a.Short), More: Reveal(more)}
	}
	for _, a := range e.Around {
		if d := day(a.Day); d != nil {
			d.Was, d.Will = append(d.Was, entry(a)), append(d.Will, entry(a))
		}
	}
	for i, op := range e.Ops {
		if op.Was != nil {
			if d := day(op.Was.Day); d != nil {
				x := entry(*op.Was)
				x.Old, d.Hit = true, true
				d.Was = append(d.Was, x)
			}
		}
		if op.Will != nil && t.Ops[i].Action != "delete" {
			if d := day(op.Will.Day); d != nil {
				x := entry(*op.Will)
				x.New, d.Hit = true, true
				d.Will = append(d.Will, x)
			}
		}
	}
	return w
}

// shape is the picture of a workout.
type shape struct {
	Caption template.HTML
	Class   string // p-was or p-will
	Width   int    // seconds, of the longer of the two
	Path    string
	Says    string
	Scale   template.HTML
}

// height of the drawing in percent of threshold; what is above is drawn at the edge.
const top = 150

func shapes(pair [2]*wetink.Profile) (out []shape) {
	width := 1
	for _, p := range pair {
		if p != nil {
			width = max(width, int(math.Ceil(length(p))))
		}
	}
	for i, p := range pair {
		if p == nil || len(p.Segments) == 0 {
			continue
		}
		word, class := "was", "p-was"
		if i == 1 {
			word, class = "will be", "p-will"
		}
		caption := word + ": " + spell(time.Duration(math.Round(length(p)))*time.Second)
		if p.Load > 0 {
			caption += fmt.Sprintf(", load %d", p.Load)
			if p.Estimate {
				caption += " (our estimate)"
			}
		}
		out = append(out, shape{Reveal(caption), class, width, path(p), Line(word + ": " + p.Says), Reveal(p.Scale)})
	}
	return out
}

func length(p *wetink.Profile) (sum float64) {
	for _, s := range p.Segments {
		sum += s.Seconds
	}
	return sum
}

// path draws the segments from the ground up: numbers and letters of ours only.
func path(p *wetink.Profile) string {
	var b strings.Builder
	y := func(share float64) int { return top - int(math.Round(min(max(share, 0), top/100.0)*100)) }
	fmt.Fprintf(&b, "M0 %d", top)
	x := 0.0
	for _, s := range p.Segments {
		fmt.Fprintf(&b, "L%d %d", int(x), y(s.From))
		x += s.Seconds
		fmt.Fprintf(&b, "L%d %d", int(x), y(s.To))
	}
	fmt.Fprintf(&b, "V%dZ", top)
	return b.String()
}

// postSheet is a post as it will appear.
type postSheet struct {
	Author, Handle template.HTML
	Text           template.HTML
	Card           []template.HTML
	Images         []template.HTML
	Facts          []fact
}

func newPost(p *wetink.Post) *postSheet {
	if p == nil {
		return nil
	}
	s := &postSheet{Author: Reveal(p.Author), Handle: Reveal(p.Handle)}
	var b strings.Builder
	from := 0
	spans := slices.Clone(p.Spans)
	slices.SortFunc(spans, func(a, b wetink.Span) int { return a.From - b.From })
	write := func(text string) {
		for i, l := range strings.Split(text, "\n") {
			if i > 0 {
				b.WriteString("<br>")
			}
			b.WriteString(reveal(l))
		}
	}
	for _, sp := range spans {
		if sp.From < from || sp.To > len(p.Text) || sp.To <= sp.From {
			continue
		}
		write(p.Text[from:sp.From])
		b.WriteString("<ins>")
		write(p.Text[sp.From:sp.To])
		b.WriteString("</ins>")
		from = sp.To
		s.Facts = append(s.Facts, fact{strings.ToUpper(sp.Kind[:min(1, len(sp.Kind))]) + sp.Kind[min(1, len(sp.Kind)):], Reveal(p.Text[sp.From:sp.To]) + " goes to " + Reveal(sp.URL)})
	}
	write(p.Text[from:])
	s.Text = template.HTML("<bdi>" + b.String() + "</bdi>")
	if c := p.Card; c != nil {
		s.Card = []template.HTML{"link card unknown: " + Reveal(c.URL)}
		if c.Title != "" {
			s.Card = []template.HTML{Reveal(c.Title), Reveal(c.Description), Reveal(c.URL)}
		}
	}
	for _, i := range p.Images {
		alt := template.HTML("<b>no text for those who do not see it</b>")
		if i.Alt != "" {
			alt = Reveal(i.Alt)
		}
		s.Images = append(s.Images, template.HTML(fmt.Sprintf("%s, %d bytes, sha256 <code>%s</code>: ", Reveal(i.Type), i.Size, i.Digest))+alt)
	}
	add := func(label, v string) {
		if v != "" {
			s.Facts = append(s.Facts, fact{label, Reveal(v)})
		}
	}
	add("Who sees it", p.Audience)
	add("Warning", p.Warning)
	add("Reply to", p.Replies)
	add("Quotes", p.Quote)
	add("Language", strings.Join(p.Lang, ", "))
	add("Length", fmt.Sprintf("%d of %d %s, %d bytes", p.Count, p.Limit, p.Unit, p.Bytes))
	return s
}
