package decision

import (
	"strconv"

	"ballast/planner/plan"
	"ballast/webhook/objects"
)

// joins reports whether a write takes the env along that the plan waits for: it changes the pod template, so that pods
// restart for it as it is, or the env came with an earlier one. What the plan puts back anyway is no change: env and,
// where it holds them, resources.
func joins(p plan.Plan, object, old objects.Workload) bool {
	if p.NextControllerReplicas == 0 || old.Overfull {
		return false
	}
	if at := objects.FindController(old.Containers, p.Target.Container); at >= 0 {
		if env := old.Containers[at].Env; len(env) > 0 && !env[len(env)-1].Reference {
			if n, err := strconv.Atoi(env[len(env)-1].Value); err == nil && p.Awaits(n) {
				return true
			}
		}
	}
	return !objects.SameTemplate(object, old, p.Resources != nil)
}
