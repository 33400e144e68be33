package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/sim"
	"ballast/planner/telemetry"
)

// answersNothing has no series of any metric, and no error.
type answersNothing struct{}

func (answersNothing) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) []poll.Fetched {
	fetched := make([]poll.Fetched, len(metrics))
	for i, m := range metrics {
		fetched[i] = poll.Fetched{Metric: m.ID}
	}
	return fetched
}

// refuses answers no query.
type refuses struct{}

func (refuses) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) []poll.Fetched {
	fetched := make([]poll.Fetched, len(metrics))
	for i, m := range metrics {
		fetched[i] = poll.Fetched{Metric: m.ID, Err: "the server is away"}
	}
	return fetched
}

// TestWhatFailsWithoutEndingACycleIsCounted: a query that fails, a pod that shows nothing and a write that is refused by an error;
// and what was put back is counted where it was written.
func TestWhatFailsWithoutEndingACycleIsCounted(t *testing.T) {
	c, clock := config.Default(), clocktesting.NewFakeClock(sim.Epoch)
	trouble := []string{}
	l := NewLoop(wiring.Options{Config: func() config.PlannerConfig { return c }, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: logr.Discard(), Clock: clock,
		Emit: func(discover.Workload, ...telemetry.Event) {},
		Observe: func(context.Context, poll.Fetcher, discover.Workload, discover.Fleet) (input.Observed, []scrape.PodReport) {
			return input.Observed{Trouble: trouble}, nil
		}})
	counted := func(phase string) float64 { return testutil.ToFloat64(l.Metrics.Work.Errors.WithLabelValues(phase)) }
	in := input.Inputs{Now: clock.Now(), Config: c, Workload: discover.Workload{Name: "controller"}}
	l.asker.Fetch(t.Context(), answersNothing{}, in)
	l.asker.ObservePods(t.Context(), nil, in)
	if counted("fetch") != 0 || counted("observe") != 0 {
		t.Errorf("%v and %v errors where nothing failed", counted("fetch"), counted("observe"))
	}
	trouble = []string{"nothing is known of what controller-0 owns", "nor of controller-1"}
	in.Workload.Name = "another" // for which it is asked anew
	l.asker.Fetch(t.Context(), refuses{}, in)
	l.asker.ObservePods(t.Context(), nil, in)
	if counted("fetch") != 1 || counted("observe") != 1 {
		t.Errorf("%v and %v errors of fetch and observe, want 1 of each: they are of runs", counted("fetch"), counted("observe"))
	}
	failed := errors.New("the API server is away")
	l.repairs.ReportSteps(in.Workload, apply.Report{Results: []apply.Result{
		{Step: diff.PatchShard{Secret: "a", Why: diff.Drifted}, Outcome: apply.Applied},
		{Step: diff.PatchShard{Secret: "b", Why: diff.Drifted}, Outcome: apply.Failed, Err: failed},
		{Step: diff.PatchShard{Secret: "c", Why: diff.Drifted}, Outcome: apply.Failed, Err: failed},
		{Step: diff.PatchShard{Secret: "d", Why: diff.Drifted}, Outcome: apply.Deferred, Until: clock.Now()},
	}})
	if back := testutil.ToFloat64(l.Metrics.Work.PutBack.WithLabelValues("shard", "Drifted")); counted("apply") != 1 || back != 1 {
		t.Errorf("%v errors of apply, %v put back, want 1 of each", counted("apply"), back)
	}
}
