package cycle

import (
	"fmt"
	"math"
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

// aWeek is what a fleet does in seven days: rollouts that began, clusters that moved, makespan over mean at the end, and the share of
// the minutes in which it was above a fifth more than the mean.
type aWeek struct {
	rollouts, moves int
	imbalance, high float64
}

// mostRollouts is how many a week of the shipped configuration may begin, at every swing.
const mostRollouts = 2

// String is a line for docs/soak.md.
func (w aWeek) String() string {
	return fmt.Sprintf("%d rollouts, %d moves, makespan over mean %.3f, above 1.2 for %.1f %% of the time", w.rollouts, w.moves, w.imbalance, 100*w.high)
}

// measured gives a fleet's loads to Prometheus, at so many hours since the week began.
type measured func(w *liveWorld, base []float64, hours float64)

// swinging has one metric, which swings by that share about its mean, and jitters by 5 %.
func swinging(swing float64, coin *rand.Rand) measured {
	return func(w *liveWorld, base []float64, hours float64) {
		for i, load := range base {
			w.setLoad(fmt.Sprintf("c%03d", i), load*hourOf(swing, i, hours)*jitter(coin))
		}
	}
}

// hourOf is what a cluster has of its mean at that hour: in one of three regions.
func hourOf(swing float64, cluster int, hours float64) float64 {
	return 1 + swing*math.Sin(2*math.Pi*(hours/24+float64(cluster%3)/3))
}

func jitter(coin *rand.Rand) float64 { return 1 + 0.05*(2*coin.Float64()-1) }

// shippedMetrics has the four that are shipped: objects, which stay, events and reconciles, which swing and jitter each by itself, and
// Applications. A cluster has many of one and few of another, always the same.
func shippedMetrics(swing float64, coin *rand.Rand) measured {
	return func(w *liveWorld, base []float64, hours float64) {
		for i, load := range base {
			name, kind := fmt.Sprintf("c%03d", i), 0.5+float64(i%7)/6
			day := hourOf(swing, i, hours)
			for k, value := range []float64{load * 900 * kind, load * day * jitter(coin) / kind, load * day * jitter(coin) * kind / 3, math.Ceil(load)} {
				sim.SetLoad(&w.in.Fetched[k], name, value)
			}
		}
	}
}

// TestAWeekByTheShippedMetricsRests: the shipped configuration as it is, its four metrics and weights too, from the first day on.
func TestAWeekByTheShippedMetricsRests(t *testing.T) {
	sizes := []int{60, 200}
	if sim.FromEnv(t, "BALLAST_WEEKS", 1) == 1 {
		sizes = sizes[:1]
	}
	for _, clusters := range sizes {
		t.Run(fmt.Sprintf("%d clusters", clusters), func(t *testing.T) {
			w, base, coin := newLiveWorld(sim.Lognormal(1, clusters)...), sim.Lognormal(1, clusters), rand.New(rand.NewPCG(1, 7))
			c := config.Default()
			c.Mode = w.in.Config.Mode
			w.in.Config, w.in.Fetched = c, nil
			for _, m := range loads.MetricsOf(c) {
				w.in.Fetched = append(w.in.Fetched, poll.Fetched{Metric: m.ID})
			}
			loads := shippedMetrics(0.2, coin)
			loads(w, base, 0)
			w.until(t, "the env is 16 and every Secret stamped", time.Hour, func(outcome.Outcome) bool {
				return standing.ControllerReplicas(w.in.Workload) == 16 && w.in.InForce.Rollout == nil
			})
			got := w.aWeek(base, loads)
			t.Logf("%s", got)
			if got.rollouts > mostRollouts || got.moves > clusters/5 {
				t.Errorf("%s, want %d rollouts at most, and no more than a fifth of the clusters", got, mostRollouts)
			}
			if len(w.last.Loads) != clusters || len(w.last.Table.Columns) != 4 {
				t.Errorf("%d loads of %d metrics, want %d of 4", len(w.last.Loads), len(w.last.Table.Columns), clusters)
			}
		})
	}
}

// week is that of the shipped configuration with those plans, without any change of the fleet. Each cluster has a day of its own kind: it swings by that share about its mean, at the hours of one of
// three regions, and jitters by 5 % from minute to minute.
func week(t *testing.T, clusters int, seed uint64, swing float64, plans config.PlannerConfig) aWeek {
	base := sim.Lognormal(seed, clusters)
	w := adopted(t, base...)
	w.in.Config.Change, w.in.Config.Evaluate, w.in.Config.Partition = plans.Change, plans.Evaluate, plans.Partition
	return w.aWeek(base, swinging(swing, rand.New(rand.NewPCG(seed, 7))))
}

// aWeek is the next one.
func (w *liveWorld) aWeek(base []float64, loads measured) (got aWeek) {
	under, begun := false, w.in.Now
	const minutes = 7 * 24 * 60
	for range minutes {
		loads(w, base, w.in.Now.Sub(begun).Hours())
		w.step(time.Minute)
		if now := w.in.InForce.Rollout != nil; now != under {
			if under = now; now {
				got.rollouts++
			}
		}
		if got.imbalance = outcome.Imbalance(w.last.Now); got.imbalance > 1.2 {
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

// TestAWeekOfTheShippedConfigurationRests: fewer than one rollout a day, of one small fleet of each swing and a large one whose days
// are of one kind, or of BALLAST_WEEKS of each size and swing. One week of partitions that are made anew is among them.
func TestAWeekOfTheShippedConfigurationRests(t *testing.T) {
	const small, large = 60, 200
	seeds := sim.FromEnv(t, "BALLAST_WEEKS", 1)
	swings := map[int][]float64{small: {0, 0.2, 0.4}, large: {0, 0.2, 0.4}}
	if seeds == 1 {
		swings[large] = swings[large][1:2] // each takes three times as long
	}
	for _, clusters := range []int{small, large} {
		for _, swing := range swings[clusters] {
			for seed := range seeds {
				t.Run(fmt.Sprintf("%d clusters, swing %.1f, seed %d", clusters, swing, seed+1), func(t *testing.T) {
					got := week(t, clusters, seed+1, swing, config.Default())
					t.Logf("%s", got)
					if got.rollouts > mostRollouts || got.moves > clusters/5 {
						t.Errorf("%s, want %d rollouts at most, and no more than a fifth of the clusters", got, mostRollouts)
					}
					if noise := swing == 0; noise && got.rollouts > 1 {
						t.Errorf("%s, want one rollout at most where noise is all that there is", got)
					}
					if seeds > 1 || clusters == small && swing == 0.2 {
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
