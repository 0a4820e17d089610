package upstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictyaml"
	"github.com/wetink/wetink/target/targettest"
	"github.com/wetink/wetink/target/upstream"
)

// rules of records and files: what a person writes in wetink.yaml.
const recordRules = `
put_record:
  read: {get_record: {id}}
  absent: not found
  undo: {put_record: {id, $restore: changed}}
  undo_create: {delete_record: {id}}
delete_record:
  read: {get_record: {id}}
  absent: not found
  undo: {put_record: {id, $restore: all}}
create_record:
  undo: {delete_record: {id: $result.record.id}}
`

var readers = []string{"get_*", "read_*", "try_*"}

func parse(t testing.TB, src string) upstream.Rules {
	t.Helper()
	rules, problems := parseOnly(src)
	for _, p := range problems {
		t.Errorf("%d:%d: %s", p.Line, p.Column, p.Says)
	}
	if t.Failed() {
		t.FailNow()
	}
	return rules
}

func parseOnly(src string) (upstream.Rules, []strictyaml.Problem) {
	r := strictyaml.NewReader([]byte(src))
	doc := r.Document(1 << 20)
	if doc == nil {
		return nil, r.Problems()
	}
	rules := upstream.ParseRules(r, doc, readers)
	return rules, r.Problems()
}

func request(tool, args string) wetink.Request {
	r, err := upstream.Call(wetink.Principal{}, tool, json.RawMessage(args))
	if err != nil {
		panic(err)
	}
	return r
}

func TestAGuardedServerKeepsTheContractOfATarget(t *testing.T) {
	for name, render := range map[string]func(any) json.RawMessage{"structured": structured, "text": jsonText} {
		t.Run(name, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T) targettest.Case {
				s := newServer()
				s.Render = render
				edits := 0
				return targettest.Case{
					Target: upstream.New("demo", s, parse(t, recordRules), nil),
					Create: request("put_record", `{"id":"c","title":"third <b>"}`),
					Update: request("put_record", `{"id":"a","title":"renamed"}`),
					Delete: request("delete_record", `{"id":"b"}`),
					Bad:    request("put_record", `["a"]`),
					Edit: func(object string) {
						_, args, _ := strings.Cut(object, " ")
						var of struct{ ID string }
						if err := json.Unmarshal([]byte(args), &of); err != nil {
							t.Fatal(err)
						}
						edits++
						s.set(of.ID, "note", fmt.Sprintf("edit %d", edits))
						s.mu.Lock()
						s.journal = append(s.journal, "somebody "+of.ID)
						s.mu.Unlock()
					},
					Effects: s.effects,
					Break:   func() { s.mu.Lock(); s.down = true; s.mu.Unlock() },
				}
			})
		})
	}
}

// typed is what a person has to type before they approve.
func typed(t wetink.Terms, before []wetink.Snapshot) string {
	for _, op := range upstream.Explain(t, before).Ops {
		if op.Type != "" {
			return op.Type
		}
	}
	return ""
}
