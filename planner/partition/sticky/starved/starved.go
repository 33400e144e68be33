// Package starved brings replicas within their memory: a pod that has not enough is killed, with all its clusters.
package starved

import (
	"cmp"
	"math"
	"slices"

	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// starved reports whether a replica of several items has not enough memory. One item alone has what there is.
func (s bearing) starved(r int) bool { return s.Bears[r] > 1 && s.Memory[r] > s.Full.Memory }

// bearing brings replicas within their memory.
type bearing struct{ *draft.Draft }

// Relieve brings every replica within its memory, whatever that costs.
func Relieve(d *draft.Draft) {
	s := bearing{d}
	if s.Memory == nil || !s.anyStarved() {
		return
	}
	s.Reopen()
	for again := true; again; {
		again = false
		for r := range s.N {
			if s.starved(r) && s.Steps >= 0 {
				again = Lighten(d, r, draft.Starved) || again
			}
		}
	}
	if s.anyStarved() {
		s.repack()
	}
	s.Cut = s.Cut || s.Steps < 0
}

func (s bearing) anyStarved() bool {
	for r := range s.N {
		if s.starved(r) {
			return true
		}
	}
	return false
}

// Lighten takes memory off a replica: one item, else several, else by a swap, else with one more replica. Where that is
// not possible, what helps is moved all the same. A replica that is starved may have others carry any load, and makes
// do with what there is; else they stay at or below low.
func Lighten(in *draft.Draft, d int, why draft.Why) bool {
	s := bearing{in}
	lines, enough := []draft.Line{s.Low}, s.High.Memory
	if why == draft.Starved {
		lines, enough = []draft.Line{s.Low, s.High, s.Most()}, s.Full.Memory
	}
	last := lines[len(lines)-1]
	for _, to := range []plan.Bytes{s.Down.Memory, enough} {
		need := s.Memory[d] - to
		for _, l := range lines {
			if s.giveOne(d, need, l, why) || s.giveSome(d, need, l, why) || s.swapMemory(d, need, l, why) {
				return true
			}
		}
	}
	if s.openFor(d, s.Memory[d]-enough, last, why) {
		return true
	}
	helps := s.giveUseful(d, s.Memory[d]-enough, last, why)
	s.CloseEmpty()
	return helps
}

// openFor opens a replica for what fits nowhere.
func (s bearing) openFor(d int, need plan.Bytes, limit draft.Line, why draft.Why) bool {
	if s.Another() == plan.NoReplica {
		return false
	}
	s.Limit()
	return s.giveOne(d, need, limit, why) || s.giveSome(d, need, limit, why)
}

// byMemory are the items of a replica that may move, those that take the least memory first.
func (s bearing) byMemory(r int) []int32 {
	all := slices.Clone(s.Members(r))
	s.Steps -= len(all)
	slices.SortFunc(all, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.Setting.Bytes[a], s.Setting.Bytes[b]),
			cmp.Compare(s.Setting.Items[a].ID, s.Setting.Items[b].ID))
	})
	return all
}

// giveOne moves the item that takes the least of those that take enough.
func (s bearing) giveOne(d int, need plan.Bytes, limit draft.Line, why draft.Why) bool {
	for _, i := range s.byMemory(d) {
		if s.Setting.Bytes[i] < need || s.Steps < 0 {
			continue
		}
		if to := s.Least(int(i), d, limit); to != plan.NoReplica {
			s.Shift(int(i), to, why)
			return true
		}
	}
	return false
}

// giveSome moves those that take the most, of which another replica holds each; all that is needed, or none.
func (s bearing) giveSome(d int, need plan.Bytes, limit draft.Line, why draft.Why) bool {
	mark := s.Mark()
	if s.give(d, need, limit, why, 1) <= 0 {
		return true
	}
	s.Undo(mark)
	return false
}

// giveUseful moves what helps, if that is not enough.
func (s bearing) giveUseful(d int, need plan.Bytes, limit draft.Line, why draft.Why) bool {
	mark := s.Mark()
	s.give(d, need, limit, why, max(s.Full.Memory.Share(s.Options.Useful), 1))
	return s.Mark() > mark
}

// give moves items of that size or more until enough is gone. It answers what is left of the need.
func (s bearing) give(d int, need plan.Bytes, limit draft.Line, why draft.Why, least plan.Bytes) plan.Bytes {
	for _, i := range slices.Backward(s.byMemory(d)) {
		if done := need <= 0 || s.Bears[d] < 2 || s.Setting.Bytes[i] < least; done || s.Steps < 0 {
			break
		}
		if to := s.Least(int(i), d, limit); to != plan.NoReplica {
			need -= s.Setting.Bytes[i]
			s.Shift(int(i), to, why)
		}
	}
	return need
}

