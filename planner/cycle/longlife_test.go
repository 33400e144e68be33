package cycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/poll"
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

// TestMaxReplicasBelowAPinRests: to the webhook a pin holds as long as its replica stands, so it keeps the replica.
func TestMaxReplicasBelowAPinRests(t *testing.T) {
	for name, rollout := range map[string]config.Rollout{
		"default": {Default: &config.DefaultRollout{}, StageTimeout: config.Duration(10 * time.Minute)},
		"x0y":     {X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(slices.Repeat([]float64{10}, 24)...)
			four := 4
			w.in.Config.Rollout, w.in.Config.Partition.MaxReplicas = rollout, &four
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 4}
			w.in.Pins = plan.Pins{"c001": 3}
			w.run(60)
			if w.in.InForce.Replicas != 4 || w.row(t, "c001") != 3 {
				t.Fatalf("%d replicas, c001 on %d; the test needs 4 and 3", w.in.InForce.Replicas, w.row(t, "c001"))
			}
			three := 3
			w.in.Config.Partition.MaxReplicas, w.in.Config.Partition.Replicas = &three, nil
			w.run(60)
			writes, flips, last := w.writes, 0, w.row(t, "c001")
			for range 24 * 60 {
				w.run(1)
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
