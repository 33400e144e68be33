package loads

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/poll"
)

// By the recording rule the default set is other text and the same measure: an installation that takes it keeps its
func TestTheRecordedSetIsTheSameMeasure(t *testing.T) {
	plain, recorded := config.Default(), config.Default()
	recorded.Poll.Prometheus.Recorded = true
	if unitOf(plain, nil) != unitOf(recorded, nil) {
		t.Error("loads by the recording rule are of another unit")
	}
	ids := func(c config.PlannerConfig) (ids []string) {
		for _, m := range MetricsOf(c) {
			ids = append(ids, m.ID)
		}
		return ids
	}
	if diff := cmp.Diff(ids(plain), ids(recorded)); diff != "" {
		t.Errorf("(-plain +recorded):\n%s", diff)
	}
	if diff := cmp.Diff(poll.RecordedMetrics(), MetricsOf(recorded)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	recorded.Poll.Prometheus.Metrics = []config.Metric{{ID: "own", Query: "own"}} // as a replay of its configuration has
	if got := ids(recorded); len(got) != 1 || got[0] != "own" {
		t.Errorf("its own metrics are %v", got)
	}
}
