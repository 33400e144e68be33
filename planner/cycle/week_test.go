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

// aWeek is what a fleet does in seven days: rollouts that began, clusters that moved, makespan over mean at the end, and the share of
// the minutes in which it was above a fifth more than the mean.
type aWeek struct {
	rollouts, moves int
	imbalance, high float64
}

// String is a line for docs/soak.md.
func (w aWeek) String() string {
	return fmt.Sprintf("%d rollouts, %d moves, makespan over mean %.3f, above 1.2 for %.1f %% of the time", w.rollouts, w.moves, w.imbalance, 100*w.high)
}

// week is that of the shipped configuration with those plans, without any change of the fleet. Each cluster has a day of its own kind: it swings by that share about its mean, at the hours of one of
// three regions, and jitters by 5 % from minute to minute.
func week(t *testing.T, clusters int, seed uint64, swing float64, plans config.PlannerConfig) (got aWeek) {
	base := sim.Lognormal(seed, clusters)
	w := adopted(t, base...)
	w.in.Config.Change, w.in.Config.Evaluate, w.in.Config.Partition = plans.Change, plans.Evaluate, plans.Partition
	coin := rand.New(rand.NewPCG(seed, 7))
	under, begun := false, w.in.Now
	const minutes = 7 * 24 * 60
	for range minutes {
		hours := w.in.Now.Sub(begun).Hours()
		for i, load := range base {
			day := 1 + swing*math.Sin(2*math.Pi*(hours/24+float64(i%3)/3))
			w.setLoad(fmt.Sprintf("c%03d", i), load*day*(1+0.05*(2*coin.Float64()-1)))
		}
		w.step(time.Minute)
		if now := w.in.InForce.Rollout != nil; now != under {
			if under = now; now {
				got.rollouts++
			}
		}
		if got.imbalance = Imbalance(w.last.Now); got.imbalance > 1.2 {
			got.high += 1.0 / minutes
		}
	}
	for _, h := range w.history {
		got.moves += len(h) - 1
	}
	return got
}

// dealt is the shipped configuration with partitions that are made anew and voted on.
func dealt() config.PlannerConfig {
	c := config.Default()
	c.Partition = config.Partition{LPT: &config.LPT{}}
	c.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour), MinSamples: 10}}
	return c
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
					got := week(t, clusters, seed+1, swing, config.Default())
					t.Logf("%s", got)
					if got.rollouts >= 7 || got.moves > clusters/5 {
						t.Errorf("%s, want fewer than one rollout a day, and no more than a fifth of the clusters", got)
					}
					if noise := swing == 0; noise && got.rollouts > 1 {
						t.Errorf("%s, want one rollout at most where noise is all that there is", got)
					}
					if seeds > 1 {
						anew := week(t, clusters, seed+1, swing, dealt())
						if t.Logf("with lpt and mostWanted: %s", anew); anew.rollouts >= 7 {
							t.Errorf("with lpt and mostWanted: %s, want fewer than one rollout a day", anew)
						}
					}
				})
			}
		}
	}
}
