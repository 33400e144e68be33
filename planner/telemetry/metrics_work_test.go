package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// shows compares the samples of metrics, without their comments.
func shows(t *testing.T, r prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var heads strings.Builder
	for _, f := range families {
		for _, name := range names {
			if f.GetName() == name && len(f.GetMetric()) > 0 {
				heads.WriteString("# HELP " + name + " " + f.GetHelp() + "\n# TYPE " + name + " " + strings.ToLower(f.GetType().String()) + "\n")
			}
		}
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(heads.String()+want), names...); err != nil {
		t.Error(err)
	}
}

// fleetOfThree has the loads 0.5, 2 and 0.25, the first two on replica 1; the last has none.
func fleetOfThree() cycle.Outcome {
	of := func(id string) plan.Shard {
		return plan.Shard{ID: id, Name: "the cluster " + id, Server: "https://" + id}
	}
	out := cycle.Outcome{Loads: []plan.Load{plan.LoadOf("0.5"), plan.LoadOf("2"), plan.LoadOf("0.25")}}
	for _, id := range []string{"a", "b", "c"} {
		out.Fleet.Clusters = append(out.Fleet.Clusters, discover.Cluster{Shard: of(id)})
	}
	out.Now = []plan.Replica{{ID: 0}, {ID: 1, LoadIndexes: []plan.LoadIndex{{Shard: of("a")}, {Shard: of("b")}}}}
	out.Table = measure.Table{Shards: []plan.Shard{of("a"), of("b"), of("c")}, Columns: []measure.Column{
		{ID: "apps", Values: []float64{5, 20, 2}}, {ID: "objects", Values: []float64{50, 200, 20}}}}
	return out
}

// TestClustersAreShownWhereThatIsAskedFor, no more of them than asked for, and the heaviest.
func TestClustersAreShownWhereThatIsAskedFor(t *testing.T) {
	names := []string{"ballast_cluster_load_ratio", "ballast_cluster_metric_value", "ballast_cluster_replica", "ballast_cluster_left_out"}
	two := `ballast_cluster_left_out 1
ballast_cluster_load_ratio{cluster="a"} 0.5
ballast_cluster_load_ratio{cluster="b"} 2
ballast_cluster_metric_value{cluster="a",metric="apps"} 5
ballast_cluster_metric_value{cluster="a",metric="objects"} 50
ballast_cluster_metric_value{cluster="b",metric="apps"} 20
ballast_cluster_metric_value{cluster="b",metric="objects"} 200
ballast_cluster_replica{cluster="a"} 1
ballast_cluster_replica{cluster="b"} 1
`
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	for _, look := range []struct {
		most  int
		loads bool
		want  string
	}{
		{0, true, "ballast_cluster_left_out 0\n"},
		{2, true, two},
		{5, true, strings.Replace(two, "left_out 1", "left_out 0", 1) + `ballast_cluster_load_ratio{cluster="c"} 0.25
ballast_cluster_metric_value{cluster="c",metric="apps"} 2
ballast_cluster_metric_value{cluster="c",metric="objects"} 20
`},
		{1, false, `ballast_cluster_left_out 2
ballast_cluster_metric_value{cluster="a",metric="apps"} 5
ballast_cluster_metric_value{cluster="a",metric="objects"} 50
ballast_cluster_replica{cluster="a"} 1
`},
		{0, true, "ballast_cluster_left_out 0\n"}, // and nothing stays of what was shown
	} {
		in, out := input.Inputs{}, fleetOfThree()
		in.Config.Telemetry.Clusters = look.most
		if !look.loads {
			out.Loads = nil
		}
		m.ObserveOutcome(in, out, time.Unix(1_700_000_100, 0))
		shows(t, r, look.want, names...)
	}
}

// TestWhatIsPutBackIsCountedByItsReason: what a rollout, a pin or a size asks for is no drift.
func TestWhatIsPutBackIsCountedByItsReason(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	for _, why := range []diff.Why{diff.Unstamped, diff.Broken, diff.Drifted, diff.Drifted, diff.Moved, diff.Pinned} {
		m.ObservePutBack(diff.PatchShard{Secret: "a", Why: why})
	}
	for _, why := range []diff.Why{diff.Stopped, diff.Rolling, diff.Drifted} {
		m.ObservePutBack(diff.PatchWorkload{Why: why})
	}
	m.ObservePutBack(diff.PatchPod{Why: diff.Sized})
	m.ObservePutBack(diff.Nudge{})
	shows(t, r, `ballast_planner_drift_put_back_total{reason="Broken",step="shard"} 1
ballast_planner_drift_put_back_total{reason="Drifted",step="shard"} 2
ballast_planner_drift_put_back_total{reason="Drifted",step="workload"} 1
ballast_planner_drift_put_back_total{reason="Stopped",step="workload"} 1
ballast_planner_drift_put_back_total{reason="Unstamped",step="shard"} 1
`, "ballast_planner_drift_put_back_total")
}

// TestErrorsAreCountedByPhase: every phase is there from the start.
func TestErrorsAreCountedByPhase(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	m.ObservePhaseError(PhaseFetch)
	m.ObservePhaseError(PhaseApply)
	m.ObservePhaseError(PhaseApply)
	shows(t, r, `ballast_planner_phase_errors_total{phase="apply"} 2
ballast_planner_phase_errors_total{phase="decide"} 0
ballast_planner_phase_errors_total{phase="fetch"} 1
ballast_planner_phase_errors_total{phase="gather"} 0
ballast_planner_phase_errors_total{phase="observe"} 0
ballast_planner_phase_errors_total{phase="store"} 0
ballast_planner_phase_errors_total{phase="takeOver"} 0
`, "ballast_planner_phase_errors_total")
}

// TestThePlansAgeIsAbsentWhereNobodyKnowsIt: an annotation that somebody spoiled shows no date of 1970.
func TestThePlansAgeIsAbsentWhereNobodyKnowsIt(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	const name = "ballast_planner_plan_decided_timestamp_seconds"
	shows(t, r, "", name)
	m.ObserveDecided(time.Unix(1_700_000_100, 0))
	shows(t, r, name+" 1.7000001e+09\n", name)
	m.ObserveDecided(time.Time{})
	shows(t, r, "", name)
}
