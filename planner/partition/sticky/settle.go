package sticky

import (
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// settling puts items where they stand or must be.
type settling struct{ *state }

// settle puts every item where it stands or must be, then those that have no place yet, the heaviest first. It answers
// those that weigh nothing: they wait until all others are placed, which must not depend on them.
func (s settling) settle() (light []int32, err error) {
	homeless := append(s.seatStanding(), s.driveApart()...)
	slices.SortFunc(homeless, s.heavier)
	for k, i := range homeless {
		if k > 0 && s.c.Items[i].ID == s.c.Items[homeless[k-1]].ID {
			return nil, constraint.Twice(s.c.Items[i].ID)
		}
	}
	if s.o.DrainDue && s.drainable() {
		s.shutOut(s.n - 1)
	}
	bare := func(i int32) bool {
		return s.c.Loads[i] == 0 && s.bytes(int(i)) == 0 && len(s.c.Groups.Of(int(i))) == 0
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
	s.limits()
	return light, nil
}

// seatStanding puts pins and what stands; it answers the others.
func (s settling) seatStanding() (homeless []int32) {
	for i := range s.of {
		at, stands := s.c.Items[i].Replica, s.c.Stands(i)
		switch {
		case at != partition.Free:
			if stands != at {
				s.why[int32(i)] = because{Pinned, nowhere}
			}
		case stands == partition.Free:
			s.why[int32(i)] = because{Arrived, nowhere}
		case stands >= s.n:
			s.why[int32(i)] = because{Gone, nowhere}
		default:
			at = stands
		}
		if s.of[i] = at; at == partition.Free {
			homeless = append(homeless, int32(i))
			continue
		}
		s.put(i, at, 1)
	}
	s.tree.heapify(s.state)
	return homeless
}

// driveApart takes away what a group does not let stay: the lightest, those that are fixed never.
func (s settling) driveApart() (homeless []int32) {
	if s.taken == nil {
		return nil
	}
	for r := range s.n {
		for _, i := range slices.Clone(s.members(r)) {
			if s.taken.Twice(s.c.Groups.Of(int(i)), r) {
				s.shift(int(i), nowhere, Apart)
				homeless = append(homeless, i)
			}
		}
	}
	return homeless
}

// uncap moves the lightest from replicas with too many clusters to where there is room.
func (s settling) uncap() {
	most := s.c.Bounds.MaxClusters
	for again := most > 0; again; {
		again = false
		for r := range s.n {
			for _, i := range s.above(r, most) {
				if to := s.room(int(i), r); to != nowhere && s.cluster[r] > most {
					again = true
					s.shift(int(i), to, Capped)
				}
			}
		}
	}
}

// above are the items that may leave a replica with too many clusters.
func (s settling) above(r, most int) []int32 {
	if s.cluster[r] <= most || s.units[r] < 2 {
		return nil
	}
	return slices.Clone(s.members(r))
}

// room is a replica whose cap leaves room for an item of r, another one if none does.
func (s settling) room(i, r int) int {
	for _, limit := range []line{s.high, s.full, s.most()} {
		if to := s.least(i, r, limit); to != nowhere {
			return to
		}
	}
	if s.units[r] < 2 || s.c.Items[i].Clusters > s.c.Bounds.MaxClusters {
		return nowhere
	}
	for s.n < s.c.Most {
		if to := s.open(); !s.shut[to] {
			return to
		}
	}
	return nowhere
}

// place finds each a replica; it reports whether all groups could be kept apart.
func (s settling) place(homeless []int32) bool {
	for _, i := range homeless {
		to := s.somewhere(int(i))
		if to == nowhere {
			return false
		}
		s.shift(int(i), to, s.why[i].Why)
	}
	return true
}

// somewhere is a replica for an item that has none: the first of these that there is.
func (s settling) somewhere(i int) int {
	if r := s.least(i, nowhere, s.high); r != nowhere {
		return r
	}
	s.reopen()
	if r := s.least(i, nowhere, s.high); r != nowhere {
		return r
	}
	for s.n < s.c.Most {
		r := s.open()
		s.limits()
		if !s.shut[r] && s.may(i, r) {
			return r
		}
	}
	if r := s.least(i, nowhere, s.most()); r != nowhere {
		return r
	}
	if s.mem != nil {
		return s.tightest(i)
	}
	return s.uncapped(i, 0)
}

// uncapped is the least loaded replica that the groups leave, with so much memory free: the cap gives way.
func (s *state) uncapped(i int, memory plan.Bytes) int {
	best := nowhere
	for _, r := range s.tree.order {
		if r := int(r); s.apart(i, r) && s.holds(i, r, memory) && (best == nowhere || s.less(r, best)) {
			best = r
		}
	}
	return best
}

func (s *state) apart(i, r int) bool { return s.taken == nil || !s.taken.Has(s.c.Groups.Of(i), r) }

// seatAll gives up what place began: every item of a group has the seat that was found when the problem was checked,
// then the others are placed.
func (s settling) seatAll(homeless []int32) {
	for _, i := range s.seated() {
		if s.of[i] != nowhere {
			s.shift(i, nowhere, s.why[int32(i)].Why)
		}
	}
	for _, i := range s.seated() {
		for s.n <= s.c.Seats[i] {
			s.open()
		}
		why := s.why[int32(i)].Why
		if why == "" {
			why = Apart
		}
		s.shift(i, s.c.Seats[i], why)
	}
	for _, i := range homeless {
		if s.of[i] == nowhere {
			s.shift(int(i), s.somewhere(int(i)), s.why[i].Why)
		}
	}
}

func (s settling) seated() []int {
	var items []int
	for i := range s.of {
		if _, is := s.c.Seats[i]; is {
			items = append(items, i)
		}
	}
	return items
}

// shutOut keeps a replica from receiving, reopen lets all receive again that are not closed.
func (s *state) shutOut(r int) {
	s.shut[r] = true
	s.tree.remove(s, r)
}

func (s *state) reopen() {
	for r := range s.n {
		if s.shut[r] && !s.c.IsClosed(r) {
			s.shut[r] = false
			s.tree.add(s, r)
		}
	}
}
