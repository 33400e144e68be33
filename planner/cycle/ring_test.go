package cycle

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
			w.down[replica] = rapid.IntRange(0, 5).Draw(rt, "down") == 0
		}
		a.before = a.owners(t)
		a.observed(t)
		for name, owners := range a.before {
			c := w.in.Observed.Reported.Clusters[name]
			c.Owners = slices.DeleteFunc(slices.Clone(owners), func(pod int) bool { return w.mute[pod] || w.down[pod] })
			c.Live, c.Cached, c.Holders = c.Owners, c.Owners, nil
			for i, pod := range w.in.Observed.Reported.Pods {
				if slices.Contains(c.Owners, pod.Replica) {
					c.Holders = append(c.Holders, i)
				}
			}
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
		all, ill := !slices.Contains(slices.Collect(maps.Values(w.mute)), true), 0
		for _, down := range w.down {
			ill += map[bool]int{true: 1}[down]
		}
		if told && all && ill <= 1 && replicas <= env {
			rt.Fatalf("every pod answers but %v, and there is no plan: %v", w.down, messages(out))
		}
	})
}

// TestAPlanThatHoldsNothingStaysWhileOwnersAreUnknown: in mode Observe the plan is made anew of what the pods say. While one is silent it
// stays as it was, people are told for whom it waits, and it goes on once all say what they have.
func TestAPlanThatHoldsNothingStaysWhileOwnersAreUnknown(t *testing.T) {
	w := newLiveWorld(slices.Repeat([]float64{10}, 9)...)
	w.in.Config.Mode, w.in.Discovered.Algorithm = plan.Observe, string(sharding.ConsistentHashing)
	w.placed, w.mute = map[string]int{}, map[int]bool{}
	for i := range w.in.Discovered.Secrets {
		s := &w.in.Discovered.Secrets[i]
		s.Shard, w.placed[s.Name] = discover.ShardValue{}, i/3
	}
	rows := func() map[string]int {
		of := map[string]int{}
		for name, row := range w.in.InForce.Clusters {
			of[name] = row.Replica
		}
		return of
	}
	w.step(time.Minute)
	before, writes := maps.Clone(w.placed), w.writes
	if diff := cmp.Diff(before, rows()); diff != "" {
		t.Fatalf("the first plan is not the fleet as it is (-fleet +plan):\n%s", diff)
	}
	w.mute[2], w.placed["c000"] = true, 1
	for range 30 {
		w.step(time.Minute)
	}
	const told = `Argo CD's consistent-hashing places clusters without a shard by the number of all Applications, and no pod says that it has c006, c007, c008: ` +
		"nothing is planned until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), or until those Secrets have a shard"
	if diff := cmp.Diff(before, rows()); diff != "" || w.writes != writes || findProblem(w.last, "OwnersUnknown").Message != told {
		t.Errorf("written %d times, people are told %v; rows (-before +now):\n%s", w.writes-writes, messages(w.last), diff)
	}
	w.mute[2] = false
	w.step(time.Minute)
	if diff := cmp.Diff(w.placed, rows()); diff != "" {
		t.Errorf("all pods answer (-fleet +plan):\n%s", diff)
	}
}
