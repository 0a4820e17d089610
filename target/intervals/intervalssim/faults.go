package intervalssim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// faultKinds are the faults by name, with the requests that each concerns when none is named. See Fault.
var faultKinds = map[string]func(c *call) bool{
	"before_write":      isWrite,
	"drop_before_apply": isWrite,
	"apply_then_drop":   isWrite,
	"hold":              isWrite,
	"500_before":        isAny,
	"500_after":         isWrite,
	"500_after_n":       isBulkCreate,
	"bulk_short":        isBulkCreate,
	"bulk_reply_short":  isBulkCreate,
	"silent_ignore":     isWrite,
	"parse_drift":       hasText,
	"wrong_id":          isWrite,
	"stale_read":        isCalendarRead,
	"list_detail_404":   isEventRead,
	"slow":              isAny,
	"401":               isAny,
	"403":               isAny,
	"422":               isAny,
	"429":               isAny,
	"redirect":          isAny,
	"html":              isAny,
	"html_after":        isWrite,
	"truncated":         isAny,
}

func isAny(*call) bool { return true }

func isWrite(c *call) bool { return c.method != http.MethodGet && c.method != http.MethodHead }

func isBulkCreate(c *call) bool {
	return c.method == http.MethodPost && strings.HasSuffix(c.r.URL.Path, "/events/bulk")
}

func hasText(c *call) bool { return isWrite(c) && bytes.Contains(c.body, []byte(`"description"`)) }

func isCalendarRead(c *call) bool {
	return !isWrite(c) && strings.Contains(c.r.URL.Path, "/events")
}

func isEventRead(c *call) bool { return !isWrite(c) && strings.Contains(c.r.URL.Path, "/events/") }

// fault is one that is set.
type fault struct {
	spec, name, arg, method string
	from, seen, left        int
}

// strike is a fault that hits the request at hand.
type strike struct{ spec, name, arg string }

var faultForm = regexp.MustCompile(`^([a-z0-9_]+)(?::([^@#]*))?(?:@([A-Z]+))?(?:#([1-9][0-9]{0,5}))?$`)

// Fault spoils requests to come. The grammar of a fault is
//
//	name [":" argument] ["@" METHOD] ["#" n]
//
// It strikes `times` requests that it concerns, beginning with the n-th after it was set (1), and is then gone; times -1
// stays. Without @METHOD a fault concerns the requests in brackets.
//
//	before_write:ACT          an actor gets in first: swap_for_easy_run, pair, lock, delete, … or name=Other [writes]
//	drop_before_apply         the connection closes, nothing is done [writes]
//	apply_then_drop           it is done, and the connection closes [writes]
//	hold                      a write waits in flight until Act release or until its client is gone, and is done then [writes]
//	hold:release              the same, and only Act release lets it go, whatever becomes of its client
//	500_before, 500_after     Internal Server Error, with nothing done [all] or all done [writes]
//	500_after_n:N             a bulk create stores N events and answers 500
//	bulk_short:N              a bulk create leaves its last N events out, in the calendar and in the answer
//	bulk_reply_short:N        a bulk create stores all and answers without the last N
//	silent_ignore:FIELD       the field is not written, and the answer is 200 [writes]
//	parse_drift               the text is parsed otherwise: a repeat once less, else the first target lost [writes]
//	wrong_id                  the answer to a write shows another id [writes]
//	stale_read, stale_read:N  calendar reads, N of them, show what was before the last write [reads]
//	list_detail_404           an event that lists show is answered 404 by id [reads]
//	slow:MS                   the answer takes that long [all]
//	401, 403, 422, 429:SECS   refused, with nothing done [all]
//	redirect, redirect:STATUS 302 or STATUS to the same address with ?redirected=1, with nothing done [all]
//	html, html_after          a page for people: 200 with nothing done [all], 502 with all done [writes]
//	truncated                 the answer breaks off in the middle [all]; what was asked is done
//	clock:+16m                moves the clock, at once; not a strike
//	clear                     takes all faults away, at once
//
// times 0 is 1. A client that keeps its connections may see a closed one as a reason to send again by itself: that is a
// finding, and Requests shows it.
func (s *Sim) Fault(spec string, times int) error {
	m := faultForm.FindStringSubmatch(spec)
	if m == nil {
		return fmt.Errorf("fault %q: not of the form name:argument@METHOD#n", spec)
	}
	f := &fault{spec: spec, name: m[1], arg: m[2], method: m[3], from: 1, left: times}
	if m[4] != "" {
		f.from, _ = strconv.Atoi(m[4]) // digits
	}
	if times == 0 {
		f.left = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.name {
	case "clear":
		s.faults = nil
		return nil
	case "clock":
		by, err := time.ParseDuration(f.arg)
		if err != nil {
			return fmt.Errorf("fault %q: %w", spec, err)
		}
		s.offset += by
		return nil
	case "stale_read":
		if f.arg == "" {
			break
		}
		n, err := strconv.Atoi(f.arg)
		if err != nil || n < 1 {
			return fmt.Errorf("fault %q: needs a number, as in stale_read:2", spec)
		}
		f.left = n
	case "before_write", "silent_ignore":
		if f.arg == "" {
			return fmt.Errorf("fault %q: what? as in %s:name", spec, f.name)
		}
	case "slow", "429", "500_after_n", "bulk_short", "bulk_reply_short":
		if n, err := strconv.Atoi(f.arg); err != nil || n < 0 {
			return fmt.Errorf("fault %q: needs a number, as in %s:1", spec, f.name)
		}
	}
	if _, ok := faultKinds[f.name]; !ok {
		return fmt.Errorf("fault %q: no fault is called %s", spec, f.name)
	}
	s.faults = append(s.faults, f)
	return nil
}

// strike finds the faults that hit c and counts them down. mu is held.
func (s *Sim) strike(c *call) []strike {
	var hits []strike
	kept := s.faults[:0]
	for _, f := range s.faults {
		if f.concerns(c) {
			f.seen++
			if f.seen >= f.from {
				hits = append(hits, strike{f.spec, f.name, f.arg})
				if f.left > 0 {
					f.left--
				}
			}
		}
		if f.left != 0 {
			kept = append(kept, f)
		}
	}
	s.faults = kept
	return hits
}

func (f *fault) concerns(c *call) bool {
	if f.method == "" {
		return faultKinds[f.name](c)
	}
	if f.method != c.method {
		return false
	}
	switch f.name {
	case "drop_before_apply", "apply_then_drop", "html_after", "500_after":
		return true // a named method may be a read
	}
	return faultKinds[f.name](c)
}

func (c *call) struck(name string) *strike {
	for i, st := range c.strikes {
		if st.name == name {
			return &c.strikes[i]
		}
	}
	return nil
}

func (c *call) argument(name string, otherwise int) int {
	st := c.struck(name)
	if st == nil {
		return otherwise
	}
	n, err := strconv.Atoi(st.arg)
	if err != nil {
		return otherwise
	}
	return n
}

// wayThere is what happens before the service sees the request. false: it never does.
func (s *Sim) wayThere(c *call) bool {
	if ms := c.argument("slow", 0); ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.r.Context().Done():
			// The request was sent, so it arrives; only its client no longer waits.
		case <-s.closed:
		}
	}
	if c.struck("drop_before_apply") != nil {
		return false
	}
	if st := c.struck("hold"); st != nil && !s.hold(c, st.arg == "release") {
		return false
	}
	if st := c.struck("before_write"); st != nil {
		if err := s.getInFirst(c, st.arg); err != nil {
			panic(fmt.Sprintf("intervalssim: fault %s: %v", st.spec, err))
		}
	}
	return true
}

