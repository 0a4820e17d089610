package strictjson

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type digest [4]byte

func (d *digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) {
		return errors.New("want 8 hex digits")
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// range_ decodes itself through Decode, as a type with two forms does.
type range_ struct{ From, To int }

func (r *range_) UnmarshalJSON(b []byte) error {
	var v struct {
		From int `json:"from"`
		To   int `json:"to"`
	}
	if err := Decode(b, &v, Default); err != nil {
		return err
	}
	*r = range_(v)
	return nil
}

type common struct {
	ID int64 `json:"id"`
}

type event struct {
	common
	Name    string             `json:"name"`
	Indoor  *bool              `json:"indoor,omitempty"`
	Load    float64            `json:"load"`
	Load32  float32            `json:"load32"`
	Small   int8               `json:"small"`
	Count   uint16             `json:"count"`
	Exact   json.Number        `json:"exact"`
	Tags    []string           `json:"tags"`
	Pair    [2]int             `json:"pair"`
	Raw     json.RawMessage    `json:"raw"`
	Any     any                `json:"any"`
	Sub     *event             `json:"sub"`
	ByName  map[string]float64 `json:"by_name"`
	Digest  digest             `json:"digest"`
	Range   range_             `json:"range"`
	Nonce   []byte             `json:"nonce"`
	At      time.Time          `json:"at"`
	Skipped int                `json:"-"`
	hidden  int
}

func TestDecodeFillsEveryKindOfField(t *testing.T) {
	const in = ` {
		"id": 9007199254740993, "name": "a\u00e9\ud83d\ude00\/\"\b\f\n\r\t\\<", "indoor": false, "load": 0.1, "load32": 0.1,
		"small": -128, "count": 65535, "exact": 1e400, "tags": ["x", ""], "pair": [1, 2],
		"raw":  {"b" : 1.0, "a" : "\u003c"} , "any": {"n": -0, "l": [null, true, false, "s", {}, []]},
		"sub": {"name": "inner"}, "by_name": {"x": -1.5e3, "": 0}, "digest": "00ff10a0",
		"range": {"from": 1, "to": 2}, "nonce": "AAEC/w==", "at": "2026-03-01T07:00:00Z"
	} `
	var got event
	if err := Decode([]byte(in), &got, Default); err != nil {
		t.Fatal(err)
	}
	indoor := false
	want := event{
		common: common{9007199254740993}, Name: "aé😀/\"\b\f\n\r\t\\<", Indoor: &indoor, Load: 0.1, Load32: 0.1,
		Small: -128, Count: 65535, Exact: "1e400", Tags: []string{"x", ""}, Pair: [2]int{1, 2},
		Raw: json.RawMessage(`{"b" : 1.0, "a" : "\u003c"}`),
		Any: map[string]any{"n": json.Number("-0"), "l": []any{nil, true, false, "s", map[string]any{}, []any{}}},
		Sub: &event{Name: "inner"}, ByName: map[string]float64{"x": -1500, "": 0}, Digest: digest{0, 255, 16, 160},
		Range: range_{1, 2}, Nonce: []byte{0, 1, 2, 255}, At: time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeNamesThePathAndTheReasonOfWhatItRefuses(t *testing.T) {
	for _, c := range []struct {
		in     string
		kind   error
		path   string
		reason string
	}{
		// Members that the struct does not have.
		{`{"nmae":"x"}`, ErrUnknownMember, "nmae", "unknown member; known here: id, name, indoor,"},
		{`{"Name":"x"}`, ErrUnknownMember, "Name", `write it "name"`},
		{"{\"di\u0131gest\":\"\"}", ErrUnknownMember, `["di\u0131gest"]`, "unknown member; known here"},
		{`{"\u017fmall":1}`, ErrUnknownMember, `["\u017fmall"]`, `write it "small"`},
		{"{\"\u212aind\":1}", ErrUnknownMember, `["\u212aind"]`, "known here"},
		{`{"sub":{"sub":{"ID":1}}}`, ErrUnknownMember, "sub.sub.ID", `write it "id"`},
		{`{"Skipped":1}`, ErrUnknownMember, "Skipped", "known here"},
		{`{"-":1}`, ErrUnknownMember, `["-"]`, "known here"},
		{`{"hidden":1}`, ErrUnknownMember, "hidden", "known here"},
		{`{"common":{"id":1}}`, ErrUnknownMember, "common", "known here"},
		{`{"range":{"from":1,"too":2}}`, ErrUnknownMember, "range.too", "known here: from, to"},
		// Values of another kind.
		{`[]`, ErrType, "", "want an object, got an array"},
		{`{"id":"1"}`, ErrType, "id", "want a whole number, got a string"},
		{`{"id":true}`, ErrType, "id", "want a whole number, got a boolean"},
		{`{"name":1}`, ErrType, "name", "want a string, got a number"},
		{`{"name":{}}`, ErrType, "name", "want a string, got an object"},
		{`{"indoor":"true"}`, ErrType, "indoor", "want true or false, got a string"},
		{`{"load":"1"}`, ErrType, "load", "want a number, got a string"},
		{`{"exact":"1"}`, ErrType, "exact", "want a number, got a string"},
		{`{"tags":"x"}`, ErrType, "tags", "want an array, got a string"},
		{`{"tags":["a","b",3]}`, ErrType, "tags[2]", "want a string, got a number"},
		{`{"pair":[1]}`, ErrType, "pair", "want 2 elements, got 1"},
		{`{"pair":[1,2,[3]]}`, ErrType, "pair", "want 2 elements, got 3"},
		{`{"pair":{}}`, ErrType, "pair", "want an array"},
		{`{"pair":[1,"2"]}`, ErrType, "pair[1]", "want a whole number"},
		{`{"by_name":[]}`, ErrType, "by_name", "want an object, got an array"},
		{`{"by_name":{"a b":"x"}}`, ErrType, `by_name["a b"]`, "want a number"},
		{`{"digest":"xyz"}`, ErrType, "digest", "want 8 hex digits"},
		{`{"digest":7}`, ErrType, "digest", "want a string, got a number"},
		{`{"nonce":"AAEC/w="}`, ErrType, "nonce", "base64"},
		{`{"nonce":"AAEC\n/w=="}`, ErrType, "nonce", "base64"},
		{`{"nonce":"AAEC/x=="}`, ErrType, "nonce", "base64"},
		{`{"nonce":[0]}`, ErrType, "nonce", "base64"},
		{`{"sub":{"range":{"from":[]}}}`, ErrType, "sub.range.from", "want a whole number, got an array"},
		// null where the Go value has no place for it.
		{`null`, ErrType, "", "want an object, got null"},
		{`{"id":null}`, ErrType, "id", "got null"},
		{`{"name":null}`, ErrType, "name", "got null"},
		{`{"load":null}`, ErrType, "load", "got null"},
		{`{"exact":null}`, ErrType, "exact", "got null"},
		{`{"tags":null}`, ErrType, "tags", "got null"},
		{`{"tags":[null]}`, ErrType, "tags[0]", "got null"},
		{`{"by_name":null}`, ErrType, "by_name", "got null"},
		{`{"by_name":{"x":null}}`, ErrType, "by_name.x", "got null"},
		{`{"digest":null}`, ErrType, "digest", "got null"},
		{`{"range":null}`, ErrType, "range", "got null"},
		{`{"nonce":null}`, ErrType, "nonce", "got null"},
		{`{"at":null}`, ErrType, "at", "got null"},
		// Numbers that the field cannot hold exactly, or that are written as if they were not whole.
		{`{"small":128}`, ErrRange, "small", "128 is not a whole number from -128 to 127"},
		{`{"small":-129}`, ErrRange, "small", "-129 is not"},
		{`{"count":-1}`, ErrRange, "count", "-1 is not a whole number from 0 to 65535"},
		{`{"count":65536}`, ErrRange, "count", "65536 is not"},
		{`{"id":9223372036854775808}`, ErrRange, "id", "from -9223372036854775808 to 9223372036854775807"},
		{`{"id":-0}`, ErrRange, "id", "-0 is not"},
		{`{"count":-0}`, ErrRange, "count", "-0 is not"},
		{`{"id":1.0}`, ErrType, "id", "1.0 is not a whole number without fraction and exponent"},
		{`{"id":1e2}`, ErrType, "id", "1e2 is not a whole number"},
		{`{"id":1E400}`, ErrType, "id", "1E400 is not a whole number"},
		{`{"load":1e400}`, ErrRange, "load", "1e400 does not fit a 64-bit"},
		{`{"load":-1e400}`, ErrRange, "load", "-1e400 does not fit"},
		{`{"load":1e-400}`, ErrRange, "load", "1e-400 does not fit"},
		{`{"load":1e-99999999999999999999}`, ErrRange, "load", "does not fit"},
		{`{"load":9007199254740993}`, ErrRange, "load", "9007199254740993 does not fit"},
		{`{"load":9007199254740993.0}`, ErrRange, "load", "does not fit"},
		{`{"load":0.1000000000000000055}`, ErrRange, "load", "does not fit"},
		{`{"load32":16777217}`, ErrRange, "load32", "16777217 does not fit a 32-bit"},
		{`{"load32":1e39}`, ErrRange, "load32", "1e39 does not fit"},
		{`{"sub":{"by_name":{"x":1e400}}}`, ErrRange, "sub.by_name.x", "1e400 does not fit"},
		// What Check refuses, Decode refuses.
		{`{"any":{"a":1,"A":2}}`, ErrDuplicate, "any.A", "differs only in case"},
		{`{"raw":[{"a":1,"a":2}]}`, ErrDuplicate, "raw[0].a", "is there twice"},
		{`{"name":"x"} {}`, ErrSyntax, "", "more data"},
	} {
		t.Run(c.in, func(t *testing.T) {
			var v event
			refused(t, Decode([]byte(c.in), &v, Default), c.kind, c.path, c.reason)
		})
	}
}

func TestDecodeTakesTheFieldNameWhereThereIsNoTag(t *testing.T) {
	var v struct {
		Name  string
		Empty struct{} `json:",omitzero"`
	}
	if err := Decode([]byte(`{"Name":"x","Empty":{}}`), &v, Default); err != nil || v.Name != "x" {
		t.Errorf("got %+v, %v", v, err)
	}
	refused(t, Decode([]byte(`{"name":"x"}`), &v, Default), ErrUnknownMember, "name", `write it "Name"`)
	refused(t, Decode([]byte(`{"Empty":{"x":1}}`), &v, Default), ErrUnknownMember, "Empty.x", "none are allowed here")
}

func TestDecodeKeepsEveryNumberThatFits(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "0.0e-999999999999999999999": 0, "0.1": 0.1, "1.50": 1.5, "100": 100, "1e2": 100, "0.001E3": 1,
		"0.10000000000000001":             0.1,     // as C's %.17g prints it
		"9007199254740992":                1 << 53, // 2^53
		"9007199254740992.000":            1 << 53,
		"18446744073709551616":            1 << 64,
		"1.7976931348623157e308":          math.MaxFloat64,
		"5e-324":                          math.SmallestNonzeroFloat64,
		"-0.00000000000000000000000012e2": -0.12e-22,
	} {
		var f float64
		if err := Decode([]byte(in), &f, Default); err != nil || f != want {
			t.Errorf("%s: %v, %v", in, f, err)
		}
	}
	var f float64
	if err := Decode([]byte("-0"), &f, Default); err != nil || !math.Signbit(f) {
		t.Errorf("-0 into float64: %v, %v", f, err)
	}
	var i int64
	if err := Decode([]byte("-9223372036854775808"), &i, Default); err != nil || i != math.MinInt64 {
		t.Errorf("least int64: %v, %v", i, err)
	}
	var u uint64
	if err := Decode([]byte("18446744073709551615"), &u, Default); err != nil || u != math.MaxUint64 {
		t.Errorf("greatest uint64: %v, %v", u, err)
	}
}

func TestDecodeKeepsNumbersOutsideGoTypesByteForByte(t *testing.T) {
	for _, number := range []string{"9007199254740993", "1e400", "-0", "1.0", "1E+02", "-1e-400"} {
		var v struct {
			Raw    json.RawMessage `json:"raw"`
			Number json.Number     `json:"number"`
			Any    any             `json:"any"`
		}
		in := strings.ReplaceAll(`{"raw":N,"number":N,"any":N}`, "N", number)
		if err := Decode([]byte(in), &v, Default); err != nil {
			t.Fatal(err)
		}
		if string(v.Raw) != number || string(v.Number) != number || v.Any != json.Number(number) {
			t.Errorf("%s became %+v", number, v)
		}
	}
}

func TestDecodeKeepsRawMessagesByteForByte(t *testing.T) {
	const raw = "{ \"z\":1.50,\n\t\"a\" : \"\\u003c<\\/&\u2028\" ,\"n\":[ -0 , 1E400,{ } ] }"
	in := []byte(`{"list":[` + raw + ` , null,"x"],"one": ` + raw + " }")
	var v struct {
		List []json.RawMessage `json:"list"`
		One  json.RawMessage   `json:"one"`
	}
	if err := Decode(in, &v, Default); err != nil {
		t.Fatal(err)
	}
	clear(in) // what was decoded must not share bytes with a buffer that the caller may use again
	if string(v.One) != raw || len(v.List) != 3 || string(v.List[0]) != raw || string(v.List[1]) != "null" || string(v.List[2]) != `"x"` {
		t.Errorf("got %q", v)
	}
	var whole json.RawMessage
	if err := Decode([]byte("\n [1, 2] "), &whole, Default); err != nil || string(whole) != "[1, 2]" {
		t.Errorf("got %q, %v", whole, err)
	}
}

func TestDecodeTakesNullOnlyWhereItHasAPlace(t *testing.T) {
	yes := true
	v := event{Indoor: &yes, Sub: &event{}, Any: 1, common: common{7}}
	if err := Decode([]byte(`{"indoor":null,"sub":null,"any":null,"raw":null}`), &v, Default); err != nil {
		t.Fatal(err)
	}
	if v.Indoor != nil || v.Sub != nil || v.Any != nil || string(v.Raw) != "null" || v.ID != 7 {
		t.Errorf("got %+v", v)
	}
}

func TestDecodeReplacesAndNeverWritesThroughWhatWasThere(t *testing.T) {
	sub, tags, byName := &event{Name: "old", Load: 1}, []string{"old", "old"}, map[string]float64{"old": 1}
	v := event{Sub: sub, Tags: tags, ByName: byName, Load: 5, hidden: 3}
	if err := Decode([]byte(`{"sub":{"name":"new"},"tags":["new"],"by_name":{"new":2}}`), &v, Default); err != nil {
		t.Fatal(err)
	}
	want := event{Sub: &event{Name: "new"}, Tags: []string{"new"}, ByName: map[string]float64{"new": 2}, Load: 5, hidden: 3}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v", v)
	}
	if sub.Name != "old" || tags[0] != "old" || len(byName) != 1 || byName["old"] != 1 {
		t.Errorf("written through: %+v %v %v", sub, tags, byName)
	}
}

func TestDecodeLeavesTheValueAloneOnAnError(t *testing.T) {
	before := event{Name: "old", Sub: &event{Name: "old"}, Pair: [2]int{1, 2}, ByName: map[string]float64{"old": 1}}
	v := before
	if err := Decode([]byte(`{"name":"new","pair":[3,4],"sub":{"name":"new"},"by_name":{"old":2},"id":"x"}`), &v, Default); err == nil {
		t.Fatal("accepted")
	}
	if !reflect.DeepEqual(v, before) || v.Sub.Name != "old" || v.ByName["old"] != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestDecodeErrorsCarryOffsetAndCause(t *testing.T) {
	var v struct {
		List []refusing `json:"list"`
		R    []range_   `json:"r"`
	}
	err := Decode([]byte(`{"list":["ok", "eof"]}`), &v, Default)
	refused(t, err, ErrType, "list[1]", io.ErrUnexpectedEOF.Error())
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cause is lost: %v", err)
	}
	var e *Error
	if errors.As(err, &e); e.Offset != 15 {
		t.Errorf("offset %d, want 15", e.Offset)
	}
	// An UnmarshalJSON that calls Decode: its path and offset count from the outside.
	err = Decode([]byte(`{"r":[{}, {"from":"x"}]}`), &v, Default)
	refused(t, err, ErrType, "r[1].from", "want a whole number")
	if errors.As(err, &e); e.Offset != 18 {
		t.Errorf("offset %d, want 18", e.Offset)
	}
}

type refusing struct{}

func (refusing) UnmarshalJSON(b []byte) error {
	if string(b) == `"eof"` {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func TestDecodeTellsMistakesInTheProgramFromMistakesInTheInput(t *testing.T) {
	type embedded struct {
		ID int `json:"id"`
	}
	for name, v := range map[string]any{
		"not a pointer": event{},
		"nil":           nil,
		"nil pointer":   (*event)(nil),
		"channel":       new(chan int),
		"interface":     new(io.Reader),
		"map keys":      new(map[int]string),
		"own map keys":  new(map[textKey]string),
		"string option": new(struct {
			N int `json:"n,string"`
		}),
		"two names that differ only in case": new(struct {
			A int `json:"a"`
			B int `json:"A"`
		}),
		"one name twice": new(struct {
			embedded
			ID string `json:"id"`
		}),
		"embedded pointer": new(struct{ *embedded }),
		"deep inside": new(struct {
			ID chan int `json:"id"`
		}),
		"embedded deep inside": new(struct{ wrongTag }),
	} {
		t.Run(name, func(t *testing.T) {
			err := Decode([]byte(`{"id":1}`), v, Default)
			var e *Error
			if err == nil || errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type wrongTag struct {
	N int `json:"n,string"`
}

type textKey string

func (*textKey) UnmarshalText([]byte) error { return nil }
