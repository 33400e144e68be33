// Package ground is what a cycle stands on, and what follows from it alone: which replica a cluster cannot leave, what
// is on one replica or apart, and what ARGOCD_CONTROLLER_REPLICAS is to be.
package ground

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Ground is what a cycle stands on: what it was given, the fleet, and the plan as it is by now. What follows from these
// alone is answered here, or by its Env, its Units and what is Fixed.
type Ground struct {
	In      input.Inputs
	Fleet   discover.Fleet
	Owners  []int
	Pins    plan.Pins
	Next    plan.Plan
	Beside  *placement.Servers // what stays together
	Groups  []Group
	Partial bool // the discovery is refused, since too many are gone at once: all stays, but for a rescue

	InUse    *outcome.InUse        // of memory; nil: nothing is bounded by it
	ByName   map[string]plan.Bytes // of what is not seen, too
	Capacity plan.Load             // that a replica may carry, where the configuration says nothing of it; 0: nothing is measured
	Weighed  int                   // replicas that size.weights ask for; 0: nothing is measured, or there are none
}

// Group is one of partition.groups, with the clusters of the fleet that it has: of each server the one that leads.
type Group struct {
	Name     string
	Apart    bool
	Selector labels.Selector
	Members  []int  // of the fleet's clusters, in order
	Selected []int  // those, and what is left out
	Server   string // of the one that joined first
}

// New has a plan of its own to change.
func New(in input.Inputs, fleet discover.Fleet, pins plan.Pins, p plan.Plan) *Ground {
	return &Ground{In: in, Fleet: fleet, Owners: standing.Owners(in, fleet), Pins: pins, Next: p.Clone(),
		Beside: standing.Servers(fleet)}
}

// Env answers what ARGOCD_CONTROLLER_REPLICAS is to be, and whether the pods restart for that now.
type Env struct{ *Ground }

// Env answers what is asked of ARGOCD_CONTROLLER_REPLICAS.
func (g *Ground) Env() Env { return Env{g} }

// Units are what has to be on one replica, or apart, by servers and groups.
type Units struct{ *Ground }

// Units answers what has to be on one replica, or apart.
func (g *Ground) Units() Units { return Units{g} }

// Fixed answers which clusters stay where they are, and what would let them go.
type Fixed struct{ *Ground }

// Fixed answers what keeps a cluster on its replica.
func (g *Ground) Fixed() Fixed { return Fixed{g} }

// Standing is the replica that holds a cluster under the plan: its row, or where it stands without one.
func (g *Ground) Standing(i int) int {
	if row, ok := g.Next.Clusters[g.Fleet.Clusters[i].Shard.ID]; ok {
		return row.Replica
	}
	return g.Owners[i]
}

// Pinnable is the number of replicas that pins may ask for: a workload that opted out, or whose replicas are people's,
// is not scaled for one.
func (g *Ground) Pinnable() int {
	if g.Next.Unmanaged || g.Next.FreeReplicas {
		return g.Next.Replicas
	}
	return g.Next.MaxReplicas
}

// HeldByPeople is how many of the replicas that people hold count: all up to maxReplicas, and beyond it those that have
// counted already. Where maxReplicas was lowered below what stands, nobody would take the others away, and a plan for
// fewer would be one for more again.
func (g *Ground) HeldByPeople() int {
	return min(standing.Replicas(g.In.Workload), max(g.Next.MaxReplicas, g.Next.Replicas))
}

// Movable reports whether ballast may move one of a group.
func (g *Ground) Movable(u discover.Unit) bool {
	return slices.ContainsFunc(u.Clusters, func(i int) bool { return standing.Managed(g.Fleet.Clusters[i]) })
}

// MostReplicas is how many replicas there may be.
func (g *Ground) MostReplicas() int {
	of := g.In.Config.Partition
	switch {
	case ByWorkload(of):
		return max(g.HeldByPeople(), 1)
	case g.In.Workload.Unmanaged:
		return max(g.Next.Replicas, 1)
	case of.Replicas != nil:
		return max(min(of.Replicas.Fixed, g.Next.MaxReplicas), 1)
	}
	return max(g.Next.MaxReplicas, 1)
}

// MostClusters is how many clusters a replica may have: no fewer than that many replicas at most need for all of them.
func (g *Ground) MostClusters() int {
	most := g.In.Config.Partition.MaxClustersPerReplica
	if most == 0 {
		return 0
	}
	replicas := max(g.Next.MaxReplicas, 1)
	return max(most, (len(g.Fleet.Clusters)+replicas-1)/replicas)
}

// Cluster is where one of the fleet's stands: a row, or without one what it carries or who owns it. What the plan has
// no room for stays there; the one that leads its server does not stay for it.
func (g *Ground) Cluster(i int) placement.Cluster {
	cl := g.Fleet.Clusters[i]
	_, known := g.Next.Clusters[cl.Shard.ID]
	c := placement.Cluster{Name: cl.Shard.ID, Server: cl.Together(), At: g.Standing(i), Claim: placement.Stands,
		Apart: cl.Apart, Memory: g.InUse.Takes(i)}
	switch carries := cl.Explicit.State == discover.ShardValid; {
	case known && cl.Immutable && carries:
		c.Claim = placement.Fixed
	case !known && carries && !cl.Follows:
		c.At, c.Claim = cl.Explicit.N, placement.Fixed
	case !known || cl.Follows:
		c.Claim = placement.Follows
	}
	return c
}

// Moves are the clusters whose replica differs from their rows, by name.
func (g *Ground) Moves(of map[string]int) []outcome.Move {
	var moves []outcome.Move
	for _, c := range g.Fleet.Clusters { // in the order of their names
		name := c.Shard.ID
		row, planned := g.Next.Clusters[name]
		if to, ok := of[name]; ok && planned && row.Replica != to {
			moves = append(moves, outcome.Move{Cluster: name, From: row.Replica, To: to})
		}
	}
	return moves
}

// ByWorkload reports whether the number of replicas is the workload's, which people scale.
func ByWorkload(p config.Partition) bool { return p.Replicas != nil && p.Replicas.Workload }

// NamesOf are clusters of a fleet, for people.
func NamesOf(fleet discover.Fleet, clusters []int) string {
	names := make([]string, len(clusters))
	for k, i := range clusters {
		names[k] = fleet.Clusters[i].Shard.ID
	}
	return problem.ClipList(names)
}
