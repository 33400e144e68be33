package draft

import (
	"math"

	"ballast/planner/plan"
)

// Line is what a replica carries at most: a load, and memory where that bounds anything.
type Line struct {
	Load   plan.Load
	Memory plan.Bytes
}

// share is a share of both.
func (l Line) share(of plan.Load) Line { return Line{shareOf(l.Load, of), l.Memory.Share(of)} }

// Most is any load within the memory that there is.
func (v *view) Most() Line { return Line{math.MaxInt64, v.Full.Memory} }

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

// slack is the capacity whose low share is a twentieth above an even share.
func slack(even, low plan.Load) plan.Load {
	const most = plan.Load(1 << 62)
	target := float64(even) * 1.05 * float64(plan.LoadUnit) / float64(low)
	if target >= float64(most) {
		return most
	}
	return max(plan.Load(target), 1)
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

func ceil(load plan.Load, n int) plan.Load {
	if load == 0 {
		return 0
	}
	return (load-1)/plan.Load(n) + 1
}

// shareOf is a share of a load, rounded down; it saturates.
func shareOf(load, share plan.Load) plan.Load { return mulDiv(load, share, plan.LoadUnit) }

// InUnit is a load in the unit of the question; in here it is in parts of that.
func (v *view) InUnit(load plan.Load) plan.Load { return v.unit.to(load) }
