package memory

import (
	"maps"
	"math"
	"time"
)

const (
	// settles is how long a replica must have a load until most of it counts: a spike of minutes is no peak.
	settles = 30 * time.Minute
	// longestPeak bounds one measurement, in mean loads.
	longestPeak = 2.0
)

// Peaks are what replicas had at most of the mean load: in the period that goes on, and in the one before. So replicas
// that are busy at different hours are told from those that are not.
type Peaks struct {
	At     time.Time       `json:"at,omitzero"`
	Since  time.Time       `json:"since,omitzero"` // of the period that goes on
	Level  map[int]float64 `json:"level,omitempty"`
	Now    map[int]float64 `json:"now,omitempty"`
	Before map[int]float64 `json:"before,omitempty"`
}

// Next is with what the replicas have now, of which no more counts than for so long. A clock that went back counts as
// no time.
func (p Peaks) Next(loads []float64, now time.Time, period, longest time.Duration) Peaks {
	next := Peaks{At: now, Since: p.Since, Level: map[int]float64{}, Now: map[int]float64{}, Before: p.Before}
	fresh := p.At.IsZero()
	step := min(max(now.Sub(p.At), 0), longest)
	if age := now.Sub(p.Since); fresh || age >= period || age < 0 {
		next.Since, next.Before, p.Now = now, p.Now, nil
	}
	weight := step.Seconds() / (step + settles).Seconds()
	for replica, load := range loads {
		load = min(load, longestPeak)
		level, known := p.Level[replica]
		if !known {
			level = load
		}
		level += (load - level) * weight
		next.Level[replica] = rounded(level)
		next.Now[replica] = max(rounded(level), p.Now[replica])
	}
	return next
}

// Of is what a replica had at most.
func (p Peaks) Of(replica int) float64 { return max(p.Now[replica], p.Before[replica]) }

// Takes is with what a replica takes on.
func (p Peaks) Takes(load map[int]float64) Peaks {
	if p.At.IsZero() { // nobody measures them
		return p
	}
	p.Now = maps.Clone(p.Now)
	for replica, more := range load {
		p.Now[replica] = rounded(p.Of(replica) + more)
	}
	return p
}

func rounded(f float64) float64 { return math.Round(f*1e4) / 1e4 }
