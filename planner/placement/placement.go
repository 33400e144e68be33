// Package placement is the one answer to which replica takes a cluster: whoever empties a replica, takes one away,
// follows a person's word, goes back to an earlier plan or finds a cluster without a replica asks here. It imports
// nothing of ballast but the plan.
package placement

import (
	"cmp"
	"math"
	"slices"

	"ballast/planner/plan"
)

// Unit is clusters that move together: Argo CD cannot tell the Secrets of one server apart. Names is ascending and not
// empty; a unit with a Home goes there, whatever that replica carries. Apart are the groups of which no two share a
// replica.
type Unit struct {
	Names  []string
	Load   plan.Load
	Memory plan.Bytes
	Home   int // NoReplica: wherever there is room
	Apart  []string
}

// With is the unit with one cluster more.
func (u Unit) With(name string, load plan.Load) Unit {
	u.Names, u.Load = append(u.Names, name), sum(u.Load, load)
	return u
}

// Taking is the unit with so much more memory.
func (u Unit) Taking(memory plan.Bytes) Unit {
	u.Memory = u.Memory.Plus(memory)
	return u
}

// Heavier orders the heaviest unit first.
func (u Unit) Heavier(other Unit) int {
	return cmp.Or(cmp.Compare(other.Load, u.Load), cmp.Compare(len(other.Names), len(u.Names)),
		cmp.Compare(u.Names[0], other.Names[0]))
}

// Bin is what a replica carries, and whether it may receive. Its number is its place in the list. Apart are the groups
// that it has a cluster of, which is never written to.
type Bin struct {
	Load     plan.Load
	Memory   plan.Bytes
	Clusters int
	Open     bool
	Cramped  bool // its node is full: of replicas that may receive alike another one does
	Apart    []string
}

// Take is the bin with a unit.
func (b Bin) Take(u Unit) Bin {
	b = b.With(u.Load, len(u.Names))
	b.Memory = b.Memory.Plus(u.Memory)
	b.Apart = Joined(b.Apart, u.Apart)
	return b
}

// Crowds reports whether the bin has one of the unit's groups already.
func (b Bin) Crowds(u Unit) bool {
	return len(b.Apart) > 0 && slices.ContainsFunc(u.Apart, func(group string) bool { return slices.Contains(b.Apart, group) })
}

