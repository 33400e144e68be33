package cycle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/plan/codec"
	"ballast/planner/sim"
)

// TestClustersWithoutLoadMoveNobody: two thousand Secrets of clusters on which nobody works, under configurations that keep
// nothing from moving: no votes, and no budget. No replica comes, no cluster moves, and the others are levelled as ever.
func TestClustersWithoutLoadMoveNobody(t *testing.T) {
	for name, set := range map[string]func(c *config.PlannerConfig){
		"reference":                func(*config.PlannerConfig) {},
		"reference, by a capacity": func(c *config.PlannerConfig) { half := config.Decimal("0.5"); c.Partition.Capacity = &half },
		"robust": func(c *config.PlannerConfig) {
			c.Normalize = config.Normalize{Robust: &config.Robust{PositiveOffset: "0.01"}}
		},
		"minMax": func(c *config.PlannerConfig) { c.Normalize = config.Normalize{MinMax: &config.MinMax{}} },
		"none":   func(c *config.PlannerConfig) { c.Normalize = config.Normalize{None: &config.None{}} },
		"default": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: c.Rollout.StageTimeout}
		},
		"x0y": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: c.Rollout.StageTimeout}
		},
	} {
		t.Run(name, func(t *testing.T) {
			loads := lognormal(21, 60)
			w := adopted(t, loads...)
			w.in.Config.Evaluate, w.in.Config.Change.Moves.Rate = config.Evaluate{None: &config.None{}}, nil
			set(&w.in.Config)
			for range 60 {
				w.step(time.Minute)
			}
			if w.in.InForce.Rollout != nil {
				t.Fatalf("the fleet does not rest: %s", w.last.Reason)
			}
			replicas := w.in.InForce.Replicas
			w.history, w.idle = map[string][]int{}, map[string]bool{}
			for i := range 2000 {
				name := fmt.Sprintf("empty%04d", i)
				w.idle[name] = true
				w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, sim.Secret(name)) // Prometheus knows none of them
				w.secret(name).Created = w.in.Now
			}
			for minute := range 15 {
				for i, load := range loads {
					w.setLoad(fmt.Sprintf("c%03d", i), load*(1+0.01*float64((i*7+minute)%5)/4))
				}
				w.step(time.Minute)
			}
			if moved := slices.Sorted(maps.Keys(w.moved())); len(moved) > 0 || w.in.InForce.Replicas != replicas {
				t.Errorf("%d replicas, and moved %v; want the %d of before, and nobody", w.in.InForce.Replicas, moved, replicas)
			}
			if text, err := codec.Encode(*w.in.InForce); err != nil || len(text) > 128<<10 {
				t.Errorf("the plan takes %d bytes: %v", len(text), err)
			}

			for i := range loads {
				if name := fmt.Sprintf("c%03d", i); w.row(t, name) == 0 {
					w.setLoad(name, 4*loads[i])
				}
			}
			for range 30 {
				w.step(time.Minute)
			}
			empty := func(name string) bool { return strings.HasPrefix(name, "empty") }
			moved := slices.Collect(maps.Keys(w.moved()))
			if len(moved) == 0 || slices.ContainsFunc(moved, empty) || w.in.InForce.Rollout != nil {
				t.Errorf("the heavy replica is to be levelled by its own clusters alone: %d moved, %+v, %s", len(moved), w.last.Candidate.Verdict, w.last.Reason)
			}
		})
	}
}

// TestWhatMovesPaysAmongThoseThatCarry: what a redeal moves is weighed by the clusters that carry something. Beside thousands
// that carry nothing each move would be next to none, and half of a fleet would move for a gain of 1 %.
func TestWhatMovesPaysAmongThoseThatCarry(t *testing.T) {
	for seed := range uint64(8) {
		var moved []int
		for _, empty := range []int{0, 1000} {
			w := adopted(t, lognormal(21, 60)...)
			w.in.Config.Evaluate, w.in.Config.Change.Moves.Rate = config.Evaluate{None: &config.None{}}, nil
			for range 60 {
				w.step(time.Minute)
			}
			w.history, w.idle = map[string][]int{}, map[string]bool{}
			for i := range empty {
				name := fmt.Sprintf("empty%04d", i)
				w.add(name, 0)
				w.idle[name], w.secret(name).Created = true, w.in.Now
			}
			coin := rand.New(rand.NewPCG(seed, 1))
			for i, load := range lognormal(21, 60) {
				w.setLoad(fmt.Sprintf("c%03d", i), load*(1+0.1*(2*coin.Float64()-1)))
			}
			for range 15 {
				w.step(time.Minute)
			}
			moved = append(moved, len(w.moved()))
		}
		if moved[1] != moved[0] {
			t.Errorf("seed %d: %d clusters moved beside 1,000 without load, and %d without those", seed, moved[1], moved[0])
		}
	}
}
