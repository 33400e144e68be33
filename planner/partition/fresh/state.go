package fresh

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// state is a partition in the making. Member are the free items of each replica, the lightest first.
type state struct {
	c       *constraint.Setting
	n       int
	of      []int
	load    []plan.Load
	cluster []int
	fixed   []plan.Load // of fixed items
	member  [][]int32
	taken   constraint.Taken
	memory  []plan.Bytes // by replica; nil: it bounds nothing
	full    plan.Load
	ops     int
	random  *rand.Rand
}

func newState(c *constraint.Setting, base partition.Partition, steps int) *state {
	s := &state{c: c, n: base.Replicas, of: slices.Clone(base.Of), full: c.Capacity, ops: steps,
		random: rand.New(rand.NewPCG(1, 1))}
	if c.Groups.Any() {
		s.taken = constraint.Taken{}
	}
	s.count()
	return s
}

// count adds up what is where.
func (s *state) count() {
	s.load, s.fixed = make([]plan.Load, s.n), make([]plan.Load, s.n)
	s.cluster = make([]int, s.n)
	if s.c.Bytes != nil {
		s.memory = make([]plan.Bytes, s.n)
	}
	units := make([]int, s.n)
	for i, r := range s.of {
		s.load[r] += s.c.Loads[i]
		s.cluster[r] += s.c.Items[i].Clusters
		if s.memory != nil {
			s.memory[r] += s.c.Bytes[i]
		}
		if s.taken != nil {
			s.taken.Add(s.c.Groups.Of(i), r, 1)
		}
		if s.stays(i) {
			s.fixed[r] += s.c.Loads[i]
		} else {
			units[r]++
		}
	}
	s.list(units)
}

// list makes the members of all replicas: one sort of all items.
func (s *state) list(units []int) {
	order := make([]int32, 0, len(s.of))
	for i := range s.of {
		if !s.stays(i) {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, s.lighter)
	s.member = make([][]int32, s.n)
	backing, at := make([]int32, len(order)), 0
	for r, n := range units {
		s.member[r] = backing[at : at : at+n]
		at += n
	}
	for _, i := range order {
		r := s.of[i]
		s.member[r] = append(s.member[r], i)
	}
}

// stays: fixed items, and what a closed replica keeps.
func (s *state) stays(i int) bool {
	return s.c.Items[i].Replica != partition.Free || s.c.IsClosed(s.of[i])
}

func (s *state) lighter(a, b int32) int {
	if la, lb := s.c.Loads[a], s.c.Loads[b]; la != lb {
		return cmp.Compare(la, lb)
	}
	return cmp.Compare(s.c.Items[a].ID, s.c.Items[b].ID)
}

// bound is a number of replicas below which no plan is: Martello and Toth's L2. For a threshold k, items above full-k
// share with none of k or more, those above half share with no other such, and the rest must fit beside them.
func (s *state) bound(order []int32) int {
	n := len(order) // the heaviest first
	sums := make([]plan.Load, n+1)
	for i, item := range order {
		sums[i+1] = sums[i] + s.c.Loads[item]
	}
	upTo := func(above plan.Load) int { // how many are above it
		at, _ := slices.BinarySearchFunc(order, above, func(i int32, above plan.Load) int {
			if s.c.Loads[i] > above {
				return -1
			}
			return 1
		})
		return at
	}
	best := max(s.c.Least, share(sums[n], s.full))
	half := upTo(s.full / 2)
	last := plan.Load(-1)
	for at := n - 1; at >= half; at-- {
		k := s.c.Loads[order[at]]
		if k == last {
			continue
		}
		last = k
		big, small := upTo(s.full-k), upTo(k-1)
		room := plan.Load(half-big)*s.full - (sums[half] - sums[big])
		best = max(best, half+share(max(sums[small]-sums[half]-room, 0), s.full))
	}
	return max(best, half)
}

// share is how many replicas a load fills, rounded up.
func share(load, full plan.Load) int {
	if load == 0 {
		return 0
	}
	return int((load-1)/full) + 1
}
