package cycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sharding"
)

// TestAnEnvThatCannotBeSeenMakesNoPlanByItself: what comes from a reference is not an env of 1.
func TestAnEnvThatCannotBeSeenMakesNoPlanByItself(t *testing.T) {
	unseen := func(mode plan.Mode) *world {
		w := newWorld(skewed(12)...)
		w.in.Config.Mode = mode
		w.in.Workload.EnvReplicas, w.in.Workload.EnvUnknown = nil, true
		for i := range w.in.Discovered.Secrets {
			w.in.Discovered.Secrets[i].Shard = discover.ShardValue{}
		}
		return w
	}
	owner := func(i int) int { return (i*7 + 1) % 3 } // by no algorithm of Argo CD's
	for _, mode := range []plan.Mode{plan.Observe, plan.Hold, plan.Enforce} {
		t.Run(string(mode), func(t *testing.T) {
			w := unseen(mode)
			w.run(30)
			if w.in.InForce != nil || !slices.Contains(problems(w.last), "discover/EnvUnknown/argocd-application-controller") {
				t.Fatalf("plan %+v, told %v; want none before anybody knows who has what", w.in.InForce, problems(w.last))
			}
			for _, s := range w.in.Discovered.Secrets {
				if s.Shard.State == discover.ShardValid {
					t.Fatalf("%s was stamped", s.Name)
				}
			}
			w.in.Owners = poll.Fetched{}
			for i, s := range w.in.Discovered.Secrets {
				key := fmt.Sprintf("argocd-application-controller-%d|%s", owner(i), s.Server)
				w.in.Owners.Samples = append(w.in.Owners.Samples, poll.Sample{Key: key, Value: 1})
			}
			w.run(1)
			if w.in.InForce == nil {
				t.Fatalf("no plan though every pod says what it has: %v", problems(w.last))
			}
			for i, s := range w.in.Discovered.Secrets {
				if got := w.row(t, s.Name); got != owner(i) {
					t.Errorf("%s is on replica %d by the first plan, and replica %d has it", s.Name, got, owner(i))
				}
			}
			if w.in.InForce.Replicas != 3 || w.in.InForce.ControllerReplicas != 0 {
				t.Errorf("%d replicas, env %d; want the 3 that run, and an env that is not held", w.in.InForce.Replicas, w.in.InForce.ControllerReplicas)
			}
		})
	}
	t.Run("explicit shards say it too", func(t *testing.T) {
		w := unseen(plan.Hold)
		for i := range w.in.Discovered.Secrets {
			w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: owner(i)}
		}
		w.run(1)
		for i, s := range w.in.Discovered.Secrets {
			if got := w.row(t, s.Name); got != owner(i) {
				t.Errorf("%s is on replica %d, and its Secret says %d", s.Name, got, owner(i))
			}
		}
	})
	t.Run("what has no Applications keeps none waiting", func(t *testing.T) {
		w := unseen(plan.Hold)
		w.in.Observed.Reported = ownership.Observation{Asked: true, Clusters: map[string]ownership.ClusterObservation{}}
		for i, s := range w.in.Discovered.Secrets {
			seen := ownership.ClusterObservation{Apps: 3, Owners: []int{owner(i)}}
			if i == 0 {
				seen = ownership.ClusterObservation{}
			}
			w.in.Observed.Reported.Clusters[s.Name] = seen
		}
		w.run(1)
		if w.in.InForce == nil {
			t.Fatalf("no plan: %v", problems(w.last))
		}
	})
}

