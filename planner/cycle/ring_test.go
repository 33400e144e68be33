package cycle

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// TestNoFirstPlanContradictsThePods: whatever Argo CD's ring weighs, whichever pods are silent and whatever the env says, the first plan
// gives each cluster to a replica that has it, or there is none; nothing is stamped with another one.
func TestNoFirstPlanContradictsThePods(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		replicas, clusters := rapid.IntRange(2, 6).Draw(rt, "replicas"), rapid.IntRange(1, 30).Draw(rt, "clusters")
		w := newLiveWorld(slices.Repeat([]float64{10}, clusters)...)
		w.in.Config.Mode = rapid.SampledFrom([]plan.Mode{plan.Observe, plan.Hold, plan.Enforce}).Draw(rt, "mode")
		w.in.Discovered.Algorithm = string(sharding.ConsistentHashing)
		w.scale(replicas)
		env := rapid.IntRange(2, replicas+2).Draw(rt, "env")
		text := strconv.Itoa(env)
		w.in.Workload.EnvReplicas = &text
		pods := &envPods{liveWorld: w, algorithm: sharding.ConsistentHashing, envs: slices.Repeat([]int{env}, replicas), apps: map[string]int{}}
		a := &adopting{envPods: pods}
		for i := range w.in.Discovered.Secrets {
			s := &w.in.Discovered.Secrets[i]
			a.apps[s.Server] = rapid.IntRange(1, 60).Draw(rt, "applications")
			if rapid.IntRange(0, 3).Draw(rt, "stamped") == 0 {
				s.Shard = discover.ShardValue{State: discover.ShardValid, N: rapid.IntRange(0, replicas).Draw(rt, "shard")}
			}
		}
		w.mute = map[int]bool{}
		for replica := range replicas {
			w.mute[replica] = rapid.IntRange(0, 4).Draw(rt, "mute") == 0
		}
		a.before = a.owners(t)
		a.observed(t)
		for name, owners := range a.before {
			c := w.in.Observed.Reported.Clusters[name]
			c.Owners = slices.DeleteFunc(slices.Clone(owners), func(pod int) bool { return w.mute[pod] })
			c.Live, c.Cached, c.Holders = c.Owners, c.Owners, c.Owners
			w.in.Observed.Reported.Clusters[name] = c
		}
		out := Run(w.in)
		told := findProblem(out, "OwnersUnknown").Message != ""
		if out.Changed == told {
			rt.Fatalf("a plan: %t, and people are told that it waits: %t", out.Changed, told)
		}
		for name, row := range out.Next.Clusters {
			if owners := a.before[name]; len(owners) > 0 && !slices.Contains(owners, row.Replica) {
				rt.Fatalf("%s is owned by %v, and the first plan has it on %d", name, owners, row.Replica)
			}
		}
		if told && !slices.Contains(slices.Collect(maps.Values(w.mute)), true) {
			rt.Fatalf("every pod answers, and there is no plan: %v", messages(out))
		}
	})
}
