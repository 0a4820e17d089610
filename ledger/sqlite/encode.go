package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// header is the first line of what is stored: a value in JSON, and how long each piece of raw bytes behind it is.
// encoding/json would compact a RawMessage and refuse what is no JSON; but digests bind those very bytes.
type header[T any] struct {
	Value T     `json:"value"`
	Raw   []int `json:"raw,omitempty"`
}

func pack[T any](v T, raw ...[]byte) ([]byte, error) {
	h := header[T]{Value: v}
	size := 0
	for _, r := range raw {
		h.Raw = append(h.Raw, len(r))
		size += len(r)
	}
	b, err := json.Marshal(h) // which writes no line end
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b)+1+size)
	out = append(append(out, b...), '\n')
	for _, r := range raw {
		out = append(out, r...)
	}
	return out, nil
}

var errTorn = errors.New("its lengths do not fit")

func unpack[T any](b []byte, v *T) (raw [][]byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, errTorn
	}
	var h header[T]
	// What was written can be read again, however long; the shape is still held to one meaning.
	if err := strictjson.Decode(line, &h, strictjson.Limits{Size: 1 << 30}); err != nil {
		return nil, err
	}
	for _, n := range h.Raw {
		if n < 0 || n > len(rest) {
			return nil, errTorn
		}
		var piece []byte
		if n > 0 {
			piece = rest[:n:n]
		}
		raw, rest = append(raw, piece), rest[n:]
	}
	if len(rest) > 0 {
		return nil, errTorn
	}
	*v = h.Value
	return raw, nil
}

// request is wetink.Request without its Args. No scopes (the operator's own process) and an empty list of scopes
// (nothing is permitted) must not be mixed up.
type request struct {
	Tenant wetink.Tenant `json:"tenant"`
	Person wetink.Person `json:"person"`
	Client string        `json:"client"`
	Scopes *[]string     `json:"scopes"`
	Tool   string        `json:"tool"`
}

func packRequest(r wetink.Request) ([]byte, error) {
	s := request{Tenant: r.By.Tenant, Person: r.By.Person, Client: r.By.Client, Tool: r.Tool}
	if r.By.Scopes != nil {
		s.Scopes = &r.By.Scopes
	}
	return pack(s, r.Args)
}

func unpackRequest(b []byte) (r wetink.Request, err error) {
	var s request
	raw, err := unpack(b, &s)
	if err != nil || len(raw) != 1 {
		return r, errors.Join(err, errTorn)
	}
	r = wetink.Request{By: wetink.Principal{Tenant: s.Tenant, Person: s.Person, Client: s.Client}, Tool: s.Tool, Args: raw[0]}
	if s.Scopes != nil {
		r.By.Scopes = *s.Scopes
	}
	return r, nil
}

func unpackUndoes(s string) (list []wetink.Undone, err error) {
	if s != "" {
		err = strictjson.Decode([]byte(s), &list, strictjson.Limits{Size: 1 << 30})
	}
	return list, err
}

func packSnapshots(list []wetink.Snapshot) ([]byte, error) {
	bare := make([]wetink.Snapshot, len(list))
	bodies := make([][]byte, len(list))
	for i, s := range list {
		bodies[i], s.Body = s.Body, nil
		bare[i] = s
	}
	return pack(bare, bodies...)
}

func unpackSnapshots(b []byte) ([]wetink.Snapshot, error) {
	var list []wetink.Snapshot
	bodies, err := unpack(b, &list)
	if err != nil || len(bodies) != len(list) {
		return nil, errors.Join(err, errTorn)
	}
	for i := range list {
		list[i].Body = bodies[i]
	}
	return list, nil
}

// packStep never refuses: what happened has happened. A time that JSON cannot hold is left out.
func packStep(s wetink.Step) ([]byte, error) {
	raw, body := s.Receipt.Raw, s.Receipt.After.Body
	s.Receipt.Raw, s.Receipt.After.Body = nil, nil
	if _, err := s.Receipt.After.At.MarshalJSON(); err != nil {
		s.Receipt.After.At = time.Time{}
	}
	return pack(s, raw, body)
}

