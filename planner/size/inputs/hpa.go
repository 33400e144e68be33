package inputs

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// ScaledBy reports whether an HPA scales that workload.
func ScaledBy(h *autoscalingv2.HorizontalPodAutoscaler, t plan.Target) bool {
	ref := h.Spec.ScaleTargetRef
	apps := ref.APIVersion == "" || strings.HasPrefix(ref.APIVersion, appsv1.GroupName+"/")
	return apps && h.Namespace == t.Namespace && ref.Kind == t.Kind && ref.Name == t.Name
}

// Desires is how many replicas those HPAs that scale the workload want. Of several nobody can say which counts; one
// that cannot read its metrics wants what it wanted long ago.
func Desires(hpas []autoscalingv2.HorizontalPodAutoscaler, t plan.Target, now time.Time) *Desired {
	d := &Desired{At: now}
	var over []*autoscalingv2.HorizontalPodAutoscaler
	for i := range hpas {
		if ScaledBy(&hpas[i], t) {
			over = append(over, &hpas[i])
		}
	}
	switch len(over) {
	case 0:
		d.Why = fmt.Sprintf("no HorizontalPodAutoscaler scales %s %s", t.Kind, t.Name)
		return d
	case 1:
	default:
		d.Why = fmt.Sprintf("several HorizontalPodAutoscalers scale %s %s: keep one", t.Kind, t.Name)
		return d
	}
	d.Name, d.Replicas = over[0].Name, int(over[0].Status.DesiredReplicas)
	for _, c := range over[0].Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse {
			d.Why = fmt.Sprintf("HorizontalPodAutoscaler %s does not scale: %s", d.Name, c.Reason)
		}
	}
	if d.Why == "" && d.Replicas < 1 {
		d.Why = fmt.Sprintf("HorizontalPodAutoscaler %s has not said yet how many replicas it wants", d.Name)
	}
	return d
}
