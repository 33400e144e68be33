// Package pack deals items over replicas anew, two replicas at a time, until fewer replicas are enough, the last one is
// empty or the fullest carries less; and it knows bounds below which neither can be.
//
// All replicas but one, the hot one, keep to a load. Two of them at a time deal some of their items anew, so that one
// is as full as can be (the best subset, by the sorted sums of both halves) and the room gathers in the other; so does
// the load that is left over, in the hot one, until it has room somewhere. At times a replica takes less than it could,
// to get away from where nothing is left to gain. The generator has a fixed seed and steps are counted: the same answer
// on every machine.
package pack

import (
	"ballast/planner/plan"
)

// Fewer empties the last bin, again and again while more than low are left. No bin may carry more than full, now or
// then. The first bins up to low keep what is fixed to them; the others have nothing that is.
func Fewer(loads []plan.Load, bins []Bin, low int, full plan.Load, steps int) []Bin {
	w := newWalk(loads, 1)
	w.full, w.steps = full, steps
	for last := len(bins) - 1; last >= max(low, 1) && w.steps > 0; last-- {
		w.bins = clone(bins)
		gone := w.bins[last]
		w.bins = w.bins[:last]
		hot := least(w.bins)
		w.bins[hot].Items = append(w.bins[hot].Items, gone.Items...)
		w.bins[hot].Load += gone.Load
		if !w.settle(hot) {
			break
		}
		bins = w.bins
	}
	return bins
}

// Lower brings the fullest bin's load down, to low if it can, and says how many steps are left. Half of them are for
// low itself, since most often it is possible; then halving narrows down what is. Another seed is another way there.
func Lower(loads []plan.Load, bins []Bin, low plan.Load, steps int, seed uint64) ([]Bin, int) {
	high := Makespan(bins)
	w := newWalk(loads, seed)
	full, part := low, steps/2
	for low < high && steps > 0 {
		w.bins, w.full, w.steps = clone(bins), full, part
		settled := w.settleAll()
		steps -= part - w.steps
		if most := Makespan(w.bins); most < high {
			high, bins = most, w.bins
		}
		if !settled {
			low = full + 1 // below which nothing is looked for any more
		}
		full, part = low+(high-low)/2, max(steps/8, min(steps, 20_000))
	}
	return bins, steps
}
