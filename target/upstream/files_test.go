package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/targettest"
	"github.com/wetink/wetink/wetinktest"
)

// files is an MCP server of files with tags, in memory. What it says and what it does can be parted by its switches.
type files struct {
	mu      sync.Mutex
	files   map[string]map[string]any
	effects int
	calls   []string
	rev     int // of each answer, where it says one

	down     bool                                     // nothing leaves this process
	lost     bool                                     // the answer of the next write is lost, after its effect
	failing  bool                                     // the next write answers an error, and did nothing
	half     bool                                     // the next write answers an error, after half of its work
	refusing int                                      // the next call is answered by this JSON-RPC error
	poison   string                                   // stands behind each text
	result   func(tool string, v any) json.RawMessage // how results are written; nil: JSON in a text
	defs     map[string]json.RawMessage
}

func newFiles() *files {
	return &files{files: map[string]map[string]any{
		"a": {"content": "old", "tags": []any{"x"}, "stars": json.Number("9007199254740993")},
		"b": {"content": "other", "tags": []any{}, "stars": json.Number("1")},
	}, defs: map[string]json.RawMessage{"read": json.RawMessage(`{"name":"read"}`), "write": json.RawMessage(`{"name":"write"}`), "remove": json.RawMessage(`{"name":"remove"}`)}}
}

type rpcError int

func (e rpcError) Error() string { return fmt.Sprint("error ", int(e)) }
func (e rpcError) RPCCode() int  { return int(e) }

func asText(_ string, v any) json.RawMessage {
	b, _ := json.Marshal(v)
	s, _ := json.Marshal(string(b))
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(s) + `}]}`)
}

func failedWith(text string) json.RawMessage {
	s, _ := json.Marshal(text)
	return json.RawMessage(`{"isError":true,"content":[{"type":"text","text":` + string(s) + `}]}`)
}

func (f *files) Tools(context.Context) (map[string]json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errors.New("connection refused")
	}
	return maps.Clone(f.defs), nil
}

func (f *files) Call(ctx context.Context, tool string, raw json.RawMessage) (json.RawMessage, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil || f.down {
		return nil, false, errors.Join(err, errors.New("connection refused"))
	}
	f.calls = append(f.calls, tool+" "+string(raw))
	if f.refusing != 0 {
		code := rpcError(f.refusing)
		f.refusing = 0
		return nil, true, code
	}
	var args map[string]any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, true, rpcError(-32602)
	}
	path, _ := args["path"].(string)
	file, there := f.files[path]
	answer := f.result
	if answer == nil {
		answer = asText
	}
	switch tool {
	case "read":
		if !there {
			return failedWith("not found: " + path + f.poison), true, nil
		}
		out := maps.Clone(file)
		if f.rev > 0 {
			f.rev++
			out["rev"] = f.rev
		}
		if f.poison != "" {
			out["content"] = fmt.Sprint(out["content"], f.poison)
		}
		return answer(tool, out), true, nil
	case "write":
		if f.failing {
			f.failing = false
			return failedWith("disk full" + f.poison), true, nil
		}
		if !there {
			file = map[string]any{"content": "", "tags": []any{}, "stars": json.Number("0")}
		}
		file = maps.Clone(file)
		for _, k := range []string{"content", "tags", "stars"} {
			if v, ok := args[k]; ok {
				file[k] = v
			}
		}
		f.files[path] = file
		if f.half {
			f.half = false
			delete(file, "content")
			f.effects++
			return failedWith("out of memory"), true, nil
		}
	case "remove":
		if !there {
			return failedWith("not found: " + path), true, nil
		}
		delete(f.files, path)
	default:
		return nil, true, rpcError(-32602)
	}
	f.effects++
	if f.lost {
		f.lost = false
		return nil, true, errors.New("connection reset")
	}
	return answer(tool, map[string]any{"ok": true, "path": path}), true, nil
}

func (f *files) edit(path, key string, v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := maps.Clone(f.files[path])
	file[key] = v
	f.files[path] = file
	f.effects++
}

func (f *files) get(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[path] == nil {
		return ""
	}
	b, _ := json.Marshal(f.files[path])
	return string(b)
}

const fileRules = `
write:
  read: {read: {path}}
  absent: not found
  undo: {write: {path, $restore: changed}}
  undo_create: {remove: {path}}
remove:
  read: {read: {path}}
  absent: not found
  undo: {write: {path, $restore: all}}
`

func rulesOf(t testing.TB, src string) Rules {
	t.Helper()
	r := strictyaml.NewReader([]byte(src))
	n := r.Document(1 << 20)
	list := ParseRules(r, n, []string{"read", "get_*"})
	if p := r.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	return list
}

func requestOf(tool, args string) wetink.Request {
	r, err := Call(wetinktest.By, tool, json.RawMessage(args))
	if err != nil {
		panic(err) // of a literal of a test
	}
	return r
}

func TestTargetKeepsTheContract(t *testing.T) {
	targettest.Run(t, func(t *testing.T) targettest.Case {
		f := newFiles()
		return targettest.Case{
			Target: New("files", f, rulesOf(t, fileRules), nil),
			Create: requestOf("write", `{"path":"new","content":"fresh"}`),
			Update: requestOf("write", `{"path":"a","content":"new"}`),
			Delete: requestOf("remove", `{"path":"b"}`),
			Bad:    requestOf("remove", `{"path":"nowhere"}`),
			Edit: func(object string) {
				f.edit(strings.TrimSuffix(strings.TrimPrefix(object, `read {"path":"`), `"}`), "stars", json.Number("5"))
			},
			Effects: func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.effects },
			Break:   func() { f.mu.Lock(); f.down = true; f.mu.Unlock() },
		}
	})
}
