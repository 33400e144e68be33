package config

import (
	"reflect"
	"slices"
	"strings"
)

// structField is a field as a file names it.
type structField struct {
	value          reflect.Value
	implementation bool // one of a phase's implementations
	nullable       bool // null stands for the default
	switchable     bool // null, in so many letters, turns it off
	replaced       bool // given, it starts from nothing instead of from the default
}

// fieldsOf lists a struct's fields by the name of their yaml tag, else of their json tag; prometheus/common's structs
// have both, and only the former everywhere. Fields of embedded structs are the struct's own.
func fieldsOf(v reflect.Value) map[string]structField {
	out := map[string]structField{}
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
			for inner, s := range fieldsOf(v.Field(i)) {
				out[inner] = s
			}
			continue
		}
		// prometheus/common's *_ref fields name secrets in a secret manager, which ballast has none of.
		if name == "" || name == "-" || strings.HasSuffix(name, "_ref") {
			continue
		}
		out[name] = structField{
			value:          v.Field(i),
			implementation: f.Tag.Get("phase") == "implementation",
			nullable:       f.Tag.Get("null") == "default",
			switchable:     f.Tag.Get("null") == "off",
			replaced:       f.Tag.Get("merge") == "no",
		}
	}
	return out
}

// inlineMap is the map of a struct that is nothing but an inlined map (prometheus/common's Headers).
func inlineMap(v reflect.Value) (reflect.Value, bool) {
	if v.NumField() != 1 || v.Field(0).Kind() != reflect.Map {
		return reflect.Value{}, false
	}
	return v.Field(0), v.Type().Field(0).Tag.Get("yaml") == ",inline"
}

// implementations names a phase's implementations in order.
func implementations(known map[string]structField) []string {
	var names []string
	for name, f := range known {
		if f.implementation {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
