package decision

import (
	"fmt"
	"strconv"
	"time"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// Scale answers a write to the workload's scale subresource (kubectl scale, HPA, KEDA), which a rule on the
// workload itself never sees. A Scale has no annotations: that its workload opted out is known from the plan only,
// within a cycle of the planner.
func Scale(s *inforce.State, r Request, object objects.Scale) Verdict {
	v := Verdict{Revision: s.Revision(), Requested: []Field{{fieldReplicas, strconv.Itoa(object.Replicas)}}}
	why, enforcing := s.Enforcing()
	if !enforcing {
		v.Reason = why
		return v
	}
	if !targets(s, r) || s.View.Plan.Unmanaged {
		v.Reason = plan.Unmanaged
		return v
	}
	want := s.View.Plan.Replicas
	v.Reason = s.Enforced(plan.InPlan)
	if s.View.Plan.FreeReplicas {
		return v // the number is people's, or an autoscaler's
	}
	if s.StopLapsed(r.At) {
		v.Reason = plan.StalePlan
		v.warnLapsed(s, object.Replicas)
		return v
	}
	v.Enforced = []Field{{fieldReplicas, strconv.Itoa(want)}}
	if object.Replicas == want {
		return v
	}
	v.Reason = s.Enforced(plan.Restored)
	switch {
	case !object.HasSpec:
		v.Patches = []Op{{"add", "/spec", map[string]int{fieldReplicas: want}}}
	case !object.HasReplicas:
		v.Patches = []Op{{"add", "/spec/replicas", want}}
	default:
		v.Patches = []Op{{"replace", "/spec/replicas", want}}
	}
	v.warnReplicas(strconv.Itoa(object.Replicas), want)
	return v
}

// fieldReplicas is spec.replicas in the audit annotations, and its key.
const fieldReplicas = "replicas"

// targets reports whether a request is for the plan's workload.
func targets(s *inforce.State, r Request) bool {
	t := s.View.Plan.Target
	return r.Kind == t.Kind && r.Name == t.Name && r.Namespace == t.Namespace
}

// warnLapsed says why replicas pass that the plan does not have, and how many there were: more than the env says would
// make a second replica 0.
func (v *Verdict) warnLapsed(s *inforce.State, asked int) {
	if asked == 0 {
		return
	}
	said := fmt.Sprintf("ballast: %d replicas pass: plan %d has stopped all since %s, too long", asked, v.Revision,
		s.Stopped.UTC().Format(time.RFC3339))
	if r := s.View.Plan.Rollout; r != nil {
		v.warn(fmt.Sprintf("%s; there were %d", said, r.From.Replicas), said)
		return
	}
	v.warn(said)
}

func (v *Verdict) warnReplicas(asked string, want int) {
	v.warn(fmt.Sprintf("ballast: %s replicas were asked, %d stay (plan %d); to fix a number, set partition.replicas in ballast-config", asked, want, v.Revision),
		fmt.Sprintf("ballast: %s replicas were asked, %d stay (plan %d)", asked, want, v.Revision))
}
