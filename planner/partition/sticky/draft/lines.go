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
func (d *Draft) Most() Line { return Line{math.MaxInt64, d.Full.Memory} }

// Limit works out again what the lines are, as it must be once the number of replicas has changed.
func (d *Draft) Limit() {
	full := d.Setting.Capacity
	even := d.Even()
	even = max(even, min(d.unit.from(d.Options.Even), even+even/2))
	switch {
	case d.Setting.Bounds.Fixed > 0: // balance only
		full = slack(even, d.Options.Low)
	case d.N == d.Setting.Most && shareOf(full, d.Options.Low) < even+even/20:
		full = max(full, slack(even, d.Options.Low))
	}
	d.Full = Line{full, d.Setting.Bounds.Memory}
	d.High, d.Down, d.Low = d.Full.share(d.Options.High), d.Full.share(d.Options.Down), d.Full.share(d.Options.Low)
	d.DrainTo, d.Useful = d.Full.share(d.Options.Drain), max(shareOf(full, d.Options.Useful), 1)
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

// Even is the load that the replicas would carry if it could be dealt evenly: the mean, without the items that are above
// it, which have a replica of their own.
func (d *Draft) Even() plan.Load {
	rest, bins := d.Setting.Total, d.N
	const passes = 16
	for range passes {
		if bins <= 1 {
			break
		}
		mean := ceil(rest, bins)
		left, own := d.Setting.Total, d.N
		for _, l := range d.Setting.Loads {
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
func (d *Draft) InUnit(load plan.Load) plan.Load { return d.unit.to(load) }
