package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Past is what rules of change remember of one thing: the number of replicas, or one resource of one replica. It is
// a value: nothing here changes the one it was given.
type Past struct {
	Last   int64  `json:"last,omitempty"`   // change, in seconds since 1970
	Wishes []Wish `json:"wishes,omitempty"` // oldest first
	Events events `json:"events,omitempty"` // oldest first
}

// Wish is what was wanted in a stretch of time: when last, the lowest and the highest.
type Wish struct {
	At     int64
	Lo, Hi int64
}

// MarshalJSON writes a list of three.
func (w Wish) MarshalJSON() ([]byte, error) { return json.Marshal([3]int64{w.At, w.Lo, w.Hi}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (w *Wish) UnmarshalJSON(data []byte) error {
	var row []int64
	if err := json.Unmarshal(data, &row); err != nil {
		return fmt.Errorf("reading a wish: %w", err)
	}
	if timed := len(row) == 3 && row[0] >= 0 && row[0] <= maxUnix; !timed || row[1] > row[2] {
		return fmt.Errorf("reading a wish: %v is not seconds, the lowest and the highest", row)
	}
	*w = Wish{row[0], row[1], row[2]}
	return nil
}

type events []Event

// wishes is into how many stretches a time is cut: what was wanted or changed counts longer by a 60th at most, never
// shorter.
const wishes = 60

// Wish remembers what is wanted now, for as long as the longer of the two windows.
func (h Past) Wish(now time.Time, value int64, grow, shrink Policy) Past {
	h = h.until(now)
	keep := int64(max(grow.Stabilization, shrink.Stabilization) / time.Second)
	width, t := keep/wishes+1, now.Unix()
	kept := slices.DeleteFunc(slices.Clone(h.Wishes), func(w Wish) bool { return t-w.At >= keep })
	if last := len(kept) - 1; last >= 0 && kept[last].At/width == t/width {
		kept[last] = Wish{t, min(kept[last].Lo, value), max(kept[last].Hi, value)}
	} else if keep > 0 {
		kept = append(kept[max(0, len(kept)-2*wishes):], Wish{t, value, value})
	}
	h.Wishes = kept
	return h
}

// Changed remembers a change that was made, by how much, for as long as any pace looks back.
func (h Past) Changed(now time.Time, by int, grow, shrink Policy) Past {
	h = h.until(now)
	t, keep := now.Unix(), int64(0)
	for _, p := range slices.Concat(grow.Rate, shrink.Rate) {
		keep = max(keep, int64(p.Period/time.Second))
	}
	h.Last = t
	h.Events = slices.DeleteFunc(slices.Clone(h.Events), func(e Event) bool { return t-e.At >= keep })
	h.Events = h.Events.plus(Event{t, by}, keep)
	return h
}

// plus adds an event. Those of one stretch and one sign are one: they count as long as the latest.
func (l events) plus(e Event, keep int64) events {
	if keep <= 0 || e.By == 0 {
		return l
	}
	width := keep/wishes + 1
	for i, old := range slices.Backward(l) {
		if old.At/width != e.At/width {
			break
		}
		if old.By > 0 == (e.By > 0) {
			l = slices.Delete(l, i, i+1)
			e.By += old.By
			break
		}
	}
	return append(l, e)
}

// until takes times that lie ahead as now: a clock that went back counts as no time passed.
func (h Past) until(now time.Time) Past {
	const most = 2 * (wishes + 1) // what this package writes has fewer
	t := now.Unix()
	h.Last = min(h.Last, t)
	h.Wishes, h.Events = h.Wishes[max(0, len(h.Wishes)-most):], h.Events[max(0, len(h.Events)-most):]
	if n := len(h.Wishes); n > 0 && h.Wishes[n-1].At > t {
		h.Wishes = slices.Clone(h.Wishes)
		for i := range h.Wishes {
			h.Wishes[i].At = min(h.Wishes[i].At, t)
		}
	}
	if n := len(h.Events); n > 0 && h.Events[n-1].At > t {
		h.Events = slices.Clone(h.Events)
		for i := range h.Events {
			h.Events[i].At = min(h.Events[i].At, t)
		}
	}
	return h
}

// Stabilize is where HPA's windows let a value go: up to the lowest that was wanted within up, down to the highest
// within down.
func Stabilize(current, desired int64, wishes []Wish, up, down time.Duration, now time.Time) int64 {
	low, high := desired, desired
	for _, w := range wishes {
		age := now.Unix() - w.At
		if age < int64(up/time.Second) {
			low = min(low, w.Lo)
		}
		if age < int64(down/time.Second) {
			high = max(high, w.Hi)
		}
	}
	return min(max(current, low), high)
}

// stableAt is from when on a window lets the value leave current if the wish stays; now where it does.
func stableAt(current, desired int64, wishes []Wish, window time.Duration, now time.Time) time.Time {
	at := now
	for _, w := range wishes {
		holdsUp, holdsDown := desired > current && w.Lo <= current, desired < current && w.Hi >= current
		if end := time.Unix(w.At, 0).UTC().Add(window); (holdsUp || holdsDown) && end.After(at) {
			at = end
		}
	}
	return at
}
