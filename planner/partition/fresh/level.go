package fresh

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// levelling exchanges items between replicas.
type levelling struct {
	*state
	order  []int // the replicas that may give and receive, the least loaded first
	down   bool  // to lower the makespan, else to raise the least loaded
	done   []bool
	budget int
}

// level exchanges items between replicas: first to lower the makespan, then to raise the least loaded.
func (s *state) level() {
	if s.n < 2 {
		return
	}
	l := levelling{state: s, done: make([]bool, s.n), budget: s.effort()}
	l.rank()
	for _, l.down = range []bool{true, false} {
		l.run()
	}
}

func (s *levelling) run() {
	clear(s.done)
	for s.budget > 0 {
		at := s.extreme()
		if at < 0 {
			return
		}
		r := s.order[at]
		if other := s.improve(r); other >= 0 {
			s.reorder(at, other)
		} else if s.done[r] = true; !s.down || len(s.member[r]) > 1 {
			return // the makespan is what it is
		}
		s.budget -= s.n
	}
}

// effort is how many steps levelling may take. A quarter is enough for the large, in which there is so much to
// exchange.
func (s *state) effort() int {
	most := 8*len(s.of) + 64*s.n
	return min(most, max(most/4, largeEffort))
}

const largeEffort = 25_000

func (s *levelling) rank() {
	for r := range s.n {
		if !s.c.IsClosed(r) {
			s.order = append(s.order, r)
		}
	}
	slices.SortFunc(s.order, s.byLoad)
}

func (s *levelling) byLoad(a, b int) int {
	return cmp.Or(cmp.Compare(s.load[a], s.load[b]), cmp.Compare(a, b))
}

// reorder has the replicas of two places where they belong by now, whose loads came nearer to each other: the others
// between them keep their order.
func (s *levelling) reorder(a, b int) {
	order, low, high := s.order, min(a, b), max(a, b)
	r, between := order[low], order[low+1:high]
	at, _ := slices.BinarySearchFunc(between, r, s.byLoad)
	copy(order[low:], between[:at])
	order[low+at] = r
	r, between = order[high], order[low:high]
	at, _ = slices.BinarySearchFunc(between, r, s.byLoad)
	copy(order[low+at+1:], between[at:])
	order[low+at] = r
}

// extreme is the place of the most loaded replica that is not done, or of the least loaded.
func (s *levelling) extreme() int {
	for at := range s.order {
		if s.down {
			at = len(s.order) - 1 - at
		}
		if !s.done[s.order[at]] {
			return at
		}
	}
	return -1
}

// partners bounds how many replicas are tried for an exchange.
const partners = 24

// improve exchanges items of r with the replica that differs most from it, else with the next. It answers the place of
// that one; -1: none.
func (s *levelling) improve(r int) int {
	for at := range min(partners, len(s.order)) {
		if !s.down {
			at = len(s.order) - 1 - at
		}
		other := s.order[at]
		high, low := r, other
		if !s.down {
			high, low = other, r
		}
		if high == low || s.load[high]-s.load[low] < 2 {
			continue
		}
		s.budget -= len(s.member[high]) + len(s.member[low])
		if s.exchange(high, low) {
			return at
		}
	}
	return -1
}

// exchange finds the one item of high and the one or none of low whose difference brings both nearest to each other.
func (s *levelling) exchange(high, low int) bool {
	gap := s.load[high] - s.load[low]
	best, give, take := gap, int32(-1), int32(-1)
	theirs, loads := s.member[low], s.c.Loads
	at := 0
	for _, a := range s.member[high] {
		la := loads[a]
		if left := off(la, gap); left < best && s.may(a, -1, high, low) {
			best, give, take = left, a, -1
		}
		for at < len(theirs) && la-loads[theirs[at]] > gap/2 {
			at++
		}
		for k := max(at-1, 0); k < min(at+1, len(theirs)); k++ {
			if left := off(la-loads[theirs[k]], gap); left < best && s.may(a, theirs[k], high, low) {
				best, give, take = left, a, theirs[k]
			}
		}
	}
	if give < 0 {
		return false
	}
	s.shift(give, low)
	if take >= 0 {
		s.shift(take, high)
	}
	return true
}

// off is how far apart two are that were a gap apart once d went from the one to the other: the gap or more if d is not
// within it.
func off(d, gap plan.Load) plan.Load {
	if d <= 0 || d >= gap {
		return gap
	}
	rest := gap - d
	return max(rest-d, d-rest)
}

// may reports whether the rules let a go to low and b to high.
func (s *levelling) may(a, b int32, high, low int) bool {
	if most := s.c.Bounds.MaxClusters; most > 0 {
		more := s.c.Items[a].Clusters
		if b >= 0 {
			more -= s.c.Items[b].Clusters
		}
		if more > 0 && s.cluster[low]+more > most || more < 0 && s.cluster[high]-more > most {
			return false
		}
	}
	if s.memory != nil && !s.holds(a, b, high, low) {
		return false
	}
	if s.occupied == nil {
		return true
	}
	ga := s.c.Groups.Of(int(a))
	var gb []int32
	if b >= 0 {
		gb = s.c.Groups.Of(int(b))
	}
	s.occupied.Add(ga, high, -1)
	s.occupied.Add(gb, low, -1)
	ok := !s.occupied.Has(ga, low) && !s.occupied.Has(gb, high)
	s.occupied.Add(ga, high, 1)
	s.occupied.Add(gb, low, 1)
	return ok
}

// holds reports whether either replica would have no more memory in use than it may, or less than it has now.
func (s *levelling) holds(a, b int32, high, low int) bool {
	more := s.c.Bytes[a]
	if b >= 0 {
		more -= s.c.Bytes[b]
	}
	within := func(r int, more plan.Bytes) bool { return more < 0 || s.memory[r]+more <= s.c.Bounds.Memory }
	return within(low, more) && within(high, -more)
}

// shift brings an item to another replica.
func (s *state) shift(i int32, to int) {
	from := s.of[i]
	at, _ := slices.BinarySearchFunc(s.member[from], i, s.c.Lighter)
	s.member[from] = slices.Delete(s.member[from], at, at+1)
	at, _ = slices.BinarySearchFunc(s.member[to], i, s.c.Lighter)
	s.member[to] = slices.Insert(s.member[to], at, i)
	s.add(int(i), -1)
	s.of[i] = to
	s.add(int(i), 1)
}
