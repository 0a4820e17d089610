package strictjson

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// fields are the members that a struct type has.
type fields struct {
	index map[string][]int // for reflect.Value.FieldByIndex
	names []string         // in the order of declaration
}

var fieldCache sync.Map // reflect.Type → *fields

func fieldsOf(t reflect.Type) (*fields, error) {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields), nil
	}
	f := &fields{index: map[string][]int{}}
	if err := f.add(t, nil); err != nil {
		return nil, err
	}
	fieldCache.Store(t, f)
	return f, nil
}

// encoding/json lets the outer of two fields with one name win, or drops both. Here that is a mistake in the program.
func (f *fields) add(t reflect.Type, prefix []int) error {
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(slices.Clone(prefix), i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			if err := f.add(field.Type, index); err != nil {
				return err
			}
			continue
		}
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Pointer {
			return fmt.Errorf("strictjson: field %s.%s: an embedded pointer is not supported", t, field.Name)
		}
		if !field.IsExported() {
			continue
		}
		if slices.Contains(strings.Split(options, ","), "string") {
			return fmt.Errorf(`strictjson: field %s.%s: the tag option "string" is not supported`, t, field.Name)
		}
		if name == "" {
			name = field.Name
		}
		if other, ok := f.variant(name); ok {
			return fmt.Errorf("strictjson: type %s has the members %q and %q: the same, or the same but for case", t, other, name)
		}
		f.index[name] = index
		f.names = append(f.names, name)
	}
	return nil
}

// variant finds the member whose name is the same but for case, or the same.
func (f *fields) variant(name string) (string, bool) {
	for _, known := range f.names {
		if strings.EqualFold(known, name) {
			return known, true
		}
	}
	return "", false
}

// unknown says what the sender can do about a name that is not a member.
func (f *fields) unknown(name string) string {
	if known, ok := f.variant(name); ok {
		return fmt.Sprintf("unknown member; write it %q, names are case-sensitive", known)
	}
	if len(f.names) == 0 {
		return "unknown member; none are allowed here"
	}
	return "unknown member; known here: " + strings.Join(f.names, ", ")
}
