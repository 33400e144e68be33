package standing

import (
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// Unweighed are the clusters of which nobody can say who owns them under consistent-hashing, by name: their Secrets
// have no shard, Argo CD's ring gives them one by the number of everybody's Applications, which nobody counts here, and
// no pod says that it has them. One that no pod has, by the account of every replica, is nobody's; by the account of
// every replica but one, whose pod is not ready, it is that one's.
func Unweighed(in input.Inputs, fleet discover.Fleet) (names []string) {
	replicas := ControllerReplicas(in.Workload)
	if Algorithm(in) != sharding.ConsistentHashing || replicas <= 1 || in.Workload.Replicas == 0 {
		return nil
	}
	seen := shownOwners(in, fleet, replicas)
	listed, all := accounts(in)
	left := left(in) != plan.NoReplica
	for i, c := range fleet.Clusters {
		if shown := seen[i] != plan.NoReplica && seen[i] < replicas; shown || !byRing(c) || !Managed(c) {
			continue
		}
		said := in.Observed.Reported.Clusters[c.Shard.ID]
		idle := all && in.Observed.Reported.Idle(c.Shard.ID)
		accounted := listed || left || idle
		if !accounted || len(said.Holders) > 0 {
			names = append(names, c.Shard.ID)
		}
	}
	return names
}

// accounts reports whether every replica says what it owns, and whether all have listed their Applications since they
// started.
func accounts(in input.Inputs) (listed, all bool) {
	heard := map[int]bool{}
	listed = true
	for _, p := range in.Observed.Pods {
		if p.Ready && p.Answered {
			heard[p.Replica] = true
			listed = listed && (p.Started.IsZero() || in.Now.Sub(p.Started) >= listsFor)
		}
	}
	for replica := range Replicas(in.Workload) {
		if !heard[replica] {
			return false, false
		}
	}
	return listed, true
}
