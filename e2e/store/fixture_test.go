package store_test

import (
	"time"

	"ballast/planner/plan"
)

var at = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func newPlan(clusters ...string) plan.Plan {
	p := plan.Plan{
		Revision: 1, Mode: plan.Enforce, Replicas: 2, ControllerReplicas: 2, MaxReplicas: 16, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"},
		Clusters: map[string]plan.Row{},
	}
	for i, name := range clusters {
		p.Clusters[name] = plan.Row{Replica: i % 2, Load: "0.5"}
	}
	return p
}