// TestAReferenceIsBelievedWhereThePodsBearItOut: what a ConfigMap says now, pods may have started before.
func TestAReferenceIsBelievedWhereThePodsBearItOut(t *testing.T) {
	fleet := func(said string, runs int, shown map[int]bool) (*world, []int) {
		w := newWorld(skewed(12)...)
		w.in.Config.Mode = plan.Hold
		w.in.Workload.EnvReplicas, w.in.Workload.EnvUnknown, w.in.Workload.EnvSaid = nil, true, &said
		for i := range w.in.Discovered.Secrets {
			w.in.Discovered.Secrets[i].Shard = discover.ShardValue{}
		}
		found, _, err := discover.Discover(w.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, w.in.Now)
		if err != nil {
			t.Fatal(err)
		}
		owners := sharding.Owners(found.Clusters, sharding.Legacy, runs, nil)
		w.in.Owners = poll.Fetched{}
		for i, c := range found.Clusters {
			if shown[i] {
				w.in.Owners.Samples = append(w.in.Owners.Samples, poll.Sample{Key: fmt.Sprintf("argocd-application-controller-%d|%s", owners[i], c.Shard.Server), Value: 1})
			}
		}
		return w, owners
	}
	some, all := map[int]bool{0: true, 5: true, 7: true}, map[int]bool{}
	for i := range 12 {
		all[i] = true
	}
	for name, test := range map[string]struct {
		said  string
		runs  int // the number that the pods started with
		shown map[int]bool
		plan  bool
	}{
		"some bear it out":                       {"3", 3, some, true},
		"it leads nowhere, as they bear out":     {"", 1, some, true},
		"none says anything":                     {"3", 3, nil, false},
		"they started with another":              {"3", 2, some, false},
		"with another, and all say what they do": {"3", 2, all, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, owners := fleet(test.said, test.runs, test.shown)
			w.run(1)
			if got := w.in.InForce != nil; got != test.plan {
				t.Fatalf("a plan: %t, want %t: %v", got, test.plan, problems(w.last))
			}
			if !test.plan {
				if !slices.Contains(problems(w.last), "discover/EnvUnknown/argocd-application-controller") {
					t.Errorf("told %v", problems(w.last))
				}
				return
			}
			for i, c := range w.last.Fleet.Clusters {
				if got := w.row(t, c.Shard.ID); got != owners[i] {
					t.Errorf("%s is on replica %d by the first plan, and replica %d has it", c.Shard.ID, got, owners[i])
				}
			}
			if w.in.InForce.Replicas != 3 || w.in.InForce.ControllerReplicas != 0 {
				t.Errorf("%d replicas, env %d; want the 3 that run, and an env that is not held", w.in.InForce.Replicas, w.in.InForce.ControllerReplicas)
			}
		})
	}
}

// TestAClockThatWasAheadHidesNothing: for one cycle the clock was six hours ahead.
func TestAClockThatWasAheadHidesNothing(t *testing.T) {
	type seen struct{ Orphaned, Doubled time.Duration }
	after := func(jump time.Duration) (got seen) {
		w := adopted(t, skewed(12)...)
		w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
		w.step(time.Minute)
		if jump > 0 {
			w.step(jump)
			w.in.Now = w.in.Now.Add(-jump)
			w.step(time.Minute)
		}
		at := w.in.Now
		w.taken["c004"] = true
		w.doubled = map[string]bool{"c005": true}
		for range 15 {
			out := w.step(time.Minute)
			if len(out.Verdict.Orphans) > 0 && got.Orphaned == 0 {
				got.Orphaned = w.in.Now.Sub(at)
			}
			if len(out.Verdict.Doubled) > 0 && got.Doubled == 0 {
				got.Doubled = w.in.Now.Sub(at)
			}
		}
		return got
	}
	want := after(0)
	if want.Orphaned == 0 || want.Doubled == 0 {
		t.Fatalf("nothing is seen at all: %+v", want)
	}
	if diff := cmp.Diff(want, after(6*time.Hour)); diff != "" {
		t.Errorf("after a clock that was ahead (-without it +with it):\n%s", diff)
	}
}

// TestAStageOfTheFutureHasItsDeadline: a stage that began while the clock was ahead ends as late as any.
func TestAStageOfTheFutureHasItsDeadline(t *testing.T) {
	w := newWorld(skewed(12)...)
	w.run(1)
	ahead := w.in.Now.Add(6 * time.Hour)
	p := w.in.InForce.Clone()
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Scaling, Since: ahead, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 3, Wave: 1}
	w.in.InForce = &p
	w.in.Memory.Changes = memory.Changes{Counted: ahead}
	out := Run(w.in)
	if !out.Changed || out.Next.Rollout != nil && out.Next.Rollout.Since.After(w.in.Now) {
		t.Errorf("changed %t, rollout %+v; want its beginning to be now, and written", out.Changed, out.Next.Rollout)
	}
	if got := out.Memory.Changes.Ledger; len(got) != 0 {
		t.Errorf("moves were counted a second time: %v", got)
	}
}

