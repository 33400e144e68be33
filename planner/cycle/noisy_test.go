package cycle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/poll"
	"ballast/planner/sim"
)

// TestOneNoisyClusterPacksNoReplica: by the four shipped metrics one of 200 clusters has a thousand times its events for a day, and all
// else of it is as before.
func TestOneNoisyClusterPacksNoReplica(t *testing.T) {
	const clusters, noisy, mostClusters, mostObjects = 200, 17, 80, 1.4 // of a mean of 67 and 1
	base, coin := sim.Lognormal(1, clusters), rand.New(rand.NewPCG(1, 7))
	w := newLiveWorld(base...)
	c := config.Default()
	c.Mode = w.in.Config.Mode
	w.in.Config, w.in.Fetched = c, nil
	for _, m := range loads.MetricsOf(c) {
		w.in.Fetched = append(w.in.Fetched, poll.Fetched{Metric: m.ID})
	}
	measure, begun := shippedMetrics(0.2, coin), w.in.Now
	pass := func(hours int, factor float64) (most int, objects float64) {
		for range hours * 30 {
			measure(w, base, w.in.Now.Sub(begun).Hours())
			name := fmt.Sprintf("c%03d", noisy)
			for _, s := range w.in.Fetched[1].Samples {
				if s.Key == sim.Server(name) {
					sim.SetLoad(&w.in.Fetched[1], name, s.Value*factor)
				}
			}
			w.step(2 * time.Minute)
			n, has := w.fullest(base)
			most, objects = max(most, n), max(objects, has)
		}
		return most, objects
	}
	measure(w, base, 0)
	w.until(t, "the env is 16 and every Secret stamped", time.Hour, func(outcome.Outcome) bool {
		return standing.ControllerReplicas(w.in.Workload) == 16 && w.in.InForce.Rollout == nil
	})
	pass(3, 1)
	replicas := w.in.InForce.Replicas
	for _, test := range []struct {
		when   string
		hours  int
		factor float64
	}{{"during the day", 24, 1000}, {"in the hours after it", 6, 1}} {
		n, objects := pass(test.hours, test.factor)
		t.Logf("%s: %d clusters on the fullest of %d replicas, %.2f of the mean objects", test.when, n, w.in.InForce.Replicas, objects)
		if n > mostClusters || objects > mostObjects || w.in.InForce.Replicas != replicas {
			t.Errorf("%s a replica had %d clusters and %.2f of the mean objects, and there are %d replicas; want %d, %.1f and %d at most",
				test.when, n, objects, w.in.InForce.Replicas, mostClusters, mostObjects, replicas)
		}
	}
}

// fullest is how many clusters the fullest replica has, and how much of the mean of the objects, which make the memory, another one may
// have.
func (w *liveWorld) fullest(base []float64) (clusters int, objects float64) {
	n, of, all := make([]int, w.in.InForce.Replicas), make([]float64, w.in.InForce.Replicas), 0.0
	for i := range base {
		at := w.in.InForce.Clusters[fmt.Sprintf("c%03d", i)].Replica
		has := base[i] * (0.5 + float64(i%7)/6)
		n[at]++
		of[at] += has
		all += has
	}
	for at := range n {
		clusters, objects = max(clusters, n[at]), max(objects, of[at]*float64(len(n))/all)
	}
	return clusters, objects
}
