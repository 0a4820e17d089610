package ledgertest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

// text of a row: one line a field, every byte visible, so that rows can be compared and differences read.
// Reflection keeps it complete when the row grows. Times are compared as instants. A nil slice and an empty
// one are the same but for strings: no Scopes at all means the operator's own process, an empty list nothing.
func text(c wetink.Change) string {
	var b strings.Builder
	write(&b, string(c.ID), reflect.ValueOf(c))
	return b.String()
}

func write(b *strings.Builder, path string, v reflect.Value) {
	if t, ok := v.Interface().(time.Time); ok {
		fmt.Fprintf(b, "%s = %s\n", path, t.UTC().Format(time.RFC3339Nano))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				write(b, path+"."+field.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		if elem := v.Type().Elem().Kind(); elem == reflect.Uint8 {
			fmt.Fprintf(b, "%s = %q\n", path, v.Bytes())
			return
		} else if elem == reflect.String {
			fmt.Fprintf(b, "%s = %#v\n", path, v.Interface())
			return
		}
		for i := range v.Len() {
			write(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.String:
		fmt.Fprintf(b, "%s = %q\n", path, v.String())
	default:
		fmt.Fprintf(b, "%s = %v\n", path, v.Interface())
	}
}

// difference lists the lines that only one of both has.
func difference(want, got string) string {
	count := map[string]int{}
	for l := range strings.Lines(want) {
		count[l]++
	}
	var b strings.Builder
	for l := range strings.Lines(got) {
		if count[l]--; count[l] < 0 {
			b.WriteString("got  " + l)
		}
	}
	for l := range strings.Lines(want) {
		if count[l] > 0 {
			count[l]--
			b.WriteString("want " + l)
		}
	}
	return b.String()
}

// same compares two rows field by field.
func (f *fixture) same(got, want wetink.Change) {
	f.t.Helper()
	if g, w := text(got), text(want); g != w {
		f.t.Errorf("the row differs:\n%s", difference(w, g))
	}
}
