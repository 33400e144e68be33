package cycle

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/cycle/division"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/partition"
)

// fits says of each move whether its new owner has the memory, once all have been made; nil: nothing is bounded by it.
func fits(s *snapshot, moves []outcome.Move, d division.Division) []outcome.Fit {
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
func (c candidacy) starved(d division.Division) {
	for _, lost := range d.Answer.Lost {
		if lost.What != partition.Memory {
			continue
		}
		c.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: lost.Item, Kind: "MemoryShort", Message: fmt.Sprintf(
			"%s; a replica has %s for its clusters: raise the pods' memory, or add replicas where no single cluster takes that much", lost, c.Out.InUse.Room)})
	}
}

// keepWithin takes out of back what would take a replica beyond its memory that is not so now, those that take the most first, and
// names that. What stays may be too much where it stands, so that all are looked at once more.
func keepWithin(s *snapshot, back map[string]int, replicas int) (stay []string) {
	for again := s.InUse != nil; again; {
		rows := s.wantOf(replicas, back).Rows
		after := s.InUse.On(replicas, func(i int) int {
			if row, planned := rows[s.Fleet.Clusters[i].Shard.ID]; planned {
				return row.Replica
			}
			return s.Standing(i)
		})
		come := comers(s, back, replicas)
		again = false
		for r, bytes := range after {
			most := s.InUse.Room
			if now := s.InUse.Now; r < len(now) {
				most = max(most, now[r])
			}
			for _, i := range come[r] {
				if bytes <= most {
					break
				}
				name := s.Fleet.Clusters[i].Shard.ID
				delete(back, name)
				bytes -= s.InUse.Of[i]
				stay, again = append(stay, name), true
			}
		}
	}
	slices.Sort(stay)
	return stay
}

// comers are the clusters that take memory and go to each replica from another one, those that take the most first.
func comers(s *snapshot, back map[string]int, replicas int) [][]int {
	come := make([][]int, max(replicas, 0))
	for i, cl := range s.Fleet.Clusters {
		to, goes := back[cl.Shard.ID]
		comes := goes && to >= 0 && to < replicas && s.Standing(i) != to
		if comes && s.InUse.Of[i] > 0 {
			come[to] = append(come[to], i)
		}
	}
	for _, clusters := range come {
		slices.SortStableFunc(clusters, func(i, k int) int { return cmp.Compare(s.InUse.Of[k], s.InUse.Of[i]) })
	}
	return come
}
