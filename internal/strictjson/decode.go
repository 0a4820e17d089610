package strictjson

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Decode checks b and stores its value in what v points to, by the rules in the package comment. Everything wrong with
// b is an [*Error], and then *v is as it was.
func Decode(b []byte, v any, lim Limits) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("strictjson: decode into %T: want a pointer that is not nil", v)
	}
	if err := Check(b, lim); err != nil {
		return err
	}
	into := reflect.New(p.Type().Elem()).Elem()
	into.Set(p.Elem())
	c := cursor{b: b}
	c.space()
	if err := c.value(into); err != nil {
		return err
	}
	p.Elem().Set(into)
	return nil
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
)

// under adds a step to the path of an error in the input; mistakes in the program pass.
func under(err error, step string) error {
	if e, ok := err.(*Error); ok {
		return e.in(step)
	}
	return err
}

func (c *cursor) value(v reflect.Value) error {
	switch {
	case v.Type() == rawType:
		v.SetBytes(bytes.Clone(c.skip()))
		return nil
	case v.Kind() == reflect.Interface && v.NumMethod() == 0:
		v.SetZero()
		if x := c.any(); x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return nil
	case v.Kind() == reflect.Pointer:
		if c.b[c.i] == 'n' {
			c.skip()
			v.SetZero()
			return nil
		}
		fresh := reflect.New(v.Type().Elem())
		if err := c.value(fresh.Elem()); err != nil {
			return err
		}
		v.Set(fresh)
		return nil
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return c.own(u)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return c.ownText(u)
	}
	if v.Type() == numberType {
		lit, err := c.number("a number")
		if err == nil {
			v.SetString(string(lit))
		}
		return err
	}
	switch v.Kind() {
	case reflect.Struct:
		return c.structure(v)
	case reflect.Map:
		return c.mapping(v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return c.base64(v)
		}
		return c.slice(v)
	case reflect.Array:
		return c.array(v)
	case reflect.String:
		if c.b[c.i] != '"' {
			return c.mismatch("a string")
		}
		v.SetString(unquote(c.string()))
		return nil
	case reflect.Bool:
		if c.b[c.i] != 't' && c.b[c.i] != 'f' {
			return c.mismatch("true or false")
		}
		v.SetBool(c.skip()[0] == 't')
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return c.integer(v)
	case reflect.Float32, reflect.Float64:
		return c.float(v)
	default:
		return fmt.Errorf("strictjson: decode into the unsupported type %s", v.Type())
	}
}

func (c *cursor) structure(v reflect.Value) error {
	if c.b[c.i] != '{' {
		return c.mismatch("an object")
	}
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return err
	}
	for more := c.open(); more; more = c.next() {
		at := c.i
		name := c.name()
		index, ok := fields.index[name]
		if !ok {
			return &Error{Path: memberStep(name), Kind: ErrUnknownMember, Offset: at, Reason: fields.unknown(name)}
		}
		if err := c.value(v.FieldByIndex(index)); err != nil {
			return under(err, memberStep(name))
		}
	}
	return nil
}

func (c *cursor) mapping(v reflect.Value) error {
	t := v.Type()
	if _, own := reflect.New(t.Key()).Interface().(encoding.TextUnmarshaler); own || t.Key().Kind() != reflect.String {
		return fmt.Errorf("strictjson: decode into the unsupported type %s: keys must be plain strings", t)
	}
	if c.b[c.i] != '{' {
		return c.mismatch("an object")
	}
	fresh := reflect.MakeMap(t)
	for more := c.open(); more; more = c.next() {
		name := c.name()
		elem := reflect.New(t.Elem()).Elem()
		if err := c.value(elem); err != nil {
			return under(err, memberStep(name))
		}
		fresh.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), elem)
	}
	v.Set(fresh)
	return nil
}

func (c *cursor) slice(v reflect.Value) error {
	if c.b[c.i] != '[' {
		return c.mismatch("an array")
	}
	fresh := reflect.MakeSlice(v.Type(), 0, 0)
	for more := c.open(); more; more = c.next() {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := c.value(elem); err != nil {
			return under(err, indexStep(fresh.Len()))
		}
		fresh = reflect.Append(fresh, elem)
	}
	v.Set(fresh)
	return nil
}

func (c *cursor) array(v reflect.Value) error {
	if c.b[c.i] != '[' {
		return c.mismatch("an array")
	}
	at, n := c.i, 0
	for more := c.open(); more; more = c.next() {
		if n < v.Len() {
			v.Index(n).SetZero()
			if err := c.value(v.Index(n)); err != nil {
				return under(err, indexStep(n))
			}
		} else {
			c.skip()
		}
		n++
	}
	if n != v.Len() {
		return &Error{Kind: ErrType, Offset: at, Reason: fmt.Sprintf("want %d elements, got %d", v.Len(), n)}
	}
	return nil
}

