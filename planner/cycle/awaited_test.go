package cycle

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// waiting is a live world whose one restart is left to people, with every owner written.
func awaiting(t *testing.T, loads ...float64) *liveWorld {
	t.Helper()
	w := newLiveWorld(loads...)
	w.in.Config.Rollout.Live.Adopt = config.AdoptWithNext
	w.until(t, "the plan waits for a change of the template", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.NextControllerReplicas == 16 })
	return w
}

// changed is what the webhook makes of somebody's change of the pod template: it takes the env along, and no pod has it yet.
func (w *liveWorld) changed() {
	env := strconv.Itoa(w.in.InForce.NextControllerReplicas)
	w.in.Workload.EnvReplicas = &env
	w.in.Workload.UpdatedReplicas = 0
}

// TestTheOneRestartWaitsForSomebody: nothing that needs the env begins before it is there, and what balances begins after that.
func TestTheOneRestartWaitsForSomebody(t *testing.T) {
	w := awaiting(t, skewed(12)...)
	for range 3 * 60 {
		out := w.step(time.Minute)
		if p := w.in.InForce; p.Rollout != nil || p.ControllerReplicas != 3 || p.NextControllerReplicas != 16 || len(w.waves) > 0 {
			t.Fatalf("while it waits the plan is %+v, waves %v", p, w.waves)
		}
		if !slices.Contains(problems(out), "rollout/RestartWaits/") {
			t.Fatalf("nobody is told: %v", problems(out))
		}
	}
	if out := w.last; out.Candidate == nil || !strings.Contains(out.Candidate.Verdict, gate.RestartWaits) {
		t.Errorf("the candidate says %+v", out.Candidate)
	}
	w.changed()
	for range 30 { // pods that somebody's change replaces
		w.step(time.Minute)
		if p := w.in.InForce; p.Rollout != nil || p.ControllerReplicas != 3 || p.NextControllerReplicas != 16 {
			t.Fatalf("while pods are replaced the plan is %+v", p)
		}
	}
	w.in.Workload.UpdatedReplicas = 3
	out := w.step(time.Minute)
	if p := w.in.InForce; p.ControllerReplicas != 16 || p.NextControllerReplicas != 0 {
		t.Fatalf("once every pod has it the plan is %+v", p)
	}
	if !strings.Contains(out.Reason, "ARGOCD_CONTROLLER_REPLICAS is 16, as it came with a change of the pod template") {
		t.Errorf("the reason is %q", out.Reason)
	}
	w.until(t, "what is uneven is levelled out", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 0 })
	if diff := cmp.Diff([]int{3, 16}, w.envs); diff != "" {
		t.Errorf("the env over time (-want +got):\n%s", diff)
	}
	if slices.Contains(problems(w.last), "rollout/RestartWaits/") {
		t.Errorf("people are told that it waits: %v", problems(w.last))
	}
}

// TestAFailoverDoesNotWaitForTheOneRestart, and leaves the env as it is.
func TestAFailoverDoesNotWaitForTheOneRestart(t *testing.T) {
	w := awaiting(t, skewed(12)...)
	w.down[1] = true
	w.until(t, "nothing is on replica 1", 3*time.Hour, func(outcome.Outcome) bool {
		return w.in.InForce.Rollout == nil && !slices.ContainsFunc(w.in.Discovered.Secrets, func(s discover.Secret) bool { return s.Shard.N == 1 })
	})
	if diff := cmp.Diff([]int{3}, w.envs); diff != "" {
		t.Errorf("the env over time (-want +got):\n%s", diff)
	}
	w.down[1] = false
	w.until(t, "the plan waits on", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.NextControllerReplicas == 16 })
}

// TestAnEnvThatCameIsNeverTakenBack, whatever the configuration says from then on: that would restart every pod once more.
func TestAnEnvThatCameIsNeverTakenBack(t *testing.T) {
	for name, change := range map[string]func(*config.PlannerConfig){
		"by Now":            func(c *config.PlannerConfig) { c.Rollout.Live.Adopt = config.AdoptNow },
		"by mode Hold":      func(c *config.PlannerConfig) { c.Mode = plan.Hold },
		"by x0y":            func(c *config.PlannerConfig) { c.Rollout.Live, c.Rollout.X0Y = nil, &config.X0YRollout{} },
		"by maxReplicas":    func(c *config.PlannerConfig) { n := 20; c.Partition.MaxReplicas = &n },
		"by nothing at all": func(*config.PlannerConfig) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := awaiting(t, 1, 1, 1)
			w.changed()
			w.step(time.Minute)
			change(&w.in.Config)
			w.step(time.Minute)
			w.in.Workload.UpdatedReplicas = 3
			for range 5 {
				w.step(time.Minute)
				if env := standing.ControllerReplicas(w.in.Workload); env < 16 {
					t.Fatalf("the env is %d again", env)
				}
			}
		})
	}
}

// TestAnEnvBelowTheReplicasWaitsForNobody: it gives clusters several owners.
func TestAnEnvBelowTheReplicasWaitsForNobody(t *testing.T) {
	w := newLiveWorld(1, 2, 3)
	w.in.Config.Rollout.Live.Adopt = config.AdoptWithNext
	w.in.Workload.EnvReplicas = nil
	w.until(t, "the env is 16", time.Hour, func(outcome.Outcome) bool { return standing.ControllerReplicas(w.in.Workload) == 16 })
	if p := w.in.InForce; p.NextControllerReplicas != 0 {
		t.Errorf("the plan is %+v", p)
	}
}

// TestNothingIsPromisedBeforeItCouldBegin: without every owner written the webhook is told of no other env.
func TestNothingIsPromisedBeforeItCouldBegin(t *testing.T) {
	w := newLiveWorld(1, 2, 3)
	w.in.Config.Rollout.Live.Adopt = config.AdoptWithNext
	w.refuses = map[string]bool{"c001": true}
	for range 10 {
		w.step(time.Minute)
		if p := w.in.InForce; p.NextControllerReplicas != 0 {
			t.Fatalf("the plan is %+v", p)
		}
	}
	w.refuses = nil
	w.until(t, "it is promised then", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.NextControllerReplicas == 16 })
	w.in.Config.Rollout.Live.Adopt = config.AdoptNow
	w.until(t, "and done by Now", time.Hour, func(outcome.Outcome) bool {
		return standing.ControllerReplicas(w.in.Workload) == 16 && w.in.InForce.Rollout == nil
	})
}
