package cycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNobodyChangesTheTemplateForMonths: the plan stays as it is and says so in every cycle, the rollout that it waits for never
// begins by itself, a replica that fails is evacuated meanwhile, and the change is still taken along when it comes.
func TestNobodyChangesTheTemplateForMonths(t *testing.T) {
	w := awaiting(t, skewed(12)...)
	revision := w.in.InForce.Revision
	for day := range 120 {
		for range 4 {
			out := w.step(6 * time.Hour)
			if p := w.in.InForce; p.Revision != revision || p.NextControllerReplicas != 16 || p.ControllerReplicas != 3 || len(w.waves) > 0 {
				t.Fatalf("on day %d the plan is %+v, waves %v", day, p, w.waves)
			}
			if !slices.Contains(problems(out), "rollout/RestartWaits/") {
				t.Fatalf("on day %d nobody is told: %v", day, problems(out))
			}
		}
	}
	w.down[1] = true
	w.until(t, "nothing is on replica 1", 3*time.Hour, func(Outcome) bool { return w.in.InForce.Rollout == nil && !carries(w, 1) })
	w.down[1] = false
	w.until(t, "it waits on", 3*time.Hour, func(Outcome) bool { return w.in.InForce.NextControllerReplicas == 16 })
	w.changed()
	w.step(time.Minute)
	w.in.Workload.UpdatedReplicas = 3
	w.until(t, "the plan holds what came", time.Hour, func(Outcome) bool { return w.in.InForce.ControllerReplicas == 16 })
}

func carries(w *liveWorld, replica int) bool {
	for _, s := range w.in.Discovered.Secrets {
		if s.Shard.N == replica {
			return true
		}
	}
	return false
}

// TestTheChangeIsUndone: the webhook keeps the env in what is written back (TestTheEnvJoinsWhateverChangesThePodTemplate), so that the
// pods of the older template get it; where the webhook was away and the older env came back, the plan waits for the next change.
func TestTheChangeIsUndone(t *testing.T) {
	for name, undo := range map[string]func(*liveWorld){
		"with the env":    func(w *liveWorld) { w.in.Workload.UpdatedReplicas = 0 },
		"without the env": func(w *liveWorld) { w.in.Workload.UpdatedReplicas, w.in.Workload.EnvReplicas = 0, new("3") },
	} {
		t.Run(name, func(t *testing.T) {
			w := awaiting(t, skewed(12)...)
			w.changed()
			w.step(time.Minute)
			w.in.Workload.UpdatedReplicas = 2
			w.step(time.Minute)
			undo(w)
			for range 10 {
				w.step(time.Minute)
				if p := w.in.InForce; p.ControllerReplicas != 3 || p.NextControllerReplicas != 16 || len(w.waves) > 0 {
					t.Fatalf("while pods go back the plan is %+v, waves %v", p, w.waves)
				}
			}
			w.in.Workload.UpdatedReplicas = 3
			w.step(time.Minute)
			envs := []int{3, 16}
			if name == "without the env" {
				if p := w.in.InForce; p.ControllerReplicas != 3 || p.NextControllerReplicas != 16 {
					t.Fatalf("the plan is %+v", p)
				}
				w.changed()
				w.step(time.Minute)
				w.in.Workload.UpdatedReplicas = 3
				envs = []int{3, 16, 3, 16}
			}
			w.until(t, "the plan holds what came", time.Hour, func(Outcome) bool { return w.in.InForce.ControllerReplicas == 16 })
			if diff := cmp.Diff(envs, w.envs); diff != "" {
				t.Errorf("the env over time (-want +got):\n%s", diff)
			}
		})
	}
}