// The same bytes have many base64 texts if line breaks and stray padding bits are let through; only one is canonical.
func (c *cursor) base64(v reflect.Value) error {
	at := c.i
	if c.b[at] != '"' {
		return c.mismatch("a string in base64")
	}
	text := unquote(c.string())
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return &Error{Kind: ErrType, Offset: at, Reason: "want standard base64 with padding and without line breaks"}
	}
	v.SetBytes(raw)
	return nil
}

func (c *cursor) any() any {
	switch c.b[c.i] {
	case '{':
		out := map[string]any{}
		for more := c.open(); more; more = c.next() {
			name := c.name()
			out[name] = c.any()
		}
		return out
	case '[':
		out := []any{}
		for more := c.open(); more; more = c.next() {
			out = append(out, c.any())
		}
		return out
	case '"':
		return unquote(c.string())
	}
	switch lit := c.scalar(); lit[0] {
	case 'n':
		return nil
	case 't', 'f':
		return lit[0] == 't'
	default:
		return json.Number(lit)
	}
}

// own hands a value to a type that decodes itself.
func (c *cursor) own(u json.Unmarshaler) error {
	if c.b[c.i] == 'n' {
		return c.mismatch("a value")
	}
	at := c.i
	return refusal(u.UnmarshalJSON(c.skip()), at)
}

func (c *cursor) ownText(u encoding.TextUnmarshaler) error {
	if c.b[c.i] != '"' {
		return c.mismatch("a string")
	}
	at := c.i
	return refusal(u.UnmarshalText([]byte(unquote(c.string()))), at)
}

// refusal keeps the path and kind of an UnmarshalJSON that calls Decode itself.
func refusal(err error, at int) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		inner := *e
		inner.Offset += at
		return &inner
	}
	return &Error{Kind: ErrType, Offset: at, Reason: err.Error(), Cause: err}
}

func (c *cursor) number(want string) ([]byte, error) {
	if b := c.b[c.i]; b != '-' && !isDigit(b) {
		return nil, c.mismatch(want)
	}
	return c.scalar(), nil
}

func (c *cursor) integer(v reflect.Value) error {
	at := c.i
	lit, err := c.number("a whole number")
	if err != nil {
		return err
	}
	text := string(lit)
	if strings.ContainsAny(text, ".eE") {
		return &Error{Kind: ErrType, Offset: at, Reason: text + " is not a whole number without fraction and exponent"}
	}
	bits := v.Type().Bits()
	if v.CanInt() {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil || text == "-0" {
			least := int64(-1) << (bits - 1)
			return &Error{Kind: ErrRange, Offset: at, Reason: fmt.Sprintf("%s is not a whole number from %d to %d", text, least, ^least)}
		}
		v.SetInt(n)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return &Error{Kind: ErrRange, Offset: at, Reason: fmt.Sprintf("%s is not a whole number from 0 to %d", text, ^uint64(0)>>(64-bits))}
	}
	v.SetUint(n)
	return nil
}

func (c *cursor) float(v reflect.Value) error {
	at := c.i
	lit, err := c.number("a number")
	if err != nil {
		return err
	}
	bits := v.Type().Bits()
	f, err := strconv.ParseFloat(string(lit), bits)
	if err != nil || !survives(string(lit), f, bits) {
		return &Error{Kind: ErrRange, Offset: at, Reason: fmt.Sprintf("%s does not fit a %d-bit floating-point number without rounding", lit, bits)}
	}
	v.SetFloat(f)
	return nil
}

// survives says whether f, printed with as many significant digits as the literal has, is the literal's number again.
// Asking for the exact binary value would refuse 0.1; asking for the shortest form would refuse what C's %.17g prints.
func survives(lit string, f float64, bits int) bool {
	digits, exp, ok := decimal(lit)
	if !ok {
		return f == 0 // the literal is a zero
	}
	if f == 0 {
		return false // 1e-400: ParseFloat makes it zero and reports nothing
	}
	again, exp2, _ := decimal(strconv.FormatFloat(f, 'e', len(digits)-1, bits))
	return digits == again && exp == exp2
}

// decimal splits a literal into the digits between its first and last one that is not 0, and the exponent e of
// 0.DIGITS × 10^e. For a zero, ok is false. An exponent too long for an int is one that ParseFloat refused or made zero.
func decimal(lit string) (digits string, exp int, ok bool) {
	lit = strings.TrimPrefix(lit, "-")
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		exp, _ = strconv.Atoi(lit[i+1:])
		lit = lit[:i]
	}
	whole, fraction, _ := strings.Cut(lit, ".")
	all := whole + fraction
	digits = strings.TrimLeft(all, "0")
	exp += len(whole) - (len(all) - len(digits))
	digits = strings.TrimRight(digits, "0")
	return digits, exp, digits != ""
}
