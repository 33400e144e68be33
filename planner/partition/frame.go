package partition

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Frame is what bounds and fixed items leave of the choice of a number of replicas. Least and Most are the same where
// Bounds.Fixed says how many. Capacity is what a replica may carry, Heaviest the heaviest item.
type Frame struct {
	Least, Most int
	Capacity    plan.Load
	Heaviest    plan.Load
	Lost        []Lost // of the rules about the number
	because     Rule
	cap         int
}

// NewFrame refuses what LPT refuses, but for two items with one ID.
func NewFrame(items []Item, b Bounds) (Frame, error) {
	heaviest, err := check(items, b)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Most: b.MaxReplicas, Capacity: b.Capacity, Heaviest: heaviest, because: MaxReplicas, cap: b.MaxClusters}
	if f.Capacity == 0 {
		f.Capacity = heaviest
	}
	pinned, top := highestPin(items)
	if held := min(b.Held, b.MaxReplicas); held > pinned {
		pinned, top = held, ""
	}
	f.Least = max(b.MinReplicas, pinned, 1)
	if b.Fixed > 0 {
		f.Least = max(min(b.Fixed, b.MaxReplicas), pinned)
		f.Most, f.because, f.Lost = f.Least, FixedReplicas, fixedLost(b, pinned, top)
	}
	return f, nil
}

// Build adds up where items are: loads, clusters, and the replicas that have more clusters than the cap. Of those the
// fixed items count first, then the heaviest.
func (f Frame) Build(items []Item, of []int, replicas int) Partition {
	p := Partition{Replicas: replicas, Of: of, Loads: make([]plan.Load, replicas), Clusters: make([]int, replicas)}
	for i, r := range of {
		p.Loads[r] += items[i].Load
		p.Clusters[r] += items[i].Clusters
	}
	p.Lost = slices.Clone(f.Lost)
	if f.cap == 0 {
		return p
	}
	room := 0
	for _, n := range p.Clusters {
		room += max(f.cap-n, 0)
	}
	for r, n := range p.Clusters {
		if n > f.cap {
			p.Lost = append(p.Lost, f.overCap(items, of, r, room))
		}
	}
	return p
}

// overCap says which item takes a replica above the cap, and which rule wants it there.
func (f Frame) overCap(items []Item, of []int, replica, room int) Lost {
	var on []int
	for i, r := range of {
		if r == replica {
			on = append(on, i)
		}
	}
	free := func(i int) int { return min(items[i].Replica, 0) } // -1: free
	slices.SortFunc(on, func(a, b int) int {
		return cmp.Or(cmp.Compare(free(b), free(a)), cmp.Compare(items[b].Load, items[a].Load), cmp.Compare(items[a].ID, items[b].ID))
	})
	lost := Lost{What: MaxClusters, To: f.because, Replica: replica}
	clusters := 0
	for _, i := range on {
		if clusters += items[i].Clusters; clusters <= f.cap {
			continue
		}
		lost.Item = items[i].ID
		switch {
		case items[i].Replica != Free:
			lost.To = Pin
		case items[i].Clusters > f.cap || items[i].Clusters > 1 && room >= items[i].Clusters:
			lost.To = SameServer
		}
		break
	}
	return lost
}
