package election

import (
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
)

// show has people see what a division is, whether or not it is decided for.
func show(c *outcome.Draft, s *snapshot.Snapshot, d division.Division) {
	can := &outcome.Candidate{Moves: d.Moves(s.Ground), Replicas: outcome.ReplicasOf(c.Indexes, d.Answer.Replicas, func(i int) int {
		if to, ok := d.Of[c.Out.Fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return s.Owners[i]
	}), Low: d.Low, High: d.High()}
	for _, lost := range d.Answer.Lost {
		can.Lost = append(can.Lost, lost.String())
	}
	can.Memory = fits(s, can.Moves, d)
	c.Out.Candidate = can
}

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
		out[k] = outcome.Fit{Cluster: m.Cluster, To: m.To, Takes: s.InUse.Of[at[m.Cluster]], Before: before[m.To],
			After: after[m.To], Fits: after[m.To] <= s.InUse.Room}
	}
	return out
}
