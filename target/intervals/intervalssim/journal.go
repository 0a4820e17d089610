package intervalssim

import (
	"slices"
	"time"
)

// Effect is one change of the simulator's state. There is one for every state change and none without one, whatever the
// client was told.
type Effect struct {
	Seq     int       `json:"seq"` // from 1
	Time    time.Time `json:"time"`
	Request int       `json:"request,omitempty"` // the Request that caused it; 0: an Act
	Method  string    `json:"method"`            // ACT for an Act
	Path    string    `json:"path"`
	// Kind is create, update, delete, pair, unpair, activity, wellness, settings. An update that changed no field but
	// `updated` is an update all the same: a write arrived.
	Kind    string   `json:"kind"`
	EventID int64    `json:"event_id,omitempty"`
	Fields  []string `json:"fields,omitempty"` // changed, sorted; with `updated` only if nothing else did
	// Client is who: key:i900001 for an API key's owner, oauth:101 for an application, web_app, watch, coach or server for
	// an Act.
	Client string `json:"client"`
	// Answered tells whether an answer left for the client; Status is the one it was given. An answer may be a lie: 500
	// after the effect is answered.
	Answered bool `json:"answered"`
	Status   int  `json:"status,omitempty"`
}

// Request is one request under /api/v1.
type Request struct {
	Seq      int       `json:"seq"`
	Time     time.Time `json:"time"`
	Method   string    `json:"method"`
	Path     string    `json:"path"` // with its query
	Client   string    `json:"client,omitempty"`
	Status   int       `json:"status,omitempty"`
	Answered bool      `json:"answered"`
	Effects  int       `json:"effects"`
	Faults   []string  `json:"faults,omitempty"` // that struck
}

// Push is a workout sent to a connected service. It stays there when the event is moved or deleted.
type Push struct {
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	EventID int64     `json:"event_id"`
	Day     string    `json:"day"`
	Name    string    `json:"name"`
	Error   string    `json:"error,omitempty"`
}

// Journal is every effect so far, in order. Seeding is not in it.
func (s *Sim) Journal() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

// Requests is every API request so far, in the order of arrival.
func (s *Sim) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Outbox is every push to a device so far.
func (s *Sim) Outbox() []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.outbox)
}

// cause is who changes something, for the journal.
type cause struct {
	request int // 0 for an Act
	method  string
	path    string
	client  string
}

// record writes down an effect. mu is held, and it is the hold under which the state changed.
func (s *Sim) record(c cause, kind string, eventID int64, fields []string) {
	slices.Sort(fields)
	s.effects = append(s.effects, Effect{
		Seq: len(s.effects) + 1, Time: s.now().UTC(), Request: c.request, Method: c.method, Path: c.path,
		Kind: kind, EventID: eventID, Fields: fields, Client: c.client, Answered: c.request == 0,
	})
	if c.request > 0 {
		s.requests[c.request-1].Effects++
	}
}

// answered writes down what the client got. status 0 is nothing.
func (s *Sim) answered(request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.requests[request-1]
	r.Status, r.Answered = status, status != 0
	if r.Effects == 0 {
		return
	}
	for i := range s.effects {
		if s.effects[i].Request == request {
			s.effects[i].Status, s.effects[i].Answered = status, status != 0
		}
	}
}
