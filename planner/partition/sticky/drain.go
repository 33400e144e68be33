package sticky

import (
	"slices"

	"ballast/planner/partition/sticky/draft"
)

// Drain is whether the highest replica is needed. Fits: its Items fit on the others; with DrainDue they are moved
// there, up to MaxMoves a call, and Done says that all have been and the replica is gone.
type Drain struct {
	Fits    bool
	Done    bool
	Replica int
	Items   int
}

// draining takes the highest replica out of use.
type draining struct{ *draft.Draft }

// drain finds out whether the others can take what the highest replica has, and moves it if that is due.
func (s draining) drain() Drain {
	if !s.Drainable() {
		s.Reopen()
		return Drain{}
	}
	h := s.N - 1
	d := Drain{Replica: h, Items: s.Units[h]}
	s.ShutOut(h)
	mark := s.Mark()
	d.Fits = s.empty(h, s.Least) || s.empty(h, s.Fullest)
	switch {
	case !d.Fits, !s.Options.DrainDue:
		s.Undo(mark)
		s.Reopen()
		return d
	case s.Options.MaxMoves > 0 && d.Items > s.Options.MaxMoves:
		s.Undo(mark + s.Options.MaxMoves)
		s.Cut = true
		return d
	}
	d.Done = true
	s.Unopen()
	return d
}

// empty moves all items of a replica to the others, the heaviest first; all or none.
func (s draining) empty(h int, find func(i, not int, limit draft.Line) int) bool {
	if s.Units[h] == 0 {
		return true
	}
	leaving := slices.Clone(s.Members(h))
	slices.Reverse(leaving)
	return s.Send(leaving, h, find, s.DrainTo, draft.Drained)
}
