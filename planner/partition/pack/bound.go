package pack

import "ballast/planner/plan"

// LeastReplicas is a number of replicas below which the loads fit on none: Martello and Toth's L2. The loads are the
// heaviest first, none above full. For each threshold k, those above full-k share with none of k or more, those above
// half of full with no other such, and the rest of k or more must fit beside them or on more.
func LeastReplicas(sorted []plan.Load, full plan.Load) int {
	n := len(sorted)
	sums := sumsOf(sorted)
	half := 0
	for half < n && sorted[half] > full/2 {
		half++
	}
	best, big := max(half, filled(sums[n], full)), 0
	for at := n - 1; at >= half; at-- {
		k := sorted[at]
		if at+1 < n && sorted[at+1] == k {
			continue
		}
		for big < half && sorted[big] > full-k {
			big++
		}
		room := plan.Load(half-big)*full - (sums[half] - sums[big])
		best = max(best, half+filled(sums[at+1]-sums[half]-room, full))
	}
	return best
}

// LeastMakespan is a load below which the fullest of so many replicas cannot be. The loads are the heaviest first.
func LeastMakespan(sorted []plan.Load, replicas int) plan.Load {
	if len(sorted) == 0 {
		return 0
	}
	sums := sumsOf(sorted)
	total := sums[len(sorted)]
	low, high := max(sorted[0], mean(total, replicas), crowded(sums, replicas)), total
	for low < high {
		if mid := low + (high-low)/2; LeastReplicas(sorted, mid) > replicas {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// pairs bounds how many pairs of numbers crowded looks at.
const pairs = 4_000_000

// crowded is a makespan that the numbers of loads enforce. Of the p heaviest, more than q times the replicas and at
// most q+1 times, some h replicas have more than q each, and the others q at most: so those h have p-(n-h)q together,
// or more, and one of them has the mean of so many of the lightest. With h above p-nq, that is no less than with h =
// p-nq.
func crowded(sums []plan.Load, replicas int) (low plan.Load) {
	step := 1
	if len(sums) > pairs/replicas {
		step = replicas // h is 1 then
	}
	for p := replicas + 1; p < len(sums); p += step {
		q := (p - 1) / replicas
		over := p - replicas*q
		least := sums[p]
		for h := 1; h <= over && least > low; h++ {
			least = min(least, mean(sums[p]-sums[p-over-h*q], h))
		}
		low = max(low, least)
	}
	return low
}

// sumsOf are the sums of the first of the loads, by how many.
func sumsOf(sorted []plan.Load) []plan.Load {
	sums := make([]plan.Load, len(sorted)+1)
	for i, l := range sorted {
		sums[i+1] = sums[i] + l
	}
	return sums
}

// mean is rounded up.
func mean(load plan.Load, n int) plan.Load {
	if load <= 0 {
		return 0
	}
	return (load-1)/plan.Load(n) + 1
}

// filled is how many replicas a load fills, rounded up.
func filled(load, full plan.Load) int {
	if load <= 0 {
		return 0
	}
	return int((load-1)/full) + 1
}
