package pack

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Bin is what a replica carries: the load of its items, and of what is fixed to it, which is none of them.
type Bin struct {
	Items []int32 // places in the loads
	Load  plan.Load
}

func byLoad(a, b Bin) int { return cmp.Compare(a.Load, b.Load) }

// Makespan is the load of the fullest.
func Makespan(bins []Bin) plan.Load { return slices.MaxFunc(bins, byLoad).Load }

// least is the least loaded.
func least(bins []Bin) (at int) {
	for r := range bins {
		if bins[r].Load < bins[at].Load {
			at = r
		}
	}
	return at
}

func clone(bins []Bin) []Bin {
	out := slices.Clone(bins)
	for k := range out {
		out[k].Items = slices.Clone(out[k].Items)
	}
	return out
}
