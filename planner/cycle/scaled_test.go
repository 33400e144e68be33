package cycle

import (
	"slices"
	"strings"
	"testing"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
)

// An autoscaler's Deployment: pods of before and after a scaling own by different numbers, so nothing moves to a new one, and
// people are told what to do.
func TestNothingBeginsOnADeploymentThatAnAutoscalerScales(t *testing.T) {
	w := newLiveWorld(skewed(24)...)
	w.in.Workload.Kind, w.in.Workload.DynamicDistribution, w.in.Workload.EnvReplicas = plan.Deployment, true, nil
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.minutes(120)
	before := w.in.InForce.Clone()
	w.scaleTo(before.Replicas + 2)
	for range 120 {
		w.minutes(1)
		if r := w.in.InForce.Rollout; r != nil {
			t.Fatalf("%s began: %+v", r.Mode, r)
		}
	}
	for name, row := range before.Clusters {
		if now := w.in.InForce.Clusters[name]; now.Replica != row.Replica {
			t.Errorf("%s went from replica %d to %d", name, row.Replica, now.Replica)
		}
	}
	told := slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool {
		return p.Kind == "ScaledDeployment" && strings.Contains(p.Message, "set partition.replicas to a number")
	})
	if !told {
		t.Errorf("people are told %v", problems(w.last))
	}
}
