package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
)

// TestNothingBeginsByNumbersThatAreNoReplicas: a failover, a drain and what levels would carry clusters to replicas that no pod is.
func TestNothingBeginsByNumbersThatAreNoReplicas(t *testing.T) {
	for name, change := range map[string]func(*discover.Workload){
		"spec.ordinals.start":     func(w *discover.Workload) { w.FirstOrdinal = 3 },
		"ARGOCD_CONTROLLER_SHARD": func(w *discover.Workload) { w.FixedShard = "0" },
		"the same, scaled to one by somebody": func(w *discover.Workload) {
			w.FixedShard, w.Replicas, w.ReadyReplicas, w.UpdatedReplicas, w.CurrentReplicas = "0", 1, 1, 1, 1
		},
		"neither": func(*discover.Workload) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			before := len(w.on(2))
			change(&w.in.Workload)
			w.down[2] = true
			for range 20 {
				w.step(time.Minute)
				change(&w.in.Workload)
			}
			told := slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool {
				return p.Kind == "Renumbered" && strings.HasPrefix(p.Message, "nothing levels, fails over, drains or grows: ")
			})
			if stays, want := len(w.on(2)) == before && w.in.InForce.Rollout == nil, name != "neither"; stays != want || told != want {
				t.Errorf("nothing began: %t, told: %t, want %t: %v", stays, told, want, problems(w.last))
			}
		})
	}
}

// TestWhatAConfigMapNumbersStopsNoFailover while the pods that run show that they started without it: who may write what the controllers
// read by envFrom must not keep a dead replica's clusters waiting.
func TestWhatAConfigMapNumbersStopsNoFailover(t *testing.T) {
	type result struct {
		Left, To0, To1, Replicas int // clusters of replica 2, and how many came to the others
		Told                     string
	}
	const ahead = "nothing levels, drains, grows or restarts, and failovers go to replicas whose pods show that they are theirs"
	const shut = "nothing levels, fails over, drains or grows"
	for name, test := range map[string]struct {
		change func(*liveWorld)
		want   result
	}{
		"replica 0 is the number, and receives nothing while another can": {func(*liveWorld) {}, result{0, 0, 5, 3, ahead}},
		"of another": {func(w *liveWorld) { w.in.Workload.FixedShard = "1" }, result{0, 5, 0, 3, ahead}},
		"of none":    {func(w *liveWorld) { w.in.Workload.FixedShard = "7" }, result{0, 3, 2, 3, ahead}},
		"alone, it receives": {func(w *liveWorld) {
			w.in.Cordon = "1=" + w.in.Now.Add(2*time.Hour).UTC().Format(time.RFC3339)
		}, result{0, 5, 0, 3, ahead}},
		"by x0y, which stops nobody for it": {func(w *liveWorld) {
			w.in.Config.Rollout.Live, w.in.Config.Rollout.X0Y = nil, &config.X0YRollout{}
		}, result{0, 0, 5, 3, ahead}},
		"by default, which restarts nobody for it": {func(w *liveWorld) {
			w.in.Config.Rollout.Live, w.in.Config.Rollout.Default = nil, &config.DefaultRollout{RolloutRestart: true}
		}, result{0, 0, 5, 3, ahead}},
		"in the template itself": {func(w *liveWorld) { w.in.Workload.ShardSource = "" }, result{5, 0, 0, 3, shut}},
		"a Deployment's":         {func(w *liveWorld) { w.in.Workload.Kind = "Deployment" }, result{5, 0, 0, 3, shut}},
		"a pod does not answer":  {func(w *liveWorld) { w.mute = map[int]bool{1: true} }, result{5, 0, 0, 3, shut}},
		"no pod can be listed":   {func(w *liveWorld) { w.hidden = true }, result{5, 0, 0, 3, shut}},
		"a pod started with it":  {func(w *liveWorld) { w.renumbered = map[int]int{1: 0} }, result{5, 0, 0, 3, shut}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.in.Config.Change.Moves.Rate = nil
			before := map[int][]string{0: w.on(0), 1: w.on(1), 2: w.on(2)}
			w.in.Workload.FixedShard, w.in.Workload.ShardSource = "0", `"ARGOCD_CONTROLLER_SHARD" of ConfigMap "argocd-cmd-params-cm"`
			w.down[2] = true
			test.change(w)
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
			for range 60 {
				w.step(time.Minute)
			}
			got := result{Left: len(w.on(2)),
				To0: len(w.on(0)) - len(before[0]), To1: len(w.on(1)) - len(before[1]), Replicas: w.in.Workload.Replicas}
			for _, p := range w.last.Problems {
				if p.Kind == "Renumbered" {
					got.Told, _, _ = strings.Cut(p.Message, ": ")
				}
			}
			if restarted := w.in.Workload.RestartedAt != "" || len(w.counts) != 1 || len(w.envs) > 1; got != test.want || restarted {
				t.Errorf("%+v, want %+v; %v replicas over time, envs %v, restarted at %q: %v",
					got, test.want, w.counts, w.envs, w.in.Workload.RestartedAt, messages(w.last))
			}
		})
	}
}

// TestNoWaveGoesToAPodThatStartsWithANumberOfAConfigMap: a failover ends with the wave that such a pod does not take.
func TestNoWaveGoesToAPodThatStartsWithANumberOfAConfigMap(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.in.Config.Change.Moves.Rate, w.in.Config.Rollout.Live.MaxMovesPerWave = nil, 1
	w.in.Workload.FixedShard, w.in.Workload.ShardSource, w.down[2], w.waves = "0", "of a ConfigMap", true, nil
	w.until(t, "the second wave", time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 2 })
	left := len(w.on(2))
	w.renumbered = map[int]int{1: 0}
	for range 60 {
		w.step(time.Minute)
	}
	got := fmt.Sprintf("%d waves, %d left, under way: %t", len(w.waves), len(w.on(2)), w.in.InForce.Rollout != nil)
	if got != fmt.Sprintf("2 waves, %d left, under way: false", left) {
		t.Errorf("%s, want no third, and an end: %v", got, messages(w.last))
	}
}

// TestOneReplicaThatIsNumberedByAnEnvDoesNotGrow: the number is right for it, and a second replica's pods would have it, too.
func TestOneReplicaThatIsNumberedByAnEnvDoesNotGrow(t *testing.T) {
	for shard, want := range map[string]string{"0": "1 replicas, told", "": "3 replicas"} {
		t.Run("env "+shard, func(t *testing.T) {
			w := newWorld(slices.Repeat([]float64{1}, 12)...)
			w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 1, 1, 1, 1
			w.in.Workload.FixedShard = shard
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
			w.run(30)
			got := fmt.Sprintf("%d replicas", w.in.InForce.Replicas)
			if told := slices.Contains(problems(w.last), "discover/Renumbered/"+w.in.Workload.Name); told {
				got += ", told"
			}
			if got != want {
				t.Errorf("%s, want %s: %v", got, want, problems(w.last))
			}
		})
	}
}
