package workout

import (
	"html"
	"regexp"
	"strconv"
	"strings"
)

var headerForm = regexp.MustCompile(`(?i)^(?:(.*)\s)?(\d{1,3})\s?x$`)

// Parse reads a description. It never fails: what is no step is prose, and what was meant as one and is none is in
// Discarded. It takes time in proportion to the text, of which it reads MaxText bytes.
func Parse(text string) Doc {
	p := &parser{}
	if len(text) > MaxText {
		p.doc.Discarded = append(p.doc.Discarded, Line{Reason: "the text is longer than " + strconv.Itoa(MaxText) + " bytes; the rest was not read"})
		text = text[:MaxText]
	}
	for line := range strings.Lines(text) {
		p.number++
		// The server stores < as &lt; so a description that was read back reads the same as the one that was sent.
		p.line(html.UnescapeString(strings.TrimRight(line, " \t\r\n")))
	}
	p.flush()
	return p.doc
}

type parser struct {
	doc    Doc
	number int
	block  block
}

// block is what stands between two blank lines: a title or a repeat header, and steps.
type block struct {
	warmup, cooldown bool
	reps             int
	header           Line
	steps            []Step
}

func (p *parser) line(line string) {
	bare := strings.TrimSpace(line)
	switch {
	case bare == "":
		if p.block.reps > 0 && len(p.block.steps) == 0 {
			p.misread(p.block.header, "a blank line between the repeat and its steps: they are not repeated")
		}
		p.flush()
	case strings.HasPrefix(bare, "-") && bare != line:
		p.discard(line, "a step starts at the beginning of the line; steps cannot be nested")
	case strings.HasPrefix(bare, "-"):
		p.step(line)
	default:
		p.text(bare)
	}
}

func (p *parser) text(line string) {
	title, reps := line, 0
	if m := headerForm.FindStringSubmatch(line); m != nil {
		title = strings.TrimSpace(m[1])
		reps, _ = strconv.Atoi(m[2]) // three digits at most
	}
	here := Line{Number: p.number, Text: line}
	if len(p.block.steps) > 0 {
		if reps > 0 {
			// Taken as a title in the middle of a block: its steps join the block before.
			p.misread(here, "no blank line before the repeat: its steps are not repeated")
			return
		}
		if p.block.reps > 0 {
			p.misread(here, "no blank line after the repeated steps: what follows may be repeated too")
		}
		p.flush()
	}
	switch title {
	case "Warmup":
		p.block.warmup = true
	case "Cooldown":
		p.block.cooldown = true
	}
	if reps > 0 {
		p.block.reps, p.block.header = reps, here
		return
	}
	p.doc.Prose++
}

func (p *parser) flush() {
	b := p.block
	p.block = block{}
	if len(b.steps) == 0 {
		return
	}
	if b.reps == 0 {
		p.doc.Steps = append(p.doc.Steps, b.steps...)
		return
	}
	repeat := Step{Reps: b.reps, Steps: b.steps}
	repeat.Seconds = totalSeconds([]Step{repeat})
	repeat.Metres = totalMetres([]Step{repeat})
	p.doc.Steps = append(p.doc.Steps, repeat)
}

func (p *parser) step(line string) {
	r := reader{words: strings.Fields(line[1:])}
	reason := r.read()
	for _, d := range r.dropped {
		p.doc.Dropped = append(p.doc.Dropped, Line{Number: p.number, Text: d.Text, Reason: d.Reason})
	}
	if reason != "" {
		p.discard(line, reason)
		return
	}
	r.step.Warmup, r.step.Cooldown = p.block.warmup, p.block.cooldown
	p.block.steps = append(p.block.steps, r.step)
}

func (p *parser) discard(line, reason string) {
	p.doc.Discarded = append(p.doc.Discarded, Line{Number: p.number, Text: line, Reason: reason})
}

func (p *parser) misread(l Line, reason string) {
	l.Reason = reason
	p.doc.Misread = append(p.doc.Misread, l)
}
