package cycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// TestAnEnvThatIsNotSeenIsNoneTooLow: where a reference says 3 and three replicas run, nobody has a cluster twice, and nothing is
// to restart at once for it.
func TestAnEnvThatIsNotSeenIsNoneTooLow(t *testing.T) {
	three := "3"
	unseen := func(w *liveWorld) {
		w.in.Workload.EnvReplicas, w.in.Workload.EnvUnknown, w.in.Workload.EnvSaid = nil, true, &three
	}
	single := func(w *liveWorld) {
		w.scale(1)
		w.in.Workload.EnvReplicas = nil
	}
	five := "5"
	more := func(w *liveWorld) {
		w.in.Workload.EnvReplicas, w.in.Workload.EnvUnknown, w.in.Workload.EnvSaid = nil, true, &five
	}
	waits := config.Rollout{Live: &config.LiveRollout{Adopt: config.AdoptWithNext}}
	restarts := config.Rollout{Default: &config.DefaultRollout{}}
	for name, test := range map[string]struct {
		rollout config.Rollout
		found   func(*liveWorld)
		said    string // of the kinds of problems
	}{
		"by reference, to be adopted with the next rollout": {waits, unseen, "RestartWaits"},
		"by reference, in mode default":                     {restarts, unseen, ""},
		"by reference, more than there are, in default":     {restarts, more, ""},
		"absent on one replica, with the next rollout":      {waits, single, "RestartWaits"},
		"absent on one replica, in mode default":            {restarts, single, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(slices.Repeat([]float64{1}, 12)...)
			timeout := w.in.Config.Rollout.StageTimeout
			w.in.Config.Rollout = test.rollout
			w.in.Config.Rollout.StageTimeout = timeout
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
			}
			test.found(w)
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: w.in.Workload.Replicas} // so that nothing else restarts
			if w.in.Workload.Replicas == 1 {
				for i := range w.in.Discovered.Secrets {
					w.in.Discovered.Secrets[i].Shard.N = 0
				}
			}
			for range 60 {
				w.step(time.Minute)
			}
			if len(w.envs) != 1 || w.in.Workload.EnvReplicas != nil {
				t.Errorf("the env was written: Argo CD counted %v; %v", w.envs, messages(w.last))
			}
			said := slices.ContainsFunc(problems(w.last), func(p string) bool { return strings.Contains(p, "RestartWaits") })
			if said != (test.said != "") {
				t.Errorf("it says %v, want %q among it", problems(w.last), test.said)
			}
		})
	}
}

// TestAPinBeyondPeoplesReplicasIsTold: it waits for whoever scales the workload, and nobody else could know.
func TestAPinBeyondPeoplesReplicasIsTold(t *testing.T) {
	w := adopted(t, skewed(12)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.in.Pins = plan.Pins{"c003": 5}
	for range 10 {
		w.step(time.Minute)
	}
	want := `PinWaits: "c003" is pinned to replica 5, and there are 3: it waits until whoever scales the workload has as many as it needs (partition.replicas: workload)`
	if !slices.Contains(messages(w.last), want) {
		t.Errorf("it says %q, want %q among it", messages(w.last), want)
	}
	w.scale(6)
	w.until(t, "the pin holds", time.Hour, func(Outcome) bool { return w.row(t, "c003") == 5 })
}

// TestAFleetWithoutApplicationsFreezesNothing: that no cluster has series any more is what its pods say, and no fault of Prometheus.
func TestAFleetWithoutApplicationsFreezesNothing(t *testing.T) {
	for _, clusters := range []int{1, 2, 6} {
		w := adopted(t, skewed(clusters)...)
		for range 120 {
			w.step(time.Minute)
		}
		w.in.Fetched[0].Samples, w.idle = nil, map[string]bool{}
		for _, s := range w.in.Discovered.Secrets {
			w.idle[s.Name] = true
		}
		frozen := 0
		for range 120 {
			w.step(time.Minute)
			if slices.ContainsFunc(messages(w.last), func(m string) bool { return strings.HasPrefix(m, string(measure.LowCoverage)) }) {
				frozen++
			}
		}
		if frozen > 0 {
			t.Errorf("%d clusters: the metric is refused in %d of 120 cycles: %v", clusters, frozen, messages(w.last))
		}
	}
}
