package cycle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/poll"
	"ballast/planner/sim"
)

// clustersOn is how many clusters each replica has.
func (w *liveWorld) clustersOn() []int {
	of := make([]int, w.in.InForce.Replicas)
	for _, row := range w.in.InForce.Clusters {
		of[row.Replica]++
	}
	return of
}

// rolloutsIn counts the rollouts that begin in so many minutes.
func (w *liveWorld) rolloutsIn(minutes int) (begun int) {
	under := w.in.InForce.Rollout != nil
	for range minutes {
		w.step(time.Minute)
		if now := w.in.InForce.Rollout != nil; now != under {
			if under = now; now {
				begun++
			}
		}
	}
	return begun
}

// What a replica had before a person emptied it keeps nothing from coming back to it.
func TestAReplicaThatComesBackIsFilled(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Cordon = "2=" + w.in.Now.Add(90*time.Minute).UTC().Format(time.RFC3339)
	w.cycles(90, func(int) {})
	if got := w.clustersOn(); got[2] != 0 {
		t.Fatalf("the replicas have %v clusters, and the last is to be empty", got)
	}
	w.in.Cordon = ""
	w.cycles(120, func(int) {})
	if got := w.clustersOn(); slices.Min(got) < 15 {
		t.Errorf("two hours after it was opened again the replicas have %v clusters", got)
	}
}

// A replica that gave clusters up may take others' when it is another that has too much.
func TestAnOverloadElsewhereIsRelievedToo(t *testing.T) {
	w := shippedPlans(t, 60)
	a, b := w.on(0)[0], w.on(1)[0]
	w.setLoad(a, 150)
	w.cycles(120, func(int) {})
	w.setLoad(a, 10)
	w.setLoad(b, 150)
	w.cycles(240, func(int) {})
	if got := outcome.Imbalance(w.last.Now); got > 1.18 {
		t.Errorf("makespan over mean %.2f, four hours after another replica had too much: %q", got, w.last.Candidate.Verdict)
	}
}

// A fleet whose replicas are busy at other hours, each with a region of its own, comes to rest at a better mix.
func TestReplicasThatAreBusyByTurnsAreMixed(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Change = config.Default().Change
	region := map[string]int{}
	for r := range 3 {
		for _, name := range w.on(r) {
			region[name] = r
		}
	}
	begun, over := w.in.Now, make([]int, 4)
	for minute := range 4 * 24 * 60 {
		hours := w.in.Now.Sub(begun).Hours()
		for name, r := range region {
			w.setLoad(name, 10*(1+0.3*math.Sin(2*math.Pi*(hours/24+float64(r)/3))))
		}
		w.step(time.Minute)
		if outcome.Imbalance(w.last.Now) > 1.2 {
			over[minute/1440]++
		}
	}
	moves := 0
	for _, h := range w.history {
		moves += len(h) - 1
	}
	if over[0] < 600 || over[3] > 300 || moves > 50 { // an even mix of all takes 40
		t.Errorf("above 1.2 for %v minutes of each day, by %d moves", over, moves)
	}
}

// An overload of a day in which nothing could move pays for no moves of another day.
func TestNobodySavesUpForAnotherDay(t *testing.T) {
	w := shippedPlans(t, 60)
	a := w.on(0)[0]
	w.setLoad(a, 150)
	w.in.Paused = true
	w.cycles(24*60, func(int) {})
	w.setLoad(a, 10)
	w.in.Paused = false
	w.cycles(48*60, func(int) {})
	w.setLoad(a, 150)
	w.cycles(1, func(int) {})
	w.setLoad(a, 10)
	w.cycles(60, func(int) {})
	if moved := w.moved(); len(moved) > 0 {
		t.Errorf("%v moved for a spike of a minute, two days later", moved)
	}
}

// A number of replicas that a person writes restarts the fleet once, where the mode restarts it, and the new one is not idle.
func TestANumberRestartsTheFleetOnce(t *testing.T) {
	for name, mode := range map[string]config.Rollout{
		"x0y": {X0Y: &config.X0YRollout{}}, "default that restarts": {Default: &config.DefaultRollout{RolloutRestart: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			mode.StageTimeout, w.in.Config.Rollout = w.in.Config.Rollout.StageTimeout, mode
			w.in.Config.Change.Restarts = config.Default().Change.Restarts
			w.cycles(30*60, func(int) {})
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 4}
			if begun, has := w.rolloutsIn(4*24*60), w.clustersOn(); begun != 1 || slices.Min(has) < 12 {
				t.Errorf("%d rollouts, and %v clusters; want one, and no replica idle", begun, has)
			}
		})
	}
}

