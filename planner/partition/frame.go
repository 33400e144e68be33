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
	memory      plan.Bytes
}

// NewFrame refuses what LPT refuses, but for two items with one ID.
func NewFrame(items []Item, b Bounds) (Frame, error) {
	heaviest, err := check(items, b)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Most: b.MaxReplicas, Capacity: b.Capacity, Heaviest: heaviest, because: MaxReplicas, cap: b.MaxClusters,
		memory: b.Memory}
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
	if f.memory > 0 {
		f.addMemory(&p, items)
	}
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

// addMemory adds up the memory, and names the replicas that have too little.
func (f Frame) addMemory(p *Partition, items []Item) {
	p.Memory = make([]plan.Bytes, p.Replicas)
	for i, r := range p.Of {
		p.Memory[r] += items[i].Memory
	}
	for r, bytes := range p.Memory {
		if bytes > f.memory {
			p.Lost = append(p.Lost, f.overMemory(items, p.Of, r))
		}
	}
}

// overMemory says which item takes a replica beyond its memory, and which rule wants it there. The fixed items count
// first, then those that take the most.
func (f Frame) overMemory(items []Item, of []int, replica int) Lost {
	on := itemsOn(of, replica)
	slices.SortFunc(on, func(a, b int) int {
		return cmp.Or(cmp.Compare(free(items[b]), free(items[a])), cmp.Compare(items[b].Memory, items[a].Memory),
			cmp.Compare(items[a].ID, items[b].ID))
	})
	lost := Lost{What: Memory, To: f.because, Replica: replica}
	var bytes plan.Bytes
	for _, i := range on {
		if bytes += items[i].Memory; bytes <= f.memory {
			continue
		}
		switch lost.Item = items[i].ID; {
		case items[i].Memory > f.memory:
			lost.To = Undivided
		case items[i].Replica != Free:
			lost.To = Pin
		}
		break
	}
	return lost
}

func itemsOn(of []int, replica int) (on []int) {
	for i, r := range of {
		if r == replica {
			on = append(on, i)
		}
	}
	return on
}

// free is -1 for what is free, which comes last.
func free(it Item) int { return min(it.Replica, 0) }

// overCap says which item takes a replica above the cap, and which rule wants it there.
func (f Frame) overCap(items []Item, of []int, replica, room int) Lost {
	on := itemsOn(of, replica)
	slices.SortFunc(on, func(a, b int) int {
		return cmp.Or(cmp.Compare(free(items[b]), free(items[a])), cmp.Compare(items[b].Load, items[a].Load),
			cmp.Compare(items[a].ID, items[b].ID))
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
