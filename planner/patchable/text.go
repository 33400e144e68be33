package patchable

import (
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pointer is a key as a JSON pointer has it (RFC 6901).
func Pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// IsText reports whether all strings of an object of the API server are UTF-8. Whoever may update it brings others by
// protobuf, and no JSON holds them: the API server makes three bytes of each where a patch goes by JSON, and the object
// another one.
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

// WithinJSON is the time, or the nearest one that JSON has: a node may say of a container what it likes, and a memory
// with one that JSON does not have is written no more.
func WithinJSON(at time.Time) time.Time {
	switch year := at.UTC().Year(); {
	case year < 0:
		return time.Time{}
	case year > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return at.UTC()
}

// BeyondJSON reports whether a time is in no year that RFC 3339 has: 9999-12-31T23:59:59-12:00 is one, and in the year
// 10000 once it is UTC.
func BeyondJSON(at time.Time) bool {
	year := at.UTC().Year()
	return year < 0 || year > 9999
}

// HoldsBeyondJSON reports whether a part of an object of the API server holds such a time anywhere: the API server
// patches the object for nobody, unless the patch takes that part out.
func HoldsBeyondJSON(part any) bool {
	return hasPart(reflect.ValueOf(part), func(part reflect.Value) bool {
		at, is := part.Interface().(metav1.Time)
		return is && BeyondJSON(at.Time)
	})
}
