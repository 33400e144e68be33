package uninstall

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestWhatBecomesOfSizesIsSaid: pods keep what they have, and what a restart changes is told.
func TestWhatBecomesOfSizesIsSaid(t *testing.T) {
	memory := func(request, limit string) plan.Resources {
		return plan.Resources{Requests: map[string]string{"memory": request}, Limits: map[string]string{"memory": limit}}
	}
	template := plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}
	w := discover.Workload{Kind: plan.StatefulSet, Name: "c", Replicas: 3, Resources: &template}
	own := &plan.Sizes{Default: memory("1Gi", "2Gi"), Replicas: map[int]plan.Resources{1: memory("3Gi", "6Gi")}}
	held := memory("3Gi", "6Gi")
	for name, test := range map[string]struct {
		plan *plan.Plan
		want string
	}{
		"no plan":              {nil, ""},
		"a plan without sizes": {&plan.Plan{Mode: plan.Enforce}, ""},
		"one that only looks":  {&plan.Plan{Mode: plan.Observe, Sizes: own}, ""},
		"as the template":      {&plan.Plan{Mode: plan.Enforce, Sizes: &plan.Sizes{Default: memory("1Gi", "2Gi")}}, ""},
		"in the template":      {&plan.Plan{Mode: plan.Enforce, Resources: &held}, "the pod template of StatefulSet c keeps the size that ballast gave it: requests.memory 3Gi, limits.memory 6Gi"},
		"one of its own":       {&plan.Plan{Mode: plan.Enforce, Sizes: own}, "pods keep the sizes that they have, and one that is made anew has the pod template's: c-1 gets requests.memory 1Gi, limits.memory 2Gi instead of requests.memory 3Gi, limits.memory 6Gi"},
		"a Deployment has one": {&plan.Plan{Mode: plan.Enforce, Target: plan.Target{Kind: plan.Deployment}, Sizes: &plan.Sizes{Default: held}}, "pods keep the sizes that they have, and one that is made anew has the pod template's: each pod gets requests.memory 1Gi, limits.memory 2Gi instead of requests.memory 3Gi, limits.memory 6Gi"},
		"without a template's": {&plan.Plan{Mode: plan.Enforce, Sizes: &plan.Sizes{Replicas: map[int]plan.Resources{2: {Limits: map[string]string{"cpu": "2"}}}}}, "pods keep the sizes that they have, and one that is made anew has the pod template's: c-2 gets nothing instead of limits.cpu 2"},
	} {
		if diff := cmp.Diff(test.want, sizesLeft(test.plan, w)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
