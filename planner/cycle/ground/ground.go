// Package ground is what a cycle stands on, and what follows from it alone: which replica a cluster cannot leave, what
// is on one replica or apart, and what ARGOCD_CONTROLLER_REPLICAS is to be.
package ground

import (
	"slices"

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
// alone is answered here, or by its Env and its Units.
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

// New has a plan of its own to change.
func New(in input.Inputs, fleet discover.Fleet, pins plan.Pins, p plan.Plan) *Ground {
	return &Ground{In: in, Fleet: fleet, Owners: standing.Owners(in, fleet), Pins: pins, Next: p.Clone(),
		Beside: standing.Servers(fleet)}
}

// Env answers what is asked of ARGOCD_CONTROLLER_REPLICAS.
func (g *Ground) Env() Env { return Env{g} }

// Units answers what has to be on one replica, or apart.
func (g *Ground) Units() Units { return Units{g} }

// Standing is the replica that holds a cluster under the plan: its row, or where it stands without one.
func (g *Ground) Standing(i int) int {
	if row, ok := g.Next.Clusters[g.Fleet.Clusters[i].Shard.ID]; ok {
		return row.Replica
	}
	return g.Owners[i]
}

// FixedTo is the replica a cluster cannot leave: its pin, or where it stands if nothing may be written to its Secret.
func (g *Ground) FixedTo(i int) placement.Cluster {
	c, firm := g.Fleet.Clusters[i], placement.Cluster{At: plan.NoReplica, Claim: placement.Fixed}
	pin, pinned := g.Pins[c.Shard.ID]
	switch {
	case pinned && g.Holds(c.Shard.ID, pin):
		firm.At, firm.Claim = pin, placement.Pinned
	case c.FixedAt != nil:
		firm.At = *c.FixedAt
	case c.Alone && c.Explicit.State == discover.ShardValid: // whoever has its server now has it by the other Secret
		if c.Explicit.N < g.Next.Replicas { // else it is replica 0's to Argo CD, and opens no replica
			firm.At = c.Explicit.N
		}
	case (c.Unmanaged || c.Immutable) && !g.followsCount(c):
		firm.At = g.Owners[i]
	}
	most := g.Next.MaxReplicas
	if g.Next.FreeReplicas {
		most = g.Next.Replicas // nothing keeps a replica that people take away
	}
	firm.At = min(firm.At, most-1)
	return firm
}

// followsCount reports whether Argo CD's algorithm places a cluster anew with each number of replicas: it then asks for
// none, or the count and its place would chase each other. Under rollout.live the env, and with it the place, stays.
func (g *Ground) followsCount(c discover.Cluster) bool {
	return c.Explicit.State != discover.ShardValid && g.In.Config.Rollout.Live == nil
}

// Stays is the replica where Argo CD's algorithm has a cluster for as long as there are as many, since nobody can write
// its Secret; NoReplica for any other. A Secret of a server that others name stays with them.
func (g *Ground) Stays(i int) int {
	c := &g.Fleet.Clusters[i]
	if !c.Immutable || c.Alone || !g.followsCount(*c) {
		return plan.NoReplica
	}
	env := g.Env().Of(g.Next.Replicas) // 0 is one that is not held, and worth no restart
	restarts := env != 0 && env != standing.ControllerReplicas(g.In.Workload)
	at := g.Standing(i) // its owner, but for a row that nobody can write: no rollout begins for one
	if restarts || at >= g.Next.Replicas {
		return plan.NoReplica
	}
	return at
}

// Carries is the replica that a Secret names which nobody may write: whatever its pin or its server's other Secrets
// say, that replica stays.
func (g *Ground) Carries(i int) int {
	c := g.Fleet.Clusters[i]
	peoples := (c.Immutable || c.Unmanaged) && !c.Implicit
	names := c.Explicit.State == discover.ShardValid && c.Explicit.N < g.Next.Replicas
	if peoples && names && !g.Next.FreeReplicas {
		return c.Explicit.N
	}
	return plan.NoReplica
}

// Owned is the number of replicas that people's Secrets need which name none: Argo CD has them where it has them,
// whatever ballast does.
func (g *Ground) Owned() (replicas int) {
	for i, c := range g.Fleet.Clusters {
		peoples := (c.Immutable || c.Unmanaged) && !c.Implicit
		placed := c.Explicit.State != discover.ShardValid && !g.followsCount(c)
		if peoples && placed && g.Owners[i] < g.Next.Replicas {
			replicas = max(replicas, g.Owners[i]+1)
		}
	}
	return replicas
}

// Held is the number of replicas that such Secrets need.
func (g *Ground) Held() (replicas int) {
	for i := range g.Fleet.Clusters {
		replicas = max(replicas, g.Carries(i)+1)
	}
	return replicas
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

// Lowered is what people can do for a cluster that cannot leave its replica.
func (g *Ground) Lowered(i int) string {
	cl := g.Fleet.Clusters[i]
	switch {
	case g.FixedTo(i).Claim == placement.Pinned && g.Carries(i) < g.FixedTo(i).At:
		return "it is pinned there: pin it lower, or take the pin away"
	case cl.FixedAt != nil:
		return "it has no Secret, and Argo CD puts it there: give it a Secret"
	case cl.Unmanaged:
		return "its Secret opted out of ballast: write a lower data.shard there, or take the annotation " +
			plan.AnnotationUnmanaged + " away"
	}
	return "its Secret cannot be written: make it anew with a lower data.shard"
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

// UnitFixedTo is the replica that a unit's firmest cluster cannot leave, and which one that is.
func (g *Ground) UnitFixedTo(clusters []int) (cluster, at int) {
	cluster, at = -1, plan.NoReplica
	firmest := placement.Follows
	for _, i := range clusters {
		if c := g.FixedTo(i); c.At >= 0 && (at < 0 || c.Claim > firmest) {
			cluster, at, firmest = i, c.At, c.Claim
		}
	}
	return cluster, at
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
