// Package bounds says how many replicas there may be: by people, the workload and the rules.
package bounds

import (
	"cmp"

	"ballast/planner/cycle/ground"
	"ballast/planner/partition"
	"ballast/planner/plan"
)

// defaultMinReplicas is how few replicas there may be where nobody said and the fleet had them: one replica's failure
// must not stop the whole fleet.
const defaultMinReplicas = 2

// Of are the bounds of the partition: people's numbers, the workload's, and what rules leave of them.
func Of(g *ground.Ground) partition.Bounds {
	p, w := g.In.Config.Partition, g.In.Workload
	b := partition.Bounds{MaxReplicas: g.Next.MaxReplicas, MaxClusters: g.MostClusters()}
	b.MinReplicas = min(defaultMinReplicas, g.Next.Replicas)
	if p.MinReplicas != nil {
		b.MinReplicas = *p.MinReplicas
	}
	b.MinReplicas = min(max(b.MinReplicas, 1), b.MaxReplicas)
	switch {
	case p.Replicas == nil:
	case p.Replicas.Workload:
		b.Fixed = g.HeldByPeople()
		b.MaxReplicas = max(b.MaxReplicas, b.Fixed)
	default:
		b.Fixed = p.Replicas.Fixed
	}
	if w.Unmanaged && !ground.ByWorkload(p) {
		b.Fixed = max(g.Next.Replicas, 1) // another number could not be brought about
		b.MaxReplicas = max(b.MaxReplicas, b.Fixed)
	}
	b.Capacity = Capacity(g)
	if b.Fixed == 0 && b.Capacity == 0 {
		b.Fixed = cmp.Or(g.Weighed, countAsItIs(g, b))
	}
	return b
}

// Capacity is what people say that a replica may carry; 0: nothing, or it is where growth is counted from.
func Capacity(g *ground.Ground) plan.Load {
	configured := g.In.Config.Partition.Capacity
	if configured == nil || len(g.In.Config.Size.Weights) > 0 {
		return 0
	}
	capacity, err := plan.NewLoad(configured.Float())
	if err != nil {
		return 0
	}
	return capacity
}

// countAsItIs is the number of replicas where nothing that a person wrote asks for another: what one cluster makes says
// nothing of what a replica can carry.
func countAsItIs(g *ground.Ground, b partition.Bounds) int {
	count := max(g.Next.Replicas, b.MinReplicas)
	if most := b.MaxClusters; most > 0 {
		count = max(count, (len(g.Fleet.Clusters)+most-1)/most)
	}
	return min(max(count, g.Units().LargestApart()), b.MaxReplicas)
}

// Counted reports whether the number of replicas is people's; or, where that is asked, too, follows a capacity or
// weights.
func Counted(g *ground.Ground, byLoad bool) bool {
	of := g.In.Config.Partition
	if of.Replicas != nil || g.In.Workload.Unmanaged {
		return true
	}
	return byLoad && (of.Capacity != nil || g.Weighed > 0)
}

// MustHave is how many replicas rules ask for that go before those of change: the cap of clusters, and groups.
func MustHave(g *ground.Ground) (replicas int) {
	if most := g.MostClusters(); most > 0 {
		replicas = (len(g.Fleet.Clusters) + most - 1) / most
	}
	return max(replicas, g.Units().LargestApart())
}

// Settled is how many there are once what is under way is done.
func Settled(p plan.Plan) int {
	if p.Rollout != nil {
		return max(p.Rollout.Replicas, 1)
	}
	return max(p.Replicas, 1)
}
