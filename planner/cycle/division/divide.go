package division

import (
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/division/clash"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
)

// Divide asks the partition for the best distribution from what stands. Where the number of replicas stays, so does
// what Argo CD's algorithm has somewhere and nobody can write.
func Divide(g *ground.Ground, loads []plan.Load, now Terms) (Division, error) {
	d, err := divide(g, loads, now, nil)
	if err != nil || d.Answer.Replicas != g.Next.Replicas {
		return d, err
	}
	stays := d.unwritten(g)
	if len(stays) == 0 {
		return d, nil
	}
	if held, err := divide(g, loads, now, stays); err == nil && held.Answer.Replicas == d.Answer.Replicas {
		return held, nil
	}
	return d, nil
}

// unwritten are where the items stay that nobody can write, if the answer would move one of them, in vain. All of them:
// what is made anew beside one that stays may move another.
func (d *Division) unwritten(g *ground.Ground) map[int]int {
	stays, moves := map[int]int{}, false
	for k, u := range d.groups {
		for _, i := range u.Clusters {
			if at := g.Fixed().Stays(i); at >= 0 && d.Items[k].Replica < 0 {
				stays[k] = at
				moves = moves || d.Answer.Of[k] != at
			}
		}
	}
	if !moves {
		return nil
	}
	return stays
}

// divide asks once; items of those units stay where that says.
func divide(g *ground.Ground, loads []plan.Load, now Terms, stays map[int]int) (Division, error) {
	d := Division{groups: g.Units().All(), Bounds: bounds.Of(g)}
	err := clash.Merged(g, d.Bounds.MaxClusters)
	if err != nil {
		return Division{}, err
	}
	if d.Items, err = ItemsOf(g, d.groups, loads); err != nil {
		return Division{}, err
	}
	for k, at := range stays {
		d.Items[k].Replica = at
	}
	if now.Replicas > 0 {
		d.Bounds.Fixed, d.Bounds.MinReplicas, d.limited = now.Replicas, min(d.Bounds.MinReplicas, now.Replicas), true
	}
	within := d.Bounds // what is derived is no bound that votes must agree on
	if within.Capacity == 0 {
		within.Capacity = g.Capacity
	}
	within.Held, within.Memory = g.ReplicasHeld(), g.InUse.Most()
	d.full = within.Capacity
	if g.In.Config.Partition.Sticky != nil {
		err = d.stick(g, within, loads, g.In.Config.Partition.Sticky, now)
	} else {
		err = assignment{&d, g}.assign(within)
	}
	if err != nil {
		return Division{}, err
	}
	d.Of = make(map[string]int, len(g.Fleet.Clusters))
	for k, u := range d.groups {
		for _, i := range u.Clusters {
			if c := g.Fleet.Clusters[i]; standing.Managed(c) {
				d.Of[c.Shard.ID] = d.Answer.Of[k]
				if at := g.Fixed().To(i).At; at >= 0 && at < d.Answer.Replicas {
					d.Of[c.Shard.ID] = at // another one of its server may be firmer
				}
			}
		}
	}
	return d, nil
}
