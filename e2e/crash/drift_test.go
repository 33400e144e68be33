package crash_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"ballast/e2e/hooked"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sim"
)

// driftLasts is how long the loads are followed.
const driftLasts = 4 * time.Hour

// TestLoadsThatDriftMoveFewClusters: on a real API server under the shipped webhooks, the loads of thirty clusters drift, two of
// them spike and come back. What the shipped plans move stands beside what lpt moves with an election each hour, on an API server alone.
func TestLoadsThatDriftMoveFewClusters(t *testing.T) {
	c, base := driftCase()
	site := hooked.Start(t, hooked.Options{})
	r := newCrashRunIn(t, site.Admin, hooked.Namespace, c)
	r.planner = r.memo.Over(site.As(hooked.Planner))
	shipped := r.followDrift(base, func(*config.PlannerConfig) {})
	lpt := newCrashRun(t, anyServer.Start(t), c).followDrift(base, func(c *config.PlannerConfig) {
		c.Partition.Sticky, c.Partition.LPT = nil, &config.LPT{}
		c.Evaluate.CostBenefit, c.Evaluate.MostWanted = nil, &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 10}
	})
	t.Logf("shipped: %s", shipped)
	t.Logf("lpt:     %s", lpt)
	if shipped.moves == 0 || shipped.moves >= lpt.moves {
		t.Errorf("the shipped plans made %d moves, lpt %d; want some, and fewer", shipped.moves, lpt.moves)
	}
	if shipped.busiest > lpt.busiest {
		t.Errorf("the shipped plans made %d moves within ten minutes, lpt %d; want no more", shipped.busiest, lpt.busiest)
	}
	if shipped.above >= lpt.above {
		t.Errorf("the shipped plans were above 1.25 of the mean for %d minutes, lpt for %d; want less", shipped.above, lpt.above)
	}
	if most := 1.17; shipped.end > most {
		t.Errorf("the fullest replica carries %.2f of the mean after the spikes, want at most %.2f", shipped.end, most)
	}
}

// drift is what a fleet went through: moves, the most of them within ten minutes, the makespan over the mean at the end, and the
// minutes that it was above 1.25.
type drift struct {
	moves, busiest, above int
	end                   float64
}

func (d drift) String() string {
	return fmt.Sprintf("%d moves in %s, no more than %d in ten minutes, above 1.25 of the mean for %d minutes, %.2f at the end",
		d.moves, driftLasts, d.busiest, d.above, d.end)
}

// driftCase is the fleet, and what its clusters make of themselves.
func driftCase() (c crashCase, base []float64) {
	c = crashCase{seed: 7, mode: crashLive, replicas: 3, env: "3", loads: map[string]float64{}}
	base = sim.Lognormal(c.seed, 30)
	for i, load := range base {
		c.loads[fmt.Sprintf("c%02d", i)] = load
	}
	return c, base
}

// followDrift leads the fleet by the shipped configuration and a change of it, while its loads drift.
func (r *crashRun) followDrift(base []float64, change func(*config.PlannerConfig)) (d drift) {
	r.Helper()
	r.fetcher = func(c config.PlannerConfig, t plan.Target) (poll.Fetcher, error) {
		return gather.NewFetcher(c, t)
	}
	prometheus := httptest.NewServer(defaultsPrometheus{r})
	r.Cleanup(prometheus.Close)
	r.watch.mode = plan.ModeLive
	r.config = shippedConfig(r.T, plan.Enforce, prometheus.URL)
	r.config.Target.Namespace = r.namespace
	change(&r.config)
	r.lead()
	coin := rand.New(rand.NewPCG(r.fleet.Seed, 3))
	moved := []int{r.movedSoFar()} // by each minute
	for minute := range int(driftLasts / time.Minute) {
		for i, load := range base {
			r.fleet.loads[fmt.Sprintf("c%02d", i)] = load * driftOf(i, minute) * (0.95 + 0.1*coin.Float64())
		}
		r.passes(time.Minute)
		if r.makespan() > 1.25 {
			d.above++
		}
		moved = append(moved, r.movedSoFar())
		d.busiest = max(d.busiest, moved[minute+1]-moved[max(minute-9, 0)])
	}
	d.moves, d.end = r.movedSoFar(), r.makespan()
	return d
}

// driftOf is what a cluster's load is of its base: each has a wave of its own of two to five hours, a tenth up and down; c03
// makes six times as much from minute 60 to 80, c11 four times from 120 to 190.
func driftOf(i, minute int) float64 {
	of := 1 + 0.1*math.Sin(2*math.Pi*float64(minute)/float64(120+i*6))
	switch {
	case i == 3 && minute >= 60 && minute < 80:
		of *= 6
	case i == 11 && minute >= 120 && minute < 190:
		of *= 4
	}
	return of
}

// makespan is the fullest replica's load over the mean.
func (r *crashRun) makespan() float64 {
	carried := r.carried()[:r.fleet.Replicas]
	most, sum := 0.0, 0.0
	for _, load := range carried {
		most, sum = max(most, load), sum+load
	}
	return most / (sum / float64(len(carried)))
}
