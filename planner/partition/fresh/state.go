package fresh

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// state is a partition in the making. Member are the free items of each replica, the lightest first.
type state struct {
	c       *constraint.Setting
	order   []int32 // all items, the lightest first
	n       int
	of      []int
	load    []plan.Load
	cluster []int
	fixed   []plan.Load // of fixed items
	member  [][]int32
	taken   constraint.Taken
	memory  []plan.Bytes // by replica; nil: it bounds nothing
}

func newState(c *constraint.Setting, of []int, replicas int) *state {
	s := &state{c: c, n: replicas, of: slices.Clone(of), order: lightestFirst(c)}
	if c.Groups.Any() {
		s.taken = constraint.Taken{}
	}
	s.count()
	return s
}

func lightestFirst(c *constraint.Setting) []int32 {
	all, order := make([]partition.Ranked, len(c.Loads)), make([]int32, len(c.Loads))
	for i, load := range c.Loads {
		all[i] = partition.Ranked{Key: uint64(load), Item: int32(i)}
	}
	partition.Rank(all, func(a, b int32) int { return cmp.Compare(c.Items[a].ID, c.Items[b].ID) })
	for k := range all {
		order[k] = all[k].Item
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

// list makes the members of all replicas, of so many units each.
func (s *state) list(units []int) {
	s.member = make([][]int32, s.n)
	backing, at := make([]int32, len(s.order)), 0
	for r, n := range units {
		s.member[r] = backing[at : at : at+n]
		at += n
	}
	for _, i := range s.order {
		if r := s.of[i]; !s.stays(int(i)) {
			s.member[r] = append(s.member[r], i)
		}
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
