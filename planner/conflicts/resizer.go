package conflicts

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// VPA is what VerticalPodAutoscalers are called in findings.
const VPA = "VPA"

// Resizers finds the VPAs that change the size of the workload's pods, by name. One that only recommends is none.
func Resizers(p plan.Plan, list []inputs.VPA) (found []Finding) {
	list = slices.SortedFunc(slices.Values(list), func(a, b inputs.VPA) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	for _, v := range list {
		running, fresh := v.Resizes(p.Target.Container)
		if !v.Over(p.Target) || !fresh {
			continue
		}
		does := "evicts or resizes pods"
		if !running {
			does = "gives new pods another size"
		}
		held := ""
		if p.Sizes != nil || p.Resources != nil {
			held = ", and ballast holds their size"
		}
		subject := VPA + " " + v.Metadata.Namespace + "/" + v.Metadata.Name
		found = append(found, Finding{Kind: Resized, Subject: subject, Message: fmt.Sprintf(
			"%s %s of %s %s (updateMode %s)%s: set its updatePolicy.updateMode to Off; "+
				"size rules may read what it recommends (input vpaTargetMemory)",
			subject, does, p.Target.Kind, p.Target.Name, v.Mode(), held)})
	}
	return found
}

// Operated finds the operator's resource among the owners of a workload whose number of replicas or whose template
// ballast holds.
func Operated(p plan.Plan, owners []metav1.OwnerReference) (found []Finding) {
	for _, o := range owners {
		if o.Kind != "ArgoCD" {
			continue
		}
		subject := o.Kind + " " + p.Target.Namespace + "/" + o.Name
		if !p.FreeReplicas {
			found = append(found, Finding{Kind: Autoscaled, Subject: subject, Message: fmt.Sprintf(
				"%s writes the replicas of %s %s, too, and ballast holds them at %d: its writes are made to agree while a webhook answers; "+
					"set its spec.controller.sharding to {enabled: true, replicas: %[4]d}, or partition.replicas: workload so that it decides their number",
				subject, p.Target.Kind, p.Target.Name, p.Replicas)})
		}
		if p.Resources == nil {
			continue
		}
		found = append(found, Finding{Kind: Resized, Subject: subject, Message: fmt.Sprintf(
			"%s writes the resources of %s %s, too, and ballast holds them: leave them out of its spec.controller.resources, "+
				"or set size.apply: inPlace, which leaves the pod template alone", subject, p.Target.Kind,
			p.Target.Name)})
	}
	return found
}
