package constraint

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// hall is the seats of a setting: items of groups, and the replicas that may receive.
type hall struct {
	items  []int // those of groups, by ID
	groups [][]int32
	pin    []int // by place in items
	stands []int
	names  []string
	ids    []string
	open   []int // ascending
	closed []int
	count  int
	rule   partition.Rule
	nextTo [][]int // who shares a group, by place
}

func (s *Setting) hall() *hall {
	h := &hall{count: s.Most, rule: partition.MaxReplicas}
	if s.Bounds.Fixed > 0 {
		h.rule = partition.FixedReplicas
	}
	for r := range min(s.Most, len(s.Items)+s.Replicas+len(s.Closed)+1) { // more can never be needed
		if s.IsClosed(r) {
			h.closed = append(h.closed, r)
		} else {
			h.open = append(h.open, r)
			if !s.Groups.Any() {
				return h // one is enough to know
			}
		}
	}
	if !s.Groups.Any() {
		return h
	}
	for i := range s.Items {
		if len(s.Groups.Of(i)) > 0 {
			h.items = append(h.items, i)
		}
	}
	slices.SortFunc(h.items, func(a, b int) int { return cmp.Compare(s.Items[a].ID, s.Items[b].ID) })
	h.names = s.Groups.names
	members := make([][]int, len(h.names))
	for k, i := range h.items {
		h.groups = append(h.groups, s.Groups.Of(i))
		h.ids = append(h.ids, s.Items[i].ID)
		h.pin = append(h.pin, s.Items[i].Replica)
		h.stands = append(h.stands, h.home(s, i))
		for _, g := range s.Groups.Of(i) {
			members[g] = append(members[g], k)
		}
	}
	h.join(members)
	return h
}

// home is where an item stands, if that replica stays.
func (h *hall) home(s *Setting, i int) int {
	if at := s.Stands(i); at < s.Most {
		return at
	}
	return plan.NoReplica
}

// manyNeighbours: a group of more that clashes by its size alone need not list who is beside whom.
const manyNeighbours = 1000

// join lists each item's neighbours.
func (h *hall) join(members [][]int) {
	h.nextTo = make([][]int, len(h.items))
	for _, group := range members {
		if len(group) > h.count && len(group) > manyNeighbours {
			continue
		}
		for _, a := range group {
			for _, b := range group {
				if a != b {
					h.nextTo[a] = append(h.nextTo[a], b)
				}
			}
		}
	}
	for k := range h.nextTo {
		slices.Sort(h.nextTo[k])
		h.nextTo[k] = slices.Compact(h.nextTo[k])
	}
}

func (h *hall) limit() Constraint { return Constraint{Rule: h.rule, Count: h.count} }

func (h *hall) closedSet() (set []Constraint) {
	for _, r := range h.closed {
		set = append(set, Constraint{Rule: partition.Closed, Replica: r})
	}
	return set
}