// TestThatAStageBeganNowIsWritten, though nothing else changes: its deadline would pass for no leader that reads it from the plan.
func TestThatAStageBeganNowIsWritten(t *testing.T) {
	w := newWorld(skewed(12)...)
	w.in.Config.Mode = plan.Hold
	w.run(1)
	p := w.in.InForce.Clone()
	p.Rollout = &plan.Rollout{Mode: plan.ModeDefault, Stage: plan.Scaling, Since: w.in.Now, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 3, ControllerReplicas: 3}
	w.in.InForce = &p
	if out := Run(w.in); out.Changed {
		t.Fatalf("a held rollout changed: %s", out.Reason)
	}
	ahead := p.Clone()
	ahead.Rollout.Since = w.in.Now.Add(6 * time.Hour)
	w.in.InForce = &ahead
	out := Run(w.in)
	if !out.Changed || out.Next.Rollout == nil || !out.Next.Rollout.Since.Equal(w.in.Now) {
		t.Errorf("changed %t, rollout %+v; want its beginning to be now, and written", out.Changed, out.Next.Rollout)
	}
}

// TestMaxReplicasBelowAPinRests: to the webhook a pin holds as long as its replica stands, so it keeps the replica.
func TestMaxReplicasBelowAPinRests(t *testing.T) {
	for name, rollout := range map[string]config.Rollout{
		"default": {Default: &config.DefaultRollout{}, StageTimeout: config.Duration(10 * time.Minute)},
		"x0y":     {X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)},
		"live":    {Live: &config.LiveRollout{MaxMovesPerWave: 5, Adopt: config.AdoptNow}, StageTimeout: config.Duration(10 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(slices.Repeat([]float64{10}, 24)...)
			four := 4
			w.in.Config.Rollout, w.in.Config.Partition.MaxReplicas = rollout, &four
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 4}
			w.in.Pins = plan.Pins{"c001": 3}
			w.minutes(60)
			if w.in.InForce.Replicas != 4 || w.row(t, "c001") != 3 {
				t.Fatalf("%d replicas, c001 on %d; the test needs 4 and 3", w.in.InForce.Replicas, w.row(t, "c001"))
			}
			three := 3
			w.in.Config.Partition.MaxReplicas, w.in.Config.Partition.Replicas = &three, nil
			w.minutes(60)
			writes, flips, last := w.writes, 0, w.row(t, "c001")
			for range 24 * 60 {
				w.minutes(1)
				if at := w.row(t, "c001"); at != last {
					last = at
					flips++
				}
			}
			if made := w.writes - writes; flips != 0 || last != 3 || made > 2 {
				t.Errorf("in a day the plan was written %d times, and c001 changed its replica %d times, to %d", made, flips, last)
			}
			if !slices.Contains(problems(w.last), "partition/ReplicasHeld/c001") {
				t.Errorf("nobody is told: %v", problems(w.last))
			}
		})
	}
}

// TestAPlanWithoutClustersPanicsNoCycle: whoever wrote it.
func TestAPlanWithoutClustersPanicsNoCycle(t *testing.T) {
	w := newWorld(skewed(6)...)
	w.run(1)
	want := w.in.InForce.Clusters
	p := w.in.InForce.Clone()
	p.Clusters = nil
	w.in.InForce = &p
	w.run(1)
	if diff := cmp.Diff(want, w.in.InForce.Clusters); diff != "" {
		t.Errorf("the rows (-before +after):\n%s", diff)
	}
}

// restless is a fleet in that mode with the shipped limits, whose load is elsewhere every three hours: it never comes to rest.
func restless(t *testing.T, r config.Rollout) *liveWorld {
	t.Helper()
	w := newLiveWorld(skewed(40)...)
	r.StageTimeout = config.Duration(10 * time.Minute)
	w.in.Config.Rollout = r
	w.in.Config.Change = config.Default().Change
	w.step(time.Minute)
	return w
}

func (w *liveWorld) shift(hour int) {
	for i, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, float64(10+90*((i+hour/3)%4/3)))
	}
}

