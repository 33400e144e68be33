package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// TestWhatRulesSeeComputeDecideAndHoldIsShownApart: each under its own name, and none of it once there are no policies.
func TestWhatRulesSeeComputeDecideAndHoldIsShownApart(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	s := &resize.Sizing{
		Rules: []resize.SizeRow{
			{Policy: "ours", Rule: "requests/memory/apps", Replica: 1, Input: 30, Known: true, Computed: "3000Mi", Value: "2000Mi"},
			{Policy: "shipped", Rule: "requests/cpu", Replica: size.All, Input: 0.5, Known: true, Computed: "500m", Value: "250m"},
			{Rule: "requests/cpu/unseen", Replica: 1, Computed: "7"},
		},
		Replicas: []resize.ReplicaSize{{Replica: 1, Wanted: plan.Resources{Requests: map[string]string{"memory": "2000Mi"}},
			InForce: plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}}},
		Blocked: []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Up, Reason: change.RateLimit}},
	}
	var names []string
	for _, name := range []string{"rule_input", "rule_computed", "rule_decided", "in_force", "blocked"} {
		names = append(names, "ballast_size_"+name)
	}
	m.ObserveOutcome(input.Inputs{}, cycle.Outcome{Sizing: s}, time.Unix(1_700_000_100, 0))
	const want = `# HELP ballast_size_blocked Changes of sizes that are wanted and do not happen now, by direction and reason.
# TYPE ballast_size_blocked gauge
ballast_size_blocked{direction="up",reason="RateLimit"} 1
# HELP ballast_size_in_force What the plan holds each replica's container at, in cores or bytes.
# TYPE ballast_size_in_force gauge
ballast_size_in_force{list="limits",replica="1",resource="memory"} 2.147483648e+09
ballast_size_in_force{list="requests",replica="1",resource="memory"} 1.073741824e+09
# HELP ballast_size_rule_computed What a rule computes of its input now, in cores or bytes.
# TYPE ballast_size_rule_computed gauge
ballast_size_rule_computed{policy="ours",replica="1",rule="requests/memory/apps"} 3.145728e+09
ballast_size_rule_computed{policy="shipped",replica="all",rule="requests/cpu"} 0.5
# HELP ballast_size_rule_decided What a rule decides after its delays and its smoothing, in cores or bytes.
# TYPE ballast_size_rule_decided gauge
ballast_size_rule_decided{policy="ours",replica="1",rule="requests/memory/apps"} 2.097152e+09
ballast_size_rule_decided{policy="shipped",replica="all",rule="requests/cpu"} 0.25
# HELP ballast_size_rule_input The input that a rule of size.policies has, by replica; all where it is one for all.
# TYPE ballast_size_rule_input gauge
ballast_size_rule_input{policy="ours",replica="1",rule="requests/memory/apps"} 30
ballast_size_rule_input{policy="shipped",replica="all",rule="requests/cpu"} 0.5
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	m.ObserveOutcome(input.Inputs{}, cycle.Outcome{}, time.Unix(1_700_000_160, 0))
	if err := testutil.GatherAndCompare(r, strings.NewReader(""), names...); err != nil {
		t.Errorf("without policies: %v", err)
	}
}
