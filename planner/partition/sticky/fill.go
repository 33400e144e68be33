package sticky

import (
	"slices"

	"ballast/planner/plan"
)

// filling gives replicas that have next to nothing their share.
type filling struct{ *state }

// fill gives replicas that have less than half of an even share what the fullest others can spare, where the number of
// replicas is not for the load to say: somebody added one, and it would stand idle for as long as no other is above high.
func (s filling) fill() {
	if s.c.Bounds.Fixed == 0 && s.n > s.c.Least {
		return
	}
	even := s.even()
	defer func() { s.sake = nowhere }()
	for r := s.neediest(even); r != nowhere; r = s.neediest(even) {
		s.sake = r
		i := s.spare(r, even)
		if i == nowhere {
			return
		}
		for ; i != nowhere; i = s.spare(r, even) {
			if s.ops < 0 || s.o.MaxMoves > 0 && s.moves >= s.o.MaxMoves {
				s.cut = true
				return
			}
			s.shift(i, r, Filled)
			s.moves++
		}
	}
}

// neediest is the least loaded replica that has less than half of an even share, and for which something may be done.
func (s filling) neediest(even plan.Load) int {
	best := nowhere
	for _, r := range s.tree.order {
		r := int(r)
		needs := s.load[r] < even/2 && !s.patient(r)
		if needs && (best == nowhere || s.less(r, best)) {
			best = r
		}
	}
	return best
}

// spare is the heaviest item of the fullest replica that can do without: with it the one is at or below an even share, and
// without it the other has half of one.
func (s filling) spare(to int, even plan.Load) int {
	donors := make([]int, 0, s.n)
	for d := range s.n {
		if d != to && s.units[d] > 1 && s.load[d] > even {
			donors = append(donors, d)
		}
	}
	slices.SortFunc(donors, func(a, b int) int {
		if s.less(b, a) {
			return -1
		}
		return 1
	})
	for _, d := range donors {
		all := s.members(d)
		most := min(even-s.load[to], s.load[d]-even/2, s.load[d]-s.load[to]-1)
		for at := s.from(all, most+1) - 1; at >= 0 && s.c.Loads[all[at]] >= s.useful; at-- {
			if s.ops--; s.may(int(all[at]), to) && s.holds(int(all[at]), to, s.low.memory) {
				return int(all[at])
			}
		}
	}
	return nowhere
}

// drainable reports whether the rules let the highest replica go.
func (s *state) drainable() bool {
	h := s.n - 1
	return h >= s.c.Least && h > 0 && s.pinned[h] == 0
}

// draining takes the highest replica out of use.
type draining struct{ *state }

// drain finds out whether the others can take what the highest replica has, and moves it if that is due.
func (s draining) drain() Drain {
	if !s.drainable() {
		s.reopen()
		return Drain{}
	}
	h := s.n - 1
	d := Drain{Replica: h, Items: s.units[h]}
	s.shutOut(h)
	mark := len(s.journal)
	d.Fits = s.empty(h, s.least) || s.empty(h, s.fullest)
	switch {
	case !d.Fits, !s.o.DrainDue:
		s.undo(mark)
		s.reopen()
		return d
	case s.o.MaxMoves > 0 && d.Items > s.o.MaxMoves:
		s.undo(mark + s.o.MaxMoves)
		s.cut = true
		return d
	}
	d.Done = true
	s.unopen()
	return d
}

// empty moves all items of a replica to the others, the heaviest first; all or none.
func (s draining) empty(h int, find func(i, not int, limit line) int) bool {
	if s.units[h] == 0 {
		return true
	}
	mark := len(s.journal)
	leaving := slices.Clone(s.members(h))
	slices.Reverse(leaving)
	for _, i := range leaving {
		to := find(int(i), h, s.drainTo)
		if to == nowhere {
			s.undo(mark)
			return false
		}
		s.shift(int(i), to, Drained)
	}
	return true
}
