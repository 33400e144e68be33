package sticky

import (
	"cmp"
	"maps"
	"slices"

	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// settling puts items where they stand or must be.
type settling struct{ *draft.Draft }

// settle puts every item where it stands or must be, then those that have no place yet, the heaviest first. It answers
// those that weigh nothing: they wait until all others are placed, which must not depend on them.
func (s settling) settle() (light []int32, err error) {
	homeless := append(s.Stand(), s.driveApart()...)
	slices.SortFunc(homeless, s.heavier)
	for k, i := range homeless {
		if k > 0 && s.Setting.Items[i].ID == s.Setting.Items[homeless[k-1]].ID {
			return nil, constraint.Twice(s.Setting.Items[i].ID)
		}
	}
	if s.Options.DrainDue && s.Drainable() {
		s.ShutOut(s.N - 1)
	}
	bare := func(i int32) bool {
		return s.Setting.Loads[i] == 0 && s.Bytes(int(i)) == 0 && len(s.Setting.Groups.Of(int(i))) == 0
	}
	for _, i := range homeless {
		if bare(i) {
			light = append(light, i)
		}
	}
	homeless = slices.DeleteFunc(homeless, bare)
	if !s.place(homeless) {
		s.seatAll(homeless)
	}
	s.uncap()
	s.Limit()
	return light, nil
}

// driveApart takes away what a group does not let stay: the lightest, those that are fixed never.
func (s settling) driveApart() (homeless []int32) {
	if !s.Setting.Groups.Any() {
		return nil
	}
	for r := range s.N {
		for _, i := range slices.Clone(s.Members(r)) {
			if s.Twice(int(i), r) {
				s.Shift(int(i), plan.NoReplica, draft.Apart)
				homeless = append(homeless, i)
			}
		}
	}
	return homeless
}

// uncap moves the lightest from replicas with too many clusters to where there is room.
func (s settling) uncap() {
	most := s.Setting.Bounds.MaxClusters
	for again := most > 0; again; {
		again = false
		for r := range s.N {
			for _, i := range s.above(r, most) {
				if to := s.room(int(i), r); to != plan.NoReplica && s.Clusters[r] > most {
					again = true
					s.Shift(int(i), to, draft.Capped)
				}
			}
		}
	}
}

// above are the items that may leave a replica with too many clusters.
func (s settling) above(r, most int) []int32 {
	if s.Clusters[r] <= most || s.Units[r] < 2 {
		return nil
	}
	return slices.Clone(s.Members(r))
}

// room is a replica whose cap leaves room for an item of r, another one if none does.
func (s settling) room(i, r int) int {
	for _, limit := range []draft.Line{s.High, s.Full, s.Most()} {
		if to := s.Least(i, r, limit); to != plan.NoReplica {
			return to
		}
	}
	if s.Units[r] < 2 || s.Setting.Items[i].Clusters > s.Setting.Bounds.MaxClusters {
		return plan.NoReplica
	}
	return s.Another()
}

// place finds each a replica; it reports whether all groups could be kept apart.
func (s settling) place(homeless []int32) bool {
	for _, i := range homeless {
		to := s.somewhere(int(i))
		if to == plan.NoReplica {
			return false
		}
		s.Shift(int(i), to, s.Why[i].Why)
	}
	return true
}

// somewhere is a replica for an item that has none: the first of these that there is.
func (s settling) somewhere(i int) int {
	if r := s.Least(i, plan.NoReplica, s.High); r != plan.NoReplica {
		return r
	}
	s.Reopen()
	if r := s.Least(i, plan.NoReplica, s.High); r != plan.NoReplica {
		return r
	}
	for s.N < s.Setting.Most {
		r := s.Open()
		s.Limit()
		if !s.Setting.IsClosed(r) && s.May(i, r) {
			return r
		}
	}
	if r := s.Least(i, plan.NoReplica, s.Most()); r != plan.NoReplica {
		return r
	}
	if s.Memory != nil {
		return s.tightest(i)
	}
	return s.uncapped(i, 0)
}

// uncapped is the least loaded replica that the groups leave, with so much memory free: the cap gives way.
func (s settling) uncapped(i int, memory plan.Bytes) int {
	best := plan.NoReplica
	for _, r := range s.Receiving() {
		if r := int(r); s.Apart(i, r) && s.Holds(i, r, memory) && (best == plan.NoReplica || s.Compare(r, best) < 0) {
			best = r
		}
	}
	return best
}

// seatAll gives up what place began: every item of a group has the seat that was found when the problem was checked,
// then the others are placed.
func (s settling) seatAll(homeless []int32) {
	seated := slices.Sorted(maps.Keys(s.Setting.Seats))
	for _, i := range seated {
		if s.Of[i] != plan.NoReplica {
			s.Shift(i, plan.NoReplica, s.Why[int32(i)].Why)
		}
	}
	for _, i := range seated {
		for s.N <= s.Setting.Seats[i] {
			s.Open()
		}
		why := s.Why[int32(i)].Why
		if why == "" {
			why = draft.Apart
		}
		s.Shift(i, s.Setting.Seats[i], why)
	}
	for _, i := range homeless {
		if s.Of[i] == plan.NoReplica {
			s.Shift(int(i), s.somewhere(int(i)), s.Why[i].Why)
		}
	}
}

// tightest is a replica for an item that no other takes within the rules: the cap gives way before the memory does,
// which then is exceeded by as little as can be.
func (s settling) tightest(i int) int {
	if to := s.uncapped(i, s.Full.Memory); to != plan.NoReplica {
		return to
	}
	best := plan.NoReplica
	for _, r := range s.Receiving() {
		r := int(r)
		if s.Apart(i, r) && (best == plan.NoReplica || s.Memory[r] < s.Memory[best] || s.Memory[r] == s.Memory[best] && s.Compare(r, best) < 0) {
			best = r
		}
	}
	return best
}

// heavier orders the heaviest first, then by ID.
func (s settling) heavier(a, b int32) int {
	return cmp.Or(cmp.Compare(s.Setting.Loads[b], s.Setting.Loads[a]),
		cmp.Compare(s.Setting.Items[a].ID, s.Setting.Items[b].ID))
}
