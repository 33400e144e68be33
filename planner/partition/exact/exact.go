// Package exact says how good a division could be at best, and whether it proved that: the fewest replicas, the least
// makespan, the fewest moves. It is a yardstick for tests, benchmarks and `ballast explain`, and no part of a plan: the
// questions are hard, and each takes as many steps as it was given, not as many as it needs.
//
// Of the rules it knows what stays where it is, and no other: what it proves to be impossible is so with any rules.
package exact

import (
	"cmp"
	"slices"

	"ballast/planner/partition/pack"
	"ballast/planner/plan"
)

// Replicas is the fewest replicas for loads of which none may carry more than its capacity. A load above the capacity
// has one of its own.
func Replicas(loads []plan.Load, capacity plan.Load, steps int) Bound {
	rest, own := descending(loads), int64(0)
	for len(rest) > 0 && rest[0] > capacity {
		rest, own = rest[1:], own+1
	}
	if len(rest) == 0 {
		return Bound{max(own, 1), max(own, 1)}
	}
	b := Bound{int64(pack.LeastReplicas(rest, capacity)), int64(len(firstFit(rest, capacity)))}
	for !b.Proved() && steps > 0 {
		s := search{full: capacity, steps: steps / 2, left: steps / 2}
		answer, most := s.fit(rest, int(b.Least))
		steps -= s.used()
		if answer == fits && most <= capacity {
			b.Best = b.Least
			break
		}
		if answer == fails {
			b.Least++
			continue
		}
		s = search{full: capacity, steps: steps, left: steps}
		if answer, _ = s.fit(rest, int(b.Best-1)); answer != fits {
			break
		}
		steps -= s.used()
		b.Best--
	}
	return Bound{b.Least + own, b.Best + own}
}

// tries is in how many parts the steps for a makespan are spent.
const tries = 16

// Makespan is the least load of the fullest of that many replicas.
func Makespan(loads []plan.Load, replicas, steps int) Bound {
	sorted := descending(loads)
	if len(sorted) == 0 || replicas < 1 {
		return Bound{}
	}
	low, high := pack.LeastMakespan(sorted, replicas), greedy(sorted, replicas)
	from := low // below which nothing is looked for any more, proved or not
	for from < high && steps > 0 {
		full := from + (high-from)/2
		if from == low {
			full = low // most often it is
		}
		part := max(steps/tries, min(steps, 1000))
		s := search{full: full, steps: part, left: part}
		answer, most := s.fit(sorted, replicas)
		steps -= s.used()
		switch answer {
		case fits:
			high = most
		case fails:
			low, from = max(low, full+1), full+1
		default:
			from = full + 1
		}
	}
	return Bound{int64(low), int64(high)}
}

// descending are the loads above 0, the heaviest first.
func descending(loads []plan.Load) []plan.Load {
	sorted := slices.DeleteFunc(slices.Clone(loads), func(l plan.Load) bool { return l <= 0 })
	slices.SortFunc(sorted, func(a, b plan.Load) int { return cmp.Compare(b, a) })
	return sorted
}

// firstFit is what each replica carries by the rule that the first that has room takes the heaviest left.
func firstFit(sorted []plan.Load, full plan.Load) (bins []plan.Load) {
	for _, l := range sorted {
		at := slices.IndexFunc(bins, func(b plan.Load) bool { return b <= full-l })
		if at < 0 {
			at, bins = len(bins), append(bins, 0)
		}
		bins[at] += l
	}
	return bins
}

// greedy is the makespan of the heaviest first to the least loaded.
func greedy(sorted []plan.Load, replicas int) plan.Load {
	bins := make([]plan.Load, min(replicas, len(sorted)))
	for _, l := range sorted {
		at := 0
		for r := range bins {
			if bins[r] < bins[at] {
				at = r
			}
		}
		bins[at] += l
	}
	return slices.Max(bins)
}
