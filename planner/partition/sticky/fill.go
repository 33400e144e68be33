package sticky

import (
	"slices"

	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// filling gives replicas that have next to nothing their share.
type filling struct{ *draft.Draft }

// fill gives replicas that have less than half of an even share what the fullest others can spare, where the number of
// replicas is not for the load to say: somebody added one, and it would stand idle for as long as no other is above
// high.
func (s filling) fill() {
	if s.Setting.Bounds.Fixed == 0 && s.N > s.Setting.Least {
		return
	}
	even := s.Even()
	defer func() { s.Sake = plan.NoReplica }()
	for r := s.neediest(even); r != plan.NoReplica; r = s.neediest(even) {
		s.Sake = r
		i := s.spare(r, even)
		if i == plan.NoReplica {
			return
		}
		for ; i != plan.NoReplica; i = s.spare(r, even) {
			if s.Steps < 0 || s.Options.MaxMoves > 0 && s.Moves >= s.Options.MaxMoves {
				s.Cut = true
				return
			}
			s.Shift(i, r, draft.Filled)
			s.Moves++
		}
	}
}

// neediest is the least loaded replica that has less than half of an even share, and for which something may be done.
func (s filling) neediest(even plan.Load) int {
	best := plan.NoReplica
	for _, r := range s.Receiving() {
		r := int(r)
		needs := s.Load[r] < even/2 && !s.Patient(r)
		if needs && (best == plan.NoReplica || s.Compare(r, best) < 0) {
			best = r
		}
	}
	return best
}

// spare is the heaviest item of the fullest replica that can do without: with it the one is at or below an even share,
// and without it the other has half of one.
func (s filling) spare(to int, even plan.Load) int {
	donors := make([]int, 0, s.N)
	for d := range s.N {
		if d != to && s.Units[d] > 1 && s.Load[d] > even {
			donors = append(donors, d)
		}
	}
	slices.SortFunc(donors, func(a, b int) int { return s.Compare(b, a) })
	for _, d := range donors {
		all := s.Members(d)
		most := min(even-s.Load[to], s.Load[d]-even/2, s.Load[d]-s.Load[to]-1)
		for at := s.From(all, most+1) - 1; at >= 0 && s.Setting.Loads[all[at]] >= s.Useful; at-- {
			if s.Steps--; s.May(int(all[at]), to) && s.Holds(int(all[at]), to, s.Low.Memory) {
				return int(all[at])
			}
		}
	}
	return plan.NoReplica
}
