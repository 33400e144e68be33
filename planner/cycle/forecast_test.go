package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/preview"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

func TestForesee(t *testing.T) {
	live := config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5}, StageTimeout: config.Duration(10 * time.Minute)}
	x0y := config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: live.StageTimeout}
	restarting := config.Rollout{Default: &config.DefaultRollout{RolloutRestart: true}, StageTimeout: live.StageTimeout}
	byDefault := config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: live.StageTimeout}
	hourly := []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}}
	const unstamped = `Secret "c004" carries no shard: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`
	fixed := func(w *world, n int) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: n} }
	for name, test := range map[string]struct {
		rollout config.Rollout
		change  func(*world)
		want    *preview.Forecast
	}{
		"live, which needs its one restart": {live, func(*world) {}, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 16},
			Moves: 8, PerWave: 5, Waves: 2, Once: true, Done: epoch}},
		"live, which had it": {live, func(w *world) { *w.in.Workload.EnvReplicas = "16" }, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, To: plan.Count{Replicas: 3, ControllerReplicas: 16},
			Moves: 8, PerWave: 5, Waves: 2, Done: epoch}},
		"live, with a Secret that is not stamped": {live, func(w *world) { w.secret("c004").Shard = discover.ShardValue{} }, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 16},
			Moves: 8, PerWave: 5, Waves: 2, Once: true, Done: epoch, Missing: []string{unstamped}}},
		"live, under a budget": {live, func(w *world) { w.in.Config.Change.Moves.Rate = hourly }, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 16},
			Moves: 8, PerWave: 5, Waves: 2, Once: true, Limited: true, Done: epoch.Add(7 * time.Hour)}},
		"live, under a budget that was used": {live, func(w *world) {
			w.in.Config.Change.Moves.Rate = hourly
			w.in.Memory.Changes.Ledger = change.Ledger{{At: epoch.Add(-20 * time.Minute), Moves: 1, Cause: change.Balance}}
		}, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 16},
			Moves: 8, PerWave: 5, Waves: 2, Once: true, Limited: true, Done: epoch.Add(40*time.Minute + 7*time.Hour)}},
		"live, of a Deployment that grows": {live, func(w *world) {
			w.in.Workload.Kind, w.in.Workload.DynamicDistribution, w.in.Workload.EnvReplicas = plan.Deployment, true, nil
			fixed(w, 4)
		}, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3}, To: plan.Count{Replicas: 4}, Moves: 9, PerWave: 5, Waves: 2, Restarts: true, Done: epoch}},
		"x0y": {x0y, func(w *world) { fixed(w, 4) }, &preview.Forecast{Mode: plan.ModeX0Y, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 4, ControllerReplicas: 4},
			Moves: 9, Restarts: true, Done: epoch}},
		"x0y, for which the budget has no room at once": {x0y, func(w *world) { w.in.Config.Change.Moves.Rate = hourly }, &preview.Forecast{Mode: plan.ModeX0Y, From: plan.Count{Replicas: 3, ControllerReplicas: 3},
			To: plan.Count{Replicas: 3, ControllerReplicas: 3}, Moves: 8, Restarts: true, Limited: true}},
		"x0y, for which it has when what was used is over": {x0y, func(w *world) {
			w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 70, Period: config.Duration(time.Hour)}}
			w.in.Memory.Changes.Ledger = change.Ledger{{At: epoch.Add(-20 * time.Minute), Moves: 1, Cause: change.Balance}}
		}, &preview.Forecast{Mode: plan.ModeX0Y, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 3}, Moves: 8, Restarts: true, Limited: true, Done: epoch.Add(40 * time.Minute)}},
		"x0y, with replicas that are people's": {x0y, func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Workload: true} },
			&preview.Forecast{Mode: plan.ModeX0Y, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 3}, Moves: 8, Restarts: true, Done: epoch,
				Missing: []string{rollout.ErrFreeReplicas.Error()}}},
		"default, on as many replicas": {byDefault, func(*world) {}, &preview.Forecast{Mode: plan.ModeDefault, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 3},
			Moves: 8, Done: epoch}},
		"default, on more": {byDefault, func(w *world) { fixed(w, 4) }, &preview.Forecast{Mode: plan.ModeDefault, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 4, ControllerReplicas: 4},
			Moves: 9, Restarts: true, Done: epoch}},
		"default, that restarts": {restarting, func(*world) {}, &preview.Forecast{Mode: plan.ModeDefault, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 3},
			Moves: 8, Restarts: true, Done: epoch}},
		"nothing to do": {byDefault, func(w *world) {
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard.N = i % 3
			}
		}, nil},
		"nothing to move, and the one restart": {live, func(w *world) {
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard.N = i % 3
			}
		}, &preview.Forecast{Mode: plan.ModeLive, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, To: plan.Count{Replicas: 3, ControllerReplicas: 16}, PerWave: 5, Once: true, Done: epoch}},
		"a rollout is under way": {live, func(w *world) {
			w.in.Config.Mode = plan.Enforce
			w.cycle()
			w.in.InForce.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: epoch, Replicas: 3, ControllerReplicas: 3}
		}, nil},
		"no metrics, no candidate": {live, func(w *world) { w.in.Fetched[0].Samples, w.in.Fetched[0].Err = nil, "connection refused" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) // all of them on replica 0: of three replicas eight leave it, of four nine
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid}
			}
			w.in.Config.Mode, w.in.Config.Rollout = plan.Observe, test.rollout
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
			test.change(w)
			got := preview.Foresee(w.in, Run(w.in))
			if diff := cmp.Diff(test.want, got, equalTimes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
