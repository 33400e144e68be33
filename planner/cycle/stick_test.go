package cycle

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/sim"
)

// shippedPlans is an adopted fleet under the shipped partition and evaluation, three replicas, evenly loaded.
func shippedPlans(t *testing.T, clusters int) *liveWorld {
	t.Helper()
	return shippedPlansOf(t, slices.Repeat([]float64{10}, clusters)...)
}

func shippedPlansOf(t *testing.T, loads ...float64) *liveWorld {
	t.Helper()
	w := adopted(t, loads...)
	w.until(t, "it is level", 3*time.Hour, func(out outcome.Outcome) bool {
		return w.in.InForce.Rollout == nil && outcome.Imbalance(out.Now) < 1.05
	})
	w.in.Config.Evaluate, w.in.Config.Partition = config.Default().Evaluate, config.Default().Partition
	w.history = map[string][]int{}
	w.step(time.Minute)
	return w
}

// cycles runs as many cycles, a minute each, and answers how many had passed when the first cluster moved; -1: none did.
func (w *liveWorld) cycles(cycles int, each func(minute int)) int {
	first := -1
	for minute := range cycles {
		each(minute)
		w.step(time.Minute)
		if first < 0 && len(w.moved()) > 0 {
			first = minute
		}
	}
	return first
}

// An overload that lasts moves the fewest clusters that mend it, the sooner the more they mend; a spike moves none.
func TestTheShippedPlansMoveWhatPays(t *testing.T) {
	for name, test := range map[string]struct {
		grow    float64 // what the first cluster of replica 0 has from now on
		lasts   int     // minutes
		moves   int
		between [2]int // minutes after which the first one moves
	}{
		"within its bounds":          {grow: 25, lasts: 24 * 60, between: [2]int{-1, -1}},
		"a little more":              {grow: 80, lasts: 24 * 60, moves: 3, between: [2]int{20, 90}},
		"a lot":                      {grow: 150, lasts: 24 * 60, moves: 7, between: [2]int{14, 24}},
		"a lot, for ten minutes":     {grow: 150, lasts: 10, between: [2]int{-1, -1}},
		"thousandfold, for a moment": {grow: 10_000, lasts: 1, between: [2]int{-1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			grows := w.on(0)[0]
			first := w.cycles(24*60, func(minute int) {
				w.setLoad(grows, 10)
				if minute < test.lasts {
					w.setLoad(grows, test.grow)
				}
			})
			if first < test.between[0] || first > test.between[1] || len(w.moved()) != test.moves {
				t.Errorf("%d clusters moved, the first after %d min, want %d after %d to %d; %v", len(w.moved()), first, test.moves, test.between[0], test.between[1], w.moved())
			}
			if at := w.moved()[grows]; at != nil {
				t.Errorf("%s itself moved: %v", grows, at)
			}
		})
	}
}

// People read what moves are worth, and what those wait for that are not yet.
func TestAPlanSaysWhatItIsWorth(t *testing.T) {
	w := shippedPlans(t, 60)
	verdict := func() string { return w.last.Candidate.Verdict }
	if want := "stays as it is: no replica carries more than it may"; verdict() != want {
		t.Errorf("%q, want %q", verdict(), want)
	}
	w.setLoad(w.on(0)[0], 80)
	w.step(time.Minute)
	if !strings.HasPrefix(verdict(), "waits until it pays: it would have saved ") {
		t.Errorf("%q", verdict())
	}
	out := w.until(t, "something moves", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil })
	for _, part := range []string{"moves 3 of 60 clusters, 3 replicas instead of 3", "would have saved", "load hours of overload so far, and costs"} {
		if !strings.Contains(out.Reason, part) {
			t.Errorf("%q is not in the reason %q", part, out.Reason)
		}
	}
}

