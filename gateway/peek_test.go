package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestWhatAGuardAndAnUpstreamCouldReadDifferentlyIsRefused(t *testing.T) {
	call := func(members string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + members + `}}`
	}
	for _, tc := range []struct {
		in     string
		code   int
		reason string
		at     int
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, codeRequest, "batches are not accepted", 0},
		{` []`, codeRequest, "batches", 1},
		{``, codeParse, "empty", -1},
		{`"ping"`, codeRequest, "not a JSON object", 0},
		{`{"method":"a","method":"b"}`, codeRequest, `"method" stands twice`, 14},
		{`{"method":"a","m\u0065thod":"b"}`, codeRequest, `"method" stands twice`, 14},
		{`{"method":"a","Method":"b"}`, codeRequest, `"method" is written "Method"`, 14},
		{`{"METHOD":"a"}`, codeRequest, `"method" is written`, 1},
		{`{"id":1,"id":2,"method":"a"}`, codeRequest, `"id" stands twice`, 8},
		{`{"method":"a","param` + "\u017f" + `":{}}`, codeRequest, `"params" is written`, 14},
		{`{"method":"a","param\u017f":{}}`, codeRequest, `"params" is written`, 14},
		{`{"method":"a","params":{},"params":{}}`, codeRequest, `"params" stands twice`, 26},
		{call(`"name":"a","name":"b"`), codeRequest, `"name" stands twice`, 67},
		{call(`"name":"a","\u006eame":"b"`), codeRequest, `"name" stands twice`, 67},
		{call(`"name":"a","NAME":"b"`), codeRequest, `"name" is written`, 67},
		{call(`"name":"a","Arguments":{}`), codeRequest, `"arguments" is written`, 67},
		{call(`"name":"a","_meta":{},"_meta":{}`), codeRequest, `"_meta" stands twice`, -2},
		{call(`"name":"\ud800"`), codeRequest, "params.name is not a plain text", -2},
		{`{"method":"tools/\udfff"}`, codeRequest, "the method is not a plain text", -2},
		{`{"method":1}`, codeRequest, "the method is not a plain text", -2},
		{`{"method":""}`, codeRequest, "the method is not a plain text", -2},
		{`{"id":1}`, codeRequest, "no method, result or error", -1},
		{`{"id":1,"method":"a","result":{}}`, codeRequest, "a request and a response", -1},
		{`{"id":1,"result":{},"error":{}}`, codeRequest, "a result and an error", -1},
		{`{"result":{}}`, codeRequest, "the response has no id", -1},
		{`{"id":null,"method":"a"}`, codeRequest, "the id is neither", 6},
		{`{"id":true,"method":"a"}`, codeRequest, "the id is neither", -2},
		{`{"id":{},"method":"a"}`, codeRequest, "the id is neither", -2},
		{`{"id":1,"method":"a","params":[]}`, codeRequest, "params is not an object", -2},
		{"{\"id\":1,\"method\":\"a\xff\"}", codeParse, "not UTF-8", 19},
		{"{\"id\":1,\"method\":\"a\",\"x\":\"\xed\xa0\x80\"}", codeParse, "not UTF-8", 26},
		{`{"method":"a"} {}`, codeParse, "something follows", 15},
		{`{"method":"a",}`, codeParse, "a string is missing", -2},
		{`{"method":"a"`, codeParse, "too early", -2},
		{`{"method":"a","x":01}`, codeParse, "a comma is missing", -2},
		{`{"method":"a","x":+1}`, codeParse, "not a JSON value", -2},
		{`{"method":"a","x":NaN}`, codeParse, "not a JSON value", -2},
		{`{"method":"a","x":"\x41"}`, codeParse, "not an escape", -2},
		{"{\"method\":\"a\",\"x\":\"\n\"}", codeParse, "a control character", -2},
		{`{"method":"a","x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, codeRequest, "nested deeper than 64", -2},
		{`{"method":"a","params":{"x":` + strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63) + `}}`, codeRequest, "nested deeper than 64", -2},
	} {
		_, err := peek([]byte(tc.in), 64, true)
		var r *refusal
		if !errors.As(err, &r) {
			t.Errorf("%s: accepted", tc.in)
			continue
		}
		if r.code != tc.code || !strings.Contains(r.reason, tc.reason) || tc.at != -2 && r.at != tc.at {
			t.Errorf("%s: got %d %q at %d, want %d %q at %d", tc.in, r.code, r.reason, r.at, tc.code, tc.reason, tc.at)
		}
	}
}

func TestAMessageAtTheLimitsIsRead(t *testing.T) {
	in := `{"method":"a","x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`
	if _, err := peek([]byte(in), 64, true); err != nil {
		t.Error(err)
	}
	m, err := peek([]byte(" {\t\"params\" : { \"x\":{\"name\":\"no\",\"name\":\"no\"}, \"n\\u0061me\" : \"ec\\u0068o\" } , \"id\" : 1.0e3 , \"method\":\"tools\\/call\",\"other\":1,\"other\":2} \r"), 64, true)
	if err != nil {
		t.Fatal(err)
	}
	if m.method != "tools/call" || m.name != "echo" || string(m.id.of(m.raw)) != "1.0e3" || string(m.nameAt.of(m.raw)) != `"ec\u0068o"` {
		t.Errorf("read %+v", m)
	}
}

func TestEditsChangeNothingElse(t *testing.T) {
	b := []byte(`{ "a":1, "b" : {"c" :[1 , 2]} , "d":{} }`)
	at := func(name string) span { v, _ := member(b, whole(b), name); return v }
	_, all := member(b, whole(b), "a")
	_, last := member(b, whole(b), "d")
	for want, edits := range map[string][]edit{
		`{ "a":"x", "b" : {"c" :[1 , 2]} , "d":{} }`: {{at("a"), []byte(`"x"`)}},
		`{  "b" : {"c" :[1 , 2]} , "d":{} }`:         {without(b, all)},
		`{ "a":1, "b" : {"c" :[1 , 2]}  }`:           {without(b, last)},
		`{ "a":1, "b" : {"c" :[1 , 2]} , "d":{"k":1} }`: {
			into(b, at("d"), "k", "1")},
		`{ "a":3, "b" : {"k":1,"c" :[1 , 2]} , "d":4 }`: {{at("d"), []byte("4")}, {at("a"), []byte("3")}, into(b, at("b"), "k", "1")},
	} {
		if got := string(splice(b, edits...)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	r := newLines(strings.NewReader("a\n\n \r\n"+long+"\n"+long+"y\nb\r\nlast"), 200_000)
	for i, want := range []string{"a", long, "", "b\r", "last"} {
		b, err := r.next()
		if want == "" {
			if !errors.Is(err, errTooLong) {
				t.Errorf("line %d: got %v", i, err)
			}
			continue
		}
		if err != nil || string(b) != want {
			t.Errorf("line %d: %.20q, %v", i, b, err)
		}
	}
	if _, err := r.next(); err == nil {
		t.Error("there is no end")
	}
}

// What both accept is read the same; what the scanner refuses though it is JSON, it refuses for a reason of its own.
func FuzzPeek(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,2.5e-3,true,null,"\u00e9"]}}}`,
		`{"id":"x","result":{"content":[]}}`, `{"method":"a","params":{"name":1}}`, `{"m\u0065thod":"a"}`, `[1]`, `{"Method":"a"}`, ` {"method" : "a\/b"}`,
		`{"method":"\ud83d\ude00","x":"\ud800"}`, `{"method":"a","x":-0.0E+1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := peek(b, 64, true)
		var top map[string]json.RawMessage
		jsonErr := json.Unmarshal(b, &top)
		if err != nil {
			var r *refusal
			if !errors.As(err, &r) || r.reason == "" {
				t.Fatalf("refused without a reason: %v", err)
			}
			if r.code == codeParse && json.Valid(b) && !strings.Contains(r.reason, "UTF-8") {
				t.Fatalf("%q is JSON, refused: %v", b, err)
			}
			return
		}
		if jsonErr != nil {
			t.Fatalf("%q accepted, encoding/json: %v", b, jsonErr)
		}
		same := func(key string, at span) {
			value, there := top[key]
			if there != at.ok() || !bytes.Equal(bytes.TrimSpace(value), at.of(b)) {
				t.Fatalf("%q: %s is %q, read %q", b, key, value, at.of(b))
			}
		}
		same("id", m.id)
		same("params", m.params)
		same("result", m.result)
		same("error", m.err)
		var std struct {
			Method string
			Params struct{ Name any }
		}
		if json.Unmarshal(b, &std) != nil {
			return // params that are null or of another shape
		}
		if std.Method != m.method {
			t.Fatalf("%q: method %q, read %q", b, std.Method, m.method)
		}
		if name, ok := std.Params.Name.(string); ok && name != m.name || !ok && m.name != "" {
			t.Fatalf("%q: name %q, read %q", b, std.Params.Name, m.name)
		}
	})
}
