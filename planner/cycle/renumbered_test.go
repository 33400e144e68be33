package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
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
			told := slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool {
				return p.Kind == "Renumbered" && strings.HasPrefix(p.Message, "nothing levels, fails over, drains or grows: ")
			})
			if stays, want := len(w.on(2)) == before && w.in.InForce.Rollout == nil, name != "neither"; stays != want || told != want {
				t.Errorf("nothing began: %t, told: %t, want %t: %v", stays, told, want, problems(w.last))
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