// Whoever has the number of replicas, one that is added gets its share, and one that is taken away gives up what it has.
func TestReplicasOfPeopleAreFilled(t *testing.T) {
	on := func(w *liveWorld) []int {
		of := make([]int, w.in.InForce.Replicas)
		for _, row := range w.in.InForce.Clusters {
			of[row.Replica]++
		}
		return of
	}
	for name, set := range map[string]func(w *liveWorld, replicas int){
		"the workload's": func(w *liveWorld, replicas int) {
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = replicas, replicas, replicas, replicas
		},
		"a number": func(w *liveWorld, replicas int) {
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: replicas}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			set(w, 4)
			w.cycles(120, func(int) {})
			if got := on(w); slices.Min(got) < 8 || slices.Max(got) > 17 || len(w.moved()) > 15 {
				t.Errorf("four replicas have %v clusters after %d moves", got, len(w.moved()))
			}
			w.history = map[string][]int{}
			set(w, 3)
			w.cycles(120, func(int) {})
			if got := on(w); len(got) != 3 || slices.Min(got) < 17 || slices.Max(got) > 23 {
				t.Errorf("three replicas have %v clusters", got)
			}
			after := maps.Clone(w.moved())
			w.cycles(600, func(int) {})
			if diff := cmp.Diff(after, w.moved()); diff != "" {
				t.Errorf("and it does not rest (-before +after):\n%s", diff)
			}
		})
	}
}

// By a capacity replicas come for an overload that has lasted, and the highest goes once it has not been needed for downWindow.
func TestTheCapacityBringsReplicasAndTakesThemAway(t *testing.T) {
	w := shippedPlans(t, 60)
	share := config.Decimal("0.4") // of the whole fleet, which is 1: three replicas carry 1/3
	w.in.Config.Partition.Capacity = &share
	if first := w.cycles(12*60, func(int) {}); first >= 0 || w.in.InForce.Replicas != 3 {
		t.Fatalf("%d replicas, and %v moved: a capacity that fits changes nothing", w.in.InForce.Replicas, w.moved())
	}
	for i := range 60 {
		w.setLoad(fmt.Sprintf("c%03d", i), 14)
	}
	w.cycles(90, func(int) {})
	if got := w.in.InForce.Replicas; got != 4 || w.most() > 17 {
		t.Errorf("%d replicas with %d clusters at most, want 4", got, w.most())
	}
	for i := range 60 {
		w.setLoad(fmt.Sprintf("c%03d", i), 8)
	}
	w.cycles(6*60-10, func(int) {})
	if got := w.in.InForce.Replicas; got != 4 {
		t.Errorf("%d replicas within downWindow, want 4", got)
	}
	w.cycles(6*60, func(int) {})
	if got := w.in.InForce.Replicas; got != 3 {
		t.Errorf("%d replicas after it, want 3", got)
	}
}

// LPT may be weighed, too: it is taken whole or not at all.
func TestAPartitionMadeAnewIsWeighed(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Partition = config.Partition{LPT: &config.LPT{}}
	w.setLoad(w.on(0)[0], 12)
	if first := w.cycles(24*60, func(int) {}); first >= 0 {
		t.Errorf("after %d min %v moved for next to nothing", first, w.moved())
	}
	w.setLoad(w.on(0)[0], 200)
	w.cycles(6*60, func(int) {})
	if got := outcome.Imbalance(w.last.Now); got > 1.05 {
		t.Errorf("makespan over mean %.2f, want 1.05 at most", got)
	}
}

// A new leader goes on with what has been saved so far.
func TestANewLeaderKnowsWhatMovesWouldHaveSaved(t *testing.T) {
	w := shippedPlans(t, 60)
	w.setLoad(w.on(0)[0], 150)
	w.cycles(10, func(int) {})
	before := w.in.Memory
	w.in = clone(t, w.in)
	if diff := cmp.Diff(before.Savings, w.in.Memory.Savings); diff != "" || before.Savings.Of[0] <= 0 {
		t.Fatalf("savings %v (-before +after):\n%s", before.Savings, diff)
	}
	if first := w.cycles(20, func(int) {}); first < 0 || first > 13 {
		t.Errorf("moved after %d min more, want 14 at most", first)
	}
}

// What is frozen, or done, keeps saving; nothing begins.
func TestAFreezeSpendsNothing(t *testing.T) {
	w := shippedPlans(t, 60)
	w.setLoad(w.on(0)[0], 150)
	w.in.Paused = true
	if first := w.cycles(120, func(int) {}); first >= 0 {
		t.Errorf("%v moved in a freeze", w.moved())
	}
	if !strings.HasPrefix(w.last.Candidate.Verdict, "nothing begins while ") {
		t.Errorf("%q", w.last.Candidate.Verdict)
	}
	if worth := w.last.Candidate.Worth; worth == nil || worth.Mends <= 0 || worth.Costs <= 0 || worth.Saved < worth.Costs {
		t.Errorf("what it gains and costs is %+v, want that it pays", worth)
	}
	w.in.Paused = false
	if first := w.cycles(5, func(int) {}); first < 0 {
		t.Errorf("nothing moved once it was over: %q", w.last.Candidate.Verdict)
	}
}

