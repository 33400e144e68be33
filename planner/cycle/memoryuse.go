package cycle

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/reading"
	"ballast/planner/index"
	"ballast/planner/measure"
	"ballast/planner/normalize"
	"ballast/planner/observed"
	"ballast/planner/partition"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// remembers is the configuration's memory; nil: nothing is bounded by it.
func remembers(c config.PlannerConfig) *config.Memory {
	if c.Index.Dimensions == nil {
		return nil
	}
	return c.Index.Dimensions.Memory
}

// memoryUse says what clusters take of a replica's memory, and learns it of the pods where nobody wrote it.
type memoryUse struct{ *outcome.Draft }

// limitMemory sets what each cluster takes of a replica's memory, and what a replica has, where the configuration asks for it.
func (u memoryUse) limitMemory(g *ground.Ground) {
	m := remembers(u.In.Config)
	if m == nil {
		return
	}
	if limit := leastLimit(u.In.Observed.Pods); limit > 0 {
		u.Out.Memory.Limit = limit
	}
	weights, base, unlearned := u.weighsMemory(*m)
	room, from, why := u.roomOf(*m, base)
	if why = cmp.Or(unlearned, why); why != "" {
		u.Tell(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown", Message: "no move is held back by memory: " + why})
		return
	}
	table := u.Out.Table
	if table.Columns == nil {
		table = u.In.Memory.LastGood.Table(loads.MetricsOf(u.In.Config))
	}
	of, err := bytesOf(weights, table)
	if err != nil {
		u.Tell(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown", Message: "no move is held back by memory: " + err.Error()})
		return
	}
	byName := make(map[string]plan.Bytes, len(of))
	for i, shard := range table.Shards {
		byName[shard.ID] = of[i]
	}
	g.InUse = &outcome.InUse{Of: make([]plan.Bytes, len(u.Out.Fleet.Clusters)), Room: room, From: from}
	for i, cl := range u.Out.Fleet.Clusters {
		g.InUse.Of[i] = byName[cl.Shard.ID]
	}
	g.ByName = byName
	g.InUse.Now = g.InUse.On(g.Next.Replicas, g.Standing)
	if m.Weights == nil {
		g.InUse.Learned = u.Out.Memory.Taken.Fit
		u.bears(g, room+base)
	}
	u.Out.InUse = g.InUse
}

// leastLimit is the least memory limit that a pod asks for; 0: none has any. What its status says it has got is not taken for it: one
// pod's word there would make the room of all replicas small.
func leastLimit(pods []observed.Pod) (least plan.Bytes) {
	for _, p := range pods {
		if limit := plan.Bytes(p.MemoryAsked()); limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// roomOf is what clusters may take together of one replica's memory, and where that comes from; why says that nobody knows.
func (u memoryUse) roomOf(m config.Memory, base plan.Bytes) (room plan.Bytes, from, why string) {
	var all plan.Bytes
	if m.Capacity != nil {
		all, from = m.Capacity.Bytes(), "index.dimensions.memory.capacity"
	} else {
		most, whose, unknown := u.mostOfOne()
		if unknown != "" {
			return 0, "", unknown
		}
		all, from = plan.Bytes(float64(most)*m.LimitShare.Float()), fmt.Sprintf("%s of %s of %s", m.LimitShare, whose, most)
	}
	if room = all - base; room <= 0 {
		return 0, "", fmt.Sprintf("%s leaves clusters nothing beside the %s that a replica takes without any", from, base)
	}
	return room, from, ""
}

// mostOfOne is the memory that one replica can have, and whose figure that is. Where size rules make the limits they are no
// bound: a replica grows for what comes to it, and a room by the smallest limit would starve all that are larger. What a node can
// give is the bound then.
func (u memoryUse) mostOfOne() (most plan.Bytes, whose, unknown string) {
	if !sizesMemory(u.In.Config.Size) {
		if u.Out.Memory.Limit <= 0 {
			return 0, "", "the pods have no memory limit, and index.dimensions.memory.capacity is not set"
		}
		return u.Out.Memory.Limit, "the pods' limit", ""
	}
	limit := reading.NodeCap(u.In)[size.Memory]
	if limit.Sign() <= 0 {
		return 0, "", "size rules make the pods' memory limits, which are no bound then: write index.dimensions.memory.capacity or size.nodeCap"
	}
	return plan.Bytes(limit.Value()), "the node cap", ""
}

// sizesMemory reports whether a rule makes memory.
func sizesMemory(s config.Size) bool {
	return slices.ContainsFunc(s.Merged(), func(r size.Rule) bool { return r.Resource == size.Memory })
}

// bytesOf is what each cluster of a table takes.
func bytesOf(weights map[string]float64, t measure.Table) ([]plan.Bytes, error) {
	cols := make([]normalize.Column, 0, len(t.Columns))
	for _, col := range t.Columns {
		cols = append(cols, normalize.Column{ID: col.ID, Values: col.Values})
	}
	return index.Bytes(cols, weights)
}

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
