package cycle

import (
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/standing"
	"ballast/planner/size"
)

// has lists for each replica the clusters that it has, or that are about to come to it or to leave it: what it must have room for.
func (c *cycle) has(a *adoption, replicas int) [][]int {
	of := make([][]int, replicas)
	target, r := c.out.Memory.Changes.Target, a.next.Rollout
	for i, cl := range a.fleet.Clusters {
		at := []int{a.standing(i)}
		if r != nil {
			for _, moves := range []map[string]int{target, r.Moves, r.Was} {
				if to, goes := moves[cl.Shard.ID]; goes {
					at = append(at, to)
				}
			}
		}
		slices.Sort(at)
		for _, replica := range slices.Compact(at) {
			if replica >= 0 && replica < replicas {
				of[replica] = append(of[replica], i)
			}
		}
	}
	return of
}

// receivers are the replicas that clusters are about to come to, by the rollout under way.
func (c *cycle) receivers(a *adoption) map[int]bool {
	r := a.next.Rollout
	if r == nil {
		return nil
	}
	to := map[int]bool{}
	for name, row := range a.next.Clusters {
		for _, moves := range []map[string]int{c.out.Memory.Changes.Target, r.Moves} {
			if replica, goes := moves[name]; goes && (replica != row.Replica || r.Was[name] != replica) {
				to[replica] = true
			}
		}
	}
	return to
}

// readings are the inputs of size rules, as they are now. What is not believed, or was not measured, is missing.
func (c *cycle) readings(a *adoption, of [][]int) map[string]size.Reading {
	ones := make([]float64, len(a.fleet.Clusters))
	for i, cl := range a.fleet.Clusters {
		if !cl.Skip {
			ones[i] = 1
		}
	}
	readings := map[string]size.Reading{
		config.InputClusters: reading(ones, of),
		config.InputReplicas: {Total: float64(a.next.Replicas)},
		config.InputLoad:     {Missing: true},
	}
	for _, m := range MetricsOf(c.in.Config) {
		readings[m.ID] = size.Reading{Missing: true}
	}
	if c.out.Table.Frozen {
		return readings
	}
	for _, column := range c.out.Table.Columns {
		if !column.Refused {
			readings[column.ID] = reading(column.Values, of)
		}
	}
	if c.out.Loads != nil {
		loads := make([]float64, len(c.out.Loads))
		for i, load := range c.out.Loads {
			loads[i] = load.Float()
		}
		readings[config.InputLoad] = reading(loads, of)
	}
	return readings
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

// sized is how many replicas have a size: those that there are, and those that come.
func sized(a *adoption) int {
	replicas := max(a.next.Replicas, standing.Replicas(a.in.Workload))
	if r := a.next.Rollout; r != nil {
		replicas = max(replicas, r.Replicas, r.From.Replicas)
	}
	return min(replicas, a.next.MaxReplicas)
}
