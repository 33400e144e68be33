package fresh

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/pack"
	"ballast/planner/plan"
)

// tried is in how many ways the highest replica is emptied, at most.
const tried = 16

// Without is a plan of one replica less than the plan in force has, none of which carries more than the capacity, but
// for an item that does so alone. Of those that it finds it takes the one that moves the least load; false: it finds
// none. The plan in force is where it starts from, and a plan made anew what it takes where that leads nowhere: where
// LPT needs no more replicas there is one. Caps, groups, closed replicas and the memory would have to be looked at for
// each item: with them it finds none.
func Without(p constraint.Question, o Options) (out partition.Partition, found bool) {
	n := p.Replicas - 1
	if n < 1 || p.Bounds.Fixed > 0 || !stands(&p, p.Replicas) {
		return out, false
	}
	c, err := p.Check()
	if err != nil || n < c.Least || n > c.Most {
		return out, false
	}
	ranked, err := partition.HeaviestFirst(p.Items)
	if err != nil {
		return out, false
	}
	o = o.complete(len(p.Items))
	s := newState(&c, lightestFirst(ranked), p.Now, p.Replicas)
	places, bins := s.shared()
	if len(bins) < 2 || !mayHold(c.Loads, bins, c.Capacity) {
		return out, false
	}
	var best []pack.Bin
	for seed := uint64(1); seed <= tried && o.Steps > 0; seed++ {
		got, left := pack.Empty(c.Loads, bins, c.Capacity, (o.Steps+1)/2, seed)
		o.Steps -= max((o.Steps+1)/2-left, 1)
		if got != nil && (best == nil || s.moved(got, places) < s.moved(best, places)) {
			best = got
		}
	}
	if best == nil {
		return anewWithout(p, n, o)
	}
	for k, b := range best {
		for _, i := range b.Items {
			s.of[i] = places[k]
		}
	}
	return c.Build(p.Items, s.of, n), true
}

// shared are the replicas that take part, the highest last, and what they have: all but those that one item fills
// beyond the capacity.
func (s *state) shared() (places []int, bins []pack.Bin) {
	for r, b := range s.bins() {
		weighs := len(b.Items) // how many do, of which the heaviest are last
		for weighs > 0 && s.c.Loads[b.Items[len(b.Items)-weighs]] == 0 {
			weighs--
		}
		alone := weighs == 0 || weighs == 1 && s.fixed[r] == 0
		if r == s.n-1 || !alone || b.Load <= s.c.Capacity {
			places, bins = append(places, r), append(bins, b)
		}
	}
	return places, bins
}

// mayHold reports whether no bound says that one bin less is too few.
func mayHold(loads []plan.Load, bins []pack.Bin, full plan.Load) bool {
	var total plan.Load
	var free []plan.Load
	for _, b := range bins {
		total += b.Load
		for _, i := range b.Items {
			free = append(free, loads[i])
		}
	}
	if total > 0 && int((total-1)/full)+1 > len(bins)-1 {
		return false // as nearly always
	}
	slices.SortFunc(free, func(a, b plan.Load) int { return cmp.Compare(b, a) })
	return len(free) == 0 || free[0] <= full && pack.LeastReplicas(free, full) < len(bins)
}

// anewWithout is a plan made anew, if it has no more replicas.
func anewWithout(p constraint.Question, n int, o Options) (partition.Partition, bool) {
	p.Bounds.MinReplicas, p.Bounds.MaxReplicas = max(p.Bounds.MinReplicas, n), n
	out, err := Plan(p, o)
	if err != nil || out.Replicas > n || len(out.Lost) > 0 {
		return out, false
	}
	units := make([]int, out.Replicas)
	for _, r := range out.Of {
		units[r]++
	}
	for r, load := range out.Loads {
		if units[r] > 1 && load > p.Bounds.Capacity {
			return out, false
		}
	}
	return out, true
}
