package fresh

import (
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// state is a partition in the making. Member are the free items of each replica, the lightest first.
type state struct {
	c        *constraint.Setting
	order    []int32 // all items, the lightest first
	n        int
	of       []int
	load     []plan.Load
	cluster  []int
	fixed    []plan.Load // of fixed items
	member   [][]int32
	occupied constraint.Occupancy
	memory   []plan.Bytes // by replica; nil: it bounds nothing
}

func newState(c *constraint.Setting, order []int32, of []int, replicas int) *state {
	s := &state{c: c, n: replicas, of: slices.Clone(of), order: order}
	if c.Groups.Any() {
		s.occupied = constraint.Occupancy{}
	}
	s.count()
	return s
}

// lightestFirst turns a ranking round, but for the items of one load.
func lightestFirst(ranked []partition.Ranked) []int32 {
	order := make([]int32, 0, len(ranked))
	for end := len(ranked); end > 0; {
		at := end - 1
		for at > 0 && ranked[at-1].Key == ranked[at].Key {
			at--
		}
		for _, r := range ranked[at:end] {
			order = append(order, r.Item)
		}
		end = at
	}
	return order
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
		if r == plan.NoReplica {
			continue
		}
		s.add(i, 1)
		if s.stays(i) {
			s.fixed[r] += s.c.Loads[i]
		} else {
			units[r]++
		}
	}
	s.list(units)
}

// add counts an item on its replica, or no longer with the sign -1.
func (s *state) add(i, sign int) {
	r := s.of[i]
	s.load[r] += plan.Load(sign) * s.c.Loads[i]
	s.cluster[r] += sign * s.c.Items[i].Clusters
	if s.memory != nil {
		s.memory[r] += plan.Bytes(sign) * s.c.Bytes[i]
	}
	if s.occupied != nil {
		s.occupied.Add(s.c.Groups.Of(i), r, int32(sign))
	}
}

// list makes the members of all replicas, of so many units each.
func (s *state) list(units []int) {
	s.member = make([][]int32, s.n)
	backing, at := make([]int32, len(s.order)), 0
	ends := make([]int, s.n)
	for r, n := range units {
		s.member[r] = backing[at : at+n : at+n]
		ends[r] = at
		at += n
	}
	all := at == len(s.order)
	for _, i := range s.order {
		if r := s.of[i]; all || r != plan.NoReplica && !s.stays(int(i)) {
			backing[ends[r]] = i
			ends[r]++
		}
	}
}

// stays: fixed items, and what a closed replica keeps.
func (s *state) stays(i int) bool {
	return s.c.Items[i].Replica != partition.Free || s.c.IsClosed(s.of[i])
}