// hold keeps a write in flight. false: the simulator was closed, and the write never arrives.
func (s *Sim) hold(c *call, onlyRelease bool) bool {
	released := make(chan struct{})
	s.mu.Lock()
	s.held[c.request] = released
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.held, c.request)
		s.mu.Unlock()
	}()
	gone := c.r.Context().Done()
	if onlyRelease {
		gone = nil
	}
	select {
	case s.holding <- c.request:
	default: // nobody has ever asked, and the buffer is full
	}
	select {
	case <-released:
	case <-gone:
	case <-s.closed:
		return false
	}
	return true
}

// AwaitHeld returns the next write that a hold fault keeps, in the order in which they came.
func (s *Sim) AwaitHeld(ctx context.Context) (request int, err error) {
	select {
	case request = <-s.holding:
		return request, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for a held write: %w", ctx.Err())
	}
}

// getInFirst lets an actor change what the write is about to write.
func (s *Sim) getInFirst(c *call, act string) error {
	args := map[string]any{}
	var doomed []struct {
		ID int64 `json:"id"`
	}
	if id, err := strconv.ParseInt(lastSegment(c.r.URL.Path), 10, 32); err == nil {
		args["event_id"] = id
	} else if json.Unmarshal(c.body, &doomed) == nil && len(doomed) > 0 {
		args["event_id"] = doomed[0].ID // of a bulk delete
	}
	if name, value, ok := strings.Cut(act, "="); ok {
		act, args["set"] = "edit", map[string]any{name: value}
	}
	_, err := s.Act(act, args)
	if errors.Is(err, ErrNoEvent) {
		return nil // the write will find that out by itself
	}
	return err
}

func lastSegment(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// spoilBefore refuses the request in place of the service.
func spoilBefore(c *call, out *reply) bool {
	for _, st := range c.strikes {
		switch st.name {
		case "500_before":
			out.refuse(refuse(500, "Internal Server Error"))
		case "401":
			out.refuse(refuse(401, "Unauthorized"))
		case "403":
			out.refuse(refuse(403, "Access denied"))
		case "422":
			out.refuse(refuse(422, "Unprocessable"))
		case "429":
			out.tooMany(c.argument("429", 60))
		case "redirect":
			if c.r.URL.Query().Has("redirected") {
				continue
			}
			to := *c.r.URL
			q := to.Query()
			q.Set("redirected", "1")
			to.RawQuery = q.Encode()
			out.html(c.argument("redirect", http.StatusFound), "Moved")
			out.header.Set("Location", to.RequestURI())
		default:
			continue
		}
		return true
	}
	return false
}

var idForm = regexp.MustCompile(`"id":(\d+)`)

// wayBack spoils the answer to what was done.
func (s *Sim) wayBack(c *call, out *reply) {
	for _, st := range c.strikes {
		switch st.name {
		case "apply_then_drop":
			s.drop(c)
		case "500_after":
			out.refuse(refuse(500, "Internal Server Error"))
		case "html_after":
			out.html(http.StatusBadGateway, "Bad gateway")
		case "wrong_id":
			wrong := idForm.ReplaceAllFunc(out.body.Bytes(), func(m []byte) []byte {
				n, _ := strconv.ParseInt(string(m[len(`"id":`):]), 10, 64) // digits
				return fmt.Appendf(nil, `"id":%d`, n+100000)
			})
			out.body.Reset()
			out.body.Write(wrong)
		}
	}
}

// cut shortens a truncated answer; length is what it claims to have.
func (r *reply) cut() (cut bool, length int) {
	length = r.body.Len()
	if r.call.struck("truncated") == nil {
		return false, length
	}
	r.body.Truncate(length / 2)
	return true, length
}
