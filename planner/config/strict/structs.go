package strict

import (
	"reflect"
	"slices"
	"strings"
)

// Field is a field as a file names it.
type Field struct {
	Value          reflect.Value
	Implementation bool // one of a phase's implementations
	nullable       bool // null stands for the default
	switchable     bool // null, in so many letters, turns it off
	replaced       bool // given, it starts from nothing instead of from the default
}

// FieldsOf lists a struct's fields by the name of their yaml tag, else of their json tag; prometheus/common's structs
// have both, and only the former everywhere. Fields of embedded structs are the struct's own.
func FieldsOf(v reflect.Value) map[string]Field {
	out := map[string]Field{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		tag, ok := f.Tag.Lookup("yaml")
		if !ok {
			tag = f.Tag.Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" || options == "inline" {
			for inner, s := range FieldsOf(v.Field(i)) {
				out[inner] = s
			}
			continue
		}
		// prometheus/common's *_ref fields name secrets in a secret manager, which ballast has none of.
		if name == "" || name == "-" || strings.HasSuffix(name, "_ref") {
			continue
		}
		out[name] = Field{
			Value:          v.Field(i),
			Implementation: f.Tag.Get("phase") == "implementation",
			nullable:       f.Tag.Get("null") == "default",
			switchable:     f.Tag.Get("null") == "off",
			replaced:       f.Tag.Get("merge") == "no",
		}
	}
	return out
}

// InlineMap is the map of a struct that is nothing but an inlined map (prometheus/common's Headers).
func InlineMap(v reflect.Value) (reflect.Value, bool) {
	if v.NumField() != 1 || v.Field(0).Kind() != reflect.Map {
		return reflect.Value{}, false
	}
	return v.Field(0), v.Type().Field(0).Tag.Get("yaml") == ",inline"
}

// Implementations names a phase's implementations in order.
func Implementations(known map[string]Field) []string {
	var names []string
	for name, f := range known {
		if f.Implementation {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
