package sticky

import (
	"cmp"
	"math"
	"slices"

	"ballast/planner/plan"
)

// line is what a replica carries at most: a load, and memory where that bounds anything.
type line struct {
	load   plan.Load
	memory plan.Bytes
}

// share is a share of both.
func (l line) share(of plan.Load) line { return line{shareOf(l.load, of), l.memory.Share(of)} }

// most is any load within the memory that there is.
func (s *state) most() line { return line{math.MaxInt64, s.full.memory} }

// bytes is an item's memory.
func (s *state) bytes(i int) plan.Bytes {
	if s.c.Bytes == nil {
		return 0
	}
	return s.c.Bytes[i]
}

// holds reports whether a replica has that much memory at most in use with an item.
func (s *state) holds(i, r int, memory plan.Bytes) bool {
	return s.mem == nil || s.mem[r]+s.c.Bytes[i] <= memory
}

// starved reports whether a replica of several items has not enough memory. One item alone has what there is.
func (s *state) starved(r int) bool { return s.bears[r] > 1 && s.mem[r] > s.full.memory }

// tightest is a replica for an item that no other takes within the rules: the cap gives way before the memory does, which then
// is exceeded by as little as can be.
func (s *state) tightest(i int) int {
	if to := s.uncapped(i, s.full.memory); to != nowhere {
		return to
	}
	best := nowhere
	for _, r := range s.tree.order {
		r := int(r)
		if s.apart(i, r) && (best == nowhere || s.mem[r] < s.mem[best] || s.mem[r] == s.mem[best] && s.less(r, best)) {
			best = r
		}
	}
	return best
}

// bearing brings replicas within their memory.
type bearing struct{ *state }

// bear brings every replica within its memory, whatever that costs: a pod that has not enough is killed, with all its clusters.
func (s bearing) bear() {
	if s.mem == nil || !s.anyStarved() {
		return
	}
	s.reopen()
	for again := true; again; {
		again = false
		for r := range s.n {
			if s.starved(r) && s.ops >= 0 {
				again = s.lighten(r, Starved) || again
			}
		}
	}
	if s.anyStarved() {
		s.repack()
	}
	s.cut = s.cut || s.ops < 0
}

func (s bearing) anyStarved() bool {
	for r := range s.n {
		if s.starved(r) {
			return true
		}
	}
	return false
}

// lighten takes memory off a replica: one item, else several, else by a swap, else with one more replica. Where that is not
// possible, what helps is moved all the same. A replica that is starved may have others carry any load, and makes do with what
// there is; else they stay at or below low.
func (s bearing) lighten(d int, why Why) bool {
	lines, enough := []line{s.low}, s.high.memory
	if why == Starved {
		lines, enough = []line{s.low, s.high, s.most()}, s.full.memory
	}
	last := lines[len(lines)-1]
	for _, to := range []plan.Bytes{s.down.memory, enough} {
		need := s.mem[d] - to
		for _, l := range lines {
			if s.giveOne(d, need, l, why) || s.giveSome(d, need, l, why) || s.swapMemory(d, need, l, why) {
				return true
			}
		}
	}
	if s.openFor(d, s.mem[d]-enough, last, why) {
		return true
	}
	helps := s.giveUseful(d, s.mem[d]-enough, last, why)
	relief(s).closeEmpty()
	return helps
}

// openFor opens a replica for what fits nowhere.
func (s bearing) openFor(d int, need plan.Bytes, limit line, why Why) bool {
	for s.n < s.c.Most {
		if r := s.open(); s.shut[r] {
			continue
		}
		s.limits()
		return s.giveOne(d, need, limit, why) || s.giveSome(d, need, limit, why)
	}
	return false
}

// byMemory are the items of a replica that may move, those that take the least memory first.
func (s bearing) byMemory(r int) []int32 {
	all := slices.Clone(s.members(r))
	s.ops -= len(all)
	slices.SortFunc(all, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.c.Bytes[a], s.c.Bytes[b]), cmp.Compare(s.c.Items[a].ID, s.c.Items[b].ID))
	})
	return all
}

