package gateway

import (
	"net/http"
	"sync"
)

// Memory that the short way uses again.
var (
	buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}
	headers = sync.Pool{New: func() any { return http.Header{} }}
)

// hellos remembers how clients introduced themselves to an upstream whose sessions are its own. It forgets one where
// it is full; that one's clients are nameless then.
type hellos struct {
	mu sync.Mutex
	m  map[string][]byte
}

const mostHellos = 10_000

func (h *hellos) Store(session string, params []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = map[string][]byte{}
	}
	for old := range h.m {
		if len(h.m) < mostHellos {
			break
		}
		delete(h.m, old)
	}
	h.m[session] = params
}

func (h *hellos) Load(session string) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.m[session]
	return b, ok
}

func (h *hellos) Delete(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.m, session)
}
