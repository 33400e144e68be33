package partition

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Relabel renumbers replicas so that more clusters stay where they are. now is each item's present replica, by ID.
//
// A partition from scratch knows groups, not numbers: the group that owns what replica 3 owns today may come out as
// replica 0, and every cluster of it would move for nothing. Matching groups to replicas by overlap, greedily, is
// within 1.5 points of the best matching (facts/partitioning.md 5) and sorts instead of taking the third power of the
// replicas. It saves a third of the moves and no more, since the groups themselves change: a partition computed from
// the plan in force is what avoids them.
//
// The pair of group and replica that shares the most clusters is taken first, then the one that shares the most load,
// then the lowest numbers. Replicas with fixed items keep their number.
func Relabel(p Partition, items []Item, now map[string]int) Partition {
	to := keepFixed(p, items)
	taken := make([]bool, p.Replicas)
	for from, r := range to {
		if r >= 0 {
			taken[from] = true
		}
	}
	for _, o := range overlaps(p, items, now) {
		if to[o.from] < 0 && !taken[o.to] {
			to[o.from], taken[o.to] = o.to, true
		}
	}
	fillFree(to, taken)
	return p.renumber(to)
}

// keepFixed maps each replica with a fixed item to itself and the others to -1.
func keepFixed(p Partition, items []Item) []int {
	to := make([]int, p.Replicas)
	for r := range to {
		to[r] = -1
	}
	for i := range items {
		if items[i].Replica != Free {
			to[p.Of[i]] = p.Of[i]
		}
	}
	return to
}

// overlap is what a group of the new partition has in common with a replica as it is.
type overlap struct {
	from, to int
	clusters int
	load     plan.Load
}

func overlaps(p Partition, items []Item, now map[string]int) []overlap {
	var shared []overlap
	at := make(map[[2]int]int)
	for i := range items {
		r, known := now[items[i].ID]
		if !known || r < 0 || r >= p.Replicas {
			continue
		}
		pair := [2]int{p.Of[i], r}
		k, seen := at[pair]
		if !seen {
			k = len(shared)
			at[pair], shared = k, append(shared, overlap{from: p.Of[i], to: r})
		}
		shared[k].clusters += items[i].Clusters
		shared[k].load += items[i].Load
	}
	slices.SortFunc(shared, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(b.clusters, a.clusters), cmp.Compare(b.load, a.load), byPair(a, b))
	})
	return shared
}

func byPair(a, b overlap) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }

// fillFree gives replicas that nothing matched their own number if it is free, else the lowest that is.
func fillFree(to []int, taken []bool) {
	for from, r := range to {
		if r < 0 && !taken[from] {
			to[from], taken[from] = from, true
		}
	}
	next := 0
	for from, r := range to {
		if r >= 0 {
			continue
		}
		for taken[next] {
			next++
		}
		to[from], taken[next] = next, true
	}
}

func (p Partition) renumber(to []int) Partition {
	out := Partition{
		Replicas: p.Replicas,
		Of:       make([]int, len(p.Of)),
		Loads:    make([]plan.Load, len(p.Loads)),
		Clusters: make([]int, len(p.Clusters)),
		Lost:     slices.Clone(p.Lost),
	}
	if p.Memory != nil {
		out.Memory = make([]plan.Bytes, len(p.Memory))
	}
	for i, r := range p.Of {
		out.Of[i] = to[r]
	}
	for r, t := range to {
		out.Loads[t], out.Clusters[t] = p.Loads[r], p.Clusters[r]
		if p.Memory != nil {
			out.Memory[t] = p.Memory[r]
		}
	}
	for i := range out.Lost {
		if what := out.Lost[i].What; what == MaxClusters || what == Memory {
			out.Lost[i].Replica = to[out.Lost[i].Replica]
		}
	}
	return out
}
