package cycle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/sim"
)

// week is what a fleet of the shipped configuration does in seven days without any change of it: rollouts that began, clusters that moved,
// and makespan over mean at the end. Each cluster has a day of its own kind: it swings by that share about its mean, at the hours of one of
// three regions, and jitters by 5 % from minute to minute.
func week(t *testing.T, clusters int, seed uint64, swing float64) (rollouts, moves int, imbalance float64) {
	base := sim.Lognormal(seed, clusters)
	w := adopted(t, base...)
	shipped := config.Default()
	w.in.Config.Change, w.in.Config.Evaluate, w.in.Config.Partition = shipped.Change, shipped.Evaluate, shipped.Partition
	coin := rand.New(rand.NewPCG(seed, 7))
	under, begun := false, w.in.Now
	for range 7 * 24 * 60 {
		hours := w.in.Now.Sub(begun).Hours()
		for i, load := range base {
			day := 1 + swing*math.Sin(2*math.Pi*(hours/24+float64(i%3)/3))
			w.setLoad(fmt.Sprintf("c%03d", i), load*day*(1+0.05*(2*coin.Float64()-1)))
		}
		w.step(time.Minute)
		if now := w.in.InForce.Rollout != nil; now != under {
			if under = now; now {
				rollouts++
			}
		}
	}
	for _, h := range w.history {
		moves += len(h) - 1
	}
	return rollouts, moves, Imbalance(w.last.Now)
}

// TestAWeekOfTheShippedConfigurationRests: fewer than one rollout a day, of one small fleet of each swing, or of BALLAST_WEEKS
// of those and as many large ones.
func TestAWeekOfTheShippedConfigurationRests(t *testing.T) {
	seeds, sizes := sim.FromEnv(t, "BALLAST_WEEKS", 1), []int{60, 200}
	if seeds == 1 {
		sizes = sizes[:1] // 200 clusters take three times as long
	}
	for _, clusters := range sizes {
		for _, swing := range []float64{0, 0.2, 0.4} {
			for seed := range seeds {
				t.Run(fmt.Sprintf("%d clusters, swing %.1f, seed %d", clusters, swing, seed+1), func(t *testing.T) {
					rollouts, moves, imbalance := week(t, clusters, seed+1, swing)
					t.Logf("%d rollouts, %d moves, makespan over mean %.3f", rollouts, moves, imbalance)
					if rollouts >= 7 {
						t.Errorf("%d rollouts in a week, want fewer than one a day", rollouts)
					}
				})
			}
		}
	}
}
