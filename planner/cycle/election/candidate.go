package election

import (
	"errors"
	"fmt"

	"ballast/planner/cycle/counting"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/clash"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
)

// Candidate divides the fleet anew and lets the evaluation vote, in every mode: people see what ballast would do long
// before they let it. It answers what was elected.
func (c *Election) Candidate(s *snapshot.Snapshot) (*evaluate.Candidate, snapshot.Worth) {
	if s.Loads == nil || c.Out.Table.Frozen {
		return nil, snapshot.Worth{}
	}
	counting.Weigh(c.Draft, s.Ground)
	parts := &dividing{Draft: c.Draft}
	d, err := parts.partitioned(s)
	if err != nil {
		kind := "Refused"
		if rules := new(clash.Error); errors.As(err, &rules) {
			kind = "RulesClash"
		}
		c.Tell(problem.Problem{Phase: problem.PhasePartition, Kind: kind, Message: err.Error(), Keeps: true})
		return nil, snapshot.Worth{}
	}
	show(c.Draft, s, d)
	c.starved(d)
	for _, lost := range d.Answer.Lost {
		if lost.What == partition.FixedReplicas && lost.To == partition.Pin {
			c.replicasHeld(s.Ground, lost.Replica)
		}
	}
	if c.In.Config.Evaluate.CostBenefit != nil {
		c.end()
		return weighing{parts}.weigh(s, d)
	}
	c.Out.Memory.Savings = evaluate.Savings{}
	return c.elect(s, d), snapshot.Worth{}
}

// replicasHeld tells who keeps more replicas than partition.replicas says: whoever wrote the number hears of it nowhere
// else.
func (c *Election) replicasHeld(g *ground.Ground, replica int) {
	fixed := c.In.Config.Partition.Replicas
	if fixed == nil || c.In.Workload.Unmanaged {
		return
	}
	for i, cl := range g.Fleet.Clusters {
		if g.Fixed().To(i).At == replica || g.Fixed().Carries(i) == replica {
			c.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: cl.Shard.ID, Kind: "ReplicasHeld",
				Message: fmt.Sprintf(
					"partition.replicas is %d, and %d are needed, since %q is on replica %d; %s", fixed.Fixed,
					replica+1,
					cl.Shard.ID, replica, g.Fixed().Lowered(i))})
			return
		}
	}
}

// starved tells people of the replicas that a division leaves with too little memory: by a pin, by one cluster that
// takes more than a replica has, or because all together have too little.
func (c *Election) starved(d division.Division) {
	for _, lost := range d.Answer.Lost {
		if lost.What != partition.Memory {
			continue
		}
		c.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: lost.Item, Kind: "MemoryShort",
			Message: fmt.Sprintf(
				"%s; a replica has %s for its clusters: raise the pods' memory, or add replicas where no single cluster takes that much", lost, c.Out.InUse.Room)})
	}
}
