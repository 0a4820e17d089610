package gateway

import (
	"net/http"
	"sync"
)

// Bounds of what waits for a client that reads slowly. What a request is told on the way is dropped beyond them; its
// answer never is.
const (
	mostWaiting = 1024
	mostBytes   = 8 << 20
)

// stream is what a client over HTTP reads as the answer to one of its requests.
type stream struct {
	mu    sync.Mutex
	queue [][]byte
	size  int
	last  []byte
	over  bool
	wake  chan struct{}
}

func newStream() *stream { return &stream{wake: make(chan struct{}, 1)} }

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// push adds a message and reports whether the client will see it.
func (s *stream) push(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.queue) >= mostWaiting || s.size+len(b) > mostBytes {
		return false
	}
	s.queue = append(s.queue, b)
	s.size += len(b)
	s.poke()
	return true
}

// finish adds the answer.
func (s *stream) finish(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.last, s.over = b, true
	}
	s.poke()
}

// cut ends it without an answer.
func (s *stream) cut() { s.finish(nil) }

func (s *stream) take() (queue [][]byte, last []byte, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, s.queue, s.size = s.queue, nil, 0
	return queue, s.last, s.over
}

// serve writes it until its end and reports whether the client stayed. A single answer is plain JSON, unless the
// status of the HTTP response is to be sent at once.
func (s *stream) serve(w http.ResponseWriter, r *http.Request, status func(answer []byte) int, atOnce bool) bool {
	out := http.NewResponseController(w)
	open := false
	begin := func() {
		if !open {
			w.Header()["Content-Type"] = []string{"text/event-stream"}
			w.Header()["Cache-Control"] = []string{"no-store"}
			w.WriteHeader(http.StatusOK)
			open = true
		}
	}
	if atOnce {
		begin()
		out.Flush()
	}
	for {
		queue, last, over := s.take()
		for _, b := range queue {
			begin()
			if !writeEvent(w, b) {
				return false
			}
		}
		switch {
		case over && last == nil && !open:
			http.Error(w, "the session ended", http.StatusNotFound)
			return true
		case over && last == nil:
			return true
		case over && open:
			return writeEvent(w, last)
		case over:
			w.Header()["Content-Type"] = []string{"application/json"}
			w.WriteHeader(status(last))
			_, err := w.Write(last)
			return err == nil
		}
		if len(queue) > 0 {
			if out.Flush() != nil {
				return false
			}
		}
		select {
		case <-s.wake:
		case <-r.Context().Done():
			return false
		}
	}
}

func writeEvent(w http.ResponseWriter, b []byte) bool {
	b = oneLine(b)
	e := make([]byte, 0, len(b)+32)
	e = append(append(append(e, "event: message\ndata: "...), b...), '\n', '\n')
	_, err := w.Write(e)
	return err == nil
}
