// Package inuse says what clusters take of a replica's memory, and learns it of the pods where nobody wrote it.
package inuse

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/reading"
	"ballast/planner/index"
	"ballast/planner/measure"
	"ballast/planner/normalize"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Limit sets what each cluster takes of a replica's memory, and what a replica has, where the configuration asks for
// it.
func Limit(d *outcome.Draft, g *ground.Ground) {
	u := memoryUse{d}
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
		u.Tell(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown",
			Message: "no move is held back by memory: " + why})
		return
	}
	table := u.Out.Table
	if table.Columns == nil {
		table = measure.TableOf(u.In.Memory.LastGood, loads.MetricsOf(u.In.Config))
	}
	of, err := bytesOf(weights, table)
	if err != nil {
		u.Tell(problem.Problem{Phase: problem.PhaseIndex, Kind: "MemoryUnknown",
			Message: "no move is held back by memory: " + err.Error()})
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
		g.InUse.Learned = u.Out.Memory.Usage.Fit
		u.bears(g, room+base)
	}
	u.Out.InUse = g.InUse
}

// leastLimit is the least memory limit that a pod asks for; 0: none has any. What its status says it has got is not
// taken for it: one pod's word there would make the room of all replicas small.
func leastLimit(pods []observed.Pod) (least plan.Bytes) {
	for _, p := range pods {
		if limit := plan.Bytes(p.MemoryAsked()); limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// roomOf is what clusters may take together of one replica's memory, and where that comes from; why says that nobody
// knows.
func (u memoryUse) roomOf(m config.Memory, base plan.Bytes) (room plan.Bytes, from, why string) {
	var all plan.Bytes
	if m.Capacity != nil {
		all, from = m.Capacity.Bytes(), "index.dimensions.memory.capacity"
	} else {
		most, whose, unknown := u.mostOfOne()
		if unknown != "" {
			return 0, "", unknown
		}
		all, from = plan.Bytes(float64(most)*m.LimitShare.Float()),
			fmt.Sprintf("%s of %s of %s", m.LimitShare, whose, most)
	}
	if room = all - base; room <= 0 {
		return 0, "", fmt.Sprintf("%s leaves clusters nothing beside the %s that a replica takes without any", from,
			base)
	}
	return room, from, ""
}

// mostOfOne is the memory that one replica can have, and whose figure that is. Where size rules make the limits they
// are no bound: a replica grows for what comes to it, and a room by the smallest limit would starve all that are
// larger. What a node can give is the bound then.
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