// Growth by a capacity that restarts every pod is weighed against that, too.
func TestGrowthThatRestartsTheFleetHasToPayForIt(t *testing.T) {
	w := newLiveWorld(slices.Repeat([]float64{10}, 60)...)
	w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
	w.in.Config.Partition, w.in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	w.cycles(30, func(int) {})
	share := config.Decimal("0.4")
	w.in.Config.Partition.Capacity = &share
	w.cycles(10, func(int) {})
	for r, load := range []float64{160, 80, 80} {
		w.setLoad(w.on(r)[0], load)
	}
	first := -1
	for minute := range 12 * 60 {
		if w.step(time.Minute); first < 0 && !w.in.Memory.Changes.Restarted.IsZero() {
			first = minute
		}
	}
	if first >= 0 && first < 60 {
		t.Errorf("every pod restarted after %d min", first)
	}
}

// Time in which nobody measured is no evidence that a replica is not needed.
func TestAReplicaIsNotSpareUnseen(t *testing.T) {
	for name, unseen := range map[string]func(w *liveWorld){
		"no leader for seven hours": func(w *liveWorld) { w.in.Now = w.in.Now.Add(7 * time.Hour) },
		"lpt meanwhile": func(w *liveWorld) {
			three := 3
			w.in.Config.Partition.Sticky, w.in.Config.Partition.LPT, w.in.Config.Partition.MinReplicas = nil, &config.LPT{}, &three
			w.cycles(7*60, func(int) {})
			w.in.Config.Partition.Sticky, w.in.Config.Partition.LPT, w.in.Config.Partition.MinReplicas = config.Default().Partition.Sticky, nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			one := 1
			share := config.Decimal("1.0") // two would carry half each
			w.in.Config.Partition.Capacity, w.in.Config.Partition.MinReplicas = &share, &one
			w.cycles(3, func(int) {})
			unseen(w)
			w.in.Config.Partition.MinReplicas = &one
			if begun := w.rolloutsIn(5 * 60); begun != 0 {
				t.Errorf("%d rollouts within downWindow: %q", begun, w.last.Reason)
			}
			if begun := w.rolloutsIn(3 * 60); begun == 0 {
				t.Errorf("the replica is there still, after downWindow: %q", w.last.Candidate.Verdict)
			}
		})
	}
}

// An overload of which the values are held, since nobody measures them any more, pays for nothing.
func TestValuesThatNobodyMeasuresSaveNothing(t *testing.T) {
	w := shippedPlans(t, 60)
	w.cycles(60, func(int) {})
	a := w.on(0)[0]
	w.setLoad(a, 150)
	w.cycles(3, func(int) {})
	w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return s.Key == server(a) })
	if first := w.cycles(12*60, func(int) {}); first >= 0 {
		t.Errorf("after %d min %v moved", first, w.moved())
	}
}

// TestOneValueThatIsHeldKeepsNobodyWhereHeIs: of a cluster that fills its replica one small metric ended, and all that makes its load is
// measured. The others are levelled off it.
func TestOneValueThatIsHeldKeepsNobodyWhereHeIs(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Poll.Prometheus.Metrics = append(slices.Clone(w.in.Config.Poll.Prometheus.Metrics),
		config.Metric{ID: "beside", Query: "beside", Match: &config.Match{Label: "dest_server", To: config.MatchServer}})
	w.in.Config.Index.PNorm.Weights = map[string]config.Decimal{"apps": "0.95", "beside": "0.05"}
	w.in.Fetched = append(w.in.Fetched, poll.Fetched{Metric: "beside"})
	for _, s := range w.in.Discovered.Secrets {
		sim.SetLoad(&w.in.Fetched[1], s.Name, 1)
	}
	w.cycles(60, func(int) {})
	a := w.on(0)[0]
	w.setLoad(a, 150)
	w.cycles(3, func(int) {})
	w.in.Fetched[1].Samples = slices.DeleteFunc(w.in.Fetched[1].Samples, func(s poll.Sample) bool { return s.Key == server(a) })
	if first := w.cycles(6*60, func(int) {}); first < 0 {
		t.Errorf("nothing moved in six hours: %q", w.last.Candidate.Verdict)
	}
}

// A replica that has little for less than two hours is not filled for it.
func TestADipFillsNothing(t *testing.T) {
	for _, lasts := range []int{10, 20, 40, 90} {
		w := shippedPlans(t, 60)
		home := w.on(0)
		w.cycles(lasts+120, func(minute int) {
			for _, name := range home {
				w.setLoad(name, 10)
				if minute < lasts {
					w.setLoad(name, 1)
				}
			}
		})
		if moved := w.moved(); len(moved) > 0 {
			t.Errorf("a dip of %d min: %v moved", lasts, moved)
		}
	}
}

// What a person went back to is left alone for a horizon, however unlevel it is.
func TestARollbackLastsForAHorizon(t *testing.T) {
	w := shippedPlans(t, 60)
	earlier := w.in.InForce.Clone()
	for _, name := range w.on(1)[:9] {
		row := earlier.Clusters[name]
		row.Replica = 0
		earlier.Clusters[name] = row
	}
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
	w.until(t, "it is gone back to", time.Hour, func(out outcome.Outcome) bool { return out.Done })
	w.in.Rollback = nil
	undone := -1
	for minute := range 26 * 60 {
		if w.step(time.Minute); undone < 0 && len(w.on(0)) < 29 {
			undone = minute
		}
	}
	if undone < 24*60 {
		t.Errorf("levelling undid it after %d min, want a day at least", undone)
	}
}

