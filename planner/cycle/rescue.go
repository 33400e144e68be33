package cycle

import (
	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/inuse"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
)

// rescues reports whether clusters whose Secrets are there may leave a replica that is unwell, cordoned or taken away
// by people, though the discovery is refused: under the plan in force, of this workload, in mode Enforce. Where not one
// Secret is found, it is our list that is broken. A rollout that stops every replica turns back instead.
func (c *cycle) rescues() bool {
	p := c.In.InForce
	if p == nil || c.Out.Memory.Known.ShrunkTo == 0 {
		return false
	}
	enforced := p.Mode == plan.Enforce && c.In.Config.Mode == plan.Enforce
	return enforced && p.Target == standing.TargetOf(c.In.Workload) && !p.StopsAll()
}

// rescue is the cycle of a discovery that is refused. The plan in force stays as it is, also for what is gone; a
// rollout that is under way goes on; and the gates leave open what empties a replica that is unwell or cordoned, or
// that people took away. Nothing is measured: half a fleet is no measure of the whole one, and what is remembered of
// that stays. Sizes go by it, too, and may only grow.
func (c *cycle) rescue() {
	c.Out.Pins = standing.Pins(c.In.Pins, c.Out.Fleet.Clusters)
	c.Out.Table.Frozen = true
	a := c.unchanged(*c.In.InForce)
	c.breaker.Look(a.Ground)
	c.decide(a.Ground)
	if len(c.In.Config.Size.All()) > 0 { // that policies are gone is for a list that is believed
		sizing.Size(c.Draft, c.verdicts, a.Ground)
	}
	c.finish(a)
}

// unchanged takes over a plan as it is, beside a discovery that is refused.
func (c *cycle) unchanged(p plan.Plan) *adopt.Adoption {
	a := adopt.Unchanged(c.In, c.Out.Fleet, c.Out.Pins, p)
	inuse.Limit(c.Draft, a.Ground)
	c.Out.Problems = append(c.Out.Problems, a.Found...)
	return a
}
