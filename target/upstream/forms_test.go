package upstream

import (
	"encoding/json"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictyaml"
)

func judged(t *testing.T, rule, args, before, now string) wetink.Verdict {
	t.Helper()
	r := strictyaml.NewReader([]byte("guard: " + rule))
	m, _ := r.Mapping(r.Document(1<<16), "the file", "guard")
	rules := ParseRules(r, m["guard"], []string{"get"})
	if p := r.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	raw, err := json.Marshal(payload{Name: "put", Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := New("x", nil, rules, nil).Judge(wetink.Op{Object: `get {"id":1}`, Payload: raw}, wetink.Snapshot{Body: json.RawMessage(before)}, wetink.Snapshot{Body: json.RawMessage(now)})
	return v
}

func TestNothingIsJudgedByWhatCannotBeCompared(t *testing.T) {
	const plain = `{put: {read: {get: {id}}}}`
	const bound = `{put: {read: {get: {id}}, bind: {sha: $before.sha}}}`
	for _, tc := range []struct {
		says, rule, args, before, now string
		want                          wetink.Verdict
	}{
		{"as it was asked for", plain, `{"id":1,"v":2}`, `{"v":1}`, `{"v":2}`, wetink.AsApproved},
		{"a bound version that did not move is no effect", bound, `{"id":1,"content":"new","sha":"a"}`, `{"sha":"a","text":"old"}`, `{"sha":"a","text":"old"}`, wetink.Untouched},
		{"a bound version alone proves nothing", bound, `{"id":1,"sha":"a"}`, `{"sha":"a"}`, `{"sha":"a"}`, wetink.Untouched},
		{"a bound version that moved is not missed", bound, `{"id":1,"v":2,"sha":"a"}`, `{"sha":"a","v":1}`, `{"sha":"b","v":2}`, wetink.AsApproved},
		{"an equal argument beside one that is not read is no effect", plain, `{"id":1,"v":1,"x":2}`, `{"v":1}`, `{"v":1}`, wetink.Untouched},
		{"a text that is read as an object", plain, `{"id":1,"v":2,"at":"8:00"}`, `{"v":1,"at":{"h":7}}`, `{"v":2,"at":{"h":8}}`, wetink.Opaque},
		{"another value in the same form", plain, `{"id":1,"v":2,"at":"8:00"}`, `{"v":1,"at":"7:00"}`, `{"v":2,"at":"9:00"}`, wetink.Otherwise},
	} {
		if got := judged(t, tc.rule, tc.args, tc.before, tc.now); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.says, got, tc.want)
		}
	}
}

func TestAnArgumentThatHoldsMoreThanTheNameIsShown(t *testing.T) {
	template := Template{Tool: "get", args: []argument{{"a", reference{root: "args", path: []string{"list", "0", "id"}}}, {"b", reference{root: "args", path: []string{"id"}}}}}
	if got := template.own(); len(got) != 1 || got[0] != "id" {
		t.Errorf("it says which object is meant by %q", got)
	}
}

func TestAnEmbeddedResourceIsTheFile(t *testing.T) {
	r, err := parseResult([]byte(`{"content":[{"type":"text","text":"{\"done\": true}"},{"type":"resource","resource":{"text":"the file"}}]}`))
	if err != nil || r.value() != "the file" || r.text() != `{"done": true}` {
		t.Errorf("value %v, text %q (%v)", r.value(), r.text(), err)
	}
}
