// Package standing reads out of the inputs how the fleet stands, before anything is decided: who owns each cluster, and
// what the Secrets and the workload say.
package standing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Seen is what stands beside a plan's rows, as rollouts and repairs look at it. known are the clusters that the leader
// has come to know; where nobody knows them, every row without a Secret is missed.
func Seen(rows map[string]plan.Row, fleet discover.Fleet, known discover.Known, w discover.Workload) observed.State {
	seen := observed.State{Workload: seenWorkload(w), Secrets: make([]observed.Secret, 0, len(fleet.Clusters))}
	for _, name := range RowsWithoutSecret(rows, fleet) {
		if !known.Misses(name) {
			seen.Passing = append(seen.Passing, name)
		}
	}
	disputed := map[string]bool{} // servers
	for _, cl := range fleet.Clusters {
		if cl.Alone {
			disputed[cl.Shard.Server] = true
		}
	}
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			continue
		}
		seen.Secrets = append(seen.Secrets, observed.Secret{Name: cl.Shard.ID, Cluster: cl.Called(),
			Server: cl.Shard.Server, Skip: cl.Skip || cl.Unread, Immutable: cl.Immutable, Unmanaged: cl.Unmanaged,
			Follows: cl.Follows, Alone: cl.Alone,
			Disputed: disputed[cl.Shard.Server], Bound: cl.Bound, Apart: cl.Apart,
			Shard: cl.Explicit.N, Valid: cl.Explicit.State == discover.ShardValid,
			Absent: cl.Explicit.State == discover.ShardAbsent})
	}
	return seen
}

func seenWorkload(w discover.Workload) *observed.Workload {
	s := &observed.Workload{Replicas: w.Replicas, Ready: w.ReadyReplicas, Updated: w.UpdatedReplicas,
		Current:         w.CurrentReplicas,
		ObservedCurrent: w.ObservedGeneration >= w.Generation, RestartedAt: w.RestartedAt, Unmanaged: w.Unmanaged,
		Resources: w.Resources}
	if w.EnvReplicas != nil && !w.EnvMixed { // where entries disagree, none is what the plan holds
		if n, err := strconv.Atoi(*w.EnvReplicas); err == nil {
			s.ControllerReplicas = &n
		}
	}
	return s
}

// RowsWithoutSecret are the rows without a Secret, by name.
func RowsWithoutSecret(rows map[string]plan.Row, fleet discover.Fleet) []string {
	present := 0
	for _, c := range fleet.Clusters {
		if _, ok := rows[c.Shard.ID]; ok {
			present++
		}
	}
	if present == len(rows) {
		return nil // as nearly always
	}
	var names []string
	for name := range rows {
		if !Has(fleet, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Has reports whether a Secret, or the implicit in-cluster, has that name; clusters are in the order of their
// names.
func Has(f discover.Fleet, name string) bool {
	_, known := slices.BinarySearchFunc(f.Clusters, name, func(c discover.Cluster, name string) int { return cmp.Compare(c.Shard.ID, name) })
	return known
}

// Names are those of a fleet's clusters, in order.
func Names(f discover.Fleet) []string {
	names := make([]string, len(f.Clusters))
	for i, c := range f.Clusters {
		names[i] = c.Shard.ID
	}
	return names
}

// Pins joins people's pins: those of the plan ConfigMap win over the Secrets' annotations.
func Pins(data plan.Pins, clusters []discover.Cluster) plan.Pins {
	pins := make(plan.Pins, len(data))
	for _, c := range clusters {
		if c.Pin == "" {
			continue
		}
		if replica, ok := plan.ParsePin(c.Pin); ok {
			pins[c.Shard.ID] = replica
		}
	}
	maps.Copy(pins, data)
	return pins
}

// Managed reports whether a cluster has a row: not without a Secret, and not where a person opted out.
func Managed(c discover.Cluster) bool { return !c.Implicit && !c.Unmanaged }

// LeftToAlgorithm reports whether a Secret names no replica, and ballast cannot write one there: Argo CD alone says where its
// cluster is.
func LeftToAlgorithm(c discover.Cluster) bool {
	peoples := (c.Immutable || c.Unmanaged) && !c.Implicit
	return peoples && c.Explicit.State != discover.ShardValid
}

// Servers tells what stays together by the Secrets that are there.
func Servers(fleet discover.Fleet) *placement.Servers {
	s := placement.NewServers(len(fleet.Clusters))
	for _, c := range fleet.Clusters {
		server := c.Shard.Server
		if c.Alone {
			server = ""
		}
		if s.Add(c.Shard.ID, server); c.Bound != "" && server != "" {
			s.Bind(server, c.Bound)
		}
	}
	return s
}

// Fleet is the fleet as it stands, however much of it went; nothing is missed in it. Which Secret leads its
// server's others goes by what the leader remembers, as far as the inputs have that.
func Fleet(in input.Inputs) discover.Fleet {
	m := in.Memory
	o := discover.Options{MaxShrink: 1, Before: m.Servers, Made: m.Made, Had: in.Had}
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{Leaders: m.Known.Leaders}, o, in.Now)
	return fleet
}

// Works reports whether a pod works for a replica now.
func Works(pods []observed.Pod, replica int) bool {
	return slices.ContainsFunc(pods, func(p observed.Pod) bool { return p.Replica == replica && p.Ready && p.Claimed })
}

// Working are the replicas for which a pod works now, for whoever asks of every cluster.
func Working(pods []observed.Pod) map[int]bool {
	working := map[int]bool{}
	for _, p := range pods {
		if p.Ready && p.Claimed {
			working[p.Replica] = true
		}
	}
	return working
}
