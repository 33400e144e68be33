package cycle

import (
	"slices"
	"testing"
	"time"

	"ballast/planner/discover"
)

// TestNothingBeginsByNumbersThatAreNoReplicas: a failover, a drain and what levels would carry clusters to replicas that no pod is.
func TestNothingBeginsByNumbersThatAreNoReplicas(t *testing.T) {
	for name, change := range map[string]func(*discover.Workload){
		"spec.ordinals.start":     func(w *discover.Workload) { w.FirstOrdinal = 3 },
		"ARGOCD_CONTROLLER_SHARD": func(w *discover.Workload) { w.FixedShard = "0" },
		"neither":                 func(*discover.Workload) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			before := len(w.on(2))
			change(&w.in.Workload)
			w.down[2] = true
			for range 20 {
				w.step(time.Minute)
			}
			told := slices.Contains(problems(w.last), "discover/Renumbered/"+w.in.Workload.Name)
			if stays, want := len(w.on(2)) == before && w.in.InForce.Rollout == nil, name != "neither"; stays != want || told != want {
				t.Errorf("nothing began: %t, told: %t, want %t: %v", stays, told, want, problems(w.last))
			}
		})
	}
}
