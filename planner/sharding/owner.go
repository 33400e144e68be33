// Package sharding answers where Argo CD itself would put a cluster: on which shard each is reconciled, by its
// algorithms.
package sharding

import (
	"cmp"
	"hash/fnv"
	"slices"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// Algorithm is Argo CD's way to give a shard to a cluster that asks for none.
type Algorithm string

// Argo CD's algorithms. It takes any other name for Legacy.
const (
	Legacy            Algorithm = "legacy"
	RoundRobin        Algorithm = "round-robin"
	ConsistentHashing Algorithm = "consistent-hashing"
)

// AlgorithmOf reads the configured name as Argo CD does.
func AlgorithmOf(name string) Algorithm {
	switch a := Algorithm(name); a {
	case RoundRobin, ConsistentHashing:
		return a
	}
	return Legacy
}

// Owners is the shard on which Argo CD, with that ARGOCD_CONTROLLER_REPLICAS, reconciles each cluster of a fleet in the
// order of plan.CompareShards. An explicit shard comes before any algorithm. apps is the number of Applications by
// server URL; only ConsistentHashing looks at it, and without it every cluster weighs nothing, as in an Argo CD without
// Applications. Of clusters with one server URL Argo CD knows only one; the first stands for it here, and all have its
// owner. The rules are those of controller/sharding in argo-cd v3.2.11, and testdata/owners.json.gz proves them; that
// skip-reconcile leaves a cluster to nobody is newer than that.
func Owners(clusters []discover.Cluster, a Algorithm, replicas int, apps map[string]int) []int {
	known, first := distinct(clusters)
	if a == RoundRobin || a == ConsistentHashing { // the others do not depend on the order
		slices.SortStableFunc(known, func(i, j int) int { return cmp.Compare(clusterID(&clusters[i]), clusterID(&clusters[j])) })
	}
	computed := owners(clusters, known, a, replicas, apps)
	of := make([]int, len(clusters)) // for the first of each server
	for k, i := range known {
		of[i] = effective(clusters[i].Explicit, computed[k], replicas)
	}
	result := make([]int, len(clusters))
	for i := range clusters {
		result[i] = of[first[i]]
		if clusters[i].Skip {
			result[i] = plan.NoReplica
		}
	}
	return result
}

// InClusterOwner is the shard of an in-cluster without a Secret. Argo CD gives it no ID, so it comes first in every
// order and no load has been placed before it.
func InClusterOwner(a Algorithm, replicas int) int {
	return owners([]discover.Cluster{{Implicit: true}}, []int{0}, a, replicas, nil)[0]
}

func effective(explicit discover.ShardValue, computed, replicas int) int {
	switch explicit.State {
	case discover.ShardNegative:
		return plan.NoReplica
	case discover.ShardTooLarge:
		return 0
	case discover.ShardValid:
		if explicit.N >= replicas {
			return 0
		}
		return explicit.N
	}
	return computed
}

// distinct are the indexes of the first cluster of each server, and for every cluster which one that is.
func distinct(clusters []discover.Cluster) (indexes, first []int) {
	seen := make(map[string]int, len(clusters))
	indexes, first = make([]int, 0, len(clusters)), make([]int, len(clusters))
	for i := range clusters {
		at, known := seen[clusters[i].Shard.Server]
		if !known {
			at = i
			seen[clusters[i].Shard.Server] = i
			indexes = append(indexes, i)
		}
		first[i] = at
	}
	return indexes, first
}

// clusterID is Argo CD's ID of a cluster, by which it orders them: its Secret's UID.
func clusterID(c *discover.Cluster) string {
	if c.Implicit {
		return ""
	}
	return c.Shard.UID
}

// owners applies the algorithm to the known clusters, explicit shards or not: they take ranks and room on the ring all
// the same.
func owners(clusters []discover.Cluster, known []int, a Algorithm, replicas int, apps map[string]int) []int {
	result := make([]int, len(known))
	if replicas <= 1 {
		return result
	}
	var r *ring
	if a == ConsistentHashing {
		r = newRing(replicas)
	}
	for k, i := range known {
		switch a {
		case RoundRobin:
			result[k] = k % replicas
		case ConsistentHashing:
			result[k] = r.place(clusterID(&clusters[i]), apps[clusters[i].Shard.Server])
		default:
			result[k] = legacyOwner(clusterID(&clusters[i]), replicas)
		}
	}
	return result
}

func legacyOwner(id string, replicas int) int {
	if id == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(replicas))
}