// TestTheFleetRestartsOnceADay: what ballast decides by itself. It was 7.5 restarts a day in mode default; x0y stopped every replica up
// to 63 times a day without a budget, and never with the shipped one, which had no room for all that was to move.
func TestTheFleetRestartsOnceADay(t *testing.T) {
	for name, r := range map[string]config.Rollout{
		"default": {Default: &config.DefaultRollout{RolloutRestart: true}},
		"x0y":     {X0Y: &config.X0YRollout{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := restless(t, r)
			var restarts []time.Time
			marked, stood := w.in.Workload.RestartedAt, false
			note := func() {
				stands := w.in.Workload.Replicas == 0
				if w.in.Workload.RestartedAt != marked || stands && !stood {
					restarts = append(restarts, w.in.Now)
				}
				marked, stood = w.in.Workload.RestartedAt, stands
			}
			const days = 4
			waits := 0
			for minute := range days * 24 * 60 {
				if minute%180 == 0 {
					w.shift(minute / 60)
				}
				w.step(time.Minute)
				if note(); w.last.Candidate != nil && strings.Contains(w.last.Candidate.Verdict, "(change.restarts.every is 24h0m0s)") {
					waits++
				}
			}
			if n := len(restarts); n < days-1 || n > days {
				t.Errorf("%d restarts in %d days, want one a day: %v", n, days, restarts)
			}
			for i := range len(restarts) - 1 {
				if apart := restarts[i+1].Sub(restarts[i]); apart < 24*time.Hour {
					t.Errorf("two restarts are %s apart", apart)
				}
			}
			if waits == 0 {
				t.Error("nobody is told what a change waits for")
			}
			before := len(restarts)
			w.in.Pins = plan.Pins{"c007": 4} // a person's word waits for no day
			w.until(t, "five replicas", time.Hour, func(outcome.Outcome) bool { note(); return w.in.Workload.Replicas == 5 && w.in.InForce.Rollout == nil })
			if name == "x0y" && len(restarts) != before+1 {
				t.Errorf("a pin of data.pins: %d stops, want one", len(restarts)-before)
			}
		})
	}
}

// TestWhatIsRefusedKeepsOthersNotWaiting: behind a pin that waits for a day a person's rollback waited for as long.
func TestWhatIsRefusedKeepsOthersNotWaiting(t *testing.T) {
	w := newLiveWorld(skewed(12)...)
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}}
	w.in.Config.Partition.MaxReplicas = ptr.To(6)
	w.step(time.Minute)
	earlier := w.in.InForce.Clone()
	to := 1 - min(w.row(t, "c003"), 1)
	w.in.Pins = plan.Pins{"c003": to}
	w.add("own", 0)
	w.idle = map[string]bool{"own": true}
	w.step(time.Minute)
	w.in.Pins = nil
	for pin := 3; pin < 5; pin++ {
		w.secret("own").Pin = strconv.Itoa(pin)
		for range 30 {
			w.step(time.Minute)
		}
	}
	if !slices.Contains(problems(w.last), "rollout/PinWaits/Pin") || w.row(t, "c003") != to {
		t.Fatalf("the test needs a pin that waits, and c003 on %d: %v, on %d", to, problems(w.last), w.row(t, "c003"))
	}
	w.in.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	w.until(t, "the earlier plan holds", time.Hour, func(out outcome.Outcome) bool { return out.Done })
	if at := w.row(t, "c003"); at != earlier.Clusters["c003"].Replica {
		t.Errorf("c003 is on %d, want %d as before", at, earlier.Clusters["c003"].Replica)
	}
}

