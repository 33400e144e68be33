package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
)

// TestNothingBeginsByNumbersThatAreNoReplicas: a failover, a drain and what levels would carry clusters to replicas that no pod is.
func TestNothingBeginsByNumbersThatAreNoReplicas(t *testing.T) {
	for name, change := range map[string]func(*discover.Workload){
		"spec.ordinals.start":     func(w *discover.Workload) { w.FirstOrdinal = 3 },
		"ARGOCD_CONTROLLER_SHARD": func(w *discover.Workload) { w.FixedShard = "0" },
		"the same, scaled to one by somebody": func(w *discover.Workload) {
			w.FixedShard, w.Replicas, w.ReadyReplicas, w.UpdatedReplicas, w.CurrentReplicas = "0", 1, 1, 1, 1
		},
		"by envFrom, and the pods that run have not got it": func(w *discover.Workload) { w.FixedShard, w.ShardSaid = "0", true },
		"neither": func(*discover.Workload) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			before := len(w.on(2))
			change(&w.in.Workload)
			w.down[2] = true
			for range 20 {
				w.step(time.Minute)
				change(&w.in.Workload)
			}
			told := ""
			for _, p := range w.last.Problems {
				if p.Kind == "Renumbered" {
					told, _, _ = strings.Cut(p.Message, ": ")
				}
			}
			stays, want := true, "nothing levels, fails over, drains or grows"
			switch name {
			case "by envFrom, and the pods that run have not got it":
				stays, want = false, "nothing levels or grows, and what restarts the pods gives all of them that number"
			case "neither":
				stays, want = false, ""
			}
			if got := len(w.on(2)) == before && w.in.InForce.Rollout == nil; got != stays || told != want {
				t.Errorf("nothing began: %t, told %q, want %t, %q: %v", got, told, stays, want, problems(w.last))
			}
		})
	}
}

// TestOneReplicaThatIsNumberedByAnEnvDoesNotGrow: the number is right for it, and a second replica's pods would have it, too.
func TestOneReplicaThatIsNumberedByAnEnvDoesNotGrow(t *testing.T) {
	for shard, want := range map[string]string{"0": "1 replicas, told", "": "3 replicas"} {
		t.Run("env "+shard, func(t *testing.T) {
			w := newWorld(slices.Repeat([]float64{1}, 12)...)
			w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 1, 1, 1, 1
			w.in.Workload.FixedShard = shard
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
			w.run(30)
			got := fmt.Sprintf("%d replicas", w.in.InForce.Replicas)
			if told := slices.Contains(problems(w.last), "discover/Renumbered/"+w.in.Workload.Name); told {
				got += ", told"
			}
			if got != want {
				t.Errorf("%s, want %s: %v", got, want, problems(w.last))
			}
		})
	}
}
