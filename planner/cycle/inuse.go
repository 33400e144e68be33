package cycle

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/index"
	"ballast/planner/measure"
	"ballast/planner/normalize"
	"ballast/planner/observed"
	"ballast/planner/partition"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// InUse is what clusters take of their replicas' memory. Room is what those of one replica may take together.
type InUse struct {
	Of   []plan.Bytes `json:"-"` // of Fleet.Clusters
	Room plan.Bytes   `json:"room"`
	From string       `json:"from"` // where Room comes from, in words
	Now  []plan.Bytes `json:"now"`  // by replica, under the plan in force

	Learned *calibrate.Fit `json:"learned,omitempty"` // what Of follows from, where the configuration has no weights
}

// remembers is the configuration's memory; nil: nothing is bounded by it.
func remembers(c config.PlannerConfig) *config.Memory {
	if c.Index.Dimensions == nil {
		return nil
	}
	return c.Index.Dimensions.Memory
}

// limitMemory sets what each cluster takes of a replica's memory, and what a replica has, where the configuration asks for it.
func (c *cycle) limitMemory(a *adoption) {
	m := remembers(c.in.Config)
	if m == nil {
		return
	}
	if limit := leastLimit(c.in.Observed.Pods); limit > 0 {
		c.out.Memory.Limit = limit
	}
	weights, base, unlearned := c.weighsMemory(*m)
	room, from, why := roomOf(*m, base, c.out.Memory.Limit)
	if why = cmp.Or(unlearned, why); why != "" {
		c.problem(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown", Message: "no move is held back by memory: " + why})
		return
	}
	table := c.out.Table
	if table.Columns == nil {
		table = c.in.Memory.LastGood.Table(MetricsOf(c.in.Config))
	}
	of, err := bytesOf(weights, table)
	if err != nil {
		c.problem(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown", Message: "no move is held back by memory: " + err.Error()})
		return
	}
	byName := make(map[string]plan.Bytes, len(of))
	for i, shard := range table.Shards {
		byName[shard.ID] = of[i]
	}
	a.inUse = &InUse{Of: make([]plan.Bytes, len(c.out.Fleet.Clusters)), Room: room, From: from}
	for i, cl := range c.out.Fleet.Clusters {
		a.inUse.Of[i] = byName[cl.Shard.ID]
	}
	a.byName = byName
	a.inUse.Now = a.inUse.on(a.next.Replicas, a.standing)
	if m.Weights == nil {
		a.inUse.Learned = c.out.Memory.Taken.Fit
		c.bears(a, room+base)
	}
	c.out.InUse = a.inUse
}

// leastLimit is the least memory limit that a pod has; 0: none has any.
func leastLimit(pods []observed.Pod) (least plan.Bytes) {
	for _, p := range pods {
		if limit := plan.Bytes(p.MemoryLimit); limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// roomOf is what clusters may take together of one replica's memory, and where that comes from; why says that nobody knows.
func roomOf(m config.Memory, base, limit plan.Bytes) (room plan.Bytes, from, why string) {
	all := plan.Bytes(float64(limit) * m.LimitShare.Float())
	from = fmt.Sprintf("%s of the pods' limit of %s", m.LimitShare, limit)
	switch {
	case m.Capacity != nil:
		all, from = m.Capacity.Bytes(), "index.dimensions.memory.capacity"
	case limit <= 0:
		return 0, "", "the pods have no memory limit, and index.dimensions.memory.capacity is not set"
	}
	if room = all - base; room <= 0 {
		return 0, "", fmt.Sprintf("%s leaves clusters nothing beside the %s that a replica takes without any", from, base)
	}
	return room, from, ""
}

// bytesOf is what each cluster of a table takes.
func bytesOf(weights map[string]float64, t measure.Table) ([]plan.Bytes, error) {
	cols := make([]normalize.Column, 0, len(t.Columns))
	for _, col := range t.Columns {
		cols = append(cols, normalize.Column{ID: col.ID, Values: col.Values})
	}
	return index.Bytes(cols, weights)
}

// on adds up what so many replicas have in use; of is each cluster's.
func (u *InUse) on(replicas int, of func(i int) int) []plan.Bytes {
	all := make([]plan.Bytes, max(replicas, 0))
	for i, bytes := range u.Of {
		if at := of(i); at >= 0 && at < len(all) {
			all[at] = all[at].Plus(bytes)
		}
	}
	return all
}

// takes is what a cluster of the fleet takes; 0: nothing is bounded by it.
func (a *adoption) takes(i int) plan.Bytes {
	if a.inUse == nil {
		return 0
	}
	return a.inUse.Of[i]
}

// memoryRoom is what the clusters of a replica may take together; 0: nothing says it.
func (a *adoption) memoryRoom() plan.Bytes {
	if a.inUse == nil {
		return 0
	}
	return a.inUse.Room
}

// lacks is the memory that replicas of several items have too little, of all together.
func lacks(items []partition.Item, of []int, replicas int, room plan.Bytes) (lack plan.Bytes) {
	bytes, units := make([]plan.Bytes, replicas), make([]int, replicas)
	for k, r := range of {
		if r >= 0 && r < replicas {
			bytes[r], units[r] = bytes[r].Plus(items[k].Memory), units[r]+1
		}
	}
	for r := range bytes {
		if units[r] > 1 {
			lack = lack.Plus(max(bytes[r]-room, 0))
		}
	}
	return lack
}

// fits says of each move whether its new owner has the memory, once all have been made; nil: nothing is bounded by it.
func (s *snapshot) fits(moves []Move, d division) []Fit {
	if s.inUse == nil || len(moves) == 0 {
		return nil
	}
	at := make(map[string]int, len(s.fleet.Clusters))
	for i, cl := range s.fleet.Clusters {
		at[cl.Shard.ID] = i
	}
	before := s.inUse.on(max(d.answer.Replicas, s.next.Replicas), s.standing)
	after := s.inUse.on(d.answer.Replicas, func(i int) int {
		if to, ok := d.of[s.fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return s.owners[i]
	})
	out := make([]Fit, len(moves))
	for k, m := range moves {
		out[k] = Fit{Cluster: m.Cluster, To: m.To, Takes: s.inUse.Of[at[m.Cluster]], Before: before[m.To], After: after[m.To], Fits: after[m.To] <= s.inUse.Room}
	}
	return out
}

// starved tells people of the replicas that a division leaves with too little memory: by a pin, by one cluster that takes more than
// a replica has, or because all together have too little.
func (c *cycle) starved(d division) {
	for _, lost := range d.answer.Lost {
		if lost.What != partition.Memory {
			continue
		}
		c.problem(problem.Problem{Phase: problem.PhasePartition, Subject: lost.Item, Kind: "MemoryShort", Message: fmt.Sprintf(
			"%s; a replica has %s for its clusters: raise the pods' memory, or add replicas where no single cluster takes that much", lost, c.out.InUse.Room)})
	}
}

// keepWithin takes out of back what would take a replica beyond its memory that is not so now, those that take the most first, and
// names that.
func (s *snapshot) keepWithin(back map[string]int, replicas int) (stay []string) {
	for again := s.inUse != nil; again; {
		again = false
		rows := s.wantOf(replicas, back).Rows
		after := s.inUse.on(replicas, func(i int) int {
			if row, planned := rows[s.fleet.Clusters[i].Shard.ID]; planned {
				return row.Replica
			}
			return s.standing(i)
		})
		for r, bytes := range after {
			if now := s.inUse.Now; bytes <= s.inUse.Room || r < len(now) && bytes <= now[r] {
				continue
			}
			if name := s.largest(back, r); name != "" {
				delete(back, name)
				stay, again = append(stay, name), true
			}
		}
	}
	slices.Sort(stay)
	return stay
}

// largest is the cluster that takes the most of those that go to a replica; empty: none does.
func (s *snapshot) largest(back map[string]int, replica int) string {
	at := -1
	for i, cl := range s.fleet.Clusters {
		to, goes := back[cl.Shard.ID]
		comes := goes && to == replica && s.standing(i) != replica && s.inUse.Of[i] > 0
		if comes && (at < 0 || s.inUse.Of[i] > s.inUse.Of[at]) {
			at = i
		}
	}
	if at < 0 {
		return ""
	}
	return s.fleet.Clusters[at].Shard.ID
}

// memoryPolicy is what a replica may carry where clusters settle.
func (a *adoption) memoryPolicy() placement.Policy {
	return placement.Policy{MaxClusters: a.mostClusters(), Memory: a.memoryRoom()}
}
