package standing

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sharding"
)

// ControllerReplicas is the number of replicas that the application-controller believes in: its env, which counts as
// one where it is absent or not a positive number; in a Deployment with dynamic distribution, and where the env cannot
// be seen and nobody confirms what its reference says, spec.replicas.
func ControllerReplicas(w discover.Workload) int {
	if w.Kind == plan.Deployment && w.DynamicDistribution {
		return max(w.Replicas, 1)
	}
	value := w.EnvReplicas
	if w.EnvUnknown {
		value = w.EnvSaid
		if value == nil { // the pods say the rest: see UnknownOwner
			return max(w.Replicas, 1)
		}
	}
	if value == nil {
		return 1
	}
	n, err := strconv.Atoi(*value)
	if err != nil || n < 1 {
		return 1
	}
	return min(n, discover.MostReplicas)
}

// Env is what the plan holds the env at: as found, and not at all where there is none, since adding it would
// restart every pod.
func Env(w discover.Workload) int {
	if w.EnvReplicas == nil {
		return 0
	}
	return ControllerReplicas(w)
}

// Algorithm is the one in use: the workload's env, else argocd-cmd-params-cm.
func Algorithm(in input.Inputs) sharding.Algorithm {
	if in.Workload.Algorithm != "" {
		return sharding.AlgorithmOf(in.Workload.Algorithm)
	}
	return sharding.AlgorithmOf(in.Discovered.Algorithm)
}

// Owners is the replica that owns each cluster of the fleet today: the one that says so itself, else the explicit
// shard, else the one that is seen in metrics, else the one whose pod alone is not ready, else the algorithm's.
// plan.NoReplica where no replica has that number, or Argo CD skips the cluster.
func Owners(in input.Inputs, fleet discover.Fleet) []int {
	replicas := ControllerReplicas(in.Workload)
	owners := sharding.Owners(fleet.Clusters, Algorithm(in), replicas, nil)
	seen := shownOwners(in, fleet, replicas)
	runs, left := Replicas(in.Workload), left(in)
	for i := range fleet.Clusters {
		c := &fleet.Clusters[i]
		said := in.Observed.Reported.Clusters[c.Shard.ID]
		unheld := len(said.Holders) == 0 && said.Apps != 0
		switch shown := seen[i] != plan.NoReplica && seen[i] < replicas; {
		case shown && !c.Skip && !c.Implicit:
			owners[i] = seen[i]
		case left != plan.NoReplica && byRing(*c) && unheld:
			owners[i] = left
		}
		if owners[i] >= runs {
			owners[i] = plan.NoReplica // the env promises more replicas than run: nobody reconciles this cluster
		}
	}
	return owners
}

// Confirmed is what the env's reference says, if the pods bear it out: of the clusters whose Secrets name no replica
// one at least is with the replica that it gives them, and none is with another. Pods have the value of the day they
// started.
func Confirmed(in input.Inputs, fleet discover.Fleet) *string {
	if !in.Workload.EnvUnknown || in.Workload.EnvSaid == nil {
		return nil
	}
	given := sharding.Owners(fleet.Clusters, Algorithm(in), ControllerReplicas(in.Workload), nil)
	seen, confirmed := shownOwners(in, fleet, discover.MostReplicas), false
	for i, c := range fleet.Clusters {
		byAlgorithm := !c.Skip && !c.Implicit && c.Explicit.State != discover.ShardValid
		if seen[i] == plan.NoReplica || !byAlgorithm {
			continue
		}
		if seen[i] != given[i] {
			return nil
		}
		confirmed = true
	}
	if !confirmed {
		return nil
	}
	return in.Workload.EnvSaid
}

// OwnShards are the replicas whose pods show that they are what their names say, although envFrom has one number for
// every pod that starts: each has a cluster that its Secret gives to it. Nil: not every pod that is ready shows it, or
// one has what is that number's, or the number is not by envFrom, whose value a container has from its start.
func OwnShards(in input.Inputs, fleet discover.Fleet) map[int]bool {
	fixed, err := strconv.Atoi(in.Workload.FixedShard)
	said := err == nil && in.Workload.ShardSource != ""
	seen := in.Observed.Reported
	named := in.Workload.Kind == plan.StatefulSet && in.Workload.FirstOrdinal == 0
	if !said || !named || !seen.Asked {
		return nil
	}
	own := map[int]bool{}
	for i := range fleet.Clusters {
		c := &fleet.Clusters[i]
		if c.Explicit.State != discover.ShardValid {
			continue
		}
		for _, owner := range seen.Clusters[c.Shard.ID].Owners {
			if owner != c.Explicit.N && c.Explicit.N == fixed {
				return nil
			}
			if owner == c.Explicit.N && !seen.Quoted(owner) { // Prometheus may still say it of the container before
				own[owner] = true
			}
		}
	}
	for _, pod := range seen.Pods {
		if pod.Ready && !own[pod.Replica] {
			return nil
		}
	}
	return own
}

