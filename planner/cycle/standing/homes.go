package standing

import (
	"slices"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// Home is on which replicas Argo CD may have a cluster, by what Secrets and settings say: none where it skips the
// cluster, several where the Secrets of one server differ. Unknown is of a cluster that may be on any replica.
type Home struct {
	Cluster discover.Cluster
	At      []int
	Unknown bool // it asks for no shard, and Argo CD weighs Applications, which are not counted here
}

// Homes says of every cluster where Argo CD has it: also of those that have no row, by an opted-out Secret or without
// one.
func Homes(in discover.Input, w discover.Workload) []Home {
	seen := input.Inputs{Discovered: in, Workload: w}
	a, replicas := Algorithm(seen), ControllerReplicas(w)
	in.InClusterOwner = sharding.InClusterOwner(a, replicas)
	seen.Discovered = in
	fleet := Fleet(seen)
	computed := slices.Clone(fleet.Clusters)
	for i := range computed {
		computed[i].Explicit = discover.ShardValue{}
	}
	owners := sharding.Owners(computed, a, replicas, nil)
	homes := make([]Home, len(fleet.Clusters))
	ringed := a == sharding.ConsistentHashing && replicas > 1
	for _, unit := range fleet.Units {
		var one Home // Argo CD takes whichever Secret of a server it saw last
		for _, i := range unit.Clusters {
			c, owner := fleet.Clusters[i], owners[i]
			if c.Explicit.Decides() {
				owner = sharding.Owners([]discover.Cluster{c}, a, replicas, nil)[0]
			} else if ringed && !c.Implicit && !c.Skip {
				owner, one.Unknown = plan.NoReplica, true
			}
			if owner != plan.NoReplica {
				one.At = append(one.At, owner)
			}
		}
		slices.Sort(one.At)
		one.At = slices.Compact(one.At)
		for _, i := range unit.Clusters {
			if homes[i].Cluster = fleet.Clusters[i]; !homes[i].Cluster.Skip {
				homes[i].At, homes[i].Unknown = one.At, one.Unknown
			}
		}
	}
	return homes
}
