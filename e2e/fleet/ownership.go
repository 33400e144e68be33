package fleet

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Nobody is the shard of a cluster that no replica takes.
const Nobody = -1

// Secret is what Argo CD reads of a cluster Secret to find its owner.
type Secret struct {
	UID    string
	Name   string
	Server string
	Shard  string
	Skip   bool // argocd.argoproj.io/skip-reconcile
}

// shardOf is the shard that a controller started with that ARGOCD_CONTROLLER_REPLICAS gives a cluster under the legacy
// algorithm. A shard that is not a whole number counts as none, a negative one leaves the cluster to nobody, and one
// beyond the replicas is shard 0.
func shardOf(s Secret, replicas int) int {
	if s.Skip {
		return Nobody
	}
	if replicas <= 1 {
		replicas = 1
	}
	shard, err := strconv.Atoi(s.Shard)
	switch {
	case err != nil && s.UID == "":
		return 0 // the implicit in-cluster
	case err != nil:
		return int(legacyHash(s.UID) % uint32(replicas))
	case shard < 0:
		return Nobody
	case shard >= replicas:
		return 0
	}
	return shard
}

// ownShard is the shard that a pod of the StatefulSet takes for itself: its ordinal; one that is beyond its
// ARGOCD_CONTROLLER_REPLICAS becomes a second shard 0, and one that equals it has no work.
func ownShard(pod string, replicas int) int {
	ordinal, err := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	if err != nil || replicas <= 1 || ordinal > replicas {
		return 0
	}
	return ordinal
}

// owns says whether the pod reconciles the cluster. Where the number of replicas is 1 or cannot be read, the pod takes
// everything but what nobody may have.
func owns(pod string, replicas int, s Secret) bool {
	shard := shardOf(s, replicas)
	return shard != Nobody && shard == ownShard(pod, replicas)
}

func legacyHash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
