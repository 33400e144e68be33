package fresh

import (
	"slices"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// bin is a replica while few are looked for: its items, the heaviest first, and what they carry together. Replicas with
// fixed items are not packed anew.
type bin struct {
	items []int32
	load  plan.Load
}

// fewer looks for a partition of fewer replicas, down to the bound. Where the number is fixed it looks for a lower
// makespan instead, by halving: the capacity that as many replicas are enough for.
func (s *state) fewer() {
	if s.ops <= 0 || s.c.Total == 0 || s.n < 2 || !s.free() {
		return
	}
	order := make([]int32, 0, len(s.of))
	for r := range s.n {
		order = append(order, s.member[r]...)
	}
	slices.SortFunc(order, s.heavier)
	if s.c.Bounds.Fixed > 0 || s.c.Heaviest > s.full || slices.Max(s.load) > s.full {
		s.lower(order)
		return
	}
	low := s.bound(order)
	if s.n <= low {
		return
	}
	if best := s.pack(order, low); len(best) < s.n {
		s.take(best, max(len(best), s.c.Least))
	}
}

// free reports whether no rule ties an item to a replica or to others. Caps and groups would have to be looked at for
// each item of each subset: they stay with what LPT found, and so do fleets with fixed items, whose replicas have numbers.
func (s *state) free() bool {
	return s.c.Bounds.MaxClusters == 0 && s.taken == nil && s.memory == nil && !slices.Contains(s.c.Closed, true) &&
		!slices.ContainsFunc(s.c.Items, func(it partition.Item) bool { return it.Replica != partition.Free })
}

// lower packs s.n replicas with less and less capacity.
func (s *state) lower(order []int32) {
	real, steps := s.full, s.ops
	high := slices.Max(s.load)
	low := s.enough(order, s.least(order), high)
	for first := true; low < high && s.ops > 0; first = false {
		s.full = low + (high-low)/2
		if first {
			s.full = low // most often it is enough
		}
		s.ops = min(s.ops, steps/4)
		spent := s.ops
		best := s.pack(order, s.n)
		steps -= spent - s.ops
		s.ops = steps
		if len(best) > s.n {
			low = s.full + 1
			continue
		}
		s.take(best, s.n)
		high = slices.Max(s.load)
	}
	s.full = real
}

// least is a makespan below which no plan is: the mean, and for each k the k+1 lightest of the k*n+1 heaviest.
func (s *state) least(order []int32) (low plan.Load) {
	low = max((s.c.Total-1)/plan.Load(s.n)+1, s.c.Loads[order[0]])
	for k := 1; k*s.n < len(order); k++ {
		var sum plan.Load
		for _, i := range order[k*s.n-k : k*s.n+1] {
			sum += s.c.Loads[i]
		}
		low = max(low, sum)
	}
	return low
}

// enough is the least capacity that the bound leaves possible for s.n replicas.
func (s *state) enough(order []int32, low, high plan.Load) plan.Load {
	for low < high {
		if s.full = low + (high-low)/2; s.bound(order) > s.n {
			low = s.full + 1
		} else {
			high = s.full
		}
	}
	return low
}

// pack is the best that was found within s.full.
func (s *state) pack(order []int32, low int) []bin {
	best := s.bestFit(order)
	if len(best) <= low {
		return best
	}
	if other := s.slack(order); len(other) < len(best) {
		best = other
	}
	return s.again(best, low)
}

// take puts the items where the bins are.
func (s *state) take(bins []bin, n int) {
	s.n = n
	for r, b := range bins {
		for _, i := range b.items {
			s.of[i] = r
		}
	}
	s.count()
}

func (s *state) heavier(a, b int32) int {
	if la, lb := s.c.Loads[a], s.c.Loads[b]; la != lb {
		if la > lb {
			return -1
		}
		return 1
	}
	return s.lighter(a, b)
}

// bestFit puts each item on the fullest that it fits on. Bins are kept by load, ascending.
func (s *state) bestFit(order []int32) []bin {
	var bins []bin
	for _, i := range order {
		l := s.c.Loads[i]
		at, _ := slices.BinarySearchFunc(bins, s.full-l+1, func(b bin, most plan.Load) int {
			if b.load < most {
				return -1
			}
			return 1
		})
		s.ops -= 8
		b := bin{items: []int32{i}, load: l}
		if at--; at >= 0 {
			b = bin{items: append(bins[at].items, i), load: bins[at].load + l}
			bins = slices.Delete(bins, at, at+1)
		}
		to, _ := slices.BinarySearchFunc(bins, b.load, func(b bin, l plan.Load) int {
			if b.load <= l {
				return -1
			}
			return 1
		})
		bins = slices.Insert(bins, to, b)
	}
	return bins
}

// slack fills one bin after the other: with the heaviest that is left and those that leave the least room beside it
// (Gupta and Ho's minimum bin slack, as Fleszar and Hindi begin it).
func (s *state) slack(order []int32) []bin {
	const most = 3000
	left := slices.Clone(order)
	var bins []bin
	for len(left) > 0 {
		f := filling{s: s, left: left, full: s.full, nodes: most}
		f.chosen = append(f.chosen, 0)
		f.fill(1, s.c.Loads[left[0]])
		s.ops -= most - f.nodes + len(left)
		b := bin{load: f.load}
		keep, next := left[:0:0], 0
		for k, i := range left {
			if next < len(f.best) && f.best[next] == k {
				next++
				b.items = append(b.items, i)
			} else {
				keep = append(keep, i)
			}
		}
		left = keep
		bins = append(bins, b)
	}
	return bins
}

// filling is the search for the fullest bin.
type filling struct {
	s      *state
	left   []int32
	full   plan.Load
	chosen []int
	best   []int
	load   plan.Load
	nodes  int
}

// fill tries the items from a place on, the heavier first, with and without each.
func (f *filling) fill(from int, load plan.Load) {
	if load > f.load || f.best == nil {
		f.load, f.best = load, slices.Clone(f.chosen)
	}
	last := plan.Load(-1)
	at := f.first(from, f.full-load)
	for k := at; k < len(f.left) && f.load < f.full && f.nodes > 0; k++ {
		l := f.s.c.Loads[f.left[k]]
		if l == last {
			continue
		}
		last = l
		f.nodes--
		f.chosen = append(f.chosen, k)
		f.fill(k+1, load+l)
		f.chosen = f.chosen[:len(f.chosen)-1]
	}
}

// first is the first place from there on whose item is no heavier.
func (f *filling) first(from int, most plan.Load) int {
	at, _ := slices.BinarySearchFunc(f.left[from:], most, func(i int32, most plan.Load) int {
		if f.s.c.Loads[i] > most {
			return -1
		}
		return 1
	})
	return from + at
}

// again empties some bins and packs them anew, as long as there are steps. What is not worse is gone on with: fewer bins,
// or as many of which some are fuller, so that one will be empty.
func (s *state) again(bins []bin, low int) []bin {
	for len(bins) > low && s.ops > 0 {
		s.random.Shuffle(len(bins), func(a, b int) { bins[a], bins[b] = bins[b], bins[a] })
		least := 0
		for k := range bins {
			if bins[k].load < bins[least].load {
				least = k
			}
		}
		bins[0], bins[least] = bins[least], bins[0]
		out := min(3+s.random.IntN(10), len(bins))
		var free []int32
		before := 0.0
		for _, b := range bins[:out] {
			free = append(free, b.items...)
			before += square(b.load, s.full)
		}
		slices.SortFunc(free, s.heavier)
		fresh := s.slack(free)
		after := 0.0
		for _, b := range fresh {
			after += square(b.load, s.full)
		}
		if len(fresh) < out || len(fresh) == out && after >= before {
			bins = append(slices.Clone(bins[out:]), fresh...)
		}
	}
	return bins
}

func square(load, full plan.Load) float64 {
	f := float64(load) / float64(full)
	return f * f
}