func unpackStep(b []byte) (s wetink.Step, err error) {
	raw, err := unpack(b, &s)
	if err != nil || len(raw) != 2 {
		return s, errors.Join(err, errTorn)
	}
	s.Receipt.Raw, s.Receipt.After.Body = raw[0], raw[1]
	return s, nil
}

// entry is a Move with all that can be encoded before the one writer's turn.
type entry struct {
	wetink.Move
	request, before []byte // of a birth, as is undoes
	undoes          string
	facts           []fact
	line            []byte // of the event, behind its seq and time, which only the writer knows
}

type fact struct {
	kind  int64
	bytes []byte
}

func encode(m wetink.Move) (e entry, err error) {
	e.Move = m
	e.Event = clean(m.Event)
	e.Event.Tenant, e.Event.Change, e.Event.Rev, e.Event.From, e.Event.To = m.Tenant, m.ID, m.Rev+1, m.From, m.To
	e.Event.Seq, e.Event.At = 0, time.Time{}
	var fixed bool
	if e.line, fixed = bytes.CutPrefix(e.Event.Bytes(), []byte(lineStart(0, time.Time{}))); !fixed {
		return e, fmt.Errorf("store %s: its event does not begin as every event does", m.ID)
	}
	if m.New != nil {
		if err = e.encodeNew(m.New); err != nil {
			return e, fmt.Errorf("store %s: %w", m.ID, err)
		}
	}
	add := func(kind int64, b []byte, problem error) {
		e.facts = append(e.facts, fact{kind, b})
		err = errors.Join(err, problem)
	}
	if a := m.Approval; a != nil {
		b, problem := pack(*a)
		ev := a.Evidence
		add(factApproval, b, errors.Join(problem, named(ev.Kind, string(ev.By), ev.Client, ev.Via)))
	}
	if m.Step != nil {
		b, problem := packStep(*m.Step)
		add(factStep, b, problem)
	}
	if t := m.Ticket; t != nil {
		b, problem := pack(*t)
		add(factTicket, b, errors.Join(problem, named(t.Verb, t.Delivered)))
	}
	if m.Why != "" {
		add(factWhy, []byte(m.Why), nil)
	}
	if err != nil {
		return e, fmt.Errorf("store %s: %w", m.ID, err)
	}
	return e, nil
}

func (e *entry) encodeNew(c *wetink.Change) error {
	by := c.Request.By
	err := named(string(c.ID), string(c.Tenant), c.Target, string(c.Account), string(c.Replaces),
		string(by.Tenant), string(by.Person), by.Client, c.Request.Tool)
	err = errors.Join(err, named(by.Scopes...))
	for _, u := range c.Undoes {
		err = errors.Join(err, named(string(u.Change)))
	}
	for _, s := range c.Before {
		err = errors.Join(err, named(s.Object, s.Version))
	}
	if err != nil {
		return err
	}
	if len(c.Undoes) > 0 {
		b, err := json.Marshal(c.Undoes)
		if err != nil {
			return err
		}
		e.undoes = string(b)
	}
	if e.request, err = packRequest(c.Request); err != nil {
		return err
	}
	e.before, err = packSnapshots(c.Before)
	return err
}

// lineStart is how Event.Bytes begins.
func lineStart(seq int64, at time.Time) string {
	return `{"v":1,"seq":` + strconv.FormatInt(seq, 10) + `,"at":"` + at.Format("2006-01-02T15:04:05.000Z") + `"`
}

// clean makes text that JSON can hold. Otherwise an Event would be written as one line and, once read, be another:
// Event.Bytes escapes what is no UTF-8, and does not escape the U+FFFD that a reader makes of it.
func clean(e wetink.Event) wetink.Event {
	e.Kind, e.By, e.Client = utf8Only(e.Kind), utf8Only(e.By), utf8Only(e.Client)
	facts := e.Facts
	e.Facts = nil
	for k, v := range facts {
		if e.Facts == nil {
			e.Facts = make(map[string]string, len(facts))
		}
		e.Facts[utf8Only(k)] = utf8Only(v)
	}
	return e
}

func utf8Only[T ~string](s T) T { return T(strings.ToValidUTF8(string(s), "\ufffd")) }

// named refuses what JSON would change without a word.
func named(names ...string) error {
	for _, s := range names {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%.100q is not UTF-8", s)
		}
	}
	return nil
}
