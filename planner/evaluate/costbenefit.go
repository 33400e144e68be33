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

// PaysWithin reports whether the offer is worth what it costs if the overload lasts that long.
func (o Offer) PaysWithin(horizon time.Duration) bool {
	return o.Saves > 0 && o.Saves.Float()*horizon.Seconds() >= o.Costs.Float()*Cold.Seconds()
}

// Savings are what offers would have saved, by replica, in load times seconds; what is longer ago than the horizon
// counts less and less. Back is when a person went back to an earlier plan. Full is for how long each replica has been
// above the capacity without a break. The zero value has none.
type Savings struct {
	At   time.Time             `json:"at,omitzero"`
	Of   map[int]float64       `json:"of,omitempty"`
	Back time.Time             `json:"back,omitzero"`
	Full map[int]time.Duration `json:"full,omitempty"`
}

const (
	// least is what is not worth remembering.
	least = 1e-6
	// mostSaved is how many times of what it costs an offer can have saved: what was too much for a day must not pay
	// for moves of another day.
	mostSaved = 2
	// forgets is in what time savings halve that nothing is offered for.
	forgets = 4 * Cold
)

// Terms are how savings grow: over which Horizon, by no more than Longest at once, and for no less than a Price, which
// all moves have together where they restart every replica. Full are the replicas above the capacity that a person
// wrote.
type Terms struct {
	Horizon, Longest time.Duration
	Price            plan.Load
	Full             []int
}

// Next adds what is offered now, for the time since the last time. A clock that went back counts as no time. Nothing is
// saved for a horizon after a person went back to an earlier plan.
func (s Savings) Next(offers map[int]Offer, now time.Time, t Terms) Savings {
	next, step := Savings{At: now, Of: map[int]float64{}, Back: s.Back}, time.Duration(0)
	if since := now.Sub(s.Back); !s.Back.IsZero() && since < t.Horizon {
		return next
	}
	if !s.At.IsZero() {
		step = max(now.Sub(s.At), 0)
	}
	next.Full = s.stillFull(step, t)
	for replica, saved := range s.Of {
		over := forgets
		if offers[replica].Saves > 0 {
			over = t.Horizon
		}
		next.Of[replica] = saved * over.Seconds() / (over + step).Seconds()
	}
	for replica, o := range offers {
		most := mostSaved * max(o.Costs, t.Price).Float() * Cold.Seconds()
		next.Of[replica] = min(next.Of[replica]+o.Saves.Float()*min(step, t.Longest).Seconds(), most)
	}
	maps.DeleteFunc(next.Of, func(_ int, saved float64) bool { return saved < least })
	return next
}

// stillFull is for how long each replica has been above the capacity, that long after the last look. A look after a gap
// is the first one: of the time between nobody knows anything.
func (s Savings) stillFull(step time.Duration, t Terms) map[int]time.Duration {
	if len(t.Full) == 0 {
		return nil
	}
	full := make(map[int]time.Duration, len(t.Full))
	for _, replica := range t.Full {
		full[replica] = 0
		if lasted, was := s.Full[replica]; was && step <= t.Longest {
			full[replica] = lasted + step
		}
	}
	return full
}

// FullFor reports whether the replica has been above the capacity for so long.
func (s Savings) FullFor(replica int, d time.Duration) bool {
	lasted, full := s.Full[replica]
	return full && lasted >= d
}

// After is after a person went back to an earlier plan.
func (s Savings) After(back time.Time) Savings { return Savings{At: s.At, Back: back} }

// Pays reports whether the replica's savings are worth what its offer costs.
func (s Savings) Pays(replica int, o Offer) bool {
	return o.Saves > 0 && s.Of[replica] >= o.Costs.Float()*Cold.Seconds()
}

// PayTogether reports whether all savings are worth what all offers cost, of a candidate that is taken whole or not at
// all.
func (s Savings) PayTogether(offers map[int]Offer) bool {
	worth := s.Weigh(offers)
	return worth.Saved > 0 && worth.Saved >= worth.Costs
}

// Spend takes off what those offers cost.
func (s Savings) Spend(offers map[int]Offer) Savings {
	next := Savings{At: s.At, Of: maps.Clone(s.Of), Back: s.Back, Full: s.Full}
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

// Hours is both in load times hours.
func (w Worth) Hours() (saved, costs plan.Load) {
	hours := func(seconds float64) plan.Load {
		return plan.Load(seconds / time.Hour.Seconds() * float64(plan.LoadUnit))
	}
	return hours(w.Saved), hours(w.Costs)
}

// String words both in load times hours.
func (w Worth) String() string {
	return Both(w.Hours())
}

// Both words what moves would have saved and what they cost, in load times hours.
func Both(saved, costs plan.Load) string {
	return fmt.Sprintf("would have saved %s load hours of overload so far, and costs %s", saved.Display(),
		costs.Display())
}