// What nobody may move is an overload like any other to a partition that is made anew.
func TestWhatNobodyMayMoveCountsWhereAllIsDealtAnew(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Partition = config.Partition{LPT: &config.LPT{}}
	own := w.on(0)[0]
	w.secret(own).Unmanaged = true
	w.setLoad(own, 200)
	if first := w.cycles(6*60, func(int) {}); first < 0 {
		t.Errorf("nothing moved: %q", w.last.Candidate.Verdict)
	}
}

// An overload that nothing can relieve is told as that.
func TestAnOverloadThatNothingRelievesIsTold(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Partition.MaxClustersPerReplica = 20
	w.setLoad(w.on(0)[0], 150)
	w.cycles(120, func(int) {})
	if want := "stays as it is, though replica 0 carries more than it may: "; !strings.HasPrefix(w.last.Candidate.Verdict, want) {
		t.Errorf("%q, want %q", w.last.Candidate.Verdict, want)
	}
}

// Who keeps more replicas than a number says is told once a cycle.
func TestReplicasHeldIsToldOnce(t *testing.T) {
	w := shippedPlans(t, 60)
	w.secret(w.on(2)[0]).Immutable = true
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2}
	for range 30 {
		w.step(time.Minute)
		told := 0
		for _, p := range w.last.Problems {
			if p.Kind == "ReplicasHeld" {
				told++
			}
		}
		if told > 1 {
			t.Fatalf("told %d times: %v", told, problems(w.last))
		}
	}
	if !slices.ContainsFunc(problems(w.last), func(p string) bool { return strings.Contains(p, "ReplicasHeld") }) {
		t.Errorf("not told: %v", fmt.Sprint(problems(w.last)))
	}
}

// What a person said that a replica may carry waits for no quarter of an hour: two looks above it are enough, where few moves mend that.
func TestWhatIsAboveTheCapacityWaitsForNothing(t *testing.T) {
	never := [2]int{-1, -1}
	for name, test := range map[string]struct {
		capacity config.Decimal
		load     float64 // of the first cluster of replica 0
		lasts    int     // minutes
		set      func(w *liveWorld)
		between  [2]int // minutes after which the first cluster moves
	}{
		"a spike of ten minutes":                {capacity: "0.45", load: 95, lasts: 10, between: [2]int{1, 4}},
		"one look":                              {capacity: "0.45", load: 95, lasts: 1, between: never},
		"below the capacity":                    {capacity: "0.45", load: 75, lasts: 10, between: never},
		"only one more replica mends it":        {capacity: "0.37", load: 60, lasts: 10, between: never},
		"thousandfold":                          {capacity: "0.45", load: 10_000, lasts: 10, between: never},
		"each move restarts every replica":      {capacity: "0.45", load: 95, lasts: 10, between: never, set: restartsAll},
		"a person went back to an earlier plan": {capacity: "0.45", load: 95, lasts: 10, between: never, set: func(w *liveWorld) { w.in.Memory.Savings.Back = w.in.Now }},
		"nobody said what a replica may carry":  {load: 95, lasts: 10, between: never},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			if test.capacity != "" {
				w.in.Config.Partition.Capacity = &test.capacity
			}
			w.cycles(60, func(int) {})
			if test.set != nil {
				test.set(w)
			}
			spikes := w.on(0)[0]
			first := w.cycles(40, func(minute int) {
				if w.setLoad(spikes, 10); minute < test.lasts {
					w.setLoad(spikes, test.load)
				}
			})
			if first < test.between[0] || first > test.between[1] {
				t.Errorf("%d clusters moved, the first after %d min, want %v; %s", len(w.moved()), first, test.between, w.last.Candidate.Verdict)
			}
			if at := w.moved()[spikes]; at != nil || len(w.moved()) > 5 {
				t.Errorf("%v moved", w.moved())
			}
		})
	}
}

func restartsAll(w *liveWorld) {
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
	w.in.Config.Change.Restarts = config.Default().Change.Restarts
}

// People read why moves begin that have not paid for themselves.
func TestWhatWaitsForNothingSaysWhy(t *testing.T) {
	w := shippedPlans(t, 60)
	capacity := config.Decimal("0.45")
	w.in.Config.Partition.Capacity = &capacity
	w.cycles(60, func(int) {})
	w.setLoad(w.on(0)[0], 95)
	out := w.until(t, "something moves", 5*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil })
	if want := "replica 0 above partition.capacity waits for nothing: would have saved "; !strings.Contains(out.Reason, want) {
		t.Errorf("%q is not in the reason %q", want, out.Reason)
	}
}
