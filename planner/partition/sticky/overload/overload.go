// Package overload brings replicas below High, with as few moves as it finds: the fewest items that weigh enough, of
// those the lightest, to the least loaded replica, else the fullest that fits, else by a swap, else by moving a third
// item out of the way, else one more replica opens.
package overload

import (
	"maps"
	"slices"

	"ballast/planner/partition/sticky/draft"
	"ballast/planner/partition/sticky/starved"
	"ballast/planner/plan"
)

// relief brings replicas below high.
type relief struct {
	*draft.Draft
	spent map[int]bool // replicas that nothing relieves
}

// Relieve brings replicas below high, the most loaded first, until nothing more can be done.
func Relieve(in *draft.Draft) {
	s := relief{in, map[int]bool{}}
	for {
		d := s.worst()
		if d == plan.NoReplica {
			return
		}
		if s.Steps < 0 || s.Options.MaxMoves > 0 && s.Moves >= s.Options.MaxMoves {
			s.Cut = true
			return
		}
		before := s.Mark()
		s.Sake = d
		s.spent[d] = !s.unload(d)
		s.shorten(d, before)
		s.Sake = plan.NoReplica
		if s.Mark() > before {
			s.Moves += s.Counted(before)
			maps.DeleteFunc(s.spent, func(r int, _ bool) bool { return r != d })
		}
	}
}

// worst is the most loaded replica that is to give items up and that was not found to be beyond help.
func (s relief) worst() int {
	worst := plan.NoReplica
	for r := range s.N {
		if s.Heavy(r) && !s.spent[r] && (worst == plan.NoReplica || s.Compare(r, worst) > 0) {
			worst = r
		}
	}
	return worst
}

// shorten leaves of the last action what the limit allows: single moves help by themselves, others only together.
func (s relief) shorten(d, before int) {
	if s.Options.MaxMoves == 0 || s.Moves+s.Counted(before) <= s.Options.MaxMoves {
		return
	}
	s.Cut, s.spent[d] = true, true
	if s.Together(before) {
		s.Undo(before)
	}
	for s.Moves+s.Counted(before) > s.Options.MaxMoves {
		s.Undo(s.Mark() - 1)
	}
	s.CloseEmpty()
}

// unload brings one replica below high, with as few moves as it finds.
func (s relief) unload(d int) bool {
	if s.Load[d] <= s.High.Load {
		return starved.Lighten(s.Draft, d, draft.Overload)
	}
	need := max(s.Load[d]-s.Down.Load, s.Useful)
	set := s.fewest(d, need)
	if len(set) == 0 {
		return false
	}
	switch {
	case s.Send(set, d, s.Least, s.Low, draft.Overload), len(set) > 1 && s.Send(set, d, s.Fullest, s.Low, draft.Overload):
		return true
	case len(set) == 1 && s.others(d, need):
		return true
	case len(set) <= 2 && (s.exchange(d, need) || s.pushOn(d, need)):
		return true
	case s.piecemeal(d, need):
		return true
	}
	if s.Down != s.High && s.Load[d]-s.High.Load < need { // a smaller step, rather than none or another replica
		s.Down = s.High
		defer s.Limit()
		return s.unload(d)
	}
	return s.more(set, d, need)
}

// fewest are the fewest items that weigh enough together, of those about the lightest, the heaviest first. An item
// above low goes nowhere but to an empty replica: where there is none the others leave it alone instead.
func (s relief) fewest(d int, need plan.Load) []int32 {
	all := s.Members(d)
	s.Steps -= len(all)
	if empty := len(s.Receiving()) > 0 && s.Units[s.Receiving()[0]] == 0; !empty {
		for len(all) > 0 && s.Setting.Loads[all[len(all)-1]] > s.Low.Load {
			all = all[:len(all)-1]
		}
	}
	sum, k := plan.Load(0), 0
	for k < len(all) && sum < need {
		k++
		sum += s.Setting.Loads[all[len(all)-k]]
	}
	switch {
	case sum < need && sum < s.Useful:
		return nil
	case sum < need:
		set := slices.Clone(all[s.From(all, 1):]) // what has no load would be moved for nothing
		slices.Reverse(set)
		return set
	case k == 2:
		return s.pair(all, need)
	}
	return s.lightest(all, k, sum-need)
}

