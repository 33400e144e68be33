package rollout_test

import (
	"testing"
	"time"

	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// TestPodsThatAreSeenAreNotStopped, whatever the workload's status says: anybody who may write it can say 0, and a Deployment's leaves
// out pods that are ending.
func TestPodsThatAreSeenAreNotStopped(t *testing.T) {
	for _, kind := range []string{plan.StatefulSet, plan.Deployment} {
		for pods, want := range map[int]plan.Stage{2: plan.Draining, 0: plan.Assigning} {
			p := fixture.Plan(0, 2, fixture.Old)
			p.Target.Kind = kind
			p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: fixture.Start, From: plan.Count{Replicas: 2, ControllerReplicas: 2},
				Replicas: 3, ControllerReplicas: 3, Moves: map[string]int{"b": 2}}
			seen := fixture.None(0, 2, fixture.Old) // the status: no pod
			seen.Pods = fixture.Fit(pods, 2, fixture.Old).Pods
			options := basis.Options{StageTimeout: 10 * time.Minute}
			next, _ := rollout.Advance(plan.NewView(p, nil), seen, nil, options, fixture.Start.Add(time.Second))
			if got := next.Rollout.Stage; got != want {
				t.Errorf("%s, %d pods are seen: the stage is %s, want %s", kind, pods, got, want)
			}
			if pods == 0 {
				continue
			}
			next, progress := rollout.Advance(plan.NewView(p, nil), seen, nil, options, fixture.Start.Add(time.Hour))
			if next.Rollout.Stage != plan.Reverting || next.Clusters["b"].Replica != p.Clusters["b"].Replica {
				t.Errorf("%s, pods that never end: the stage is %s, and b on %d (%s)", kind, next.Rollout.Stage, next.Clusters["b"].Replica, progress.Why)
			}
			p.Rollout.Stage, p.Rollout.Was = plan.Assigning, map[string]int{"b": 1}
			if next, progress = rollout.Advance(plan.NewView(p, nil), seen, nil, options, fixture.Start.Add(time.Second)); next.Rollout.Stage != plan.Assigning || progress.Outcome != rollout.Waiting {
				t.Errorf("%s, pods that come while Secrets are written: %s, %s", kind, next.Rollout.Stage, progress.Outcome)
			}
		}
	}
}
