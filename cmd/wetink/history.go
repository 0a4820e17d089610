package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// HistoryCmd prints the ledger's events. With --json each line is the event's own frozen bytes.
type HistoryCmd struct {
	Output
	Since  string `help:"How far back: a duration such as 12h or 7d." default:"7d"`
	Follow bool   `help:"Go on, and print each event as it happens."`
}

// Run implements the command.
func (h *HistoryCmd) Run(ctx context.Context) error {
	since, err := days(h.Since)
	if err != nil {
		return usage{err}
	}
	s, err := open(h.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	now, err := s.ledger.Now(ctx)
	if err != nil {
		return err
	}
	after, err := s.before(ctx, now.Add(-since))
	if err != nil {
		return err
	}
	n := 0
	for e, err := range s.ledger.Events(ctx, after, h.Follow) {
		switch {
		case ctx.Err() != nil || errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		case e.Tenant != s.me.Tenant:
			continue
		}
		n++
		if s.json {
			if err := s.printLine(e.Bytes()); err != nil {
				return err
			}
			continue
		}
		s.say("%s\n", eventLine(e))
	}
	if n == 0 && !s.json {
		s.say("Nothing happened in the last %s.\n", h.Since)
	}
	return nil
}

// before returns the position of the last event earlier than t. The ledger's time never runs back, so it can be
// searched for, and a week of a long history does not read the years before it.
func (s *session) before(ctx context.Context, t time.Time) (int64, error) {
	early := func(seq int64) (bool, error) { // the event at seq is there, and earlier than t
		for e, err := range s.ledger.Events(ctx, seq-1, false) {
			return err == nil && e.At.Before(t), err
		}
		return false, nil
	}
	low, high := int64(0), int64(1) // what is at low is earlier; what is at high is not, once the first loop ended
	for {
		yes, err := early(high)
		if err != nil {
			return 0, err
		}
		if !yes {
			break
		}
		low, high = high, 2*high
	}
	for low+1 < high {
		mid := low + (high-low)/2
		yes, err := early(mid)
		if err != nil {
			return 0, err
		}
		if yes {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// days reads a duration that may also be a number of days, which time.ParseDuration has no word for.
func days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if d, err := strconv.Atoi(n); err == nil && d > 0 && d <= 36500 {
			return time.Duration(d) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--since is %q: want a duration such as 12h or 7d", s)
	}
	return d, nil
}

func eventLine(e wetink.Event) string {
	parts := []string{e.At.Local().Format(time.DateTime), e.Kind}
	if e.Change != "" {
		parts = append(parts, string(e.Change))
	}
	if e.From != e.To {
		parts = append(parts, fmt.Sprintf("%s → %s", orNew(e.From), e.To))
	}
	if e.Level > wetink.Auto {
		parts = append(parts, "level "+e.Level.String())
	}
	if e.By != "" {
		parts = append(parts, "by "+string(e.By))
	}
	if e.Client != "" {
		parts = append(parts, "through "+strconv.Quote(e.Client))
	}
	for _, k := range slices.Sorted(maps.Keys(e.Facts)) {
		parts = append(parts, k+"="+e.Facts[k])
	}
	return render.Line(strings.Join(parts, "  "))
}

func orNew(s wetink.Status) string {
	if s == "" {
		return "new"
	}
	return string(s)
}
