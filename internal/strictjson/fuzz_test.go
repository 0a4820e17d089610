package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func seed(f *testing.F) {
	for _, in := range []string{
		"null", " true ", "false", "9007199254740993", "1e400", "-0", "1.0", "0.1", "-12.5E-3", "01", "", "{", "]",
		`{"a":1,"a":2}`, `{"a":1,"A":2}`, `{"k":1,"\u212a":2}`, "{\"s\":1,\"\u017f\":2}", "{\"k\":1,\"\u212a\":2}",
		`"\ud800"`, `"\ud83d\ude00"`, `"\udc00\ud800"`, `{"a\u0000":1}`, "{\"a\x00\":1}", "\"\xff\"", "\ufeff{}", `{} {}`,
		`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]`, `[1, 2 ,{"x" : [ ] } ]`,
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,"Q":0}`,
		`{"id":1,"name":"\u003c<\/","tags":["x"],"sub":{"id":2,"any":{"x":[1e400,null]}},"raw": { "b" : 1 } }`,
		`{"load":1.5,"load32":0.1,"small":-128,"count":65535,"exact":1e400,"pair":[1,2],"by_name":{"x":1}}`,
		`{"digest":"00ff10a0","range":{"from":1,"to":2},"nonce":"AAEC/w==","at":"2026-03-01T07:00:00Z","indoor":null}`,
		`{"Name":"x"}`, `{"id":1.0}`, `{"load":9007199254740993}`, `{"nonce":"AA==\n"}`, `{"tags":null}`, "\"\u2028<>&\"",
	} {
		f.Add([]byte(in))
	}
}

// FuzzCheck holds everything accepted against encoding/json: two readers of one accepted text must agree.
func FuzzCheck(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		given := bytes.Clone(in)
		err := Check(in, Default)
		if !bytes.Equal(in, given) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			wellFormed(t, in, err)
			if !errors.Is(err, ErrSyntax) || !json.Valid(in) {
				return
			}
			// Of what is JSON to others, only these are no syntax to us.
			if !strings.Contains(strings.ToLower(string(in)), `\ud`) && utf8.Valid(in) && !strings.Contains(err.Error(), "in the member name") {
				t.Fatalf("refused without need: %v", err)
			}
			return
		}
		if !json.Valid(in) || !utf8.Valid(in) {
			t.Fatal("accepted what is not JSON in UTF-8")
		}
		tokens := json.NewDecoder(bytes.NewReader(in))
		tokens.UseNumber()
		noTwins(t, tokens)

		compact, err := Compact(in)
		if err != nil {
			t.Fatalf("Compact refuses what Check accepts: %v", err)
		}
		var std bytes.Buffer
		if err := json.Compact(&std, in); err != nil || !bytes.Equal(std.Bytes(), compact) {
			t.Fatalf("Compact is %s, json.Compact %s, %v", compact, std.Bytes(), err)
		}
		if again, err := Compact(compact); err != nil || !bytes.Equal(again, compact) {
			t.Fatalf("Compact of %s is %s, %v", compact, again, err)
		}
		want := stdAny(t, in)
		if got := stdAny(t, compact); !reflect.DeepEqual(got, want) {
			t.Fatalf("compact is %#v, input %#v", got, want)
		}
		var got any
		if err := Decode(in, &got, Default); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Decode gives %#v, %v; encoding/json %#v", got, err, want)
		}
		var raw json.RawMessage
		if err := Decode(in, &raw, Default); err != nil || !bytes.Equal(raw, bytes.Trim(in, " \t\r\n")) {
			t.Fatalf("RawMessage is %s, %v", raw, err)
		}
		members, err := Members(in)
		object, isObject := want.(map[string]any)
		if isObject != (err == nil) || len(members) != len(object) {
			t.Fatalf("Members gives %v, %v", members, err)
		}
		for _, m := range members {
			if !reflect.DeepEqual(stdAny(t, m.Value), object[m.Name]) {
				t.Fatalf("member %q is %s", m.Name, m.Value)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		var got, std event
		if err := Decode(in, &got, Default); err != nil {
			wellFormed(t, in, err)
			if !reflect.DeepEqual(got, event{}) {
				t.Fatalf("%v, and yet the value is %+v", err, got)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(in))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&std); err != nil || !reflect.DeepEqual(got, std) {
			t.Fatalf("Decode gives %+v; encoding/json %+v, %v", got, std, err)
		}
	})
}

func stdAny(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", b, err)
	}
	return v
}

func wellFormed(t *testing.T, in []byte, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	if e.Offset < 0 || e.Offset > len(in) || e.Reason == "" {
		t.Fatalf("offset %d of %d, reason %q", e.Offset, len(in), e.Reason)
	}
	if e.Cause != nil {
		return // another decoder's words
	}
	for _, c := range []byte(e.Error()) {
		if c < ' ' || c > '~' {
			t.Fatalf("the message is not plain ASCII: %q", e.Error())
		}
	}
}

// noTwins reads one value with encoding/json and compares the names of each object on its own.
func noTwins(t *testing.T, d *json.Decoder) {
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for token == json.Delim('{') && d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range names {
			if strings.EqualFold(other, name.(string)) {
				t.Fatalf("accepted %q beside %q", name, other)
			}
		}
		names = append(names, name.(string))
		noTwins(t, d)
	}
	for token == json.Delim('[') && d.More() {
		noTwins(t, d)
	}
	if _, ok := token.(json.Delim); ok {
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
}
