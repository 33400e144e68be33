package fresh

import (
	"slices"

	"ballast/planner/plan"
)

// construction is a way to deal all items out, the heaviest first: of two replicas with room, whether the one with load
// a goes before the one with load b, which has the lower number.
type construction func(a, b plan.Load) bool

func bestFit(a, b plan.Load) bool { return a > b }

func firstFit(plan.Load, plan.Load) bool { return false }

// constructions are tried in this order. They are for what the search left above its bound, or could not look at for a
// rule's sake: on reference instances without such rules they find next to nothing that it does not (docs/bench.md).
var constructions = []construction{bestFit, firstFit}

// construct looks for fewer replicas, or for a lower makespan where the number is fixed or there is no room for what
// there is. What is no better than what there is changes nothing.
func (s *state) construct(all []construction, steps int) (found bool) {
	if steps <= 0 || s.c.Total == 0 || s.n < 2 {
		return false
	}
	lower := s.c.Bounds.Fixed > 0 || slices.Max(s.load) > s.c.Capacity
	for _, how := range all {
		if lower {
			found = how.multifit(s, steps) || found
		} else {
			found = how.without(s, steps) || found
		}
	}
	return found
}

// without leaves out the highest replica, again and again while all that there is has room on the others.
func (how construction) without(s *state, steps int) (found bool) {
	for n := s.n - 1; n >= s.needed(); n-- {
		t := how.fit(s, n, s.c.Capacity, &steps)
		if t == nil {
			break
		}
		*s, found = *t, true
	}
	return found
}

// needed is how many replicas the load, the rules and what stays where it is need at least.
func (s *state) needed() int {
	least := max(int((s.c.Total-1)/s.c.Capacity)+1, s.c.Least)
	if least >= s.n {
		return least // as nearly always
	}
	for i, r := range s.of {
		if r >= least && s.stays(i) {
			least = r + 1
		}
	}
	return least
}

// multifit halves its way to the lowest load that a construction has room within (Coffman, Garey and Johnson).
func (how construction) multifit(s *state, steps int) (found bool) {
	high := slices.Max(s.load)
	for low := s.least(); low < high && steps > 0; {
		mid := low + (high-low)/2
		t := how.fit(s, s.n, mid, &steps)
		if t == nil {
			low = mid + 1
			continue
		}
		*s, found, high = *t, true, slices.Max(t.load)
	}
	return found
}

// fit deals all items out over so many replicas within a load, and keeps to every rule; nil: one fits nowhere, or the
// steps are spent.
func (how construction) fit(s *state, n int, full plan.Load, steps *int) *state {
	if *steps -= n * len(s.order); *steps <= 0 {
		return nil
	}
	t := &state{c: s.c, n: n, of: slices.Clone(s.of), order: s.order}
	if s.occupied != nil {
		t.occupied = map[uint64]int32{}
	}
	for i := range t.of {
		if !s.stays(i) {
			t.of[i] = plan.NoReplica
		}
	}
	t.count()
	for _, i := range slices.Backward(s.order) {
		if s.stays(int(i)) {
			continue
		}
		best := -1
		for r := range n {
			if t.room(i, r, full) && (best < 0 || how(t.load[r], t.load[best])) {
				best = r
			}
		}
		if best < 0 {
			return nil
		}
		t.of[i] = best
		t.add(int(i), 1)
	}
	return newState(s.c, s.order, t.of, n)
}

// room reports whether an item may go to a replica. An empty one takes an item whatever its load: no other would do
// better.
func (s *state) room(i int32, r int, full plan.Load) bool {
	it := &s.c.Items[i]
	if s.load[r] > 0 && s.load[r] > full-s.c.Loads[i] || s.c.IsClosed(r) {
		return false
	}
	if most := s.c.Bounds.MaxClusters; most > 0 && s.cluster[r]+it.Clusters > most {
		return false
	}
	if s.memory != nil && s.memory[r]+s.c.Bytes[i] > s.c.Bounds.Memory {
		return false
	}
	return s.occupied == nil || !s.occupied.Has(s.c.Groups.Of(int(i)), r)
}