// TestARolloutThatFailsAgainAndAgainStopsBallast: replicas that never become ready were asked for every 40 minutes, for ever.
func TestARolloutThatFailsAgainAndAgainStopsBallast(t *testing.T) {
	w := adopted(t, skewed(12)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
	tries, was := 0, false
	day := func() {
		for range 24 * 60 {
			w.in.Workload.ReadyReplicas = min(w.in.Workload.Replicas, 3)
			w.step(time.Minute)
			grows := w.in.InForce.Rollout != nil && w.in.InForce.Rollout.Replicas == 5
			if grows && !was {
				tries++
			}
			was = grows
		}
	}
	day()
	trip := w.last.Memory.Changes.Trip
	if tries != 3 || trip == nil || trip.Reason != harm.Failing || trip.Cause != change.Balance {
		t.Fatalf("%d tries in a day, want 3, and the trip is %+v", tries, trip)
	}
	if !strings.HasPrefix(trip.Why, "a rollout (Balance: 3 to 5 replicas, ARGOCD_CONTROLLER_REPLICAS 16 to 16) failed 3 times within a day, the last time: ") {
		t.Errorf("it says %q", trip.Why)
	}
	if w.in.Workload.Replicas != 3 || !slices.Contains(problems(w.last), "rollout/Tripped/") {
		t.Errorf("%d replicas, %v", w.in.Workload.Replicas, problems(w.last))
	}
	day()
	w.in.Tripped = trip.Why // the annotation, which a person then takes away
	w.step(time.Minute)
	w.in.Tripped = ""
	day()
	if tries != 6 {
		t.Errorf("%d tries, want three more after a person's word", tries-3)
	}
}

// TestAnEnvBelowTheReplicasIsMended in each mode, though a Secret that nobody may write names a replica beyond it: what the env heals was
// what it waited for, and 18 of 24 clusters had several owners for ever.
func TestAnEnvBelowTheReplicasIsMended(t *testing.T) {
	for name, test := range map[string]struct {
		rollout config.Rollout
		env     string
		want    int
	}{
		"live":            {config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5}}, "3", 16},
		"default":         {config.Rollout{Default: &config.DefaultRollout{}}, "3", 6},
		"x0y":             {config.Rollout{X0Y: &config.X0YRollout{}}, "3", 6},
		"default, no env": {config.Rollout{Default: &config.DefaultRollout{}}, "", 6},
	} {
		for _, stays := range []string{"immutable", "unmanaged", "nothing"} {
			t.Run(name+", "+stays, func(t *testing.T) {
				w := newLiveWorld(skewed(24)...)
				test.rollout.StageTimeout = config.Duration(10 * time.Minute)
				w.in.Config.Rollout = test.rollout
				w.in.Config.Change = config.Default().Change
				w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}}
				w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 6, 6, 6, 6
				if w.in.Workload.EnvReplicas = nil; test.env != "" {
					w.in.Workload.EnvReplicas = &test.env
				}
				s := w.secret("c005")
				s.Shard, s.Immutable, s.Unmanaged = discover.ShardValue{State: discover.ShardValid, N: 4}, stays == "immutable", stays == "unmanaged"
				for range 60 {
					w.step(time.Minute)
				}
				if got := standing.ControllerReplicas(w.in.Workload); got != test.want || w.in.Workload.Replicas != 6 {
					t.Errorf("env %d with %d replicas after an hour, want %d: %v", got, w.in.Workload.Replicas, test.want, messages(w.last))
				}
				for _, s := range w.in.Discovered.Secrets { // the shard is below the env that each pod counts with, and a replica's that runs
					if s.Shard.State != discover.ShardValid || s.Shard.N >= 6 || stays != "nothing" && s.Name == "c005" && s.Shard.N != 4 {
						t.Errorf("the Secret of %s has shard %+v after an hour, and no single owner by it", s.Name, s.Shard)
					}
				}
			})
		}
	}
}

// TestWhatNobodyTakesUpKeepsItsLoad: of a cluster that no replica has, though each works, the last good value is held and may only rise.
func TestWhatNobodyTakesUpKeepsItsLoad(t *testing.T) {
	w := undecided(t, slices.Repeat([]float64{10}, 12)...)
	w.in.Config.Failover, w.in.Paused = nil, true
	name := w.on(1)[0]
	w.taken[name] = true
	orphaned := "ownership/Orphaned/" + name
	w.until(t, "nobody has it", time.Hour, func(out outcome.Outcome) bool { return slices.Contains(problems(out), orphaned) })
	w.step(time.Minute)
	read := func() float64 {
		i := slices.IndexFunc(w.last.Fleet.Clusters, func(cl discover.Cluster) bool { return cl.Shard.ID == name })
		return w.last.Table.Columns[0].Values[i]
	}
	var got []float64
	for _, load := range []float64{5, 20, 5} {
		w.setLoad(name, load)
		w.step(time.Minute)
		got = append(got, read())
	}
	delete(w.taken, name)
	w.until(t, "it has an owner", time.Hour, func(out outcome.Outcome) bool { return !slices.Contains(problems(out), orphaned) })
	w.step(time.Minute)
	if got = append(got, read()); !slices.Equal(got, []float64{10, 20, 20, 5}) {
		t.Errorf("its loads are %v, want 10, 20, 20, and 5 once somebody has it", got)
	}
}

