package decision

import (
	"fmt"

	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// Pod answers the creation of a pod of the application-controller's workload: its controller's container gets the
// size that the plan has for its replica. What stands in the pod template is the size of whatever the plan does not
// name.
func Pod(s *inforce.State, r Request, object objects.Pod) Verdict {
	v := Verdict{Revision: s.Revision()}
	why, enforcing := s.Enforcing()
	if !enforcing {
		v.Reason = why
		return v
	}
	p := s.View.Plan
	if !r.Create || object.Unmanaged || p.Unmanaged || !object.Belongs(p.Target, r.Namespace) {
		v.Reason = plan.Unmanaged
		return v
	}
	ordinal, _ := object.Ordinal(p.Target)
	size, held := p.SizeOf(ordinal)
	if !held {
		v.Reason = s.Enforced(plan.InPlan)
		return v
	}
	at := objects.FindController(object.Containers, p.Target.Container)
	if object.Overfull || at < 0 {
		v.Reason = plan.Unmanaged
		v.warn(fmt.Sprintf("ballast: no container is found that runs %s, so the pod keeps its template's size",
			podspec.ControllerCommand))
		return v
	}
	v.holdSize(s, object, at, size)
	return v
}

// holdSize gives the container the plan's size, unless Kubernetes would refuse the pod then, or any later size of it.
func (v *Verdict) holdSize(s *inforce.State, object objects.Pod, at int, size plan.Resources) {
	c, want := object.Containers[at], inforce.Held(&size)
	for _, h := range want {
		v.Requested = append(v.Requested, Field{h.Section + "." + h.Name,
			printableQuantity(c.Section(h.Section)[h.Name])})
	}
	if why := object.Size(at).Misfit(size); why != "" {
		v.Reason = plan.Immutable
		v.warn(fmt.Sprintf("ballast: the pod keeps its template's size (plan %d): %s", v.Revision, why))
		return
	}
	v.holdResources(c, fmt.Sprintf("/spec/containers/%d/resources", at), want)
	v.Reason = s.Enforced(plan.InPlan)
	if len(v.Patches) > 0 {
		v.Reason = s.Enforced(plan.Restored)
	}
}
