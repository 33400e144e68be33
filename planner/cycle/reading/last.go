package reading

import (
	"maps"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/measure"
	"ballast/planner/size"
)

// lastReadings are the inputs of size rules while a discovery is refused: each cluster of the plan makes what was
// believed of it last, whether its Secret is seen or not. What the pods say is read as ever.
func (d readings) lastReadings(g *ground.Ground, replicas int) map[string]size.Reading {
	names, of := d.everyCluster(g, replicas)
	readings := map[string]size.Reading{
		config.InputClusters: reading(d.counted(g, names), of),
		config.InputReplicas: {Total: float64(g.Next.Replicas)},
		config.InputLoad:     {Missing: true},
	}
	d.readAside(g, replicas, readings)
	t := measure.TableOf(g.In.Memory.LastGood, loads.MetricsOf(g.In.Config))
	measured := false
	for _, column := range t.Columns {
		known := slices.Contains(column.Flags, measure.Held)
		measured = measured || known
		readings[column.ID] = size.Reading{Missing: true}
		if known {
			readings[column.ID] = reading(valuesOf(names, t, column), of)
		}
	}
	if believed := loads.BelievedLast(g); measured && believed != nil {
		loads := make([]float64, len(names))
		for i, name := range names {
			loads[i] = believed[name].Float()
		}
		readings[config.InputLoad] = reading(loads, of)
	}
	return readings
}

// everyCluster lists the clusters that are seen and those that the plan has all the same, and for each replica which of
// them it must have room for.
func (d readings) everyCluster(g *ground.Ground, replicas int) (names []string, of [][]int) {
	has := map[string]int{}
	for name, row := range g.Next.Clusters {
		has[name] = row.Replica
	}
	for i, cl := range g.Fleet.Clusters {
		has[cl.Shard.ID] = g.Standing(i)
	}
	names, of = slices.Sorted(maps.Keys(has)), make([][]int, replicas)
	for i, name := range names {
		for _, replica := range d.needsRoom(g.Next.Rollout, name, has[name]) {
			if replica >= 0 && replica < replicas {
				of[replica] = append(of[replica], i)
			}
		}
	}
	return names, of
}

// counted is 1 for each cluster that counts; one that is not seen does where it was known for long enough to.
func (d readings) counted(g *ground.Ground, names []string) []float64 {
	not, seen := map[string]bool{}, map[string]bool{}
	for _, cl := range g.Fleet.Clusters {
		seen[cl.Shard.ID], not[cl.Shard.ID] = true, cl.Skip || d.isNew(cl)
	}
	ones := make([]float64, len(names))
	for i, name := range names {
		if counts := seen[name] || g.In.Memory.Known.Has(name); counts && !not[name] {
			ones[i] = 1
		}
	}
	return ones
}

// valuesOf are a column's values of those clusters; 0 of one that it has not.
func valuesOf(names []string, t measure.Table, column measure.Column) []float64 {
	at := make(map[string]float64, len(t.Shards))
	for i, s := range t.Shards {
		at[s.ID] = column.Values[i]
	}
	values := make([]float64, len(names))
	for i, name := range names {
		values[i] = at[name]
	}
	return values
}