// shownOwners is who has each cluster, by those that say so themselves, else by the metrics: those are some scrapes
// behind, and whoever writes to Prometheus must not deal clusters that their Secrets give to a replica.
// plan.NoReplica where neither says it. Of several that say so, those beyond the replicas that Argo CD counts are
// replica 0 once more.
func shownOwners(in input.Inputs, fleet discover.Fleet, counted int) []int {
	seen, owners := seenOwners(in.Owners, in.Workload, in.Observed.Pods), make([]int, len(fleet.Clusters))
	for i := range fleet.Clusters {
		c := &fleet.Clusters[i].Shard
		explicit := fleet.Clusters[i].Explicit
		given := explicit.State == discover.ShardValid && explicit.N < counted
		owner, known := seen[c.Server]
		if owners[i] = owner; !known || given {
			owners[i] = plan.NoReplica
		}
		asked, said := theOne(in.Observed.Reported.Clusters[c.ID].Owners, counted)
		if quoted := given && in.Observed.Reported.Quoted(asked); said && !quoted {
			owners[i] = asked
		}
	}
	return owners
}

// theOne is the owner where one alone says so, or one alone of those below that number.
func theOne(owners []int, below int) (owner int, said bool) {
	owner = plan.NoReplica
	for _, o := range owners {
		if o < 0 || o >= below && len(owners) > 1 {
			continue
		}
		if said {
			return plan.NoReplica, false
		}
		owner, said = o, true
	}
	return owner, said
}

// UnknownOwner is the first cluster of which nobody can say who owns it, where the number of replicas that Argo CD
// counts with cannot be seen, nor what its reference says: no pod says that it has it, and its Secret names no replica
// below those that run. One without Applications is nobody's. Empty: there is none.
func UnknownOwner(in input.Inputs, fleet discover.Fleet) string {
	if !in.Workload.EnvUnknown || in.Workload.EnvSaid != nil {
		return ""
	}
	seen := seenOwners(in.Owners, in.Workload, in.Observed.Pods)
	for _, c := range fleet.Clusters {
		asked := in.Observed.Reported.Clusters[c.Shard.ID]
		_, scraped := seen[c.Shard.Server]
		idle := in.Observed.Reported.Asked && in.Observed.Reported.Idle(c.Shard.ID)
		explicit := c.Explicit.State == discover.ShardValid && c.Explicit.N < Replicas(in.Workload)
		said := scraped || explicit || len(asked.Owners) == 1
		if !said && !idle && !c.Skip {
			return c.Shard.ID
		}
	}
	return ""
}

// seenOwners reads who reconciles which server from the pods' own metrics. A server that two pods report (a move a
// moment ago, or two owners) or a pod whose replica nobody knows says nothing.
func seenOwners(fetched poll.Fetched, w discover.Workload, pods []observed.Pod) map[string]int {
	owners := make(map[string]int, len(fetched.Samples))
	for _, s := range fetched.Samples {
		pod, server, ok := strings.Cut(s.Key, "|")
		if !ok || server == "" {
			continue
		}
		server = plan.NormalizeServer(server)
		replica, ok := replicaOf(pod, w, pods)
		if other, twice := owners[server]; twice && other != replica || !ok {
			replica = plan.NoReplica
		}
		owners[server] = replica
	}
	for server, owner := range owners {
		if owner == plan.NoReplica {
			delete(owners, server)
		}
	}
	return owners
}

// replicaOf is a pod's replica: its ordinal, or in a Deployment the slot that it has claimed.
func replicaOf(pod string, w discover.Workload, pods []observed.Pod) (int, bool) {
	if w.Kind != plan.StatefulSet {
		i := slices.IndexFunc(pods, func(p observed.Pod) bool { return p.Name == pod })
		if i < 0 {
			return 0, false
		}
		return pods[i].Replica, true // plan.NoReplica without a slot
	}
	digits, ok := strings.CutPrefix(pod, w.Name+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// Replicas is the workload's count as a plan may hold it: a workload found at 0 has stopped reconciling
// everything, which no plan may keep, so it comes back at what its env says it had.
func Replicas(w discover.Workload) int {
	if w.Replicas > 0 {
		return w.Replicas
	}
	return ControllerReplicas(w)
}

// TargetOf is the workload as a plan names it.
func TargetOf(w discover.Workload) plan.Target {
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}
}

// listsFor is for how long a pod that started may show nothing of the Applications that are its own: it lists them
// first.
const listsFor = 10 * time.Minute

// byRing reports whether Argo CD's algorithm says who has a cluster.
func byRing(c discover.Cluster) bool { return !c.Implicit && !c.Skip && !c.Explicit.Decides() }

// left is the one replica without a ready pod, where each other one says what it has, and has listed its Applications:
// under consistent-hashing each cluster is one replica's, ready or not, so what no other one has is its.
// plan.NoReplica: there is none, or several are.
func left(in input.Inputs) int {
	if Algorithm(in) != sharding.ConsistentHashing || in.Observed.Dynamic || !in.Observed.Reported.Asked {
		return plan.NoReplica
	}
	ready := map[int]bool{}
	for _, p := range in.Observed.Pods {
		if !p.Ready {
			continue
		}
		if ready[p.Replica] = true; in.Now.Sub(p.Started) < listsFor {
			return plan.NoReplica
		}
	}
	one := plan.NoReplica
	for replica := range Replicas(in.Workload) {
		switch {
		case ready[replica]:
		case one != plan.NoReplica:
			return plan.NoReplica
		default:
			one = replica
		}
	}
	if one >= ControllerReplicas(in.Workload) { // which owns nothing, or what replica 0 has
		return plan.NoReplica
	}
	return one
}
