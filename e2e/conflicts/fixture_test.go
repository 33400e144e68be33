package conflicts_test

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/conflicts"
	"ballast/planner/plan"
)

const (
	controller = "argocd-application-controller"
	leaseName  = "ballast-" + controller
)

var (
	first  = conflicts.Owner{Plan: "argocd/ballast-plan", PlannerUser: "system:serviceaccount:argocd:ballast-planner", Identity: "planner-0"}
	second = conflicts.Owner{Plan: "argocd/other-plan", PlannerUser: "system:serviceaccount:argocd:ballast-planner", Identity: "planner-9"}
)

// unclaimed is a Lease of a second that nobody's plan is noted in.
func unclaimed(holder string, written time.Time) *coordinationv1.Lease {
	lasts := int32(1)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts,
		AcquireTime: &metav1.MicroTime{Time: written}, RenewTime: &metav1.MicroTime{Time: written}}}
}

func planOf(replicas int) plan.Plan {
	return plan.Plan{Replicas: replicas, Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: controller}}
}

func podLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": controller, "app.kubernetes.io/part-of": "argocd"}
}
