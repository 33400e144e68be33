// Package reading reads what size rules go by: what clusters make, what pods have in use, and what nodes can give.
package reading

import (
	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/size"
)

// Of are the inputs of size rules, by what is seen, or while a discovery is refused by what was believed last.
func Of(draft *outcome.Draft, g *ground.Ground, replicas int) map[string]size.Reading {
	d := readings{draft}
	if g.Partial {
		return d.lastReadings(g, replicas)
	}
	return d.readings(g, d.has(g, replicas))
}

// Divided are the inputs of size rules if each replica had the clusters that of lists for it.
func Divided(d *outcome.Draft, g *ground.Ground, of [][]int) map[string]size.Reading {
	return readings{d}.readings(g, of)
}

// Clusters lists the clusters that are seen and those that the plan has all the same, and for each replica which of
// them it must have room for.
func Clusters(d *outcome.Draft, g *ground.Ground, replicas int) (names []string, of [][]int) {
	return readings{d}.everyCluster(g, replicas)
}

// has lists for each replica the clusters that it has, or that are about to come to it or to leave it: what it must
// have room for.
func (d readings) has(g *ground.Ground, replicas int) [][]int {
	of := make([][]int, replicas)
	for i, cl := range g.Fleet.Clusters {
		for _, replica := range d.needsRoom(g.Next.Rollout, cl.Shard.ID, g.Standing(i)) {
			if replica >= 0 && replica < replicas {
				of[replica] = append(of[replica], i)
			}
		}
	}
	return of
}

// readings are the inputs of size rules, as they are now. What is not believed, or was not measured, is missing.
func (d readings) readings(g *ground.Ground, of [][]int) map[string]size.Reading {
	ones := make([]float64, len(g.Fleet.Clusters))
	for i, cl := range g.Fleet.Clusters {
		if !cl.Skip && !d.isNew(cl) {
			ones[i] = 1
		}
	}
	readings := map[string]size.Reading{
		config.InputClusters: reading(ones, of),
		config.InputReplicas: {Total: float64(g.Next.Replicas)},
		config.InputLoad:     {Missing: true},
	}
	for _, m := range loads.MetricsOf(d.In.Config) {
		readings[m.ID] = size.Reading{Missing: true}
	}
	d.readAside(g, len(of), readings)
	if d.Out.Table.Frozen {
		return readings
	}
	for _, column := range d.Out.Table.Columns {
		if !column.Refused {
			readings[column.ID] = reading(column.Values, of)
		}
	}
	if d.Out.Loads != nil {
		loads := make([]float64, len(d.Out.Loads))
		for i, load := range d.Out.Loads {
			loads[i] = load.Float()
		}
		readings[config.InputLoad] = reading(loads, of)
	}
	return readings
}

// Sized is how many replicas have a size: those that there are, and those that come.
func Sized(g *ground.Ground) int {
	replicas := max(g.Next.Replicas, standing.Replicas(g.In.Workload))
	if r := g.Next.Rollout; r != nil {
		replicas = max(replicas, r.Replicas, r.From.Replicas)
	}
	return min(replicas, g.Next.MaxReplicas)
}