// What a cluster beside ballast makes, which nobody may move, is left where it is, and counts.
func TestWhatNobodyMayMoveStays(t *testing.T) {
	w := shippedPlans(t, 60)
	own := w.on(0)[0]
	w.secret(own).Unmanaged = true
	w.setLoad(own, 150)
	w.cycles(120, func(int) {})
	if got := w.owners()[own]; got != 0 {
		t.Errorf("%s went to replica %d", own, got)
	}
	if n := len(w.on(0)); n > 14 || n < 10 {
		t.Errorf("%d clusters are left beside it, want what fits", n)
	}
}

// Moves that restart every replica are worth what they cost once they would have saved what all of it costs to start anew.
func TestARestartOfTheFleetHasToPay(t *testing.T) {
	for name, mode := range map[string]config.Rollout{
		"x0y":                   {X0Y: &config.X0YRollout{}},
		"default that restarts": {Default: &config.DefaultRollout{RolloutRestart: true}},
		"default":               {Default: &config.DefaultRollout{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			mode.StageTimeout = w.in.Config.Rollout.StageTimeout
			w.in.Config.Rollout = mode
			w.setLoad(w.on(0)[0], 150)
			first := w.cycles(12*60, func(int) {})
			between := [2]int{14, 30}
			if mode.X0Y != nil || mode.Default.RolloutRestart {
				between = [2]int{120, 240} // a seventh of all is too much
			}
			if first < between[0] || first > between[1] {
				t.Errorf("the first cluster moved after %d min, want %v: %q", first, between, w.last.Candidate.Verdict)
			}
		})
	}
}

// TestX0YLevelsWithinTheShippedLimits: by the shipped plans, rates and intervals together a fleet that is worth it is levelled, and every
// replica stops once a day for it.
func TestX0YLevelsWithinTheShippedLimits(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Change = config.Default().Change
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
	w.setLoad(w.on(0)[0], 150)
	var stops []int
	stopped, had := false, len(w.on(0))
	for minute := range 4 * 24 * 60 {
		w.step(time.Minute)
		if p := w.in.InForce; p.StopsAll() != stopped {
			if stopped = !stopped; stopped {
				stops = append(stops, minute)
			}
		}
	}
	has := len(w.on(0))
	if len(stops) == 0 || stops[0] > 36*60 || has >= had-3 {
		t.Errorf("it stops in the minutes %v, want one within 36 hours; replica 0 has %d clusters, before %d: %q", stops, has, had,
			w.last.Candidate.Verdict)
	}
	for i := 1; i < len(stops); i++ {
		if stops[i]-stops[i-1] < 24*60 {
			t.Errorf("it stops in the minutes %v, want a day between them", stops)
		}
	}
}

// TestASteadyFleetWritesNoPlan: 5 % of jitter for a day of cycles, a minute each, and the plan is written not once: of a fleet of equal
// loads, and of heavy-tailed ones. A week of each, and of more and larger fleets, in make soak.
func TestASteadyFleetWritesNoPlan(t *testing.T) {
	seeds, days, sizes := sim.FromEnv(t, "BALLAST_WEEKS", 1), 1, []int{60}
	if seeds > 1 {
		days, sizes = 7, []int{60, 200}
	}
	t.Run("equal loads", func(t *testing.T) { writesNothing(t, slices.Repeat([]float64{10}, 60), 1, days) })
	for _, clusters := range sizes {
		for seed := range min(seeds, 3) {
			t.Run(fmt.Sprintf("lognormal, %d clusters, seed %d", clusters, seed+1), func(t *testing.T) {
				writesNothing(t, sim.Lognormal(seed+1, clusters), seed+1, days)
			})
		}
	}
}

// writesNothing runs a levelled fleet for so many days of 5 % of jitter about its loads.
func writesNothing(t *testing.T, loads []float64, seed uint64, days int) {
	t.Helper()
	w := shippedPlansOf(t, loads...)
	w.in.Config.Change = config.Default().Change
	r := rand.New(rand.NewPCG(seed, 5))
	for minute := range days * 24 * 60 {
		for i, load := range loads {
			w.setLoad(fmt.Sprintf("c%03d", i), load*math.Exp(0.05*r.NormFloat64()))
		}
		if out := w.step(time.Minute); out.Changed {
			t.Fatalf("minute %d writes a plan: %s", minute, out.Reason)
		}
	}
}
