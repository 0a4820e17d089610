package render

import (
	"cmp"
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

// maxWeeks that are drawn. What is further apart is told by its dates alone.
const maxWeeks = 6

// newWeeks draws each week that an Op touches, Monday to Sunday (ISO 8601); none if they stand in no calendar. far says
// that there are too many.
func newWeeks(e wetink.Explanation, t wetink.Terms) (list []*week, far bool) {
	var mondays []string
	for _, op := range e.Ops {
		for _, at := range []*wetink.Entry{op.Was, op.Will} {
			if at == nil {
				continue
			}
			if m := monday(at.Day); m != "" && !slices.Contains(mondays, m) {
				mondays = append(mondays, m)
			}
		}
	}
	if len(mondays) > maxWeeks {
		return nil, true
	}
	slices.Sort(mondays)
	for i, m := range mondays {
		w := newWeek(m, e, t)
		if e.Hidden > 0 && i == len(mondays)-1 {
			w.Caption += fmt.Sprintf(". %d more stand there and are not drawn.", e.Hidden)
		}
		list = append(list, w)
	}
	return list, false
}

// monday of the day's week; "" of what is no day.
func monday(day string) string {
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return d.AddDate(0, 0, -(int(d.Weekday())+6)%7).Format(time.DateOnly)
}

func newWeek(from string, e wetink.Explanation, t wetink.Terms) *week {
	first, _ := time.Parse(time.DateOnly, from) // monday wrote it
	w := &week{Caption: first.Format("2 January") + " to " + first.AddDate(0, 0, 6).Format("2 January 2006"), Days: make([]weekDay, 7)}
	if e.Zone != "" {
		w.Caption += ", times in " + Line(e.Zone)
	}
	for i := range w.Days {
		w.Days[i].Name = first.AddDate(0, 0, i).Format("Mon 2")
	}
	day := func(name string) *weekDay {
		if monday(name) != from {
			return nil
		}
		d, _ := time.Parse(time.DateOnly, name)
		return &w.Days[int(d.Sub(first).Hours()/24)]
	}
	entry := func(a wetink.Entry) weekEntry {
		more := a.Start
		if a.Name != a.Short {
			more = strings.TrimSpace(a.Start + " " + a.Name)
		}
		x := weekEntry{Short: Reveal(a.Short)}
		if more != "" {
			x.More = Reveal(more)
		}
		return x
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
		x := shape{Caption: Reveal(caption), Class: class, Width: width, Path: path(p), Says: Line(word + ": " + p.Says)}
		if p.Scale != "" {
			x.Scale = Reveal(p.Scale)
		}
		if len(out) > 0 && out[0].Scale == x.Scale { // said once, under both
			out[0].Scale = ""
		}
		out = append(out, x)
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
	write := func(from, to int) {
		for {
			start, end := strings.LastIndexByte(p.Text[:from], '\n')+1, len(p.Text)
			if n := strings.IndexByte(p.Text[from:], '\n'); n >= 0 {
				end = from + n
			}
			b.WriteString(reveal(p.Text[start:end], from-start, min(to, end)-start))
			if end >= to {
				return
			}
			b.WriteByte('\n') // which .txt keeps
			from = end + 1
		}
	}
	for _, sp := range spans {
		if sp.From < from || sp.To > len(p.Text) || sp.To <= sp.From { // whatever it is on, it goes somewhere
			s.Facts = append(s.Facts, fact{Reveal(capital(sp.Kind)), "out of place in the text, goes to " + Reveal(sp.URL)})
			continue
		}
		write(from, sp.From)
		b.WriteString("<ins>")
		write(sp.From, sp.To)
		b.WriteString("</ins>")
		from = sp.To
		s.Facts = append(s.Facts, fact{Reveal(capital(sp.Kind)), Reveal(p.Text[sp.From:sp.To]) + " goes to " + Reveal(sp.URL)})
	}
	write(from, len(p.Text))
	s.Text = apart(b.String())
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
	add := func(label template.HTML, v string) {
		if v != "" {
			s.Facts = append(s.Facts, fact{label, Reveal(v)})
		}
	}
	add("Visible to", p.Audience)
	add("Warning", p.Warning)
	add("Reply to", p.Replies)
	add("Quotes", p.Quote)
	add("Language", strings.Join(p.Lang, ", "))
	add("Length", postLength(p))
	return s
}

func postLength(p *wetink.Post) string {
	n := fmt.Sprint(p.Count)
	if p.Limit > 0 {
		n += fmt.Sprintf(" of %d", p.Limit)
	}
	return fmt.Sprintf("%s %s, %d bytes", n, cmp.Or(p.Unit, "characters"), p.Bytes)
}
