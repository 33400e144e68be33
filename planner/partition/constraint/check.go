package constraint

import (
	"fmt"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// Check refuses what has no plan.
func (p Question) Check() (Setting, error) {
	frame, err := partition.NewFrame(p.Items, p.Bounds)
	if err != nil {
		return Setting{}, err
	}
	if p.Now != nil && len(p.Now) != len(p.Items) {
		return Setting{}, fmt.Errorf("partitioning %d items: the plan in force has %d", len(p.Items), len(p.Now))
	}
	s := Setting{Frame: frame, Question: p}
	if s.Groups, err = newGroups(p); err != nil {
		return Setting{}, err
	}
	if s.Seats, err = s.seat(); err != nil {
		return Setting{}, err
	}
	s.reduce()
	if p.Bounds.Memory > 0 {
		s.Bytes = make([]plan.Bytes, len(p.Items))
		for i := range p.Items {
			s.Bytes[i] = p.Items[i].Memory
		}
	}
	return s, nil
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

// reduce divides loads and capacity by their greatest common divisor.
func (s *Setting) reduce() {
	unit := s.Capacity
	s.Loads = make([]plan.Load, len(s.Items))
	for i := range s.Items {
		load := s.Items[i].Load
		s.Loads[i] = load
		s.Total += load
		if unit != 1 {
			unit = gcd(unit, load)
		}
	}
	if unit <= 1 {
		return
	}
	for i := range s.Loads {
		s.Loads[i] /= unit
	}
	s.Total /= unit
	s.Capacity /= unit
	s.Heaviest /= unit
}

func gcd(a, b plan.Load) plan.Load {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
