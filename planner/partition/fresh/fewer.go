package fresh

import (
	"cmp"
	"slices"

	"ballast/planner/partition/pack"
	"ballast/planner/plan"
)

// fewer looks for a partition of fewer replicas, down to the bound. Where the number is fixed, or there is no room for
// what there is, it looks for a lower makespan instead.
func (s *state) fewer(steps int) {
	nothing := steps <= 0 || s.c.Total == 0 || s.n < 2
	if nothing || !s.free() {
		return
	}
	bins, full := s.bins(), s.c.Capacity
	if s.c.Bounds.Fixed > 0 || pack.Makespan(bins) > full {
		if got, _ := pack.Lower(s.c.Loads, bins, s.least(), steps, 1); pack.Makespan(got) < pack.Makespan(bins) {
			s.take(got)
		}
		return
	}
	if s.n <= max(int((s.c.Total-1)/full)+1, s.c.Least) {
		return // as nearly always: all together have no room on fewer
	}
	low := max(pack.LeastReplicas(s.sorted(), full), s.c.Least)
	if got := pack.Fewer(s.c.Loads, bins, low, full, steps); len(got) < s.n {
		s.take(got)
	}
}

func (s *state) bins() []pack.Bin {
	bins := make([]pack.Bin, s.n)
	for r := range bins {
		bins[r] = pack.Bin{Items: s.member[r], Load: s.load[r]}
	}
	return bins
}

// sorted are the loads, the heaviest first.
func (s *state) sorted() []plan.Load {
	sorted := make([]plan.Load, 0, len(s.order))
	for _, i := range slices.Backward(s.order) {
		sorted = append(sorted, s.c.Loads[i])
	}
	return sorted
}

// least is a makespan below which none is.
func (s *state) least() plan.Load {
	return max(pack.LeastMakespan(s.sorted(), s.n), slices.Max(s.fixed))
}

// ways is in how many ways the fullest is relieved, at most.
const ways = 256

// relieve starts from the plan in force. Of the plans whose fullest carries no more than LPT's, and about the least
// that is possible, it takes the one that moves the least load.
func (s *state) relieve(lpt plan.Load, steps int) {
	if s.c.Total == 0 || s.n < 2 || !s.free() {
		return
	}
	low := s.least()
	low = max(low, min(low+low/near, lpt))
	best, bins, places := s.bins(), s.bins(), make([]int, s.n)
	for r := range places {
		places[r] = r
	}
	for seed := uint64(1); seed <= ways && steps > 0; seed++ {
		part := (steps + 1) / 2
		got, left := pack.Lower(s.c.Loads, bins, low, part, seed)
		steps -= max(part-left, 1)
		if cmp.Or(cmp.Compare(max(pack.Makespan(got), low), max(pack.Makespan(best), low)), cmp.Compare(s.moved(got, places), s.moved(best, places))) < 0 {
			best = got
		}
	}
	s.take(best)
}

// near is the part of a makespan that is not worth a move.
const near = 100

// moved is the load that is elsewhere than in the plan in force, with the bins on the replicas that places has for
// them.
func (s *state) moved(bins []pack.Bin, places []int) (sum plan.Load) {
	for k, b := range bins {
		for _, i := range b.Items {
			if s.c.Stands(int(i)) != places[k] {
				sum += s.c.Loads[i]
			}
		}
	}
	return sum
}

// free reports whether no rule ties items to others. Caps, groups and the memory would have to be looked at for each
// item of each subset: they stay with what LPT or sticky found, and so do fleets of which a replica is closed.
func (s *state) free() bool {
	bounded := s.c.Bounds.MaxClusters > 0 || s.occupied != nil || s.memory != nil
	return !bounded && !slices.Contains(s.c.Closed, true)
}

// take puts the items where the bins are.
func (s *state) take(bins []pack.Bin) {
	s.n = len(bins)
	for r, b := range bins {
		for _, i := range b.Items {
			s.of[i] = r
		}
	}
	s.count()
}