// Joined is all of both lists, in order; neither is written to.
func Joined(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// With is the bin with so much more.
func (b Bin) With(load plan.Load, clusters int) Bin {
	b.Load, b.Clusters = sum(b.Load, load), b.Clusters+clusters
	return b
}

// Compare orders by load, then by clusters.
func (b Bin) Compare(other Bin) int {
	return cmp.Or(cmp.Compare(b.Load, other.Load), cmp.Compare(b.Clusters, other.Clusters))
}

// Policy is what a replica may carry. Without a capacity no replica is filled up: units are spread.
type Policy struct {
	Capacity    plan.Load  // 0: not known
	MaxClusters int        // 0: no cap
	Memory      plan.Bytes // 0: not known
}

// fits reports whether a replica may carry that.
func (p Policy) fits(b Bin) bool { return b.Load <= p.Capacity && p.Capacity > 0 && p.room(b) }

// Holds reports whether a replica has the memory for a unit. One that has nothing holds any: no other would do better.
func (p Policy) Holds(b Bin, u Unit) bool {
	return p.Memory <= 0 || u.Memory == 0 || b.Clusters == 0 || b.Memory.Plus(u.Memory) <= p.Memory
}

func (p Policy) room(b Bin) bool { return p.MaxClusters <= 0 || b.Clusters <= p.MaxClusters }

// Placed is where a unit goes, and whether the replica may carry it with all that was placed before. Crowds says that
// the replica has one of its groups, and Starves that it has not the memory for it, since no other may receive it: who
// can wait waits.
type Placed struct {
	To      int
	Fits    bool
	Crowds  bool
	Starves bool
}

// Place chooses a replica for each unit, in the order of units, as if all of them moved: first those that have a home;
// then, the heaviest first, those that an open replica may carry, each on the fullest that may; then the others, the
// heaviest first, on the lightest. Replicas that are not open receive only where none is; a replica without the memory
// receives only where no open one has it; groups are kept apart where an open replica has none of them, before the cap
// is kept; and the cap is passed only where no other has room.
func Place(units []Unit, bins []Bin, p Policy) []Placed {
	bins, placed := slices.Clone(bins), make([]Placed, len(units))
	order := make([]int, len(units))
	for i := range order {
		order[i], placed[i].To = i, plan.NoReplica
	}
	slices.SortFunc(order, func(a, b int) int { return units[a].Heavier(units[b]) })
	home := func(u Unit, _ []Bin) int { return u.Home }
	for _, choose := range []func(Unit, []Bin) int{home, p.fullest, p.lightest} {
		for _, i := range order {
			if placed[i].To != plan.NoReplica {
				continue
			}
			if to := choose(units[i], bins); to != plan.NoReplica {
				crowds, holds := bins[to].Crowds(units[i]), p.Holds(bins[to], units[i])
				bins[to] = bins[to].Take(units[i])
				placed[i] = Placed{To: to, Fits: p.fits(bins[to]) && holds, Crowds: crowds, Starves: !holds}
			}
		}
	}
	return placed
}

// fullest is the open replica that may carry the unit and has the most load.
func (p Policy) fullest(u Unit, bins []Bin) int {
	may := func(b Bin) bool {
		return b.Open && p.fits(b.With(u.Load, len(u.Names))) && p.Holds(b, u) && !b.Crowds(u)
	}
	return best(bins, may, func(a, b Bin) bool { return a.Load > b.Load })
}

// lightest is the replica with the least load, of those with the fewest clusters: of the open ones, of those without a
// group that the unit keeps apart from, of those that the cap leaves room for it, of those whose node is not full.
func (p Policy) lightest(u Unit, bins []Bin) int {
	lighter := func(a, b Bin) bool { return cmp.Or(crampedLast(a, b), a.Compare(b)) < 0 }
	anyOpen := slices.ContainsFunc(bins, func(b Bin) bool { return b.Open })
	may := func(b Bin) bool { return b.Open == anyOpen }
	room := func(b Bin) bool { return may(b) && p.room(b.With(0, len(u.Names))) }
	apart := func(and func(Bin) bool) func(Bin) bool { return func(b Bin) bool { return and(b) && !b.Crowds(u) } }
	allowed := []func(Bin) bool{apart(room), apart(may), room, may}
	for _, allows := range allowed {
		holds := func(b Bin) bool { return allows(b) && p.Holds(b, u) }
		if to := best(bins, holds, lighter); to != plan.NoReplica {
			return to
		}
	}
	return p.roomiest(bins, allowed)
}

// crampedLast orders the replicas whose node is full behind the others.
func crampedLast(a, b Bin) int {
	switch {
	case a.Cramped == b.Cramped:
		return 0
	case a.Cramped:
		return 1
	}
	return -1
}

// roomiest is the replica that has the least memory in use, where none has enough.
func (p Policy) roomiest(bins []Bin, allowed []func(Bin) bool) int {
	for _, allows := range allowed {
		less := func(a, b Bin) bool {
			return cmp.Or(crampedLast(a, b), cmp.Compare(a.Memory, b.Memory), a.Compare(b)) < 0
		}
		if to := best(bins, allows, less); to != plan.NoReplica {
			return to
		}
	}
	return plan.NoReplica
}

// best is the replica that comes first of those that may receive; of two alike the lower number.
func best(bins []Bin, may func(Bin) bool, before func(a, b Bin) bool) int {
	best := plan.NoReplica
	for replica, b := range bins {
		if may(b) && (best == plan.NoReplica || before(b, bins[best])) {
			best = replica
		}
	}
	return best
}

// sum stops at the largest load instead of wrapping.
func sum(a, b plan.Load) plan.Load {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
