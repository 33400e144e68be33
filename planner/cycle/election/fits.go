package election

import (
	"fmt"

	"ballast/planner/cycle/division"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/partition"
)

// fits says of each move whether its new owner has the memory, once all have been made; nil: nothing is bounded by it.
func fits(s *snapshot.Snapshot, moves []outcome.Move, d division.Division) []outcome.Fit {
	if s.InUse == nil || len(moves) == 0 {
		return nil
	}
	at := make(map[string]int, len(s.Fleet.Clusters))
	for i, cl := range s.Fleet.Clusters {
		at[cl.Shard.ID] = i
	}
	before := s.InUse.On(max(d.Answer.Replicas, s.Next.Replicas), s.Standing)
	after := s.InUse.On(d.Answer.Replicas, func(i int) int {
		if to, ok := d.Of[s.Fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return s.Owners[i]
	})
	out := make([]outcome.Fit, len(moves))
	for k, m := range moves {
		out[k] = outcome.Fit{Cluster: m.Cluster, To: m.To, Takes: s.InUse.Of[at[m.Cluster]], Before: before[m.To], After: after[m.To], Fits: after[m.To] <= s.InUse.Room}
	}
	return out
}

// starved tells people of the replicas that a division leaves with too little memory: by a pin, by one cluster that takes more than
// a replica has, or because all together have too little.
func (c *Election) starved(d division.Division) {
	for _, lost := range d.Answer.Lost {
		if lost.What != partition.Memory {
			continue
		}
		c.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: lost.Item, Kind: "MemoryShort", Message: fmt.Sprintf(
			"%s; a replica has %s for its clusters: raise the pods' memory, or add replicas where no single cluster takes that much", lost, c.Out.InUse.Room)})
	}
}
