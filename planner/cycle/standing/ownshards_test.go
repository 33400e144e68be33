package standing_test

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// shardPod is a pod of a StatefulSet whose envFrom got a number, which pods that started before do not have.
type shardPod struct {
	number                  int // what it takes itself for
	ready, answered, quoted bool
}

// TestNoPodIsSaidToHaveAnotherShardThanItsOwn: OwnShards names no replica whose container started with the number of all, and answers
// nothing where a ready pod does not show which it has.
func TestNoPodIsSaidToHaveAnotherShardThanItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas, fixed := rapid.IntRange(1, 4).Draw(t, "replicas"), rapid.IntRange(0, 5).Draw(t, "fixed")
		seen := ownership.Observation{Asked: true, Clusters: map[string]ownership.ClusterObservation{}}
		pods := make([]shardPod, replicas)
		for r := range pods {
			p := shardPod{number: r, ready: rapid.Bool().Draw(t, "ready"), answered: rapid.Bool().Draw(t, "answered")}
			if rapid.Bool().Draw(t, "anew") {
				p.number = fixed
			}
			p.quoted = p.answered && rapid.IntRange(0, 3).Draw(t, "quoted") == 0
			pods[r] = p
			seen.Pods = append(seen.Pods, ownership.PodObservation{Replica: r, Ready: p.ready, Answered: p.answered, Quoted: p.quoted})
		}
		var fleet discover.Fleet
		has := map[int]bool{} // replicas for which there is a cluster
		for i := range rapid.IntRange(0, 6).Draw(t, "clusters") {
			c := discover.Cluster{Shard: plan.Shard{ID: fmt.Sprintf("c%d", i)}}
			at := rapid.IntRange(0, replicas-1).Draw(t, "at") // by its Secret, or by Argo CD's algorithm
			if rapid.IntRange(0, 3).Draw(t, "stamped") > 0 {
				c.Explicit, has[at] = discover.ShardValue{State: discover.ShardValid, N: at}, true
			}
			fleet.Clusters = append(fleet.Clusters, c)
			var said ownership.ClusterObservation
			for r, p := range pods {
				shows := p.number == at
				if p.quoted { // Prometheus has what the container before had
					shows = r == at
				}
				if p.answered && shows {
					said.Owners = append(said.Owners, r)
				}
			}
			seen.Clusters[c.Shard.ID] = said
		}
		in := input.Inputs{Observed: input.Observed{Known: true, Reported: seen}, Workload: discover.Workload{Kind: plan.StatefulSet,
			Replicas: replicas, FixedShard: strconv.Itoa(fixed), ShardSource: `"ARGOCD_CONTROLLER_SHARD" of ConfigMap "argocd-cmd-params-cm"`}}
		own, allShow := standing.OwnShards(in, fleet), true
		for r, p := range pods {
			if own[r] && p.number != r {
				t.Fatalf("replica %d is said to be its own, and its container has the number %d", r, p.number)
			}
			shows := p.answered && !p.quoted && p.number == r && has[r]
			if own != nil && p.ready && !shows {
				t.Fatalf("replica %d shows nothing of itself (%+v), and %v is answered", r, p, own)
			}
			allShow = allShow && shows
		}
		if allShow && len(own) != replicas {
			t.Fatalf("every pod shows that it is its own, and %v is answered", own)
		}
	})
}
