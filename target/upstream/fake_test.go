package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wetink/wetink/target/upstream"
)

// server is an MCP server in memory, with records and files. Its journal holds what really changed, whatever was answered:
// tests judge by it.
type server struct {
	// Hooks, called without a lock, may be nil.
	OnCall func(tool string, args map[string]any, do func() json.RawMessage) (json.RawMessage, bool, error)
	Render func(v any) json.RawMessage // nil: structured

	mu      sync.Mutex
	records map[string]map[string]any
	files   map[string]string
	defs    map[string]json.RawMessage
	down    bool
	next    int
	journal []string
	sent    []string // every call, as it came
}

func newServer() *server {
	return &server{
		records: map[string]map[string]any{
			"a": {"id": "a", "title": "first", "note": "kept", "size": json.Number("9007199254740993")},
			"b": {"id": "b", "title": "second", "note": "kept"},
		},
		files: map[string]string{"/notes/a.txt": "one\ntwo\n"},
		defs:  map[string]json.RawMessage{"put_record": json.RawMessage(`{"name":"put_record","description":"writes"}`)},
		next:  1,
	}
}

// rpcError is what a client makes of a JSON-RPC error.
type rpcError int

func (e rpcError) Error() string { return fmt.Sprintf("JSON-RPC error %d", int(e)) }
func (e rpcError) RPCCode() int  { return int(e) }

var errLost = errors.New("the connection broke")

func (s *server) Tools(context.Context) (map[string]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errLost
	}
	return maps.Clone(s.defs), nil
}

func (s *server) Call(ctx context.Context, tool string, raw json.RawMessage) (json.RawMessage, bool, error) {
	s.mu.Lock()
	down := s.down
	if !down && ctx.Err() == nil {
		s.sent = append(s.sent, tool+" "+string(raw))
	}
	s.mu.Unlock()
	if down {
		return nil, false, errLost
	}
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	args := map[string]any{}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, true, rpcError(-32602)
	}
	do := func() json.RawMessage { return s.do(tool, args) }
	if s.OnCall != nil {
		return s.OnCall(tool, args, do)
	}
	return do(), true, nil
}

func (s *server) do(tool string, args map[string]any) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := args["id"].(string)
	path, _ := args["path"].(string)
	effect := func(what string) { s.journal = append(s.journal, tool+" "+what) }
	switch tool {
	case "get_record":
		r, ok := s.records[id]
		if !ok {
			return failed("record " + id + " not found")
		}
		return s.render(r)
	case "put_record", "update_record", "undo", "tools/call":
		r := maps.Clone(s.records[id])
		if r == nil {
			if tool == "update_record" {
				return failed("record " + id + " not found")
			}
			r = map[string]any{}
		}
		if rev, ok := args["rev"]; ok && rev != r["rev"] {
			return failed(fmt.Sprintf("conflict: it has rev %v", r["rev"]))
		}
		for k, v := range args {
			if k != "rev" {
				r[k] = v
			}
		}
		if _, ok := r["rev"]; ok {
			s.next++
			r["rev"] = fmt.Sprintf("rev-%d", s.next)
		}
		s.records[id] = r
		effect(id)
		return s.render(r)
	case "create_record":
		s.next++
		id = fmt.Sprintf("r%d", s.next)
		r := maps.Clone(args)
		r["id"] = id
		s.records[id] = r
		effect(id)
		return s.render(map[string]any{"record": map[string]any{"id": id, "url": "https://example.org/records/" + id}})
	case "delete_record":
		if _, ok := s.records[id]; !ok {
			return failed("record " + id + " not found")
		}
		delete(s.records, id)
		effect(id)
		return s.render("deleted " + id)
	case "read_file":
		text, ok := s.files[path]
		if !ok {
			return failed("ENOENT: no such file")
		}
		return s.render(map[string]any{"content": text})
	case "write_file":
		s.files[path], _ = args["content"].(string)
		effect(path)
		return s.render("written")
	case "try_record":
		return s.render(fmt.Sprintf("would set %v", slices.Sorted(maps.Keys(args))))
	}
	return failed("there is no tool " + tool)
}

func (s *server) render(v any) json.RawMessage {
	if s.Render != nil {
		return s.Render(v)
	}
	return structured(v)
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// The three forms in which published servers answer.
func structured(v any) json.RawMessage {
	if text, ok := v.(string); ok {
		return plainText(text)
	}
	return encode(map[string]any{"content": []any{map[string]any{"type": "text", "text": "see structuredContent"}}, "structuredContent": v})
}

func jsonText(v any) json.RawMessage {
	if text, ok := v.(string); ok {
		return plainText(text)
	}
	return plainText(string(encode(v)))
}

func plainText(text string) json.RawMessage {
	return encode(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
}

func failed(text string) json.RawMessage {
	return encode(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": text}}})
}

func (s *server) set(id, field string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := maps.Clone(s.records[id])
	if r == nil {
		r = map[string]any{"id": id}
	}
	r[field] = v
	s.records[id] = r
}

func (s *server) get(id, field string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[id][field]
}

func (s *server) effects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.journal)
}

var _ upstream.Server = (*server)(nil)
