package memory

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestNoTimeLiesAhead fills every time of the memory, by reflection, so that a new field is asked for too.
func TestNoTimeLiesAhead(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	ownRule := map[string]bool{ // these have a rule of their own for a clock that went back, in their packages
		"Memory.LastGood": true, "Memory.Votes": true, "Memory.Made": true, "Memory.Changes.Ledger": true, "Memory.Changes.Unserved": true, "Memory.Changes.Replicas": true,
		"Memory.Changes.Failover": true, "Memory.Changes.Trip": true, "Memory.Changes.Began": true, "Memory.Known.Leaders": true,
		"Memory.Changes.Pending": true, // it is taken over before any time is judged
	}
	var walk func(path string, v reflect.Value, each func(path string, v reflect.Value) reflect.Value)
	walk = func(path string, v reflect.Value, each func(string, reflect.Value) reflect.Value) {
		switch {
		case ownRule[path], strings.Count(path, "[]") > 2: // a type that holds itself
		case v.Type() == reflect.TypeFor[time.Time]():
			if next := each(path, v); v.CanSet() {
				v.Set(next)
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i), each)
			}
		case v.Kind() == reflect.Pointer && v.IsNil() && strings.Contains(path, "[]"): // a number's digits, and so on without an end
		case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
			if v.IsNil() && v.CanSet() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			walk(path, v.Elem(), each)
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			if v.IsNil() && v.CanSet() {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			for i := range v.Len() {
				walk(path+"[]", v.Index(i), each)
			}
		case v.Kind() == reflect.Map && v.Type().Elem() == reflect.TypeFor[time.Time]():
			if v.IsNil() && v.CanSet() {
				v.Set(reflect.MakeMap(v.Type()))
				key := reflect.ValueOf("c")
				if v.Type().Key() != key.Type() {
					key = reflect.Zero(v.Type().Key())
				}
				v.SetMapIndex(key, reflect.ValueOf(now))
			}
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, each(path, v.MapIndex(key)))
			}
		case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct:
			if v.IsNil() && v.CanSet() {
				v.Set(reflect.MakeMap(v.Type()))
				v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			}
			for _, key := range v.MapKeys() {
				one := reflect.New(v.Type().Elem()).Elem()
				one.Set(v.MapIndex(key))
				walk(path+"[]", one, each)
				v.SetMapIndex(key, one)
			}
		}
	}
	var m Memory
	fields := 0
	walk("Memory", reflect.ValueOf(&m).Elem(), func(string, reflect.Value) reflect.Value {
		fields++
		return reflect.ValueOf(now.Add(6 * time.Hour))
	})
	lost := m.Changes.Ownership.Lost
	m.Changes.Watch.Over = time.Time{} // a watch that was over is forgotten then
	got := m.Until(now)
	walk("Memory", reflect.ValueOf(&got).Elem(), func(path string, v reflect.Value) reflect.Value {
		if at := v.Interface().(time.Time); !at.Equal(now) && path != "Memory.Changes.Watch.Over" {
			t.Errorf("%s is %v, want %v", path, at, now)
		}
		return v
	})
	if fields < 15 {
		t.Errorf("%d times were looked at", fields)
	}
	if at := lost["c"]; !at.Equal(now.Add(6 * time.Hour)) {
		t.Errorf("the memory that was given changed: %v", at)
	}
}

// TestNoEarlierHourRevivesAWatch that is over, and a clock that was ahead ends none.
func TestNoEarlierHourRevivesAWatch(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		ended, over time.Duration // from now
		want        bool          // it goes on
	}{
		"the clock went back beyond the wave": {10 * time.Minute, 26 * time.Minute, false},
		"the clock was ahead":                 {-5 * time.Minute, 6 * time.Hour, true},
		"it is not over":                      {10 * time.Minute, 0, true},
	} {
		var m Memory
		m.Changes.Watch.Ended = now.Add(test.ended)
		if test.over != 0 {
			m.Changes.Watch.Over = now.Add(test.over)
		}
		if got := m.Until(now).Changes.Watch; got.Ended.IsZero() == test.want || got.Ended.After(now) || got.Over.After(now) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
