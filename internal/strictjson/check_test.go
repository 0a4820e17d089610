package strictjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// refused asserts kind, path and a part of the reason of an error.
func refused(t *testing.T, err error, kind error, path, reason string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if !errors.Is(err, kind) {
		t.Errorf("kind is %v, want %v (%v)", e.Kind, kind, err)
	}
	if e.Path != path {
		t.Errorf("path is %q, want %q (%v)", e.Path, path, err)
	}
	if !strings.Contains(e.Reason, reason) {
		t.Errorf("reason is %q, want it to contain %q", e.Reason, reason)
	}
}

func TestCheckAcceptsEveryNumberThatJSONCanWrite(t *testing.T) {
	for _, in := range []string{
		"9007199254740993", "1e400", "-0", "-0.0", "0e-0", "1E+2", "0.10", "-1e-400", "9007199254740993.0",
	} {
		if err := Check([]byte(in), Default); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestCheckRefusesDuplicateKeysAtAnyLevel(t *testing.T) {
	for _, c := range []struct{ in, path string }{
		{`{"a":1,"a":1}`, "a"},
		{`{"a":1,"b":{"c":[{"d":1,"e":2,"d":3}]}}`, "b.c[0].d"},
		{`{"a":1,"\u0061":2}`, "a"},
		{`{"é":1,"\u00e9":2}`, `["\u00e9"]`},
		{`{"😀":1,"\ud83d\ude00":2}`, `["\U0001f600"]`},
		{`{"":1,"":2}`, `[""]`},
		{`[{},{"a/b":1,"a\/b":2}]`, `[1]["a/b"]`},
	} {
		refused(t, Check([]byte(c.in), Default), ErrDuplicate, c.path, "is there twice")
	}
}

func TestCheckRefusesKeysThatDifferOnlyInCase(t *testing.T) {
	for _, c := range []struct{ in, path, first string }{
		{`{"method":1,"Method":2}`, "Method", `"method"`},
		{`{"x":{"ID":1,"id":2}}`, "x.id", `"ID"`},
		{`{"status":1,"ſtatus":2}`, `["\u017ftatus"]`, `"status"`},
		{`{"ſtatus":1,"STATUS":2}`, "STATUS", `"\u017ftatus"`},
		{`{"status":1,"\u017ftatus":2}`, `["\u017ftatus"]`, `"status"`},
		{"{\"token\":1,\"to\u212aen\":2}", `["to\u212aen"]`, `"token"`},
		{`{"token":1,"to\u212Aen":2}`, `["to\u212aen"]`, `"token"`},
		{`{"Σ":1,"ς":2}`, `["\u03c2"]`, `"\u03a3"`},
		{`{"É":1,"é":2}`, `["\u00e9"]`, `"\u00c9"`},
	} {
		refused(t, Check([]byte(c.in), Default), ErrDuplicate, c.path, "differs only in case from "+c.first)
	}
}

func TestCheckRefusesDuplicateAndCaseVariantAmongManyKeys(t *testing.T) {
	for n := manyMembers - 2; n <= manyMembers+2; n++ {
		var many strings.Builder
		for i := range n {
			fmt.Fprintf(&many, `"key%c":{"k":0},`, 'a'+i)
		}
		for _, last := range []string{`"z":0`, `"keya":0`, `"KEYa":0`, "\"\u212aeya\":0"} {
			err := Check([]byte("{"+many.String()+last+"}"), Default)
			if last == `"z":0` {
				if err != nil {
					t.Errorf("%d distinct keys: %v", n+1, err)
				}
			} else if !errors.Is(err, ErrDuplicate) {
				t.Errorf("%d keys and then %s: %v", n, last, err)
			}
		}
		// A key near the end, so that the map is asked for what was put in after it was made.
		last := fmt.Sprintf(`"KEY%c":0`, 'a'+n-1)
		if err := Check([]byte("{"+many.String()+last+"}"), Default); !errors.Is(err, ErrDuplicate) {
			t.Errorf("%d keys and then %s: %v", n, last, err)
		}
	}
}

func TestCheckComparesKeysOfOneObjectOnly(t *testing.T) {
	for _, in := range []string{
		`{"a":{"a":{"A":1}},"b":{"a":1}}`,
		`[{"a":1},{"A":1}]`,
		`{"a":{"b":1,"c":2},"b":1,"c":2}`,
		`{"strasse":1,"straße":2}`, // simple folding, not full: every reader sees two names
		`{"a":"a","b":"a"}`,
	} {
		if err := Check([]byte(in), Default); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestCheckRefusesLoneSurrogates(t *testing.T) {
	for _, c := range []struct{ in, path string }{
		{`"\ud800"`, ""},
		{`"\udc00"`, ""},
		{`"\uDFFF\uD800"`, ""},
		{`"\ud83d\ud83d\ude00"`, ""},
		{`"\ud83d \ude00"`, ""},
		{`"\ud83d\u0041"`, ""},
		{`"\ud83d\u"`, ""},
		{`"\ud83d\n"`, ""},
		{`{"a":["x","\ud800"]}`, "a[1]"},
		{`{"\ud800":1}`, ""},
	} {
		refused(t, Check([]byte(c.in), Default), ErrSyntax, c.path, "surrogate pair")
	}
	for _, in := range []string{`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\ufffd"`, `"\ud7ff\ue000"`} {
		if err := Check([]byte(in), Default); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestCheckRefusesControlCharactersInKeys(t *testing.T) {
	for _, in := range []string{`{"name\u0000":1}`, `{"\u0000":1}`, `{"na\nme":1}`, `{"name\u001f":1}`, `{"a":1,"a\u0000":2}`} {
		refused(t, Check([]byte(in), Default), ErrSyntax, "", "control character in the member name")
	}
	refused(t, Check([]byte("{\"a\x00\":1}"), Default), ErrSyntax, "", "control character")
	if err := Check([]byte(`{"name":"a\u0000b"}`), Default); err != nil {
		t.Errorf("escaped NUL in a value: %v", err)
	}
}

func TestCheckRefusesInvalidUTF8(t *testing.T) {
	for _, c := range []struct{ in, path string }{
		{"\"\xff\"", ""},
		{"{\"a\":\"\xc3\"}", "a"},
		{"{\"\xc0\xaf\":1}", ""},
		{"[\"\xed\xa0\x80\"]", "[0]"}, // a surrogate, encoded as if it were a character
		{"[1,\xff]", "[1]"},
	} {
		refused(t, Check([]byte(c.in), Default), ErrSyntax, c.path, "not UTF-8")
	}
	if err := Check([]byte("\"\ufffd \uffff\""), Default); err != nil {
		t.Errorf("a real U+FFFD: %v", err)
	}
}

func TestCheckRefusesByteOrderMark(t *testing.T) {
	refused(t, Check([]byte("\ufeff{}"), Default), ErrSyntax, "", "byte order mark")
	if err := Check([]byte("\"\ufeff\""), Default); err != nil {
		t.Errorf("U+FEFF in a string: %v", err)
	}
}

func TestCheckRefusesTrailingData(t *testing.T) {
	for _, in := range []string{`{} {}`, `1 2`, `{}x`, "null\x00", `[]]`, `"a""b"`, `{},`} {
		refused(t, Check([]byte(in), Default), ErrSyntax, "", "more data after the end")
	}
	if err := Check([]byte(" \t\r\n{} \t\r\n"), Default); err != nil {
		t.Errorf("white space around: %v", err)
	}
}

func TestCheckRefusesWhatIsNotJSON(t *testing.T) {
	for _, c := range []struct{ in, path, reason string }{
		{"", "", "ends too early; expected a value"},
		{"  ", "", "ends too early"},
		{"{", "", "ends too early; expected a member name"},
		{`{"a"`, "", `expected ":"`},
		{`{"a":`, "a", "ends too early"},
		{`{"a":1`, "", `expected "," or "}"`},
		{`{"a":1,}`, "", "expected a member name"},
		{`{a:1}`, "", `unexpected 'a'; expected a member name`},
		{`[1,]`, "[1]", "expected a value"},
		{`[1 2]`, "", `expected "," or "]"`},
		{`"abc`, "", "has no end"},
		{`"\`, "", "expected an escape"},
		{`"\x41"`, "", "after a backslash"},
		{`"\u12g4"`, "", "four hex digits"},
		{`"\u12`, "", "four hex digits"},
		{"\"a\nb\"", "", "control character '\\n'"},
		{"'a'", "", `unexpected '\''`},
		{"nul", "", "expected a value"},
		{"True", "", "expected a value"},
		{"NaN", "", "expected a value"},
		{"-", "", "expected a digit"},
		{"+1", "", "expected a value"},
		{"01", "", "more data"},
		{"1.", "", "expected a digit"},
		{".5", "", "expected a value"},
		{"1e", "", "expected a digit"},
		{"1e+", "", "expected a digit"},
		{"0x10", "", "more data"},
		{"[1,\x00]", "[1]", "unexpected"},
		{"[1]\u00a0", "", "more data"},
		{"<html>", "", `unexpected '<'; expected a value`},
		{"{} // note", "", "more data"},
	} {
		refused(t, Check([]byte(c.in), Default), ErrSyntax, c.path, c.reason)
	}
}

func TestCheckStopsAtTheDepthLimit(t *testing.T) {
	for _, c := range []struct{ open, middle, close string }{{"[", "", "]"}, {`{"a":`, "1", "}"}, {`[{"a":`, `"x"`, "}]"}} {
		per := strings.Count(c.open, "[") + strings.Count(c.open, "{")
		in := func(depth int) []byte {
			n := depth / per
			return []byte(strings.Repeat(c.open, n) + c.middle + strings.Repeat(c.close, n))
		}
		if err := Check(in(32), Default); err != nil {
			t.Errorf("%q at depth 32: %v", c.open, err)
		}
		err := Check(in(32+per), Default)
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "deeper than 32") {
			t.Errorf("%q over depth 32: %v", c.open, err)
		}
	}
	refused(t, Check([]byte(strings.Repeat("[", 33)+strings.Repeat("]", 33)), Default), ErrLimit, strings.Repeat("[0]", 32), "deeper than 32")
	if err := Check([]byte(strings.Repeat("[[],", 31)+"[]"+strings.Repeat("]", 31)), Default); err != nil {
		t.Errorf("closed arrays count no longer: %v", err)
	}
}

func TestCheckStopsAtTheSizeLimitBeforeReading(t *testing.T) {
	full := []byte(`"` + strings.Repeat("a", 1<<20-2) + `"`)
	if err := Check(full, Default); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	refused(t, Check(append(full, ' '), Default), ErrLimit, "", "is 1048577 bytes long; at most 1048576 are accepted")
	refused(t, Check([]byte(strings.Repeat("\xff", 1<<20+1)), Default), ErrLimit, "", "1048577 bytes")
}

func TestCheckStopsAtTheMemberLimitOfOneObject(t *testing.T) {
	object := func(n int) []byte {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"m%d":{"x":1}`, i))
		}
		return []byte("[{" + strings.Join(members, ",") + "}]")
	}
	if err := Check(object(2000), Default); err != nil {
		t.Errorf("2,000 members: %v", err)
	}
	refused(t, Check(object(2001), Default), ErrLimit, "[0]", "more than 2000 members")
}

func TestCheckStopsAtTheDigitLimitOfOneNumber(t *testing.T) {
	for _, in := range []string{strings.Repeat("1", 40), "-0." + strings.Repeat("1", 39), "1." + strings.Repeat("1", 36) + "e-400"} {
		if err := Check([]byte(in), Default); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		refused(t, Check([]byte(`{"n":`+in+`1}`), Default), ErrLimit, "n", "number of 41 digits; at most 40")
	}
}

func TestLimitsReplaceTheDefaultsOneByOne(t *testing.T) {
	in := []byte(`[[1,{"a":12}]]`)
	for _, c := range []struct {
		lim Limits
		ok  bool
	}{
		{Limits{}, true},
		{Limits{Size: 14}, true}, {Limits{Size: 13}, false},
		{Limits{Depth: 3}, true}, {Limits{Depth: 2}, false},
		{Limits{Members: 1}, true},
		{Limits{Digits: 2}, true}, {Limits{Digits: 1}, false},
	} {
		err := Check(in, c.lim)
		if c.ok && err != nil || !c.ok && !errors.Is(err, ErrLimit) {
			t.Errorf("%+v: %v", c.lim, err)
		}
	}
	refused(t, Check([]byte(`{"a":1,"b":2}`), Limits{Members: 1}), ErrLimit, "", "more than 1 members")
}

func TestErrorsTellPathReasonAndOffset(t *testing.T) {
	err := Check([]byte(`{"event":{"tags":["a","b",tru]}}`), Default)
	if got, want := err.Error(), `event.tags[2]: unexpected 't'; expected a value (at byte 26)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Check([]byte(`[] []`), Default).Error(), "JSON: more data after the end of the value; send one JSON value (at byte 3)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestErrorPathsShortenAndEscapeMemberNames(t *testing.T) {
	long := strings.Repeat("é", 500)
	err := Check([]byte(`{"`+long+`":{"plain-1":{"1":{"\u001b[31m":0}}}}`), Default)
	refused(t, err, ErrSyntax, `["`+strings.Repeat(`\u00e9`, 32)+`\u2026"].plain-1["1"]`, `"\x1b[31m"`)
	// Shortened between characters, not within one.
	err = Check([]byte(`{"a`+long+`":tru}`), Default)
	refused(t, err, ErrSyntax, `["a`+strings.Repeat(`\u00e9`, 31)+`\u2026"]`, "expected a value")
}

func TestErrorsNeverQuoteStringValues(t *testing.T) {
	for _, in := range []string{`{"token":"hunter2`, `{"token":"hunter2","token":"hunter2"}`, `{"token":"hunter2\ud800"}`, `{"token":"hunter2"]`, `["hunter2" "hunter2"]`} {
		err := Check([]byte(in), Default)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", in, err)
		}
	}
	var v struct {
		Token int `json:"token"`
	}
	if err := Decode([]byte(`{"token":"hunter2"}`), &v, Default); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("decode: %v", err)
	}
}
