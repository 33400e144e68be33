package track

import (
	"math"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Without partition.capacity a replica may carry as much as the heaviest cluster does. Whoever makes one cluster heavy
// would have all others packed together by it, so what the heaviest has is compared with what the others have, and that
// grows to no more than twice of it in a day. It falls slower: what a cluster has at night says nothing of its day.
const (
	growsADay = 2.0
	halvesIn  = 7.0 // days
	// heaviestTenth is which share of the clusters that carry load, one at least, is left out of the others: a few
	// heavy ones must not make room for each other.
	heaviestTenth = 0.1
	// spare is how much more the heaviest may have at once: one cluster more or less among the others must not count.
	spare = 1.25
)

// Heaviest is how much the heaviest cluster was let to carry last: its share of the load of all but the heaviest tenth.
type Heaviest struct {
	Share float64   `json:"share,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// Capacity is what a replica may carry, of what these carry.
func (h Heaviest) Capacity(loads []plan.Load) plan.Load {
	heaviest, others := apart(loads)
	most := spare * h.Share * others
	if most <= 0 || float64(heaviest) <= most {
		return heaviest
	}
	return plan.Load(math.Ceil(most))
}

// Next is what to remember once these carry so much.
func (h Heaviest) Next(loads []plan.Load, now time.Time) Heaviest {
	heaviest, others := apart(loads)
	if others <= 0 {
		return h
	}
	share := float64(heaviest) / others
	if h.Share > 0 {
		days := min(max(now.Sub(h.At).Hours()/24, 0), 1) // a clock that went back counts as no time
		share = min(max(share, h.Share*math.Exp2(-days/halvesIn)), h.Share*math.Pow(growsADay, days))
	}
	return Heaviest{Share: share, At: now}
}

// apart is the heaviest of the loads, and the sum of all but the heaviest tenth.
func apart(loads []plan.Load) (heaviest plan.Load, others float64) {
	sorted := slices.DeleteFunc(slices.Clone(loads), func(l plan.Load) bool { return l <= 0 })
	if len(sorted) == 0 {
		return 0, 0
	}
	slices.Sort(sorted)
	for _, l := range sorted[:len(sorted)-int(math.Ceil(heaviestTenth*float64(len(sorted))))] {
		others += float64(l)
	}
	return sorted[len(sorted)-1], others
}
