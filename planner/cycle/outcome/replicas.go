package outcome

import (
	"iter"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// IndexesOf are the clusters with their loads, for people, in the fleet's order; without loads they are 0.
func IndexesOf(fleet discover.Fleet, loads []plan.Load) []plan.LoadIndex {
	indexes := make([]plan.LoadIndex, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		indexes[i].Shard = c.Shard
		if loads != nil {
			indexes[i].Value = loads[i]
		}
		indexes[i].DisplayValue = indexes[i].Value.Display()
	}
	return indexes
}

// ReplicasOf lists who owns what, for people: of is each cluster's replica.
func ReplicasOf(indexes []plan.LoadIndex, count int, of func(i int) int) []plan.Replica {
	replicas, owners, owned := make([]plan.Replica, count), make([]int, len(indexes)), make([]int, count)
	for i := range indexes {
		owners[i] = of(i)
		if r := owners[i]; r >= 0 && r < count {
			owned[r]++
		}
	}
	for r := range replicas {
		replicas[r].ID = r
		if owned[r] > 0 {
			replicas[r].LoadIndexes = make([]plan.LoadIndex, 0, owned[r])
		}
	}
	for i, r := range owners {
		if r >= 0 && r < count {
			replicas[r].LoadIndexes = append(replicas[r].LoadIndexes, indexes[i])
			replicas[r].TotalLoad += indexes[i].Value
		}
	}
	for r := range replicas {
		replicas[r].TotalLoadDisplay = replicas[r].TotalLoad.Display()
	}
	return replicas
}

// Imbalance is the makespan over the mean: 1 is perfectly level. It is 1 for a fleet without load.
func Imbalance(replicas []plan.Replica) float64 {
	var most, total plan.Load
	for _, r := range replicas {
		most, total = max(most, r.TotalLoad), total+r.TotalLoad
	}
	if total == 0 {
		return 1
	}
	return float64(most) * float64(len(replicas)) / float64(total)
}

// ClustersOf are the clusters that move.
func ClustersOf(moves []Move) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range moves {
			if !yield(m.Cluster) {
				return
			}
		}
	}
}
