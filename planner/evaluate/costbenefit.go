package evaluate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Cold is what a move costs: the load of its cluster for that long. Its new replica lists every object of it anew and
// reconciles all its Applications.
const Cold = 15 * time.Minute

// Offer is what a candidate does for one replica: it Saves that much of what is above what it may carry, and clusters
// of that load move for it.
type Offer struct {
	Saves, Costs plan.Load
}

// Savings are what offers would have saved, by replica, in load times seconds: of the last horizon, and what is longer ago
// counts less and less. The zero value has none.
type Savings struct {
	At time.Time       `json:"at,omitzero"`
	Of map[int]float64 `json:"of,omitempty"`
}

// least is what is not worth remembering.
const least = 1e-6

// Next adds what is offered now, for the time since the last time, of which no more counts than longest. A clock that
// went back counts as no time.
func (s Savings) Next(offers map[int]Offer, now time.Time, horizon, longest time.Duration) Savings {
	next, step := Savings{At: now, Of: map[int]float64{}}, time.Duration(0)
	if !s.At.IsZero() {
		step = max(now.Sub(s.At), 0)
	}
	kept := horizon.Seconds() / (horizon + step).Seconds()
	for replica, saved := range s.Of {
		next.Of[replica] = saved * kept
	}
	for replica, o := range offers {
		next.Of[replica] += o.Saves.Float() * min(step, longest).Seconds()
	}
	maps.DeleteFunc(next.Of, func(_ int, saved float64) bool { return saved < least })
	return next
}

// Pays reports whether the replica's savings are worth what its offer costs.
func (s Savings) Pays(replica int, o Offer) bool {
	return o.Saves > 0 && s.Of[replica] >= o.Costs.Float()*Cold.Seconds()
}

// PayTogether reports whether all savings are worth what all offers cost, of a candidate that is taken whole or not at all.
func (s Savings) PayTogether(offers map[int]Offer) bool {
	worth := s.Weigh(offers)
	return worth.Saved > 0 && worth.Saved >= worth.Costs
}

// Spend takes off what those offers cost.
func (s Savings) Spend(offers map[int]Offer) Savings {
	next := Savings{At: s.At, Of: maps.Clone(s.Of)}
	for replica, o := range offers {
		if left := next.Of[replica] - o.Costs.Float()*Cold.Seconds(); left >= least {
			next.Of[replica] = left
		} else {
			delete(next.Of, replica)
		}
	}
	return next
}

// Worth is both sides of some offers, in load times seconds.
type Worth struct {
	Saved, Costs float64
}

// Weigh adds up the offers, in the order of the replicas: the same on every machine.
func (s Savings) Weigh(offers map[int]Offer) (w Worth) {
	for _, replica := range slices.Sorted(maps.Keys(offers)) {
		w.Saved += s.Of[replica]
		w.Costs += offers[replica].Costs.Float() * Cold.Seconds()
	}
	return w
}

// String words both in load times hours.
func (w Worth) String() string {
	hours := func(seconds float64) string {
		return plan.Load(seconds / time.Hour.Seconds() * float64(plan.LoadUnit)).Display()
	}
	return fmt.Sprintf("would have saved %s load hours of overload so far, and costs %s", hours(w.Saved), hours(w.Costs))
}
