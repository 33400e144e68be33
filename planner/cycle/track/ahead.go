package track

import (
	"maps"
	"time"
)

// NotAhead takes each of these times that lies ahead as now.
func NotAhead(now time.Time, times ...*time.Time) {
	for _, t := range times {
		if t.After(now) {
			*t = now
		}
	}
}

// MapUntil leaves the map that it was given as it is.
func MapUntil[K comparable](times map[K]time.Time, now time.Time) map[K]time.Time {
	ahead := false
	for _, t := range times {
		ahead = ahead || t.After(now)
	}
	if !ahead {
		return times
	}
	times = maps.Clone(times)
	for name, t := range times {
		if t.After(now) {
			times[name] = now
		}
	}
	return times
}
