package reading

import (
	"slices"

	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// readings are what size rules read.
type readings struct{ *outcome.Draft }

// needsRoom are the replicas that must have room for a cluster: the one that has it, and those of the rollout under
// way.
func (d readings) needsRoom(r *plan.Rollout, name string, has int) []int {
	at := []int{has}
	if r != nil {
		for _, moves := range []map[string]int{d.Out.Memory.Changes.Target, r.Moves, r.Was} {
			if to, goes := moves[name]; goes {
				at = append(at, to)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// isNew reports whether a cluster counts for no size yet: who makes Secrets and deletes them again would resize pods by
// it.
func (d readings) isNew(cl discover.Cluster) bool {
	return d.In.Now.Sub(cl.Created) < discover.KnownAfter && !d.Out.Memory.Known.Has(cl.Shard.ID)
}

// reading sums up what clusters make.
func reading(values []float64, of [][]int) size.Reading {
	r := size.Reading{Replica: make(map[int]float64, len(of))}
	for _, value := range values {
		r.Total += value
		r.Cluster = max(r.Cluster, value)
	}
	for replica, clusters := range of {
		sum := 0.0
		for _, i := range clusters {
			sum += values[i]
		}
		r.Replica[replica] = sum
	}
	return r
}