// TestAReplicaThatIsDownKeepsItsLoad: what its clusters are measured at falls while nobody counts for them, and again after they moved.
func TestAReplicaThatIsDownKeepsItsLoad(t *testing.T) {
	w := undecided(t, slices.Repeat([]float64{10}, 12)...)
	w.in.Config.Failover = nil
	w.step(time.Minute)
	at := func(name string) float64 {
		for i, cl := range w.last.Fleet.Clusters {
			if cl.Shard.ID == name {
				return w.last.Table.Columns[0].Values[i]
			}
		}
		t.Fatalf("%s is not there", name)
		return 0
	}
	on := w.on(1)
	w.down[1] = true
	w.step(time.Minute)
	for _, name := range on {
		w.setLoad(name, 5)
	}
	other := w.on(0)[0]
	w.setLoad(other, 5)
	w.step(time.Minute)
	if at(on[0]) != 10 || at(other) != 5 {
		t.Errorf("%s has %v and %s %v, want 10 while its replica is down, and 5", on[0], at(on[0]), other, at(other))
	}
	w.setLoad(on[0], 20)
	w.step(time.Minute)
	w.setLoad(on[0], 5)
	w.step(time.Minute)
	if at(on[0]) != 20 {
		t.Errorf("%s has %v, want the 20 that it rose to", on[0], at(on[0]))
	}
	w.down[1] = false
	w.step(time.Minute)
	w.step(time.Minute) // the cycle before this one knows that it has an owner
	if at(on[0]) != 5 || at(on[1]) != 5 {
		t.Errorf("%s has %v and %s %v, want 5: its replica is back", on[0], at(on[0]), on[1], at(on[1]))
	}
	w.in.Pins = plan.Pins{} // moved by a wave
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: func() *plan.Plan {
		back := w.in.InForce.Clone()
		row := back.Clusters[on[0]]
		row.Replica = 0
		back.Clusters[on[0]] = row
		return &back
	}()}
	w.until(t, "it moved", time.Hour, func(out outcome.Outcome) bool { return w.row(t, on[0]) == 0 && w.in.InForce.Rollout == nil })
	w.setLoad(on[0], 1)
	w.step(time.Minute)
	if at(on[0]) != 5 {
		t.Errorf("%s has %v just after it moved, want 5", on[0], at(on[0]))
	}
	for range 20 {
		w.step(time.Minute)
	}
	if at(on[0]) != 1 {
		t.Errorf("%s has %v, want 1: it moved a while ago", on[0], at(on[0]))
	}
}

// TestARedealPaysForItsMoves: loads that jitter by 5 % had the whole budget spent each day. What stands far from level is still levelled.
func TestARedealPaysForItsMoves(t *testing.T) {
	moved := func(share float64) (moves int, imbalance float64) {
		w := adopted(t, lognormal(7, 60)...)
		w.in.Config.Change = config.Default().Change
		w.in.Config.Evaluate.MostWanted = &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 10} // 24 times as many elections as shipped
		coin, base := rand.New(rand.NewPCG(7, 7)), lognormal(7, 60)
		for range 7 * 24 * 60 {
			for i, load := range base {
				w.setLoad(fmt.Sprintf("c%03d", i), load*(1+share*(2*coin.Float64()-1)))
			}
			w.step(time.Minute)
		}
		for _, h := range w.history {
			moves += len(h) - 1
		}
		return moves, outcome.Imbalance(w.last.Now)
	}
	for share, most := range map[float64]int{0: 15, 0.05: 15} {
		moves, imbalance := moved(share)
		t.Logf("%.2f: %d moves, %.3f", share, moves, imbalance)
		if moves > most || imbalance > 1.1 {
			t.Errorf("with %.0f %% jitter %d moves in a week, want no more than %d, and makespan over mean %.3f", 100*share, moves, most, imbalance)
		}
	}
}

// TestMaxReplicasBelowWhatPeopleHoldRests: of a plan for fewer, and one for as many as there are, a cycle wrote one after the
// other, 18,315 in eight days (sim/life, seed 212). What stands stays, what goes is followed, and no more than stands counts.
func TestMaxReplicasBelowWhatPeopleHoldRests(t *testing.T) {
	w := adopted(t, skewed(12)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	for range 10 {
		w.step(time.Minute)
	}
	two := 2
	w.in.Config.Partition.MaxReplicas = &two
	for range 24 * 60 {
		w.step(time.Minute)
	}
	writes := w.writes
	for range 24 * 60 {
		w.step(time.Minute)
	}
	if w.writes != writes || w.in.InForce.Replicas != 3 || w.in.InForce.Rollout != nil {
		t.Errorf("%d plans in a day, %d replicas, %+v; want none, and the 3 that stand", w.writes-writes, w.in.InForce.Replicas, w.in.InForce.Rollout)
	}
	if told := findProblem(w.last, "BeyondMaxReplicas").Message; !strings.Contains(told, "has 3 replicas, and partition.maxReplicas is 2") {
		t.Errorf("people are told %q", told)
	}
	w.in.Workload.Replicas = 5
	for range 60 {
		w.step(time.Minute)
	}
	if w.in.InForce.Replicas != 3 {
		t.Errorf("of 5 replicas %d count, want 3", w.in.InForce.Replicas)
	}
}
