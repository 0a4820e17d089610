package intervalssim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is more than any client should send.
const maxBody = 16 << 20

// call is one API request on its way through.
type call struct {
	cause
	r       *http.Request
	body    []byte
	strikes []strike
	owner   *athlete        // whose credentials these are
	a       *athlete        // whom the path names
	oauth   int64           // application; 0: an API key
	scopes  map[string]bool // nil: everything
	routed  bool
}

// failure is an answer that is none of success.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return fmt.Sprintf("%d %s", f.status, f.message) }

func refuse(status int, message string) *failure { return &failure{status, message} }

// reply collects an answer, so that a fault can spoil it and nothing is sent while the state is locked.
type reply struct {
	call   *call
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *reply) Header() http.Header         { return r.header }
func (r *reply) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *reply) WriteHeader(status int)      { r.status = status }

func (r *reply) json(status int, v any) {
	r.body.Reset()
	r.header = http.Header{"Content-Type": {"application/json;charset=UTF-8"}}
	r.status = status
	e := json.NewEncoder(&r.body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a value of ours that JSON cannot hold
	}
}

func (r *reply) refuse(f *failure) {
	r.json(f.status, map[string]any{"status": f.status, "error": f.message})
}

func (r *reply) tooMany(seconds int) {
	r.json(http.StatusTooManyRequests, map[string]any{"status": 429, "error": "Too many requests", "retry_after_seconds": seconds})
	r.header.Set("Retry-After", strconv.Itoa(seconds))
}

func (r *reply) html(status int, title string) {
	r.body.Reset()
	r.header = http.Header{"Content-Type": {"text/html; charset=UTF-8"}}
	r.status = status
	r.body.WriteString("<!DOCTYPE html><html><head><title>" + title + "</title></head><body><h1>" + title + "</h1></body></html>\n")
}

// ServeHTTP answers one request. A fault that cuts the connection panics with http.ErrAbortHandler, as net/http wants it.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/_sim/"):
		s.serveAdmin(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/v1/"):
		s.serveAPI(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Sim) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	c := &call{r: r, body: body}
	s.arrive(c)
	out := &reply{call: c, header: http.Header{}}
	// From here to the answer, the order of faults is that of a network: the way there, the front, the service, the way back.
	if !s.wayThere(c) {
		s.drop(c)
	}
	if !frontRefuses(c, out) {
		s.answer(c, out)
	}
	s.wayBack(c, out)
	s.send(c, out, w)
}

// arrive gives the request its number and its faults.
func (s *Sim) arrive(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.request = len(s.requests) + 1
	c.method, c.path = c.r.Method, c.r.URL.RequestURI()
	c.strikes = s.strike(c)
	req := Request{Seq: c.request, Time: s.now().UTC(), Method: c.method, Path: c.path}
	for _, st := range c.strikes {
		req.Faults = append(req.Faults, st.spec)
	}
	s.requests = append(s.requests, req)
}

// answer runs the service. A write and its record in the journal are one step under the lock.
func (s *Sim) answer(c *call, out *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler.ServeHTTP(out, c.r)
	if c.routed {
		return
	}
	status := out.status
	if status != http.StatusMethodNotAllowed {
		status = http.StatusNotFound
	}
	// The framework's own shape, not the application's.
	out.json(status, map[string]any{"timestamp": s.now().UTC(), "status": status, "error": http.StatusText(status), "path": c.r.URL.Path})
}

func (s *Sim) send(c *call, out *reply, w http.ResponseWriter) {
	if c.r.Context().Err() != nil {
		s.drop(c) // the client is gone
	}
	cut, length := out.cut()
	for k, v := range out.header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	// Noted before the last byte leaves, so that a client that has its answer finds it in the journal.
	s.answered(c.request, out.status)
	w.WriteHeader(out.status)
	_, err := w.Write(out.body.Bytes())
	if cut {
		_ = http.NewResponseController(w).Flush() // half an answer, and not none
	}
	if err != nil || cut {
		s.drop(c)
	}
}

// drop closes the connection without an answer.
func (s *Sim) drop(c *call) {
	s.answered(c.request, 0)
	panic(http.ErrAbortHandler)
}

// handle makes a handler of an endpoint. area is the scope that an OAuth token needs for it.
func (s *Sim) handle(area string, endpoint func(*call) (any, *failure)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := w.(*reply)
		c := out.call
		c.r, c.routed = r, true
		if s.burst() {
			out.tooMany(1)
			return
		}
		if f := s.authenticate(c, area); f != nil {
			out.refuse(f)
			return
		}
		s.requests[c.request-1].Client = c.client
		limit, over := s.count(c.owner)
		if over != nil {
			out.tooMany(over.seconds)
			limit.set(out.header)
			return
		}
		before, effects := s.snapshots(), len(s.effects)
		v, f := endpoint(c)
		if len(s.effects) > effects {
			s.keep(before)
		}
		if f != nil {
			out.refuse(f)
		} else {
			out.json(http.StatusOK, v)
		}
		limit.set(out.header)
	}
}

// frontRefuses plays what stands before the service: it turns unknown programs away with a page for people.
func frontRefuses(c *call, out *reply) bool {
	if st := c.struck("html"); st != nil {
		out.html(http.StatusOK, "Checking your browser")
		return true
	}
	if spoilBefore(c, out) {
		return true
	}
	if ua := c.r.UserAgent(); ua == "" || strings.HasPrefix(ua, "Python-urllib") {
		out.html(http.StatusForbidden, "Access denied")
		return true
	}
	return false
}

// decode reads a body into v. Unknown members are not its business.
func (c *call) decode(v any) *failure {
	if len(c.body) == 0 {
		return refuse(400, "Required request body is missing")
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return refuse(400, "JSON parse error: "+err.Error())
	}
	return nil
}
