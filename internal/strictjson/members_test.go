package strictjson

import (
	"bytes"
	"errors"
	"testing"
)

func TestCompactRemovesWhiteSpaceAndNothingElse(t *testing.T) {
	for in, want := range map[string]string{
		" { \"z\" : 1.50 ,\r\n\t\"a\":[ 9007199254740993 , 1e400,-0 ] } ": `{"z":1.50,"a":[9007199254740993,1e400,-0]}`,
		`{"b <>&\u003c" : " \" \\", "\/" : " \u2028 "}`:                   `{"b <>&\u003c":" \" \\","\/":" \u2028 "}`,
		"[ \"\u2028<>&\" , null , true , false ]":                         "[\"\u2028<>&\",null,true,false]",
		" 1 ":    "1",
		` "\\" `: `"\\"`,
		`{ }`:    `{}`,
	} {
		got, err := Compact([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Compact(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestCompactAndMembersRefuseWhatCheckRefuses(t *testing.T) {
	for _, in := range []string{``, `{"a":1,"A":2}`, `{} {}`, "\ufeff{}", `{"a":"\ud800"}`} {
		_, err := Compact([]byte(in))
		_, err2 := Members([]byte(in))
		var e *Error
		if !errors.As(err, &e) || !errors.As(err2, &e) {
			t.Errorf("%q: Compact %v, Members %v", in, err, err2)
		}
	}
}

func TestMembersKeepOrderAndExactBytes(t *testing.T) {
	in := []byte(` {"z" : {"b":1, "a":[2 ]} , "\u0061":"\u003c" ,"m":-0,"":null , "e":[ ]} `)
	got, err := Members(in)
	if err != nil {
		t.Fatal(err)
	}
	clear(in) // the values must not share bytes with a buffer that the caller may use again
	want := []struct{ name, value string }{{"z", `{"b":1, "a":[2 ]}`}, {"a", `"\u003c"`}, {"m", "-0"}, {"", "null"}, {"e", "[ ]"}}
	if len(got) != len(want) {
		t.Fatalf("got %d members, want %d", len(got), len(want))
	}
	for i, m := range got {
		if m.Name != want[i].name || string(m.Value) != want[i].value {
			t.Errorf("member %d is %q: %s", i, m.Name, m.Value)
		}
	}
	second := bytes.Clone(got[1].Value)
	_ = append(got[0].Value, bytes.Repeat([]byte("x"), 30)...)
	if !bytes.Equal(got[1].Value, second) {
		t.Error("appending to one value overwrote the next")
	}
}

func TestMembersRefuseWhatIsNotAnObject(t *testing.T) {
	for in, got := range map[string]string{`[]`: "an array", ` "x"`: "a string", `1`: "a number", `null`: "null", `true`: "a boolean"} {
		_, err := Members([]byte(in))
		refused(t, err, ErrType, "", "want an object, got "+got)
	}
	if m, err := Members([]byte(` { } `)); len(m) != 0 || err != nil {
		t.Errorf("empty object: %v, %v", m, err)
	}
}
