// Package compare says what differs between what stands and the plan in force.
package compare

import (
	"maps"
	"slices"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// Comparison is what stands against the plan in force.
type Comparison struct {
	Replicas []plan.Replica // what each replica carries under the plan, by the rows' loads
	Pins     plan.Pins      // data.pins and the Secrets' annotations together
	Diff     diff.Result
	Problems []problem.Problem
}

// InForce says what differs between what stands and the plan in force, without asking Prometheus. Of in it takes the
// Secrets, the workload, the plan, the pins, break-glass, and of the memory what memory.OfSaved read.
func InForce(in input.Inputs) Comparison {
	fleet := standing.Fleet(in)
	c := Comparison{Pins: standing.Pins(in.Pins, fleet.Clusters)}
	for _, p := range fleet.Problems {
		c.Problems = append(c.Problems, problem.Problem{Phase: problem.PhaseDiscover, Subject: p.Secret,
			Kind: string(p.Kind), Message: p.Message}.Printable())
	}
	if in.InForce == nil {
		return c
	}
	view := plan.NewView(*in.InForce, c.Pins)
	seen := standing.Seen(in.InForce.Clusters, fleet, in.Memory.Known, in.Workload)
	seen.Accepted = in.Discovered.AcceptDiscovery
	seen.Pods = in.Observed.Pods
	c.Diff = diff.Between(view, seen, sizing.Options(in))
	loads, owners, replicas := make([]plan.Load, len(fleet.Clusters)), make([]int, len(fleet.Clusters)),
		in.InForce.Replicas
	for i, cl := range fleet.Clusters {
		// A row's load is for display; one that cannot be read counts as nothing.
		loads[i] = plan.LoadOf(in.InForce.Clusters[cl.Shard.ID].Load)
		owners[i] = plan.NoReplica
		if replica, _, ok := view.Effective(cl.Shard.ID); ok {
			owners[i] = replica
			replicas = max(replicas, replica+1) // x0y holds the workload at 0, and its rows stay
		}
	}
	c.Replicas = outcome.ReplicasOf(outcome.IndexesOf(fleet, loads), replicas, func(i int) int { return owners[i] })
	return c
}

// MovesUnderWay are the moves of the rollout under way, by cluster. While rows are the old ones they say where clusters
// come from, and afterwards Was does; the way back of x0y says only where they go.
func MovesUnderWay(v *plan.View) []outcome.Move {
	r := v.Plan.Rollout
	names := map[string]bool{}
	for name := range r.Moves {
		names[name] = true
	}
	for name := range r.Was {
		names[name] = true
	}
	var moves []outcome.Move
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row, known := v.Plan.Clusters[name]
		m := outcome.Move{Cluster: name, From: plan.NoReplica, To: row.Replica}
		was, left := r.Was[name]
		to, goes := r.Moves[name]
		switch {
		case goes && left:
			m.From, m.To = was, to
		case goes && known && row.Replica != to:
			m.From, m.To = row.Replica, to
		case goes:
			m.To = to
		case r.Stage == plan.Reverting:
			m.From, m.To = row.Replica, was
		default:
			m.From = was
		}
		if m.From != m.To && (known || goes) {
			moves = append(moves, m)
		}
	}
	return moves
}
