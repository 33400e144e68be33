package draft

import (
	"slices"

	"ballast/planner/plan"
)

// Why an item has another replica than in the plan in force, of a closed set.
type Why string

// The reasons.
const (
	Arrived  Why = "Arrived"  // it had none
	Gone     Why = "Gone"     // its replica is no more
	Pinned   Why = "Pinned"   // it is fixed elsewhere
	Apart    Why = "Apart"    // another one of its group has that replica
	Capped   Why = "Capped"   // its replica has too many clusters
	Starved  Why = "Starved"  // its replica had not enough memory
	Overload Why = "Overload" // its replica was above High
	MadeRoom Why = "MadeRoom" // it made room for another one
	Filled   Why = "Filled"   // the other replica had next to nothing
	Drained  Why = "Drained"  // its replica is not needed
)

// step is an item on its way, and why it had been moved before.
type step struct {
	item     int32
	from, to int32
	why      Because
}

// Because is why an item has been moved, and the replica for whose sake: plan.NoReplica, if a rule wants it.
type Because struct {
	Why
	Sake int
}

// journal moves items, and has each move with its reason, to be undone.
type journal struct {
	receivers
	Why   map[int32]Because
	Sake  int // the replica for which something is done now; plan.NoReplica: a rule wants it
	Moves int // that count against MaxMoves
	Cut   bool
	steps []step
}

// Shift brings an item to another replica, to plan.NoReplica too.
func (j *journal) Shift(i, to int, why Why) {
	j.steps = append(j.steps, step{item: int32(i), from: int32(j.Of[i]), to: int32(to), why: j.Why[int32(i)]})
	j.carry(i, to)
	if !j.arrives(i) {
		j.Why[int32(i)] = Because{why, j.Sake}
	}
}

// arrives reports whether an item has no replica that it could keep: wherever it goes is no move.
func (j *journal) arrives(i int) bool {
	why := j.Why[int32(i)].Why
	return why == Arrived || why == Gone
}

func (j *journal) carry(i, to int) {
	from := j.Of[i]
	for _, end := range []struct{ replica, sign int }{{from, -1}, {to, 1}} {
		if end.replica == plan.NoReplica {
			continue
		}
		j.put(i, end.replica, end.sign)
		if j.member != nil {
			j.enlist(i, end.replica, end.sign > 0)
		}
		j.tree.fix(&j.view, end.replica)
	}
	j.Of[i] = to
}

// Mark is a place in the journal, to go back to.
func (j *journal) Mark() int { return len(j.steps) }

// Undo goes back to a mark.
func (j *journal) Undo(mark int) {
	for len(j.steps) > mark {
		last := j.steps[len(j.steps)-1]
		j.steps = j.steps[:len(j.steps)-1]
		j.carry(int(last.item), int(last.from))
		if j.Why[last.item] = last.why; last.why.Why == "" {
			delete(j.Why, last.item)
		}
	}
}

// Send moves each of a set from a replica to where find says, within a line; all or none.
func (j *journal) Send(set []int32, from int, find func(i, not int, limit Line) int, limit Line, why Why) bool {
	mark := j.Mark()
	for _, i := range set {
		to := find(int(i), from, limit)
		if to == plan.NoReplica {
			j.Undo(mark)
			return false
		}
		j.Shift(int(i), to, why)
	}
	return true
}

// Counted are the moves since, of items that had a replica.
func (j *journal) Counted(before int) (n int) {
	for _, st := range j.steps[before:] {
		if !j.arrives(int(st.item)) {
			n++
		}
	}
	return n
}

// Together reports whether the last action made room: its moves help only all at once.
func (j *journal) Together(before int) bool {
	return slices.ContainsFunc(j.steps[before:], func(st step) bool { return st.from != j.steps[before].from })
}

// Squeeze writes the stopovers of two items that were taken out and then put back out of the journal: one step an item.
func (j *journal) Squeeze(mark int) {
	since := j.steps[mark:]
	b, a := since[0], since[1]
	a.to, b.to = since[2].to, since[3].to
	j.steps = append(j.steps[:mark], a, b)
}

// Settle leaves of the steps since what came of them: one for each item that has another place.
func (j *journal) Settle(before int) {
	steps := slices.Clone(j.steps[before:])
	j.steps = j.steps[:before]
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
		if one.to = int32(j.Of[st.item]); one.to != one.from {
			j.steps = append(j.steps, one)
		} else if j.Why[st.item] = one.why; one.why.Why == "" {
			delete(j.Why, st.item)
		}
	}
}
