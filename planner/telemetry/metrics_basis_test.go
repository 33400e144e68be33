package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// TestWhatADecisionRestsOnIsShown: the oldest value of each metric, and what a replica may carry; both go when they are not known.
func TestWhatADecisionRestsOnIsShown(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	names := []string{"ballast_planner_replica_capacity_ratio", "ballast_planner_oldest_sample_timestamp_seconds"}
	m.ObserveOutcome(input.Inputs{}, cycle.Outcome{Line: &cycle.Line{Load: plan.LoadOf("1.5"), Configured: true}, Table: measure.Table{Columns: []measure.Column{
		{ID: "apps", SampledAt: []int64{1_700_000_060_000, 0, 1_700_000_000_500}}, {ID: "objects", SampledAt: []int64{0}}}}}, time.Unix(1_700_000_100, 0))
	const want = `# HELP ballast_planner_oldest_sample_timestamp_seconds When the oldest value in use of each metric was sampled, in Unix time; time() minus this is its age.
# TYPE ballast_planner_oldest_sample_timestamp_seconds gauge
ballast_planner_oldest_sample_timestamp_seconds{metric="apps"} 1.7000000005e+09
# HELP ballast_planner_replica_capacity_ratio The load that a replica may carry by partition.capacity (configured), or else is known to bear (known); absent while neither is.
# TYPE ballast_planner_replica_capacity_ratio gauge
ballast_planner_replica_capacity_ratio{of="configured"} 1.5
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	m.ObserveOutcome(input.Inputs{}, cycle.Outcome{Line: &cycle.Line{Load: plan.LoadOf("0.9")}}, time.Unix(1_700_000_160, 0))
	const later = `# HELP ballast_planner_replica_capacity_ratio The load that a replica may carry by partition.capacity (configured), or else is known to bear (known); absent while neither is.
# TYPE ballast_planner_replica_capacity_ratio gauge
ballast_planner_replica_capacity_ratio{of="known"} 0.9
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(later), names...); err != nil {
		t.Error(err)
	}
}
