package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// dispatchSeveral decides where a request goes when there are several upstreams.
func (s *session) dispatchSeveral(x *exchange, m message) {
	switch m.method {
	case "initialize", "server/discover":
		go s.greetAll(x, m)
	case "ping":
		s.finish(x, resultLine(x.id, []byte("{}")))
	case "prompts/list":
		go s.listNamed(x, m)
	case "resources/list":
		go s.listURIs(x, m, "resources", "uri")
	case "resources/templates/list":
		go s.listURIs(x, m, "resourceTemplates", "uriTemplate")
	case "prompts/get":
		up, name, ok := s.g.route(m.name)
		if !ok {
			s.finish(x, errorLine(x.id, codeParams, fmt.Sprintf("unknown prompt %q", m.name), nil))
			return
		}
		s.forwardNamed(x, m, up, name)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		uri, _ := text(m.raw, m.uri)
		go s.forwardURI(x, m, uri)
	case "completion/complete":
		s.complete(x, m)
	case "logging/setLevel", "subscriptions/listen":
		go s.forwardAll(x, m)
	default:
		s.finish(x, errorLine(x.id, codeMethod, "no method of that name goes to several upstreams", nil))
	}
}

// greetWithin is how long an upstream may take to greet before the others go on without it.
const greetWithin = 20 * time.Second

// greetAll passes a greeting to every upstream and joins their answers. One that does not answer is left out; it is
// greeted when it is there.
func (s *session) greetAll(x *exchange, m message) {
	ctx, cancel := context.WithTimeout(s.ctx, greetWithin)
	defer cancel()
	answers := s.all(ctx, x, m)
	var results [][]byte
	var first answer
	for i, a := range answers {
		result, err := a.result()
		if err != nil {
			s.g.opt.Log.Warn("an upstream did not greet and is left out", "upstream", s.links[i].up.Name, "err", err)
			if a.err != nil && m.method == "initialize" {
				s.links[i].greetedWith(s.helloParams())
			}
			if first.err == nil && !first.m.err.ok() {
				first = a
			}
			continue
		}
		if m.method == "initialize" {
			s.links[i].greetedWith(s.helloParams())
		}
		results = append(results, result)
	}
	if len(results) == 0 || m.method == "server/discover" && len(results) < len(answers) && first.err == nil {
		// A client that hears of no discovery greets in the other way, which the upstreams that said so know.
		_, err := first.result()
		s.finish(x, failure(x.id, answer{err: err, sent: first.sent}))
		return
	}
	result := join(results)
	b := resultLine(x.id, result)
	if r, err := peek(b, len(b), false); err == nil {
		if edits := s.g.toolsMayChange(b, r.result); edits != nil {
			b = splice(b, edits...)
		}
	}
	s.finish(x, b)
}

