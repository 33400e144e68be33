package plan

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// HoldsBeyondJSON reports whether a part of an object of the API server holds such a time anywhere: the API server patches the object
// for nobody, unless the patch takes that part out.
func HoldsBeyondJSON(part any) bool {
	return hasPart(reflect.ValueOf(part), func(part reflect.Value) bool {
		at, is := part.Interface().(metav1.Time)
		return is && BeyondJSON(at.Time)
	})
}
