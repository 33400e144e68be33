package plan

import (
	"reflect"
	"unicode/utf8"
)

// IsText reports whether all strings of an object of the API server are UTF-8. Whoever may update it brings others by protobuf, and no JSON
// holds them: the API server makes three bytes of each where a patch goes by JSON, and the object another one.
func IsText(object any) bool {
	return !hasPart(reflect.ValueOf(object), func(part reflect.Value) bool {
		return part.Kind() == reflect.String && !utf8.ValidString(part.String())
	})
}

// hasPart reports whether something holds for a value or for any part of it, but for bytes.
func hasPart(v reflect.Value, holds func(reflect.Value) bool) bool {
	if v.IsValid() && holds(v) {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasPart(v.Elem(), holds)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return false
		}
		for i := range v.Len() {
			if hasPart(v.Index(i), holds) {
				return true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if hasPart(entries.Key(), holds) || hasPart(entries.Value(), holds) {
				return true
			}
		}
	case reflect.Struct:
		return hasField(v, holds)
	}
	return false
}

func hasField(v reflect.Value, holds func(reflect.Value) bool) bool {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && hasPart(v.Field(i), holds) {
			return true
		}
	}
	return false
}
