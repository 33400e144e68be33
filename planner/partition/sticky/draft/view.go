package draft

import (
	"cmp"
	"math"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// view is what a partition in the making is to those who read it: who is where, what replicas carry, and what they may.
type view struct {
	Setting *constraint.Setting // its loads are in parts: see InUnit
	Options Options
	N       int // replicas
	Of      []int

	// By replica. Bears are items that carry a load or take memory: one alone gains nothing elsewhere.
	Load     []plan.Load
	Memory   []plan.Bytes // nil: it bounds nothing
	Clusters []int
	Units    []int // items
	Bears    []int
	pinned   []int // fixed items

	High, Down, Low, DrainTo, Full Line
	Useful                         plan.Load

	Steps int // that are left of the budget

	unit     unit
	occupied constraint.Occupancy
}

// Heavy reports whether a replica is to give items up.
func (v *view) Heavy(r int) bool {
	movable := v.Bears[r] > 1 && v.pinned[r] < v.Units[r]
	above := v.Load[r] > v.High.Load || v.Memory != nil && v.Memory[r] > v.High.Memory
	return movable && above && !v.Patient(r)
}

// Patient reports whether nothing is to be done for a replica's sake.
func (v *view) Patient(r int) bool { return v.Options.Patient != nil && v.Options.Patient(r) }

// Overloaded reports whether any replica is to give items up.
func (v *view) Overloaded() bool {
	for r := range v.N {
		if v.Heavy(r) {
			return true
		}
	}
	return false
}

// May reports whether the rules let an item go to a replica, whatever it carries.
func (v *view) May(i, r int) bool {
	if most := v.Setting.Bounds.MaxClusters; most > 0 && v.Units[r] > 0 && v.Clusters[r]+v.Setting.Items[i].Clusters > most {
		return false
	}
	return v.Apart(i, r)
}

// Fits reports whether a replica stays within a line with an item: a replica without items takes any.
func (v *view) Fits(i, r int, limit Line) bool {
	return v.Units[r] == 0 || v.Load[r]+v.Setting.Loads[i] <= limit.Load && v.Holds(i, r, limit.Memory)
}

// Compare is a total order of replicas: by load, then fewer clusters, then number.
func (v *view) Compare(a, b int) int {
	if v.Load[a] != v.Load[b] {
		return cmp.Compare(v.Load[a], v.Load[b])
	}
	return cmp.Or(cmp.Compare(v.Clusters[a], v.Clusters[b]), cmp.Compare(a, b))
}

// Bytes is an item's memory.
func (v *view) Bytes(i int) plan.Bytes {
	if v.Setting.Bytes == nil {
		return 0
	}
	return v.Setting.Bytes[i]
}

// Holds reports whether a replica has that much memory at most in use with an item.
func (v *view) Holds(i, r int, memory plan.Bytes) bool {
	return v.Memory == nil || v.Memory[r]+v.Setting.Bytes[i] <= memory
}

// Apart reports whether no item of its groups is on a replica.
func (v *view) Apart(i, r int) bool {
	return v.occupied == nil || !v.occupied.Has(v.Setting.Groups.Of(i), r)
}

// Twice reports whether another item of its groups is on a replica beside it.
func (v *view) Twice(i, r int) bool {
	return v.occupied.Twice(v.Setting.Groups.Of(i), r)
}

// Drainable reports whether the rules let the highest replica go.
func (v *view) Drainable() bool {
	h := v.N - 1
	return h >= v.Setting.Least && h > 0 && v.pinned[h] == 0
}

// Limit works out again what the lines are, as it must be once the number of replicas has changed.
func (v *view) Limit() {
	full := v.Setting.Capacity
	even := v.Even()
	even = max(even, min(v.unit.from(v.Options.Even), even+even/2))
	switch {
	case v.Setting.Bounds.Fixed > 0: // balance only
		full = slack(even, v.Options.Low)
	case v.N == v.Setting.Most && shareOf(full, v.Options.Low) < even+even/20:
		full = max(full, slack(even, v.Options.Low))
	}
	v.Full = Line{full, v.Setting.Bounds.Memory}
	v.High, v.Down, v.Low = v.Full.share(v.Options.High), v.Full.share(v.Options.Down), v.Full.share(v.Options.Low)
	v.DrainTo, v.Useful = v.Full.share(v.Options.Drain), max(shareOf(full, v.Options.Useful), 1)
}

// Even is the load that the replicas would carry if it could be dealt evenly: the mean, without the items that are
// above it, which have a replica of their own.
func (v *view) Even() plan.Load {
	rest, bins := v.Setting.Total, v.N
	const passes = 16
	for range passes {
		if bins <= 1 {
			break
		}
		mean := ceil(rest, bins)
		left, own := v.Setting.Total, v.N
		for _, l := range v.Setting.Loads {
			if l > mean {
				left, own = left-l, own-1
			}
		}
		if own < 1 || own == bins {
			break
		}
		rest, bins = left, own
	}
	return ceil(rest, max(bins, 1))
}

// Most is any load within the memory that there is.
func (v *view) Most() Line { return Line{math.MaxInt64, v.Full.Memory} }

// InUnit is a load in the unit of the question; in here it is in parts of that.
func (v *view) InUnit(load plan.Load) plan.Load { return v.unit.to(load) }

// put adds an item to a replica, or takes it away with the sign -1: nothing else changes a replica.
func (v *view) put(i, r, sign int) {
	v.Load[r] += plan.Load(sign) * v.Setting.Loads[i]
	if v.Memory != nil {
		v.Memory[r] += plan.Bytes(sign) * v.Setting.Bytes[i]
	}
	v.Clusters[r] += sign * v.Setting.Items[i].Clusters
	v.Units[r] += sign
	if v.Setting.Loads[i] > 0 || v.Bytes(i) > 0 {
		v.Bears[r] += sign
	}
	if v.Setting.Items[i].Replica != partition.Free {
		v.pinned[r] += sign
	}
	if v.occupied != nil {
		v.occupied.Add(v.Setting.Groups.Of(i), r, int32(sign))
	}
}
