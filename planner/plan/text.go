package plan

import (
	"reflect"
	"unicode/utf8"
)

// IsText reports whether all strings of an object of the API server are UTF-8. Whoever may update it brings others by protobuf, and no JSON
// holds them: the API server makes three bytes of each where a patch goes by JSON, and the object another one.
func IsText(object any) bool { return isText(reflect.ValueOf(object)) }

func isText(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isText(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true
		}
		for i := range v.Len() {
			if !isText(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if !isText(entries.Key()) || !isText(entries.Value()) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !isText(v.Field(i)) {
				return false
			}
		}
	}
	return true
}
