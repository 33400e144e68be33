package sticky

import "slices"

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
