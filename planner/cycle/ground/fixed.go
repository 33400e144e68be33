package ground

import (
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// To is the replica a cluster cannot leave: its pin, or where it stands if nothing may be written to its Secret.
func (f Fixed) To(i int) placement.Cluster {
	c, firm := f.Fleet.Clusters[i], placement.Cluster{At: plan.NoReplica, Claim: placement.Fixed}
	pin, pinned := f.Pins[c.Shard.ID]
	switch {
	case pinned && f.Holds(c.Shard.ID, pin):
		firm.At, firm.Claim = pin, placement.Pinned
	case c.FixedAt != nil:
		firm.At = *c.FixedAt
	case c.Alone && c.Explicit.State == discover.ShardValid: // whoever has its server now has it by the other Secret
		if c.Explicit.N < f.Next.Replicas { // else it is replica 0's to Argo CD, and opens no replica
			firm.At = c.Explicit.N
		}
	case (c.Unmanaged || c.Immutable) && !f.followsCount(c):
		firm.At = f.Owners[i]
	}
	most := f.Next.MaxReplicas
	if f.Next.FreeReplicas {
		most = f.Next.Replicas // nothing keeps a replica that people take away
	}
	firm.At = min(firm.At, most-1)
	return firm
}

// followsCount reports whether Argo CD's algorithm places a cluster anew with each number of replicas: it then asks for
// none, or the count and its place would chase each other. Under rollout.live the env, and with it the place, stays.
func (f Fixed) followsCount(c discover.Cluster) bool {
	return c.Explicit.State != discover.ShardValid && f.In.Config.Rollout.Live == nil
}

// Stays is the replica where Argo CD's algorithm has a cluster for as long as there are as many, since nobody can write
// its Secret; NoReplica for any other. A Secret of a server that others name stays with them.
func (f Fixed) Stays(i int) int {
	c := &f.Fleet.Clusters[i]
	if !c.Immutable || c.Alone || !f.followsCount(*c) {
		return plan.NoReplica
	}
	env := f.Env().Of(f.Next.Replicas) // 0 is one that is not held, and worth no restart
	restarts := env != 0 && env != standing.ControllerReplicas(f.In.Workload)
	at := f.Standing(i) // its owner, or until all pods have said who that is, its row
	if restarts || at >= f.Next.Replicas {
		return plan.NoReplica
	}
	return at
}

// Follows reports whether the row of a server's Secret follows its owner: it names no replica, and nobody can write one
// there, so that Argo CD has it where its algorithm does. Several Secrets of one server go together.
func (f Fixed) Follows(u discover.Unit) bool {
	if len(u.Clusters) != 1 {
		return false
	}
	c := f.Fleet.Clusters[u.Clusters[0]]
	_, pinned := f.Pins[c.Shard.ID]
	unwritten := c.Immutable && !c.Alone && c.Explicit.State != discover.ShardValid
	return unwritten && !pinned
}

// Carries is the replica that a Secret names which nobody may write: whatever its pin or its server's other Secrets
// say, that replica stays.
func (f Fixed) Carries(i int) int {
	c := f.Fleet.Clusters[i]
	peoples := (c.Immutable || c.Unmanaged) && !c.Implicit
	names := c.Explicit.State == discover.ShardValid && c.Explicit.N < f.Next.Replicas
	if peoples && names && !f.Next.FreeReplicas {
		return c.Explicit.N
	}
	return plan.NoReplica
}

// Owned is the number of replicas that people's Secrets need which name none: Argo CD has them where it has them,
// whatever ballast does.
func (g *Ground) ReplicasOwned() (replicas int) {
	for i, c := range g.Fleet.Clusters {
		placed := standing.LeftToAlgorithm(c) && !g.Fixed().followsCount(c)
		if placed && g.Owners[i] < g.Next.Replicas {
			replicas = max(replicas, g.Owners[i]+1)
		}
	}
	return replicas
}

// Held is the number of replicas that such Secrets need.
func (g *Ground) ReplicasHeld() (replicas int) {
	for i := range g.Fleet.Clusters {
		replicas = max(replicas, g.Fixed().Carries(i)+1)
	}
	return replicas
}

// Lowered is what people can do for a cluster that cannot leave its replica.
func (f Fixed) Lowered(i int) string {
	cl := f.Fleet.Clusters[i]
	switch {
	case f.To(i).Claim == placement.Pinned && f.Carries(i) < f.To(i).At:
		return "it is pinned there: pin it lower, or take the pin away"
	case cl.FixedAt != nil:
		return "it has no Secret, and Argo CD puts it there: give it a Secret"
	case cl.Unmanaged:
		return "its Secret opted out of ballast: write a lower data.shard there, or take the annotation " +
			plan.AnnotationUnmanaged + " away"
	}
	return "its Secret cannot be written: make it anew with a lower data.shard"
}

// Unit is the replica that a unit's firmest cluster cannot leave, and which one that is.
func (f Fixed) Unit(clusters []int) (cluster, at int) {
	cluster, at = -1, plan.NoReplica
	firmest := placement.Follows
	for _, i := range clusters {
		if c := f.To(i); c.At >= 0 && (at < 0 || c.Claim > firmest) {
			cluster, at, firmest = i, c.At, c.Claim
		}
	}
	return cluster, at
}

// Frees is what lets a cluster leave its replica that cannot; empty: it can. A pin that is refused, or waits, keeps it
// nowhere.
func (f Fixed) Frees(i int) string {
	cl := f.Fleet.Clusters[i]
	pin, pinned := f.Pins[cl.Shard.ID]
	why, barred := f.In.Barred[cl.Shard.ID]
	switch {
	case cl.Unmanaged:
		return "its Secret opted out of ballast: take the annotation " + plan.AnnotationUnmanaged + " away"
	case cl.Immutable && barred:
		return "its Secret cannot be written: " + why
	case cl.Immutable:
		return "its Secret cannot be written: make it anew"
	case pinned && pin == f.Standing(i):
		return "it is pinned there: unpin it, or pin it to another"
	}
	return ""
}
