package sticky

import (
	"slices"

	"ballast/planner/plan"
)

// relief brings replicas below high.
type relief struct{ *state }

// relieve brings replicas below high, the most loaded first, until nothing more can be done.
func (s relief) relieve() {
	for {
		d := s.worst()
		if d == nowhere {
			return
		}
		if s.ops < 0 || s.o.MaxMoves > 0 && s.moves >= s.o.MaxMoves {
			s.cut = true
			return
		}
		before := len(s.journal)
		s.sake = d
		s.spent[d] = !s.unload(d)
		s.shorten(d, before)
		s.sake = nowhere
		if len(s.journal) > before {
			s.moves += s.counted(before)
			clear(s.spent[:d])
			clear(s.spent[min(d+1, s.n):])
		}
	}
}

// worst is the most loaded replica that is to give items up and that was not found to be beyond help.
func (s relief) worst() int {
	worst := nowhere
	for r := range s.n {
		if s.heavy(r) && !s.spent[r] && (worst == nowhere || s.less(worst, r)) {
			worst = r
		}
	}
	return worst
}

// counted are the moves since, of items that had a replica.
func (s relief) counted(before int) (n int) {
	for _, st := range s.journal[before:] {
		if !s.arrives(int(st.item)) {
			n++
		}
	}
	return n
}

// shorten leaves of the last action what the limit allows: single moves help by themselves, others only together.
func (s relief) shorten(d, before int) {
	if s.o.MaxMoves == 0 || s.moves+s.counted(before) <= s.o.MaxMoves {
		return
	}
	s.cut, s.spent[d] = true, true
	if s.together(before) {
		s.undo(before)
	}
	for s.moves+s.counted(before) > s.o.MaxMoves {
		s.undo(len(s.journal) - 1)
	}
	s.closeEmpty()
}

// together reports whether the last action made room: its moves help only all at once.
func (s relief) together(before int) bool {
	return slices.ContainsFunc(s.journal[before:], func(st step) bool { return st.from != s.journal[before].from })
}

// closeEmpty takes back a replica that was opened for what was then not moved.
func (s relief) closeEmpty() {
	for s.n > max(s.c.Replicas, s.c.Least) && s.units[s.n-1] == 0 {
		s.unopen()
	}
	s.limits()
}

// unload brings one replica below high, with as few moves as it finds.
func (s relief) unload(d int) bool {
	if s.load[d] <= s.high.load {
		return bearing(s).lighten(d, Overload)
	}
	need := max(s.load[d]-s.down.load, s.useful)
	set := s.fewest(d, need)
	if len(set) == 0 {
		return false
	}
	switch {
	case s.send(set, d, s.least), len(set) > 1 && s.send(set, d, s.fullest):
		return true
	case len(set) == 1 && s.others(d, need):
		return true
	case len(set) <= 2 && (s.exchange(d, need) || s.pushOn(d, need)):
		return true
	case s.piecemeal(d, need):
		return true
	}
	if s.down != s.high && s.load[d]-s.high.load < need { // a smaller step, rather than none or another replica
		s.down = s.high
		defer s.limits()
		return s.unload(d)
	}
	return s.more(set, d, need)
}

// fewest are the fewest items that weigh enough together, of those about the lightest, the heaviest first. An item above
// low goes nowhere but to an empty replica: where there is none the others leave it alone instead.
func (s relief) fewest(d int, need plan.Load) []int32 {
	all := s.members(d)
	s.ops -= len(all)
	if empty := len(s.tree.order) > 0 && s.units[s.tree.order[0]] == 0; !empty {
		for len(all) > 0 && s.c.Loads[all[len(all)-1]] > s.low.load {
			all = all[:len(all)-1]
		}
	}
	sum, k := plan.Load(0), 0
	for k < len(all) && sum < need {
		k++
		sum += s.c.Loads[all[len(all)-k]]
	}
	switch {
	case sum < need && sum < s.useful:
		return nil
	case sum < need:
		return s.descending(all)
	case k == 2:
		return s.pair(all, need)
	}
	return s.lightest(all, k, sum-need)
}

// descending leaves out those without load, which would be moved for nothing.
func (s relief) descending(all []int32) (set []int32) {
	for k := len(all) - 1; k >= 0 && s.c.Loads[all[k]] > 0; k-- {
		set = append(set, all[k])
	}
	return set
}

// pair is the lightest two that weigh enough.
func (s relief) pair(all []int32, need plan.Load) []int32 {
	best, sum := []int32(nil), plan.Load(0)
	for a, b := 0, len(all)-1; a < b; {
		both := s.c.Loads[all[a]] + s.c.Loads[all[b]]
		if both < need {
			a++
			continue
		}
		if best == nil || both < sum {
			best, sum = []int32{all[b], all[a]}, both
		}
		b--
	}
	return best
}

// lightest is the k heaviest, with the lightest in the place of the last that leaves them heavy enough.
func (s relief) lightest(all []int32, k int, spare plan.Load) []int32 {
	set := make([]int32, 0, k)
	for n := 1; n < k; n++ {
		set = append(set, all[len(all)-n])
	}
	last := s.c.Loads[all[len(all)-k]]
	return append(set, all[s.from(all[:len(all)-k], last-spare)])
}

// send moves each of the set where find says; all or none.
func (s relief) send(set []int32, d int, find func(i, not int, limit line) int) bool {
	mark := len(s.journal)
	for _, i := range set {
		to := find(int(i), d, s.low)
		if to == nowhere {
			s.undo(mark)
			return false
		}
		s.shift(int(i), to, Overload)
	}
	return true
}