// giveOne moves the item that takes the least of those that take enough.
func (s bearing) giveOne(d int, need plan.Bytes, limit line, why Why) bool {
	for _, i := range s.byMemory(d) {
		if s.c.Bytes[i] < need || s.ops < 0 {
			continue
		}
		if to := s.least(int(i), d, limit); to != nowhere {
			s.shift(int(i), to, why)
			return true
		}
	}
	return false
}

// giveSome moves those that take the most, of which another replica holds each; all that is needed, or none.
func (s bearing) giveSome(d int, need plan.Bytes, limit line, why Why) bool {
	mark := len(s.journal)
	if s.give(d, need, limit, why, 1) <= 0 {
		return true
	}
	s.undo(mark)
	return false
}

// giveUseful moves what helps, if that is not enough.
func (s bearing) giveUseful(d int, need plan.Bytes, limit line, why Why) bool {
	mark := len(s.journal)
	s.give(d, need, limit, why, max(s.full.memory.Share(s.o.Useful), 1))
	return len(s.journal) > mark
}

// give moves items of that size or more until enough is gone. It answers what is left of the need.
func (s bearing) give(d int, need plan.Bytes, limit line, why Why, least plan.Bytes) plan.Bytes {
	for _, i := range slices.Backward(s.byMemory(d)) {
		if done := need <= 0 || s.bears[d] < 2 || s.c.Bytes[i] < least; done || s.ops < 0 {
			break
		}
		if to := s.least(int(i), d, limit); to != nowhere {
			need -= s.c.Bytes[i]
			s.shift(int(i), to, why)
		}
	}
	return need
}

// swapMemory exchanges an item for one of another replica that takes less.
func (s bearing) swapMemory(d int, need plan.Bytes, limit line, why Why) bool {
	if s.c.IsClosed(d) {
		return false
	}
	ours, receivers := s.byMemory(d), relief(s).receivers(d)
	for _, a := range ours {
		if s.c.Bytes[a] < need {
			continue
		}
		for _, r := range receivers {
			for _, b := range slices.Clone(s.members(int(r))) {
				if s.ops--; s.ops < 0 {
					return false
				}
				within := s.mem[r]-s.c.Bytes[b]+s.c.Bytes[a] <= limit.memory && s.load[r]-s.c.Loads[b]+s.c.Loads[a] <= limit.load
				if s.c.Bytes[a]-s.c.Bytes[b] >= need && within && s.trade(a, b, int(r), d, why) {
					return true
				}
			}
		}
	}
	return false
}

// trade moves b to d and a to r, if the rules let both, and the load of d is no more than it was, or may be.
func (s bearing) trade(a, b int32, r, d int, why Why) bool {
	mark, loads := len(s.journal), max(s.high.load, s.load[d])
	s.shift(int(b), nowhere, MadeRoom)
	s.shift(int(a), nowhere, why)
	if s.may(int(a), r) {
		s.shift(int(a), r, why)
		if s.may(int(b), d) && s.load[d]+s.c.Loads[b] <= loads {
			s.shift(int(b), d, MadeRoom)
			relief(s).squeeze(mark)
			return true
		}
	}
	s.undo(mark)
	return false
}

// repackSteps bounds the search for a plan within the memory; a look at all replicas is as many steps as there are.
const repackSteps = 1_000_000

// repack looks for any plan within the memory and the rules, with as much where it is as it finds first; none: everything stays.
func (s bearing) repack() {
	p := packer{s: s, steps: min(repackSteps, s.ops)}
	for r := range s.n {
		p.items = append(p.items, s.members(r)...)
	}
	slices.SortFunc(p.items, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.c.Bytes[b], s.c.Bytes[a]), cmp.Compare(s.c.Items[a].ID, s.c.Items[b].ID))
	})
	for _, i := range p.items {
		p.homes = append(p.homes, s.of[i])
		if at := s.c.Stands(int(i)); at != nowhere && at < s.n {
			p.homes[len(p.homes)-1] = at
		}
		p.rest = p.rest.Plus(p.takes(int(i)))
	}
	p.run()
}

