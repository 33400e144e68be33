package apply

import (
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func ptr(n int) *int { return &n }

// oneRow is a plan of one cluster on two replicas.
func oneRow(cluster string, replica int) plan.Plan {
	return plan.Plan{
		Revision: 1, Mode: plan.Enforce, MaxReplicas: 16, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"},
		Replicas: 2, ControllerReplicas: 16, Clusters: map[string]plan.Row{cluster: {Replica: replica, Server: plan.ServerHash("https://" + cluster)}},
	}
}

// standing is two ready replicas and a cluster whose Secret carries that shard; nobody was asked who owns it.
func standing(cluster string, shard int) observed.State {
	seen := observed.State{
		Workload: &observed.Workload{Replicas: 2, Ready: 2, Updated: 2, Current: 2, ObservedCurrent: true, ControllerReplicas: ptr(16)},
		Secrets:  []observed.Secret{{Name: cluster, Shard: shard, Valid: true, Server: "https://" + cluster}},
	}
	for i := range 2 {
		seen.Pods = append(seen.Pods, observed.Pod{Replica: i, Ready: true, Claimed: true, Memory: 100 << 20, MemoryLimit: 1 << 30})
	}
	return seen
}
