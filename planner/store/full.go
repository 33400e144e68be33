package store

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// besideThePlan are the annotations that only the planner writes; whatever else is of ballast's group is people's.
func besideThePlan() []string {
	return []string{plan.AnnotationRevision, plan.AnnotationDecidedAt, plan.AnnotationDecidedBy, plan.AnnotationReason,
		plan.AnnotationStage, plan.AnnotationDigest, plan.AnnotationMAC}
}

// roomiest names what is not ballast's and takes the most room, with the mend.
func roomiest(cm *corev1.ConfigMap) string {
	type part struct {
		name string
		size int
	}
	var parts []part
	for key, value := range cm.Data {
		if key != plan.KeyPlan && key != keySavedAt {
			parts = append(parts, part{"data." + key, len(value)})
		}
	}
	for key, value := range cm.Annotations {
		if !slices.Contains(besideThePlan(), key) {
			parts = append(parts, part{"annotation " + key, len(value)})
		}
	}
	if len(parts) == 0 {
		return "the plan alone is too large"
	}
	most := slices.MaxFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(b.name, a.name)) })
	return fmt.Sprintf("%s takes %d KiB of it: delete that", most.name, (most.size+1023)>>10)
}