// tries bounds how many alternatives of one kind are looked at.
const tries = 64

// others tries the heavier single ones, which a rule may let go where the lightest may not, then pairs of lighter ones.
func (s relief) others(d int, need plan.Load) bool {
	all := s.members(d)
	from := s.from(all, need)
	for _, i := range all[from:min(from+tries, len(all))] {
		if to := s.least(int(i), d, s.low); to != nowhere {
			s.shift(int(i), to, Overload)
			return true
		}
	}
	set := s.pair(all[:from], need)
	return set != nil && s.send(set, d, s.least)
}

// from is the place of the first item with that load or more.
func (s *state) from(all []int32, load plan.Load) int {
	at, _ := slices.BinarySearchFunc(all, load, func(i int32, l plan.Load) int {
		if s.c.Loads[i] < l {
			return -1
		}
		return 1
	})
	return at
}

// exchange swaps an item for a lighter one of another replica.
func (s relief) exchange(d int, need plan.Load) bool {
	if s.c.IsClosed(d) {
		return false
	}
	all, receivers := slices.Clone(s.members(d)), s.receivers(d)
	for _, a := range all[s.from(all, need):] {
		for _, r := range receivers {
			if s.ops--; s.ops < 0 {
				return false
			}
			spare := s.low.load - s.load[r]
			theirs := s.members(int(r))
			at := s.from(theirs, s.c.Loads[a]-spare)
			if at == len(theirs) || s.c.Loads[a]-s.c.Loads[theirs[at]] < need {
				continue
			}
			if s.pass(int(a), int(theirs[at]), int(r), d, s.high) {
				return true
			}
		}
	}
	return false
}

// pushOn moves an item to a replica that passes one of its own on to a third.
func (s relief) pushOn(d int, need plan.Load) bool {
	all, receivers := slices.Clone(s.members(d)), s.receivers(d)
	for _, a := range all[s.from(all, need):] {
		for _, r := range receivers {
			if s.ops--; s.ops < 0 {
				return false
			}
			theirs := s.members(int(r))
			at := s.from(theirs, s.load[r]+s.c.Loads[a]-s.low.load)
			if at == len(theirs) {
				continue
			}
			b := theirs[at]
			if to := s.least(int(b), int(r), s.low); to != nowhere && to != d && s.pass(int(a), int(b), int(r), to, s.low) {
				return true
			}
		}
	}
	return false
}

// receivers are the other replicas that receive, the least loaded first.
func (s relief) receivers(d int) []int32 {
	all := slices.DeleteFunc(slices.Clone(s.tree.order), func(r int32) bool { return int(r) == d })
	slices.SortFunc(all, func(a, b int32) int {
		if s.less(int(a), int(b)) {
			return -1
		}
		return 1
	})
	return all
}

// pass moves b from r to another replica, then a to r, if the rules let both.
func (s relief) pass(a, b, r, to int, limit line) bool {
	mark, d := len(s.journal), s.of[a]
	s.shift(b, nowhere, MadeRoom)
	s.shift(a, nowhere, Overload)
	if s.may(a, r) && s.fits(a, r, s.low) {
		s.shift(a, r, Overload)
		if s.may(b, to) && s.fits(b, to, limit) && (to == d || to != r) {
			s.shift(b, to, MadeRoom)
			s.squeeze(mark)
			return true
		}
	}
	s.undo(mark)
	return false
}

// squeeze writes the two stopovers of pass out of the journal: one step an item.
func (s relief) squeeze(mark int) {
	j := s.journal[mark:]
	b, a := j[0], j[1]
	a.to, b.to = j[2].to, j[3].to
	s.journal = append(s.journal[:mark], a, b)
}

// piecemeal moves the heaviest that fits, again and again, until that is enough.
func (s relief) piecemeal(d int, need plan.Load) bool {
	mark, left := len(s.journal), need
	for left > 0 {
		all := s.members(d)
		at := min(s.from(all, left), len(all)-1)
		to := nowhere
		for ; at >= 0 && s.c.Loads[all[at]] > 0; at-- {
			if s.ops--; s.ops < 0 {
				break
			}
			if to = s.least(int(all[at]), d, s.low); to != nowhere {
				break
			}
		}
		if to == nowhere || s.bears[d] < 2 {
			s.undo(mark)
			return false
		}
		left -= s.c.Loads[all[at]]
		s.shift(int(all[at]), to, Overload)
	}
	return true
}

// more opens a replica for those that fit nowhere. At the most replicas, it moves what helps somewhat.
func (s relief) more(set []int32, d int, need plan.Load) bool {
	for s.n < s.c.Most {
		r := s.open()
		if s.shut[r] {
			continue
		}
		if s.send(set, d, s.least) {
			s.limits()
			return true
		}
		break
	}
	mark := len(s.journal)
	s.limits()
	s.help(d, need)
	s.closeEmpty()
	return len(s.journal) > mark
}

// help moves the heaviest that fit, as long as each takes enough off to be worth it.
func (s relief) help(d int, need plan.Load) {
	for need > 0 && s.bears[d] > 1 && s.ops >= 0 {
		all, to := s.members(d), nowhere
		at := min(s.from(all, need), len(all)-1)
		for ; at >= 0 && s.c.Loads[all[at]] >= s.useful; at-- {
			s.ops--
			if to = s.least(int(all[at]), d, s.low); to != nowhere {
				break
			}
		}
		if to == nowhere {
			return
		}
		need -= s.c.Loads[all[at]]
		s.shift(int(all[at]), to, Overload)
	}
}
