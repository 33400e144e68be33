package repair

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/sim"
)

// TestRepairsHoldNoReplicaForSecretsThatWent: what came and went before it was one of the fleet's is missed by nobody, however
// many rows it left. A leader that knows no fleet yet misses all of it.
func TestRepairsHoldNoReplicaForSecretsThatWent(t *testing.T) {
	fleet := []string{"a", "b", "c", "d"}
	shrinks := []diff.Step{diff.PatchWorkload{Replicas: ptr.To(2), Why: diff.Rolling}}
	blind := []diff.Held{{Reason: diff.HeldUnseen}}
	for name, test := range map[string]struct {
		gone, known []string
		accepted    *int
		want        diff.Result
	}{
		"all are there":                        {known: fleet, want: diff.Result{Steps: shrinks}},
		"others came and went":                 {gone: []string{"v", "w", "x", "y", "z"}, known: fleet, want: diff.Result{Steps: shrinks}},
		"most of the known went":               {gone: []string{"v", "w", "x", "y", "z"}, known: append([]string{"v", "w", "x", "y", "z"}, fleet...), want: diff.Result{Held: blind}},
		"so they did, and a person says it":    {gone: []string{"v", "w", "x", "y", "z"}, known: append([]string{"v", "w", "x", "y", "z"}, fleet...), accepted: ptr.To(4), want: diff.Result{Steps: shrinks}},
		"the leader has run no cycle":          {gone: []string{"v", "w", "x", "y", "z"}, want: diff.Result{Held: blind}},
		"what is known is there, and half new": {gone: []string{"y", "z"}, known: []string{"a", "b"}, want: diff.Result{Steps: shrinks}},
	} {
		t.Run(name, func(t *testing.T) {
			w := sim.Workload()
			w.Replicas, w.EnvReplicas = 3, ptr.To("16")
			p := plan.Plan{Mode: plan.Enforce, Target: standing.TargetOf(w), Replicas: 2, ControllerReplicas: 16, MaxReplicas: 16, Clusters: map[string]plan.Row{}}
			p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Shrinking, Since: sim.Epoch, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 2, ControllerReplicas: 16}
			in := discover.Input{Namespace: "argocd"}
			for _, name := range fleet {
				s := sim.Secret(name)
				s.Shard = discover.ShardValue{State: discover.ShardValid}
				in.Secrets = append(in.Secrets, s)
				p.Clusters[name] = plan.Row{}
			}
			for _, name := range test.gone {
				p.Clusters[name] = plan.Row{}
			}
			clock := clocktesting.NewFakeClock(sim.Epoch.Add(time.Minute))
			r := New(&wiring.Options{Clock: clock, Config: func() config.PlannerConfig { return sim.Config() }, Applier: apply.New(apply.Options{Clock: clock})}, nil, nil, nil, nil, nil)
			r.shown.known.Clusters = slices.Sorted(slices.Values(test.known))
			got := r.due(configmap.Document{Plan: &p, AcceptDiscovery: test.accepted}, standing.Fleet(input.Inputs{Discovered: in, Now: sim.Epoch}), w)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
