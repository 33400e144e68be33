package constraint

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// searchSteps bounds one search for seats: a million are some ten milliseconds.
const searchSteps = 1_000_000

type verdict int

const (
	seated verdict = iota
	clashes
	unknown
)

// round is one search for seats without the rules that are gone.
type round struct {
	*hall
	apart  []bool // by group: it counts
	at     []int  // by place, plan.NoReplica while it has none
	seats  []int  // replicas that may receive, ascending
	closed []int
	steps  int
}

// solve seats every item of a group, or says that it cannot be.
func (h *hall) solve(gone map[Constraint]bool) ([]int, verdict) {
	r := h.round(gone)
	if r.crowded() {
		return nil, clashes
	}
	var free []int
	for k, at := range r.at {
		if at == plan.NoReplica {
			free = append(free, k)
		} else if r.beside(k, at) {
			return nil, clashes
		}
	}
	if r.simply(free) {
		return r.at, seated
	}
	if r.unmatched() {
		return nil, clashes
	}
	v := r.seatAll(free)
	if v == unknown && r.inTurn(free) {
		v = seated
	}
	return r.at, v
}

// inTurn seats those first that have the most neighbours among each other: where each has, of those that come before
// it, fewer than there are seats, each finds one, however long a search for others takes.
func (r *round) inTurn(free []int) bool {
	left := make(map[int]int, len(free)) // how many neighbours each of those has that are to come before it
	for _, k := range free {
		for _, other := range r.nextTo[k] {
			if r.share(k, other) {
				left[k]++
			}
		}
	}
	var turn []int
	for rest := slices.Clone(free); len(rest) > 0; {
		last := slices.IndexFunc(rest, func(k int) bool { return left[k] < len(r.seats) })
		if last < 0 {
			return false
		}
		k := rest[last]
		turn, rest = append(turn, k), slices.Delete(rest, last, last+1)
		for _, other := range r.nextTo[k] {
			if r.share(k, other) {
				left[other]--
			}
		}
	}
	for _, k := range slices.Backward(turn) {
		choices := r.choices(k)
		if len(choices) == 0 {
			for _, k := range free {
				r.at[k] = plan.NoReplica
			}
			return false
		}
		r.at[k] = choices[0]
	}
	return true
}

// simply leaves everything where it stands, and seats the others in turn, those with the most neighbours first.
func (r *round) simply(free []int) bool {
	var rest []int
	for _, k := range free {
		if home := r.stands[k]; home >= 0 && !r.beside(k, home) {
			r.at[k] = home
		} else {
			rest = append(rest, k)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(len(r.nextTo[b]), len(r.nextTo[a])) })
	for _, k := range rest {
		at := slices.IndexFunc(r.seats, func(replica int) bool { return !r.beside(k, replica) })
		if at < 0 {
			for _, k := range free {
				r.at[k] = plan.NoReplica
			}
			return false
		}
		r.at[k] = r.seats[at]
	}
	return true
}

func (h *hall) round(gone map[Constraint]bool) *round {
	r := &round{hall: h, apart: make([]bool, len(h.names)), at: make([]int, len(h.items)), steps: searchSteps}
	for g, name := range h.names {
		r.apart[g] = !gone[Constraint{Rule: partition.Apart, Group: name}]
	}
	for k, at := range h.pin {
		r.at[k] = at
		if at != partition.Free && gone[Constraint{Rule: partition.Pin, Item: h.ids[k], Replica: at}] {
			r.at[k] = plan.NoReplica
		}
	}
	r.seats = slices.Clone(h.open)
	for _, replica := range h.closed {
		if gone[Constraint{Rule: partition.Closed, Replica: replica}] {
			r.seats = append(r.seats, replica)
		} else {
			r.closed = append(r.closed, replica)
		}
	}
	slices.Sort(r.seats)
	if gone[h.limit()] {
		for more := range len(h.items) {
			r.seats = append(r.seats, h.count+more)
		}
	}
	return r
}

// crowded: a group that is larger than what there is, whoever sits where.
func (r *round) crowded() bool {
	size := make([]int, len(r.names))
	for k := range r.items {
		beyond := r.at[k] != plan.NoReplica || r.mayStay(k)
		for _, g := range r.groups[k] {
			if !beyond {
				size[g]++
			}
		}
	}
	for g, n := range size {
		if r.apart[g] && n > len(r.seats) {
			return true
		}
	}
	return false
}

// mayStay: what stands on a closed replica need not receive.
func (r *round) mayStay(k int) bool {
	_, stays := slices.BinarySearch(r.closed, r.stands[k])
	return stays
}

// beside reports whether one of the item's groups is on the replica.
func (r *round) beside(k, replica int) bool {
	for _, other := range r.nextTo[k] {
		if r.at[other] == replica && r.share(k, other) {
			return true
		}
	}
	return false
}

func (r *round) share(a, b int) bool {
	return slices.ContainsFunc(r.groups[a], func(g int32) bool { return r.apart[g] && slices.Contains(r.groups[b], g) })
}

// choices are the replicas that an item can have, where it stands first.
func (r *round) choices(k int) []int {
	var out []int
	home := r.stands[k]
	if home >= 0 && !r.beside(k, home) {
		out = append(out, home)
	}
	for _, replica := range r.seats {
		if replica != home && !r.beside(k, replica) {
			out = append(out, replica)
		}
	}
	return out
}

// unmatched: a group that has no seats for all, by Hall's condition (augmenting paths), as the others stand pinned.
func (r *round) unmatched() bool {
	for g := range r.names {
		if r.apart[g] && r.short(int32(g)) {
			return true
		}
	}
	return false
}

func (r *round) short(g int32) bool {
	taken := map[int]int{}
	choices := map[int][]int{}
	var path func(k int, seen map[int]bool) bool
	path = func(k int, seen map[int]bool) bool {
		for _, replica := range choices[k] {
			r.steps--
			if seen[replica] {
				continue
			}
			seen[replica] = true
			if other, is := taken[replica]; !is || path(other, seen) {
				taken[replica] = k
				return true
			}
		}
		return false
	}
	for k := range r.items {
		if r.at[k] != plan.NoReplica || !slices.Contains(r.groups[k], g) {
			continue
		}
		if choices[k] = r.choices(k); !path(k, map[int]bool{}) {
			return true
		}
	}
	return false
}

// seatAll is a depth-first search that seats the item with the fewest choices next.
func (r *round) seatAll(free []int) verdict {
	if len(free) == 0 {
		return seated
	}
	next, fewest := 0, []int(nil)
	for n, k := range free {
		c := r.choices(k)
		r.steps -= 1 + len(c)
		if fewest == nil || len(c) < len(fewest) {
			next, fewest = n, c
		}
		if len(c) == 0 {
			return clashes
		}
		if len(c) == 1 {
			break
		}
		if r.steps < 0 {
			return unknown
		}
	}
	k := free[next]
	rest := slices.Delete(slices.Clone(free), next, next+1)
	out := clashes
	for _, replica := range fewest {
		r.at[k] = replica
		switch v := r.seatAll(rest); v {
		case seated:
			return seated
		case unknown:
			out = unknown
		}
		if r.at[k] = plan.NoReplica; r.steps < 0 {
			return unknown
		}
	}
	return out
}
