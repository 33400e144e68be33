package cycle

import (
	"slices"
	"time"

	"ballast/planner/measure"
	"ballast/planner/plan"
)

// limit sets what a replica may carry, where the configuration says nothing of it, and remembers it of values that are
// believed.
func (c *cycle) limit(a *adoption) {
	if a.in.Config.Partition.Capacity != nil || c.out.Loads == nil {
		return
	}
	loads := c.unitLoads(a)
	if !c.out.Table.Frozen {
		c.out.Memory.Heaviest = c.in.Memory.Heaviest.Next(loads, c.in.Now)
	}
	a.capacity = c.out.Memory.Heaviest.Capacity(loads)
}

// unitLoads are the loads of what stays together, but for clusters that nothing was measured of for as long as a value
// is held.
func (c *cycle) unitLoads(a *adoption) []plan.Load {
	var loads []plan.Load
	for _, u := range a.units() {
		var sum plan.Load
		var err error
		for _, i := range u.Clusters {
			if c.forgotten(i) {
				continue
			}
			if sum, err = plan.SumLoads(sum, c.out.Loads[i]); err != nil {
				return nil // the partition says so
			}
		}
		loads = append(loads, sum)
	}
	return loads
}

// forgotten reports whether a cluster's value of a metric that is believed is older than one is held.
func (c *cycle) forgotten(i int) bool {
	t := c.out.Table
	return !t.Frozen && slices.ContainsFunc(t.Columns, func(col measure.Column) bool {
		return col.Flags[i] == measure.Held && t.At.Sub(time.UnixMilli(col.SampledAt[i])) > measure.HoldFor
	})
}
