package track

import (
	"time"

	"ballast/planner/plan"
)

const (
	// beyond is how much more than the evidence the fullest replica carries, in hundredths, before people are told and
	// votes are short.
	beyond = 125
	// beyondFor is how long it does: spikes go by.
	beyondFor = time.Hour
	// absurd is how many times what the whole fleet makes no replica can have carried: it is nothing that was seen.
	absurd = 8
)

// Evidence is what the fullest well replica carried when the fleet was taken over, where nobody said what one may
// carry: that it bears so much is known, and of no more. Of says by which settings that was a load. Above is since when
// one carries more.
type Evidence struct {
	Load  plan.Load `json:"load,omitempty"`
	Of    string    `json:"of,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Above time.Time `json:"above,omitzero"`
}

// Seen is what is seen of the replicas: what the Fullest that is well carries, the Heaviest of what stays together, and
// what All make.
type Seen struct {
	Fullest, Heaviest, All plan.Load
}

// Next is with what is seen now. Adopted says that the fleet is taken over: until then the evidence is what stands.
func (e Evidence) Next(s Seen, of string, adopted bool, now time.Time) Evidence {
	if s.All <= 0 {
		return e // it says nothing of any
	}
	stands := e.Load > 0 && e.Of == of && e.Load/absurd <= s.All
	if !stands || !adopted {
		return Evidence{Load: max(s.Fullest, s.Heaviest), Of: of, At: now}
	}
	if !Beyond(s.Fullest, e.Line(s)) {
		e.Above = time.Time{}
	} else if e.Above.IsZero() || now.Before(e.Above) {
		e.Above = now
	}
	return e
}

// Line is what a replica is known to bear: never less than the heaviest, which one has in any case.
func (e Evidence) Line(s Seen) plan.Load { return max(e.Load, s.Heaviest) }

// Beyond reports whether a replica carries far more than the line.
func Beyond(carries, line plan.Load) bool { return float64(carries)*100 > float64(line)*beyond }

// Exceeded reports whether the fullest replica has carried more than is known for long.
func (e Evidence) Exceeded(now time.Time) bool {
	return !e.Above.IsZero() && now.Sub(e.Above) >= beyondFor
}
