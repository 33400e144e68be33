package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/size"
)

// TestSizesHaveTheirInputWhatIsComputedAndWhatIsInForce, under names of their own, and nothing of the cycle before.
func TestSizesHaveTheirInputWhatIsComputedAndWhatIsInForce(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	look := func(s *resize.Sizing) map[string]map[string]float64 {
		m.ObserveOutcome(input.Inputs{Now: sim.Epoch}, cycle.Outcome{Sizing: s}, sim.Epoch)
		all := map[string]map[string]float64{}
		for _, name := range []string{"rule_input", "rule_computed", "rule_decided", "in_force", "blocked"} {
			all[name] = series(t, r, "ballast_size_"+name)
		}
		return all
	}
	got := look(&resize.Sizing{
		Rules: []resize.SizeRow{
			{Rule: "requests/memory/apps", Replica: 1, Input: 20, Known: true, Computed: "2Gi", Value: "1Gi", Held: size.HeldDelayUp},
			{Rule: "requests/cpu", Replica: size.All, Input: 3, Known: true, Computed: "250m", Value: "250m"},
			{Rule: "limits/memory", Replica: 1, Input: 7},
		},
		Replicas: []resize.ReplicaSize{{Replica: 1, Wanted: plan.Resources{Requests: map[string]string{"memory": "3Gi"}},
			InForce: plan.Resources{Requests: map[string]string{"memory": "512Mi", "cpu": "1500m"}, Limits: map[string]string{"memory": "1Gi"}}}},
		Blocked: []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Up, Reason: change.RateLimit}},
	})
	want := map[string]map[string]float64{
		"rule_input":    {"1/requests/memory/apps": 20, "all/requests/cpu": 3},
		"rule_computed": {"1/requests/memory/apps": 2 << 30, "all/requests/cpu": 0.25},
		"rule_decided":  {"1/requests/memory/apps": 1 << 30, "all/requests/cpu": 0.25},
		"in_force":      {"requests/1/memory": 512 << 20, "requests/1/cpu": 1.5, "limits/1/memory": 1 << 30},
		"blocked":       {"up/RateLimit": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, left := range look(nil) {
		if len(left) > 0 {
			t.Errorf("without sizes %s has %v", name, left)
		}
	}
}