// join makes one greeting of several: all that any of them can, in the oldest revision that one of them speaks.
func join(results [][]byte) []byte {
	type greeting struct {
		Version      string                     `json:"protocolVersion,omitempty"`
		Versions     []string                   `json:"supportedVersions,omitempty"`
		Capabilities map[string]json.RawMessage `json:"capabilities"`
		Server       map[string]string          `json:"serverInfo,omitempty"`
		Instructions string                     `json:"instructions,omitempty"`
		ResultType   string                     `json:"resultType,omitempty"`
		TTL          *int                       `json:"ttlMs,omitempty"`
		Scope        string                     `json:"cacheScope,omitempty"`
	}
	one := greeting{Capabilities: map[string]json.RawMessage{}}
	var told []string
	for i, r := range results {
		var g struct {
			greeting
			Server json.RawMessage `json:"serverInfo"`
		}
		if json.Unmarshal(r, &g) != nil {
			continue
		}
		if one.Version == "" || g.Version != "" && g.Version < one.Version {
			one.Version = g.Version
		}
		if i == 0 {
			one.Versions = g.Versions
		} else {
			var both []string
			for _, v := range one.Versions {
				for _, w := range g.Versions {
					if v == w {
						both = append(both, v)
					}
				}
			}
			one.Versions = both
		}
		for key, value := range g.Capabilities {
			if had, ok := one.Capabilities[key]; ok {
				value = merged([][]byte{had, value})
			}
			one.Capabilities[key] = value
		}
		if g.Instructions != "" {
			told = append(told, g.Instructions)
		}
		if g.ResultType != "" {
			none := 0
			one.ResultType, one.TTL, one.Scope = g.ResultType, &none, "private"
		}
	}
	one.Server = map[string]string{"name": "wetink", "version": "0"}
	one.Instructions = strings.Join(told, "\n\n")
	b, err := json.Marshal(one)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// all asks every upstream the same.
func (s *session) all(ctx context.Context, x *exchange, m message) []answer {
	answers := make([]answer, len(s.links))
	done := make(chan struct{}, len(s.links))
	for i, l := range s.links {
		go func() {
			answers[i] = l.request(ctx, m.method, m.name, x.version, m.params.of(m.raw))
			done <- struct{}{}
		}()
	}
	for range s.links {
		<-done
	}
	return answers
}

// forwardAll asks every upstream, and answers with the first that knows what it is.
func (s *session) forwardAll(x *exchange, m message) {
	if m.method == "subscriptions/listen" {
		// Its notifications name the request, so that it has to stay one of the client's at each of them.
		x.mu.Lock()
		x.awaits = len(s.links)
		x.mu.Unlock()
		for _, l := range s.links {
			l.forward(s.ctx, x, &m)
		}
		return
	}
	answers := s.all(s.ctx, x, m)
	last := answers[0]
	for _, a := range answers {
		if result, err := a.result(); err == nil {
			s.finish(x, resultLine(x.id, result))
			return
		}
		last = a
	}
	_, err := last.result()
	s.finish(x, failure(x.id, answer{err: err, sent: last.sent}))
}

// listNamed lists prompts under the names that clients are shown.
func (s *session) listNamed(x *exchange, m message) {
	s.listAll(x, m, "prompts", nil, func(l *link, send sender) (message, []json.RawMessage, error) {
		first, list, err := s.g.collect(s.ctx, "prompts", m.params.of(m.raw), send)
		for i, def := range list {
			at, _ := member(def, whole(def), "name")
			if name, err := text(def, at); err == nil {
				list[i] = splice(def, edit{at, quoted(s.g.named(l.up, name))})
			}
		}
		return first, list, err
	})
}

// listURIs lists resources, and notes which upstream has which. Of two that list one, the first is asked for it.
func (s *session) listURIs(x *exchange, m message, key, name string) {
	s.listAll(x, m, key, nil, func(l *link, send sender) (message, []json.RawMessage, error) {
		first, list, err := s.g.collect(s.ctx, key, m.params.of(m.raw), send)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, def := range list {
			at, _ := member(def, whole(def), name)
			uri, err := text(def, at)
			if had := s.owners[uri]; err != nil || len(s.owners) > mostItems && had == nil {
				continue
			}
			if had := s.owners[uri]; had == nil || l.up.i < had.up.i {
				s.owners[uri] = l
			}
		}
		return first, list, err
	})
}

// owner is the upstream that listed a URI, or a template that begins like it.
func (s *session) owner(uri string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.owners[uri]; l != nil {
		return l
	}
	var best *link
	most := 0
	for template, l := range s.owners {
		prefix, _, is := strings.Cut(template, "{")
		if is && len(prefix) > most && strings.HasPrefix(uri, prefix) {
			best, most = l, len(prefix)
		}
	}
	return best
}

// forwardURI forwards to the upstream that listed the URI. If none did, each lists once more, and then the request
// fails: asking around would tell one upstream what another one's resources are called.
func (s *session) forwardURI(x *exchange, m message, uri string) {
	l := s.owner(uri)
	if l == nil {
		s.learnURIs(x)
		l = s.owner(uri)
	}
	if l == nil {
		s.finish(x, errorLine(x.id, codeParams, fmt.Sprintf("no upstream lists the resource %q", uri), nil))
		return
	}
	l.forward(s.ctx, x, &m)
}

// learnURIs lists as a client would, for requests that stand for themselves and name what another one listed.
func (s *session) learnURIs(x *exchange) {
	params := []byte("{}")
	if x.client.meta != nil {
		params = append(append([]byte(`{"_meta":`), x.client.meta...), '}')
	}
	for _, list := range []struct{ method, key, name string }{
		{"resources/list", "resources", "uri"}, {"resources/templates/list", "resourceTemplates", "uriTemplate"},
	} {
		raw := requestLine(x.id, list.method, params)
		m, err := peek(raw, s.g.opt.Depth, true)
		if err != nil {
			return
		}
		probe := &exchange{s: s, id: x.id, version: x.version, ended: true} // nobody hears its answer
		s.listURIs(probe, m, list.key, list.name)
	}
}

// complete goes to the upstream of the prompt or resource that it names.
func (s *session) complete(x *exchange, m message) {
	ref, _ := member(m.raw, m.params, "ref")
	if at, _ := member(m.raw, ref, "name"); at.ok() {
		shown, _ := text(m.raw, at)
		if up, name, ok := s.g.route(shown); ok {
			s.links[up.i].forward(s.ctx, x, &m, edit{at, quoted(name)})
			return
		}
	}
	if at, _ := member(m.raw, ref, "uri"); at.ok() {
		uri, _ := text(m.raw, at)
		go s.forwardURI(x, m, uri)
		return
	}
	s.finish(x, errorLine(x.id, codeParams, "no upstream has what is to be completed", nil))
}
