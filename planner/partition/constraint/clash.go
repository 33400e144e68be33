package constraint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// Constraint is one rule of a clash. Pin has Item and Replica, Apart a Group, Closed a Replica, SameServer an Item,
// MaxReplicas and FixedReplicas a Count.
type Constraint struct {
	Rule    partition.Rule
	Item    string
	Group   string
	Replica int
	Count   int
}

// String is a clause for people.
func (c Constraint) String() string {
	switch c.Rule {
	case partition.Pin:
		return fmt.Sprintf("%q is pinned to replica %d", c.Item, c.Replica)
	case partition.Apart:
		return fmt.Sprintf("group %q is kept apart", c.Group)
	case partition.Closed:
		return fmt.Sprintf("replica %d is closed", c.Replica)
	case partition.SameServer:
		return fmt.Sprintf("two clusters of %q stay together", c.Item)
	case partition.FixedReplicas:
		return fmt.Sprintf("there are exactly %d replicas", c.Count)
	default:
		return fmt.Sprintf("there are at most %d replicas", c.Count)
	}
}

// Error is rules that cannot all be kept; without any one of Set the others can, unless Unproven says that the search
// for it was cut short.
type Error struct {
	Set      []Constraint
	Unproven bool
}

// Error names the rules that clash, and the mend.
func (e *Error) Error() string {
	clauses := make([]string, len(e.Set))
	for i, c := range e.Set {
		clauses[i] = c.String()
	}
	return fmt.Sprintf("partitioning within rules that clash: %s: drop one of them", strings.Join(clauses, "; "))
}

// seat gives each item of a group a replica, the one it stands on where it can be. Only these items, pins and closed
// replicas can clash for good, since nothing else is kept at any price.
func (s *Setting) seat() (map[int]int, error) {
	h := s.hall()
	if err := s.nowhere(h); err != nil || len(h.items) == 0 {
		return nil, err
	}
	of, verdict := h.solve(nil)
	switch verdict {
	case seated:
		seats := make(map[int]int, len(of))
		for k, i := range h.items {
			seats[i] = of[k]
		}
		return seats, nil
	case unknown:
		return nil, fmt.Errorf("partitioning %d groups apart over at most %d replicas: no plan within the budget of %d steps: make them fewer",
			len(s.Apart), s.Most, searchSteps)
	}
	return nil, h.clash()
}

// nowhere: every replica there may be is closed, and an item has none.
func (s *Setting) nowhere(h *hall) error {
	if len(h.open) > 0 {
		return nil
	}
	for i := range s.Items {
		if s.Items[i].Replica == partition.Free && h.home(s, i) == plan.NoReplica {
			return &Error{Set: append(h.closedSet(), h.limit())}
		}
	}
	return nil
}

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

// clash leaves out one rule after the other that the clash does not need.
func (h *hall) clash() error {
	var set []Constraint
	for _, name := range h.names {
		set = append(set, Constraint{Rule: partition.Apart, Group: name})
	}
	for k, at := range h.pin {
		if at != partition.Free {
			set = append(set, Constraint{Rule: partition.Pin, Item: h.ids[k], Replica: at})
		}
	}
	set = append(append(set, h.closedSet()...), h.limit())
	gone := make(map[Constraint]bool, len(set))
	e := &Error{}
	for _, c := range set {
		gone[c] = true
		if _, verdict := h.solve(gone); verdict != clashes {
			delete(gone, c)
			e.Set = append(e.Set, c)
			e.Unproven = e.Unproven || verdict == unknown
		}
	}
	return e
}