// packer is a depth-first search: items that take the most first, each where it was, else on the others, the emptiest first.
type packer struct {
	s     bearing
	items []int32
	homes []int
	rest  plan.Bytes // of the items that have no place yet
	steps int
}

// takes is what an item takes of a replica's memory at most: one that takes more has a replica of its own.
func (p *packer) takes(i int) plan.Bytes { return min(p.s.c.Bytes[i], p.s.full.memory) }

func (p *packer) run() {
	s := p.s
	replicas, before := s.n, len(s.journal)
	for _, i := range p.items {
		s.shift(int(i), nowhere, Starved)
	}
	spent := p.steps
	found := p.seat(0)
	s.ops -= spent - p.steps
	if !found {
		s.undo(before)
		for s.n > replicas {
			s.unopen()
		}
		return
	}
	s.settled(before)
}

// seat finds a place for the items from the k-th on.
func (p *packer) seat(k int) bool {
	if k == len(p.items) {
		return !p.s.anyStarved()
	}
	s, i := p.s, int(p.items[k])
	tried := false // of the replicas that have nothing, one
	for _, r := range p.choices(k) {
		if p.steps -= s.n; p.steps < 0 {
			return false
		}
		bare := s.units[r] == 0 && r != p.homes[k]
		if bare && tried || !s.may(i, r) || s.units[r] > 0 && !s.holds(i, r, s.full.memory) {
			continue
		}
		tried = tried || bare
		mark := len(s.journal)
		s.shift(i, r, Starved)
		p.rest -= p.takes(i)
		if p.rest <= p.room() && p.seat(k+1) {
			return true
		}
		p.rest += p.takes(i)
		s.undo(mark)
	}
	return false
}

// choices are where an item was, then those that receive, the emptiest first, then a replica that is not there yet.
func (p *packer) choices(k int) []int {
	s, home := p.s, p.homes[k]
	out := make([]int, 0, s.n+1)
	for r := range s.n {
		if r != home && !s.c.IsClosed(r) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(s.mem[a], s.mem[b]) })
	for s.n < s.c.Most && !slices.ContainsFunc(out, func(r int) bool { return s.units[r] == 0 }) {
		if r := s.open(); !s.shut[r] {
			out = append(out, r)
		}
	}
	return slices.Insert(out, 0, home)
}

// room is what the replicas that there may be have left.
func (p *packer) room() (bytes plan.Bytes) {
	s := p.s
	for r := range s.n {
		bytes = bytes.Plus(max(s.full.memory-s.mem[r], 0))
	}
	if more := plan.Bytes(s.c.Most - s.n); more > 0 && s.full.memory > math.MaxInt64/more {
		return math.MaxInt64
	} else if more > 0 {
		bytes = bytes.Plus(more * s.full.memory)
	}
	return bytes
}

// settled leaves of the steps since what came of them: one for each item that has another place.
func (s bearing) settled(before int) {
	steps := slices.Clone(s.journal[before:])
	s.journal = s.journal[:before]
	first := map[int32]step{}
	for _, st := range steps {
		if _, seen := first[st.item]; !seen {
			first[st.item] = st
		}
	}
	for _, st := range steps {
		one, is := first[st.item]
		if !is {
			continue
		}
		delete(first, st.item)
		if one.to = int32(s.of[st.item]); one.to != one.from {
			s.journal = append(s.journal, one)
		} else if s.why[st.item] = one.why; one.why.Why == "" {
			delete(s.why, st.item)
		}
	}
	for s.n > max(s.c.Replicas, s.c.Least) && s.units[s.n-1] == 0 {
		s.unopen()
	}
	s.limits()
}
