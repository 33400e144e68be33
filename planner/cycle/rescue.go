package cycle

import (
	"maps"
	"slices"

	"ballast/planner/cycle/standing"
	"ballast/planner/failover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// goneAtOnce is why nothing but a rescue begins while a discovery is refused.
const goneAtOnce = "too many cluster Secrets are gone at once"

// rescues reports whether clusters whose Secrets are there may leave a replica that is unwell, cordoned or taken away
// by people, though the discovery is refused: under the plan in force, of this workload, in mode Enforce. Where not one
// Secret is found, it is our list that is broken. A rollout that stops every replica turns back instead.
func (c *cycle) rescues() bool {
	p := c.in.InForce
	if p == nil || c.out.Memory.Known.ShrunkTo == 0 {
		return false
	}
	enforced := p.Mode == plan.Enforce && c.in.Config.Mode == plan.Enforce
	return enforced && p.Target == standing.TargetOf(c.in.Workload) && !p.StopsAll()
}

// rescue is the cycle of a discovery that is refused. The plan in force stays as it is, also for what is gone; a
// rollout that is under way goes on; and the gates leave open what empties a replica that is unwell or cordoned, or
// that people took away. Nothing is measured: half a fleet is no measure of the whole one, and what is remembered of
// that stays.
func (c *cycle) rescue() {
	c.out.Pins = standing.Pins(c.in.Pins, c.out.Fleet.Clusters)
	c.out.Table.Frozen = true
	a := c.unchanged(*c.in.InForce)
	c.look(a)
	c.decide(a)
	c.finish(a)
}

// unchanged takes over a plan as it is, beside a discovery that is refused.
func (c *cycle) unchanged(p plan.Plan) *adoption {
	a := &adoption{in: c.in, fleet: c.out.Fleet, owners: standing.Owners(c.in, c.out.Fleet), pins: c.out.Pins, next: p.Clone(),
		beside: standing.Servers(c.out.Fleet), partial: true}
	a.regroup()
	a.reportStopped()
	c.limitMemory(a)
	c.out.Problems = append(c.out.Problems, a.found...)
	return a
}

// lastLoads are the loads that were believed last, by cluster, of those that are gone too; of one that was never
// measured its row's.
func (a *adoption) lastLoads() map[string]plan.Load {
	last := make(map[string]plan.Load, len(a.next.Clusters))
	for name, row := range a.next.Clusters {
		last[name] = plan.LoadOf(row.Load)
	}
	t := a.in.Memory.LastGood.Table(MetricsOf(a.in.Config))
	loads, _, problem := loadsOf(a.in.Config, t, a.next.References)
	if problem != nil {
		return last
	}
	for i, s := range t.Shards {
		last[s.ID] = max(loads[i], last[s.ID])
	}
	return last
}

// fromMemory has a failover go by the loads that were believed last. What is not seen may be there all the same: its
// load counts for the replica that its row has, or half a list would show room where there is none.
func (a *adoption) fromMemory(r *failover.Request) {
	last := a.lastLoads()
	if a.in.Config.Partition.Capacity == nil {
		r.Capacity = a.in.Memory.Heaviest.Capacity(slices.Collect(maps.Values(last)))
	}
	for name := range a.next.Clusters {
		r.Loads[name] = last[name]
	}
	for i, cl := range a.fleet.Clusters {
		_, planned := a.next.Clusters[cl.Shard.ID]
		if at := a.owners[i]; !planned && at != sharding.Nobody && at < len(r.Beside) {
			r.Beside[at] += last[cl.Shard.ID]
		}
	}
}

// staysAsItIs reports whether a row is left alone whose Secret is not seen, and with it the pin that the Secret may
// have.
func (a *adoption) staysAsItIs(name string, row plan.Row, replica int) bool {
	return a.partial && row.Replica == replica && !standing.Has(a.fleet, name)
}

// keepUnseen keeps what was remembered of the owners of clusters that are not seen: whoever comes back is as before.
func (a *adoption) keepUnseen(now, before ownership.Memory) {
	for name := range a.next.Clusters {
		if standing.Has(a.fleet, name) {
			continue
		}
		if last, known := before.Last[name]; known {
			now.Last[name] = last
		}
		if since, known := before.Lost[name]; known {
			now.Lost[name] = since
		}
	}
}