// pair is the lightest two that weigh enough.
func (s relief) pair(all []int32, need plan.Load) []int32 {
	best, sum := []int32(nil), plan.Load(0)
	for a, b := 0, len(all)-1; a < b; {
		both := s.Setting.Loads[all[a]] + s.Setting.Loads[all[b]]
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
	last := s.Setting.Loads[all[len(all)-k]]
	return append(set, all[s.From(all[:len(all)-k], last-spare)])
}

// tries bounds how many alternatives of one kind are looked at.
const tries = 64

// others tries the heavier single ones, which a rule may let go where the lightest may not, then pairs of lighter ones.
func (s relief) others(d int, need plan.Load) bool {
	all := s.Members(d)
	from := s.From(all, need)
	for _, i := range all[from:min(from+tries, len(all))] {
		if to := s.Least(int(i), d, s.Low); to != plan.NoReplica {
			s.Shift(int(i), to, draft.Overload)
			return true
		}
	}
	set := s.pair(all[:from], need)
	return set != nil && s.Send(set, d, s.Least, s.Low, draft.Overload)
}

// exchange swaps an item for a lighter one of another replica.
func (s relief) exchange(d int, need plan.Load) bool {
	if s.Setting.IsClosed(d) {
		return false
	}
	all, receivers := slices.Clone(s.Members(d)), s.Receivers(d)
	for _, a := range all[s.From(all, need):] {
		for _, r := range receivers {
			if s.Steps--; s.Steps < 0 {
				return false
			}
			spare := s.Low.Load - s.Load[r]
			theirs := s.Members(int(r))
			at := s.From(theirs, s.Setting.Loads[a]-spare)
			if at == len(theirs) || s.Setting.Loads[a]-s.Setting.Loads[theirs[at]] < need {
				continue
			}
			if s.pass(int(a), int(theirs[at]), int(r), d, s.High) {
				return true
			}
		}
	}
	return false
}

// pushOn moves an item to a replica that passes one of its own on to a third.
func (s relief) pushOn(d int, need plan.Load) bool {
	all, receivers := slices.Clone(s.Members(d)), s.Receivers(d)
	for _, a := range all[s.From(all, need):] {
		for _, r := range receivers {
			if s.Steps--; s.Steps < 0 {
				return false
			}
			theirs := s.Members(int(r))
			at := s.From(theirs, s.Load[r]+s.Setting.Loads[a]-s.Low.Load)
			if at == len(theirs) {
				continue
			}
			b := theirs[at]
			if to := s.Least(int(b), int(r), s.Low); to != plan.NoReplica && to != d && s.pass(int(a), int(b), int(r), to, s.Low) {
				return true
			}
		}
	}
	return false
}

// pass moves b from r to another replica, then a to r, if the rules let both.
func (s relief) pass(a, b, r, to int, limit draft.Line) bool {
	mark, d := s.Mark(), s.Of[a]
	s.Shift(b, plan.NoReplica, draft.MadeRoom)
	s.Shift(a, plan.NoReplica, draft.Overload)
	if s.May(a, r) && s.Fits(a, r, s.Low) {
		s.Shift(a, r, draft.Overload)
		if s.May(b, to) && s.Fits(b, to, limit) && (to == d || to != r) {
			s.Shift(b, to, draft.MadeRoom)
			s.Squeeze(mark)
			return true
		}
	}
	s.Undo(mark)
	return false
}

// piecemeal moves the heaviest that fits, again and again, until that is enough.
func (s relief) piecemeal(d int, need plan.Load) bool {
	mark, left := s.Mark(), need
	for left > 0 {
		all := s.Members(d)
		at := min(s.From(all, left), len(all)-1)
		to := plan.NoReplica
		for ; at >= 0 && s.Setting.Loads[all[at]] > 0; at-- {
			if s.Steps--; s.Steps < 0 {
				break
			}
			if to = s.Least(int(all[at]), d, s.Low); to != plan.NoReplica {
				break
			}
		}
		if to == plan.NoReplica || s.Bears[d] < 2 {
			s.Undo(mark)
			return false
		}
		left -= s.Setting.Loads[all[at]]
		s.Shift(int(all[at]), to, draft.Overload)
	}
	return true
}

// more opens a replica for those that fit nowhere. At the most replicas, it moves what helps somewhat.
func (s relief) more(set []int32, d int, need plan.Load) bool {
	if s.Another() != plan.NoReplica && s.Send(set, d, s.Least, s.Low, draft.Overload) {
		s.Limit()
		return true
	}
	mark := s.Mark()
	s.Limit()
	s.help(d, need)
	s.CloseEmpty()
	return s.Mark() > mark
}

// help moves the heaviest that fit, as long as each takes enough off to be worth it.
func (s relief) help(d int, need plan.Load) {
	for need > 0 && s.Bears[d] > 1 && s.Steps >= 0 {
		all, to := s.Members(d), plan.NoReplica
		at := min(s.From(all, need), len(all)-1)
		for ; at >= 0 && s.Setting.Loads[all[at]] >= s.Useful; at-- {
			s.Steps--
			if to = s.Least(int(all[at]), d, s.Low); to != plan.NoReplica {
				break
			}
		}
		if to == plan.NoReplica {
			return
		}
		need -= s.Setting.Loads[all[at]]
		s.Shift(int(all[at]), to, draft.Overload)
	}
}
