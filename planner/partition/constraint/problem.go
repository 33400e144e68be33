// Package constraint is what the partitioners but LPT are asked: the items, the plan in force, and every rule that they
// keep to; and which rules clash.
//
// What must be together is one Item. What must be apart is a Group. A closed (cordoned) replica keeps what it has and
// receives nothing but what is pinned to it. Rules that leave no plan at all are an Error, which names a set of them
// that clashes and of which none could be left out; the rules of partition.Lost give way to each other instead.
package constraint

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// Question is what a partitioner is asked. Its slices are only read.
type Question struct {
	Items  []partition.Item
	Bounds partition.Bounds

	// The plan in force: Now is each item's replica, in the order of Items; what is not within 0..Replicas-1 has none.
	// nil: there is no plan.
	Now      []int
	Replicas int

	Closed []bool // by replica; those beyond its length are open
	Apart  []Group
}

// Group is items of which no two are on one replica, by their places in Items.
type Group struct {
	Name  string
	Items []int
}

// Setting is a problem that was checked. Loads are those of the items, Frame.Capacity with them, divided by what all
// have in common: the same fleet in another unit is the same problem, to the last digit.
type Setting struct {
	partition.Frame
	Question
	Loads  []plan.Load
	Total  plan.Load
	Groups Groups
	Bytes  []plan.Bytes // the items' memory; nil: Bounds.Memory is 0, and it bounds nothing
	Seats  map[int]int  // a replica for each item of a group, if those that look for one should be at a loss
}

// Stands is an item's replica in the plan in force, plan.NoReplica if it has none.
func (p *Question) Stands(i int) int {
	if p.Now == nil || p.Now[i] < 0 || p.Now[i] >= p.Replicas {
		return plan.NoReplica
	}
	return p.Now[i]
}

// IsClosed reports whether a replica receives nothing.
func (p *Question) IsClosed(replica int) bool { return replica < len(p.Closed) && p.Closed[replica] }

// Lighter orders items by load, then by ID.
func (s *Setting) Lighter(a, b int32) int {
	if la, lb := s.Loads[a], s.Loads[b]; la != lb {
		return cmp.Compare(la, lb)
	}
	return cmp.Or(cmp.Compare(s.Items[a].ID, s.Items[b].ID), cmp.Compare(a, b))
}

// Twice is an item that a list has twice; callers that order items by ID find it.
func Twice(id string) error { return fmt.Errorf("partitioning %q: it is there twice", id) }

// Groups indexes groups by item.
type Groups struct {
	of    [][]int32 // by item; nil: there are no groups
	names []string
}

func newGroups(p Question) (Groups, error) {
	if len(p.Apart) == 0 {
		return Groups{}, nil
	}
	g := Groups{of: make([][]int32, len(p.Items)), names: make([]string, len(p.Apart))}
	for k, group := range p.Apart {
		g.names[k] = group.Name
		for _, i := range group.Items {
			if i < 0 || i >= len(p.Items) {
				return Groups{}, fmt.Errorf("partitioning group %q: it names item %d of %d", group.Name, i,
					len(p.Items))
			}
			if slices.Contains(g.of[i], int32(k)) {
				return Groups{}, &Error{Set: []Constraint{
					{Rule: partition.SameServer, Item: p.Items[i].ID}, {Rule: partition.Apart, Group: group.Name}}}
			}
			g.of[i] = append(g.of[i], int32(k))
		}
	}
	return g, nil
}

// Any reports whether there are groups.
func (g *Groups) Any() bool { return g.of != nil }

// Of are the groups of an item, by number.
func (g *Groups) Of(i int) []int32 {
	if g.of == nil {
		return nil
	}
	return g.of[i]
}

// Occupancy counts which groups are on which replicas.
type Occupancy map[uint64]int32

func seatOf(group int32, replica int) uint64 { return uint64(group)<<32 | uint64(uint32(replica)) }

// Add counts an item's groups n more times on a replica.
func (o Occupancy) Add(groups []int32, replica int, n int32) {
	for _, g := range groups {
		o[seatOf(g, replica)] += n
	}
}

// Has reports whether one of the groups is on the replica already.
func (o Occupancy) Has(groups []int32, replica int) bool {
	for _, g := range groups {
		if o[seatOf(g, replica)] > 0 {
			return true
		}
	}
	return false
}

// Twice reports whether the replica has one of the groups more than once.
func (o Occupancy) Twice(groups []int32, replica int) bool {
	for _, g := range groups {
		if o[seatOf(g, replica)] > 1 {
			return true
		}
	}
	return false
}