// swapMemory exchanges an item for one of another replica that takes less.
func (s bearing) swapMemory(d int, need plan.Bytes, limit draft.Line, why draft.Why) bool {
	if s.Setting.IsClosed(d) {
		return false
	}
	ours, receivers := s.byMemory(d), s.Receivers(d)
	for _, a := range ours {
		if s.Setting.Bytes[a] < need {
			continue
		}
		for _, r := range receivers {
			for _, b := range slices.Clone(s.Members(int(r))) {
				if s.Steps--; s.Steps < 0 {
					return false
				}
				memory, load := s.Setting.Bytes[a]-s.Setting.Bytes[b], s.Setting.Loads[a]-s.Setting.Loads[b]
				within := s.Memory[r]+memory <= limit.Memory && s.Load[r]+load <= limit.Load
				if memory >= need && within && s.trade(a, b, int(r), d, why) {
					return true
				}
			}
		}
	}
	return false
}

// trade moves b to d and a to r, if the rules let both, and the load of d is no more than it was, or may be.
func (s bearing) trade(a, b int32, r, d int, why draft.Why) bool {
	mark, loads := s.Mark(), max(s.High.Load, s.Load[d])
	s.Shift(int(b), plan.NoReplica, draft.MadeRoom)
	s.Shift(int(a), plan.NoReplica, why)
	if s.May(int(a), r) {
		s.Shift(int(a), r, why)
		if s.May(int(b), d) && s.Load[d]+s.Setting.Loads[b] <= loads {
			s.Shift(int(b), d, draft.MadeRoom)
			s.Squeeze(mark)
			return true
		}
	}
	s.Undo(mark)
	return false
}

// repackSteps bounds the search for a plan within the memory; a look at all replicas is as many steps as there are.
const repackSteps = 1_000_000

// repack looks for any plan within the memory and the rules, with as much where it is as it finds first; none:
// everything stays.
func (s bearing) repack() {
	p := packer{s: s, steps: min(repackSteps, s.Steps)}
	for r := range s.N {
		p.items = append(p.items, s.Members(r)...)
	}
	slices.SortFunc(p.items, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.Setting.Bytes[b], s.Setting.Bytes[a]),
			cmp.Compare(s.Setting.Items[a].ID, s.Setting.Items[b].ID))
	})
	for _, i := range p.items {
		p.homes = append(p.homes, s.Of[i])
		if at := s.Setting.Stands(int(i)); at != plan.NoReplica && at < s.N {
			p.homes[len(p.homes)-1] = at
		}
		p.rest = p.rest.Plus(p.takes(int(i)))
	}
	p.run()
}

// packer is a depth-first search: items that take the most first, each where it was, else on the others, the emptiest
// first.
type packer struct {
	s     bearing
	items []int32
	homes []int
	rest  plan.Bytes // of the items that have no place yet
	steps int
}

// takes is what an item takes of a replica's memory at most: one that takes more has a replica of its own.
func (p *packer) takes(i int) plan.Bytes { return min(p.s.Setting.Bytes[i], p.s.Full.Memory) }

func (p *packer) run() {
	s := p.s
	replicas, before := s.N, s.Mark()
	for _, i := range p.items {
		s.Shift(int(i), plan.NoReplica, draft.Starved)
	}
	spent := p.steps
	found := p.seat(0)
	s.Steps -= spent - p.steps
	if !found {
		s.Undo(before)
		for s.N > replicas {
			s.Unopen()
		}
		return
	}
	s.Settle(before)
	s.CloseEmpty()
}

// seat finds a place for the items from the k-th on.
func (p *packer) seat(k int) bool {
	if k == len(p.items) {
		return !p.s.anyStarved()
	}
	s, i := p.s, int(p.items[k])
	tried := false // of the replicas that have nothing, one
	for _, r := range p.choices(k) {
		if p.steps -= s.N; p.steps < 0 {
			return false
		}
		bare := s.Units[r] == 0 && r != p.homes[k]
		if bare && tried || !s.May(i, r) || s.Units[r] > 0 && !s.Holds(i, r, s.Full.Memory) {
			continue
		}
		tried = tried || bare
		mark := s.Mark()
		s.Shift(i, r, draft.Starved)
		p.rest -= p.takes(i)
		if p.rest <= p.room() && p.seat(k+1) {
			return true
		}
		p.rest += p.takes(i)
		s.Undo(mark)
	}
	return false
}

// choices are where an item was, then those that receive, the emptiest first, then a replica that is not there yet.
func (p *packer) choices(k int) []int {
	s, home := p.s, p.homes[k]
	out := make([]int, 0, s.N+1)
	for r := range s.N {
		if r != home && !s.Setting.IsClosed(r) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(s.Memory[a], s.Memory[b]) })
	if !slices.ContainsFunc(out, func(r int) bool { return s.Units[r] == 0 }) {
		if r := s.Another(); r != plan.NoReplica {
			out = append(out, r)
		}
	}
	return slices.Insert(out, 0, home)
}

// room is what the replicas that there may be have left.
func (p *packer) room() (bytes plan.Bytes) {
	s := p.s
	for r := range s.N {
		bytes = bytes.Plus(max(s.Full.Memory-s.Memory[r], 0))
	}
	if more := plan.Bytes(s.Setting.Most - s.N); more > 0 && s.Full.Memory > math.MaxInt64/more {
		return math.MaxInt64
	} else if more > 0 {
		bytes = bytes.Plus(more * s.Full.Memory)
	}
	return bytes
}
