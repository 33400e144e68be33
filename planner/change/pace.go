package change

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Pace bounds what changes in any window of Period: Count, or Percent of what there was as it began.
type Pace struct {
	Count   int
	Percent int // of Count and Percent one is given
	Period  time.Duration
}

// Select is which of several paces holds.
type Select string

// The selections, by HPA's names. Max is the default.
const (
	SelectMax      Select = "Max"
	SelectMin      Select = "Min"
	SelectDisabled Select = "Disabled"
)

// Event is a change: by how many replicas more or fewer, or how many were resized or restarted.
type Event struct {
	At int64 // seconds since 1970
	By int
}

// MarshalJSON writes a list of two.
func (e Event) MarshalJSON() ([]byte, error) { return json.Marshal([2]int64{e.At, int64(e.By)}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Event) UnmarshalJSON(data []byte) error {
	var row []int64
	if err := json.Unmarshal(data, &row); err != nil {
		return fmt.Errorf("reading a change: %w", err)
	}
	if len(row) != 2 || row[0] < 0 || row[0] > maxUnix || row[1] < -maxMoves || row[1] > maxMoves {
		return fmt.Errorf("reading a change: %v is not seconds and a number", row)
	}
	*e = Event{row[0], int(row[1])}
	return nil
}

// by sums what changed less than a period ago: what was added, and what was taken away.
func by(events []Event, period time.Duration, now time.Time) (added, removed int) {
	for _, e := range events {
		if now.Unix()-e.At >= int64(period/time.Second) {
			continue
		}
		added += max(e.By, 0)
		removed -= min(e.By, 0)
	}
	return added, removed
}

// MostOut is how many replicas there may be now, as HPA's behavior has it: a percentage of what there was as a period
// began is rounded up. Without paces there is no bound.
func MostOut(current int, paces []Pace, sel Select, events []Event, now time.Time) int {
	if sel == SelectDisabled {
		return current
	}
	limits := make([]int, len(paces))
	for i, p := range paces {
		added, removed := by(events, p.Period, now)
		start := current - added + removed
		limits[i] = start + p.Count
		if p.Percent > 0 {
			limits[i] = (start*(100+p.Percent) + 99) / 100
		}
	}
	switch {
	case len(limits) == 0:
		return math.MaxInt
	case sel == SelectMin:
		return slices.Min(limits)
	}
	return slices.Max(limits)
}

// LeastIn is how few replicas there may be now; a percentage that stays is cut to whole replicas.
func LeastIn(current int, paces []Pace, sel Select, events []Event, now time.Time) int {
	if sel == SelectDisabled {
		return current
	}
	limits := make([]int, len(paces))
	for i, p := range paces {
		added, removed := by(events, p.Period, now)
		start := current - added + removed
		limits[i] = start - p.Count
		if p.Percent > 0 {
			limits[i] = start * max(100-p.Percent, 0) / 100
		}
	}
	switch {
	case len(limits) == 0:
		return 0
	case sel == SelectMin:
		return slices.Max(limits)
	}
	return slices.Min(limits)
}

// Room is how many more of so many may grow now, or shrink, and from when on the next one may; math.MaxInt without
// paces. All of them hold. Percentages allow one at least. What went the other way takes no room.
func Room(paces []Pace, events []Event, of int, grows bool, now time.Time) (left int, next time.Time) {
	left, next = math.MaxInt, now
	for _, p := range paces {
		allowed := p.Count
		if p.Percent > 0 {
			allowed = max(1, p.Percent*of/100)
		}
		added, removed := by(events, p.Period, now)
		used := removed
		if grows {
			used = added
		}
		left = min(left, max(allowed-used, 0))
		for _, e := range events { // oldest first: as they leave the period, others fit
			if used < allowed {
				break
			}
			if e.By > 0 == grows && now.Unix()-e.At < int64(p.Period/time.Second) {
				used -= max(e.By, -e.By)
				next = later(next, time.Unix(e.At, 0).UTC().Add(p.Period))
			}
		}
	}
	return left, next
}
