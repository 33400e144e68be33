package controller

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/poll"
	"ballast/planner/sim"
	"ballast/planner/telemetry"
)

// countingPrometheus knows no series, and how often it was asked.
type countingPrometheus struct{ asks int }

var _ poll.Fetcher = (*countingPrometheus)(nil)

// Fetch implements Fetcher.
func (p *countingPrometheus) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) []poll.Fetched {
	p.asks++
	fetched := make([]poll.Fetched, len(metrics))
	for i, m := range metrics {
		fetched[i].Metric = m.ID
	}
	return fetched
}

// TestPrometheusIsAskedOnceAnInterval, whatever number of cycles changes run: whoever may write a Secret must not make a
// shared Prometheus work a minute's queries each second. And the next answer is not put off by them.
func TestPrometheusIsAskedOnceAnInterval(t *testing.T) {
	c, clock := config.Default(), clocktesting.NewFakeClock(sim.Epoch)
	l := NewLoop(wiring.Options{Config: func() config.PlannerConfig { return c }, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Clock: clock})
	prom := &countingPrometheus{}
	asks := func() int {
		l.asker.Fetch(context.Background(), prom, input.Inputs{Now: clock.Now(), Config: c, Workload: discover.Workload{Name: "controller"}})
		return prom.asks
	}
	var got []int
	for range 119 { // a change a second
		got = append(got, asks())
		if left, want := l.Pause(), time.Minute-clock.Since(l.asker.AskedAt()); left != want {
			t.Errorf("%s after the answer the next cycle comes in %s, want %s", clock.Since(l.asker.AskedAt()), left, want)
		}
		clock.Step(time.Second)
	}
	want := make([]int, 119)
	for i := range want {
		want[i] = 1 + i/60
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked so often by each second (-want +got):\n%s", diff)
	}
	clock.Step(time.Minute)
	if left := l.Pause(); left != time.Minute {
		t.Errorf("an answer that is old puts the next cycle off for %s, want %s", left, time.Minute)
	}
	l.asker.Fetch(context.Background(), prom, input.Inputs{Now: clock.Now(), Config: c, Workload: discover.Workload{Name: "controller"}})
	before := prom.asks
	l.asker.Fetch(context.Background(), prom, input.Inputs{Now: clock.Now(), Config: c, Workload: discover.Workload{Name: "another"}})
	c.Poll.Prometheus.Timeout++
	if asks(); prom.asks != before+2 {
		t.Errorf("another workload and another configuration were asked for %d times, want 2", prom.asks-before)
	}
}

// TestNoAnswerIsPlannedWithUntilItIsTooOld: with an interval beyond maxAge a change between two cycles would be decided on samples
// that are refused.
func TestNoAnswerIsPlannedWithUntilItIsTooOld(t *testing.T) {
	c, clock := config.Default(), clocktesting.NewFakeClock(sim.Epoch)
	c.Interval, c.Poll.Prometheus.MaxAge = config.Duration(30*time.Minute), config.Duration(10*time.Minute)
	l := NewLoop(wiring.Options{Config: func() config.PlannerConfig { return c }, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Clock: clock})
	prom := &countingPrometheus{}
	var asked []int
	for range 13 { // a change a minute
		l.asker.Fetch(context.Background(), prom, input.Inputs{Now: clock.Now(), Config: c, Workload: discover.Workload{Name: "controller"}})
		asked = append(asked, prom.asks)
		clock.Step(time.Minute)
	}
	if diff := cmp.Diff([]int{1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3}, asked); diff != "" {
		t.Errorf("asked so often, minute by minute (-want +got):\n%s", diff)
	}
}
