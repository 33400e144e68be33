package cycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestCountsUnderNoiseRestartTheFleetOnceADay: of 20 equal clusters five fit on a replica, and each load is off by up to 20 % at every
// look, so that the number of replicas is as often too small as not. Env changes and stops are restarts, however they came about.
func TestCountsUnderNoiseRestartTheFleetOnceADay(t *testing.T) {
	for plans, partition := range map[string]config.Partition{"sticky": config.Default().Partition, "lpt": {LPT: &config.LPT{}}} {
		for mode, r := range map[string]config.Rollout{
			plan.ModeDefault: {Default: &config.DefaultRollout{}},
			plan.ModeX0Y:     {X0Y: &config.X0YRollout{}},
		} {
			t.Run(plans+", "+mode, func(t *testing.T) {
				w, coin := newLiveWorld(slices.Repeat([]float64{10}, 20)...), rand.New(rand.NewPCG(1, 7))
				c := config.Default()
				w.in.Config.Change, w.in.Config.Evaluate = c.Change, c.Evaluate
				w.in.Config.Partition = partition
				w.in.Config.Partition.Capacity = ptr.To(config.Decimal("0.25"))
				r.StageTimeout = config.Duration(10 * time.Minute)
				w.in.Config.Rollout = r
				w.step(time.Minute)
				var restarts []time.Time
				counts := map[int]bool{}
				env, stood := standing.ControllerReplicas(w.in.Workload), w.in.Workload.Replicas == 0
				for range 4 * 24 * 60 {
					for i := range 20 {
						w.setLoad(fmt.Sprintf("c%03d", i), 10*(1+0.2*(2*coin.Float64()-1)))
					}
					w.step(time.Minute)
					is, stands := standing.ControllerReplicas(w.in.Workload), w.in.Workload.Replicas == 0
					if is != env && !stood && !stands || stands && !stood {
						restarts = append(restarts, w.in.Now)
					}
					env, stood = is, stands
					counts[w.in.Workload.Replicas] = true
				}
				t.Logf("restarts %v, replicas %v", restarts, counts)
				for i := range len(restarts) - 1 {
					if apart := restarts[i+1].Sub(restarts[i]); apart < 24*time.Hour {
						t.Errorf("two restarts are %s apart, of %v", apart, restarts)
					}
				}
				if w.in.Workload.Replicas == 3 {
					t.Error("the number of replicas never followed the capacity: the test shows nothing")
				}
			})
		}
	}
}

// TestAPinBeyondPeoplesReplicasRests: 392 rollouts began in 72 h under default, and 109 under live.
func TestAPinBeyondPeoplesReplicasRests(t *testing.T) {
	for mode, r := range map[string]config.Rollout{
		plan.ModeLive:    config.Default().Rollout,
		plan.ModeDefault: {Default: &config.DefaultRollout{}},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(skewed(40)...)
			c := config.Default()
			w.in.Config.Change, w.in.Config.Evaluate = c.Change, c.Evaluate
			r.StageTimeout = c.Rollout.StageTimeout
			w.in.Config.Rollout = r
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
			}
			w.begins(72*60, func() {})
			w.in.Pins = plan.Pins{"c007": 5}
			writes := 0
			began := w.begins(24*60, func() {
				if w.last.Changed {
					writes++
				}
			})
			if began > 0 || !w.in.Memory.HoldOff.IsZero() {
				t.Errorf("%d rollouts began in the day of the pin, the last one failed at %s: %v", began, w.in.Memory.HoldOff, messages(w.last))
			}
			if writes > 2 {
				t.Errorf("%d plans were written in the day of the pin", writes)
			}
			if told := findProblem(w.last, "PinWaits"); told.Kind == "" {
				t.Errorf("nobody is told: %v", problems(w.last))
			}
		})
	}
}

// TestAnAutoscalerAboveMaxReplicasRests: its number was tried, and failed, every 40 minutes for ever.
func TestAnAutoscalerAboveMaxReplicasRests(t *testing.T) {
	for mode, r := range map[string]config.Rollout{
		plan.ModeLive:    config.Default().Rollout,
		plan.ModeDefault: {Default: &config.DefaultRollout{}},
	} {
		t.Run(mode, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			w.in.Config.Change = config.Default().Change
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}}
			r.StageTimeout = config.Duration(10 * time.Minute)
			w.in.Config.Rollout = r
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.in.Config.Partition.MaxReplicas = ptr.To(4)
			w.begins(3*60, func() {})
			w.scaleTo(6)
			w.until(t, "what follows it is over", 3*time.Hour, func(out outcome.Outcome) bool { return w.in.InForce.Rollout == nil && !out.Changed })
			w.begins(2*60, func() {})
			writes := 0
			began := w.begins(24*60, func() {
				if w.last.Changed {
					writes++
				}
			})
			if writes > 0 || began > 0 || !w.in.Memory.HoldOff.IsZero() {
				t.Errorf("%d plans were written in a day and %d rollouts began, the last one failed at %s: %v",
					writes, began, w.in.Memory.HoldOff, messages(w.last))
			}
			if got := w.in.InForce.Replicas; got > 4 {
				t.Errorf("the plan has %d replicas of at most 4", got)
			}
		})
	}
}

// begins is how many rollouts begin in so many minutes.
func (w *liveWorld) begins(minutes int, each func()) (began int) {
	for range minutes {
		under := w.in.InForce != nil && w.in.InForce.Rollout != nil
		w.step(time.Minute)
		if w.in.InForce.Rollout != nil && !under {
			began++
		}
		each()
	}
	return began
}
