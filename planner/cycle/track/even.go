package track

import (
	"math"
	"time"

	"ballast/planner/plan"
)

// evenHalves is in what time a larger even share of before counts half.
const evenHalves = 24 * time.Hour

// Even is the largest even share of so many replicas in the last days: where nobody said what a replica may carry, it
// is what they carried. What some have less for an hour, or all by night, makes the others no more loaded than they
// were.
type Even struct {
	Replicas int       `json:"replicas,omitempty"`
	Load     plan.Load `json:"load,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Held is what counts of it now; 0: it was of another number of replicas.
func (e Even) Held(replicas int, now time.Time) plan.Load {
	if e.Replicas != replicas {
		return 0
	}
	age := max(now.Sub(e.At), 0)
	return plan.Load(float64(e.Load) * math.Exp2(-age.Hours()/evenHalves.Hours()))
}

// Next is with the even share of now.
func (e Even) Next(replicas int, load plan.Load, now time.Time) Even {
	return Even{Replicas: replicas, Load: max(load, e.Held(replicas, now)), At: now}
}
