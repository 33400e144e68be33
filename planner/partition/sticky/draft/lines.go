package draft

import (
	"ballast/planner/plan"
)

// Line is what a replica carries at most: a load, and memory where that bounds anything.
type Line struct {
	Load   plan.Load
	Memory plan.Bytes
}

// share is a share of both.
func (l Line) share(of plan.Load) Line { return Line{shareOf(l.Load, of), l.Memory.Share(of)} }

// slack is the capacity whose low share is a twentieth above an even share.
func slack(even, low plan.Load) plan.Load {
	const most = plan.Load(1 << 62)
	target := float64(even) * 1.05 * float64(plan.LoadUnit) / float64(low)
	if target >= float64(most) {
		return most
	}
	return max(plan.Load(target), 1)
}

func ceil(load plan.Load, n int) plan.Load {
	if load == 0 {
		return 0
	}
	return (load-1)/plan.Load(n) + 1
}

// shareOf is a share of a load, rounded down; it saturates.
func shareOf(load, share plan.Load) plan.Load { return mulDiv(load, share, plan.LoadUnit) }
