package draft

import (
	"slices"
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

// Because is why an item has been moved, and the replica for whose sake: Nowhere, if a rule wants it.
type Because struct {
	Why
	Sake int
}

// Shift brings an item to another replica, to Nowhere too.
func (d *Draft) Shift(i, to int, why Why) {
	d.journal = append(d.journal, step{item: int32(i), from: int32(d.Of[i]), to: int32(to), why: d.Why[int32(i)]})
	d.carry(i, to)
	if !d.arrives(i) {
		d.Why[int32(i)] = Because{why, d.Sake}
	}
}

// arrives reports whether an item has no replica that it could keep: wherever it goes is no move.
func (d *Draft) arrives(i int) bool {
	why := d.Why[int32(i)].Why
	return why == Arrived || why == Gone
}

func (d *Draft) carry(i, to int) {
	from := d.Of[i]
	for _, r := range []int{from, to} {
		if r == Nowhere {
			continue
		}
		if r == from {
			d.put(i, r, -1)
		} else {
			d.put(i, r, 1)
		}
		if d.member != nil {
			d.enlist(i, r, r == to)
		}
		d.tree.fix(d, r)
	}
	d.Of[i] = to
}

// Mark is a place in the journal, to go back to.
func (d *Draft) Mark() int { return len(d.journal) }

// Undo goes back to a mark.
func (d *Draft) Undo(mark int) {
	for len(d.journal) > mark {
		last := d.journal[len(d.journal)-1]
		d.journal = d.journal[:len(d.journal)-1]
		d.carry(int(last.item), int(last.from))
		if d.Why[last.item] = last.why; last.why.Why == "" {
			delete(d.Why, last.item)
		}
	}
}

// Send moves each of a set from a replica to where find says, within a line; all or none.
func (d *Draft) Send(set []int32, from int, find func(i, not int, limit Line) int, limit Line, why Why) bool {
	mark := d.Mark()
	for _, i := range set {
		to := find(int(i), from, limit)
		if to == Nowhere {
			d.Undo(mark)
			return false
		}
		d.Shift(int(i), to, why)
	}
	return true
}

// Counted are the moves since, of items that had a replica.
func (d *Draft) Counted(before int) (n int) {
	for _, st := range d.journal[before:] {
		if !d.arrives(int(st.item)) {
			n++
		}
	}
	return n
}

// Together reports whether the last action made room: its moves help only all at once.
func (d *Draft) Together(before int) bool {
	return slices.ContainsFunc(d.journal[before:], func(st step) bool { return st.from != d.journal[before].from })
}

// Squeeze writes the stopovers of two items that were taken out and then put back out of the journal: one step an item.
func (d *Draft) Squeeze(mark int) {
	j := d.journal[mark:]
	b, a := j[0], j[1]
	a.to, b.to = j[2].to, j[3].to
	d.journal = append(d.journal[:mark], a, b)
}

// Settle leaves of the steps since what came of them: one for each item that has another place.
func (d *Draft) Settle(before int) {
	steps := slices.Clone(d.journal[before:])
	d.journal = d.journal[:before]
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
		if one.to = int32(d.Of[st.item]); one.to != one.from {
			d.journal = append(d.journal, one)
		} else if d.Why[st.item] = one.why; one.why.Why == "" {
			delete(d.Why, st.item)
		}
	}
	d.CloseEmpty()
}
