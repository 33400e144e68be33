package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// inWaves is a fleet that is levelled out, in its first wave of many.
func inWaves(t *testing.T) *liveWorld {
	t.Helper()
	w := undecided(t, skewed(40)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.in.Config.Rollout.Live.MaxMovesPerWave = 1
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: w.in.InForce.Replicas}
	for i, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, float64(10+20*(i%7)))
	}
	w.waves = nil
	w.until(t, "a wave of many", time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	if r := w.in.InForce.Rollout; r.Waves < 5 {
		t.Fatalf("the test itself failed: %d waves are expected", r.Waves)
	}
	return w
}

// TestABalanceMakesRoomForAReplicaThatIsUnwellOrCordoned, between two waves, and gives it nothing meanwhile.
func TestABalanceMakesRoomForAReplicaThatIsUnwellOrCordoned(t *testing.T) {
	for name, strike := range map[string]func(*liveWorld, int){
		"cordoned": func(w *liveWorld, replica int) {
			w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(3*time.Hour).UTC().Format(time.RFC3339))
		},
		"unwell": func(w *liveWorld, replica int) { w.down[replica] = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := inWaves(t)
			r, replica := w.in.InForce.Rollout, 0
			used := slices.Concat(slices.Collect(maps.Values(r.Moves)), slices.Collect(maps.Values(r.Was)))
			for slices.Contains(used, replica) {
				replica++ // one that the wave leaves alone, so that it ends well
			}
			strike(w, replica)
			before, waves := w.on(replica), 0
			w.until(t, "its clusters leave", 20*time.Minute, func(out outcome.Outcome) bool {
				for _, now := range w.on(replica) {
					if !slices.Contains(before, now) {
						t.Fatalf("%s came to replica %d, which is %s", now, replica, name)
					}
				}
				cause := out.Memory.Changes.Cause
				if waves == 0 && len(out.Cordoned)+len(out.Replicas.Sick) > 0 {
					waves = len(w.waves)
				}
				if cause == change.Balance && waves > 0 && len(w.waves) > waves {
					t.Fatalf("another wave of the balance began")
				}
				return w.in.InForce.Rollout != nil && (cause == change.Drain || cause == change.Failover)
			})
			w.until(t, "it is empty", time.Hour, func(outcome.Outcome) bool { return len(w.on(replica)) == 0 })
		})
	}
}

// TestNoReplicaGoesWhileNothingMayBeDecided: what empties replicas ends where they are empty, and they go when the planner
// decides again.
func TestNoReplicaGoesWhileNothingMayBeDecided(t *testing.T) {
	for name, stop := range map[string]func(in *input.Inputs, stopped bool){
		"frozen": func(in *input.Inputs, stopped bool) { in.Paused = stopped },
		"tripped": func(in *input.Inputs, stopped bool) {
			in.Tripped = map[bool]string{true: "a wave did harm"}[stopped]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			had := w.in.InForce.Replicas
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: had - 1}
			w.until(t, "it verifies", time.Hour, func(outcome.Outcome) bool { r := w.in.InForce.Rollout; return r != nil && r.Stage == plan.Verifying })
			stop(&w.in, true)
			for range 60 {
				w.step(time.Minute)
			}
			if p := w.in.InForce; p.Replicas != had || w.in.Workload.Replicas != had || p.Rollout != nil {
				t.Errorf("%d replicas by the plan and %d that run, want %d; rollout %+v", p.Replicas, w.in.Workload.Replicas, had, p.Rollout)
			}
			stop(&w.in, false)
			w.until(t, "the replica goes", time.Hour, func(outcome.Outcome) bool { return w.in.Workload.Replicas == had-1 && w.in.InForce.Rollout == nil })
		})
	}
}

// TestWhatAPersonAskedForScalesAllTheSame, frozen and tripped: in so many words, which a pin is not.
func TestWhatAPersonAskedForScalesAllTheSame(t *testing.T) {
	stopped := func(t *testing.T) *liveWorld {
		w := undecided(t, skewed(12)...)
		w.in.Paused, w.in.Tripped = true, "a wave did harm"
		return w
	}
	t.Run("a rollback to fewer replicas", func(t *testing.T) {
		w := stopped(t)
		earlier, had := w.in.InForce.Clone(), w.in.InForce.Replicas
		earlier.Replicas--
		for name, row := range earlier.Clusters {
			row.Replica %= earlier.Replicas
			earlier.Clusters[name] = row
		}
		w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
		w.until(t, "the earlier plan holds", time.Hour, func(out outcome.Outcome) bool { return out.Done })
		if w.in.Workload.Replicas != had-1 {
			t.Errorf("%d replicas, want %d", w.in.Workload.Replicas, had-1)
		}
	})
	t.Run("a pin beyond the replicas waits, and it is said", func(t *testing.T) {
		w := stopped(t)
		had := w.in.InForce.Replicas
		w.in.Pins = plan.Pins{"c004": had}
		var out outcome.Outcome
		for range 60 {
			out = w.step(time.Minute)
		}
		if w.in.InForce.Replicas != had || w.in.Workload.Replicas != had {
			t.Errorf("%d replicas by the plan and %d that run, want %d: in another mode they would restart all others", w.in.InForce.Replicas, w.in.Workload.Replicas, had)
		}
		want := fmt.Sprintf(`PinWaits: "c004" is pinned to replica %d, and there are %d: it waits while nothing scales (frozen, or stopped after a wave that did harm): "ballast resume" ends that`, had, had)
		if !slices.Contains(messages(out), want) {
			t.Errorf("problems %q, want among them %q", messages(out), want)
		}
		w.in.Paused, w.in.Tripped = false, ""
		w.until(t, "the cluster is there", time.Hour, func(outcome.Outcome) bool {
			return w.in.InForce.Rollout == nil && w.in.Workload.Replicas == had+1 && w.owners()["c004"] == had
		})
	})
	t.Run("but not again right after it failed", func(t *testing.T) {
		w := stopped(t)
		had := w.in.InForce.Replicas
		w.in.Paused, w.in.Tripped = false, ""
		w.in.Pins, w.in.Memory.HoldOff = plan.Pins{"c004": had}, w.in.Now
		for range 29 {
			w.step(time.Minute)
		}
		if w.in.Workload.Replicas != had {
			t.Errorf("%d replicas within half an hour, want %d", w.in.Workload.Replicas, had)
		}
	})
}

// people gives the replicas to an autoscaler.
func (w *liveWorld) people() {
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.in.Config.Rollout.Live.MaxMovesPerWave = 1
	w.step(time.Minute)
}

// TestAnAutoscalerMayHaveMoreReplicasThanThePlan: those that it has room for are taken into it all the same, and people
// hear who has the rest.
func TestAnAutoscalerMayHaveMoreReplicasThanThePlan(t *testing.T) {
	const others = `StatefulSet "argocd-application-controller" has 8 replicas, and partition.maxReplicas is 6: the others receive no cluster`
	const mend = "; raise partition.maxReplicas, or lower the autoscaler's maximum"
	w := undecided(t, skewed(40)...)
	w.in.Config.Partition.MaxReplicas = ptr.To(6)
	w.people()
	w.scale(2)
	w.until(t, "the plan has two replicas", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 2 && w.in.InForce.Rollout == nil })
	w.scale(8)
	gaveUp := ""
	w.until(t, "the plan has all that it may have", 3*time.Hour, func(out outcome.Outcome) bool {
		if out.Progress.Outcome == rollout.GaveUp {
			gaveUp = out.Progress.Why
		}
		return w.in.InForce.Replicas == 6 && w.in.InForce.Rollout == nil
	})
	if gaveUp != "" || !w.in.Memory.HoldOff.IsZero() {
		t.Errorf("gave up %q, held off since %s", gaveUp, w.in.Memory.HoldOff)
	}
	for env, want := range map[string]string{
		"16": others + mend,
		"6":  others + ", and to Argo CD those from 6 on are replica 0 once more, so that its clusters have several (ARGOCD_CONTROLLER_REPLICAS is 6)" + mend,
	} {
		w.in.Workload.EnvReplicas = ptr.To(env)
		if told := findProblem(Run(clone(t, w.in)), "BeyondMaxReplicas").Message; told != want {
			t.Errorf("env %s: told %q, want %q", env, told, want)
		}
	}
	w.scale(6)
	if told := findProblem(Run(clone(t, w.in)), "BeyondMaxReplicas"); told.Kind != "" {
		t.Errorf("of as many as it may have people are told %q", told.Message)
	}
}

// TestReplicasThatAnAutoscalerTookAwayLeaveNoOrphans, whatever keeps ballast from deciding by itself, and their clusters are no
// wave's orphans: otherwise it would stop itself in the middle of it.
func TestReplicasThatAnAutoscalerTookAwayLeaveNoOrphans(t *testing.T) {
	for name, stop := range map[string]func(*input.Inputs){
		"deciding": func(*input.Inputs) {}, "frozen": func(in *input.Inputs) { in.Paused = true },
		"tripped":  func(in *input.Inputs) { in.Tripped = "a wave did harm" },
		"held off": func(in *input.Inputs) { in.Memory.HoldOff = in.Now },
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			w.people()
			had := w.in.InForce.Replicas
			if had < 3 {
				t.Fatalf("the test itself failed: %d replicas", had)
			}
			w.in.Memory.Changes.Watch = w.in.Memory.Changes.Watch.After(harm.Wave{Began: w.in.Now.Add(-time.Minute), Ended: w.in.Now, Clusters: []string{"c000"}})
			stop(&w.in)
			orphans := append(w.on(had-1), w.on(had-2)...)
			if len(orphans) < 6 {
				t.Fatalf("the test itself failed: %v stood on the replicas that go", orphans)
			}
			w.scale(had - 2)
			told := false
			w.until(t, "every cluster has an owner", 25*time.Minute, func(out outcome.Outcome) bool {
				if trip := out.Memory.Changes.Trip; trip != nil {
					t.Fatalf("it tripped: %s", trip.Why)
				}
				told = told || len(out.Verdict.Orphans) > 0
				for _, s := range w.in.Discovered.Secrets {
					if s.Shard.N >= had-2 {
						return false
					}
				}
				return w.in.InForce.Rollout == nil
			})
			if !told {
				t.Error("the test itself failed: it was over before anything counted as an orphan")
			}
			if p := w.in.InForce; p.Replicas != had-2 || w.in.Workload.Replicas != had-2 {
				t.Errorf("the plan has %d replicas, the workload %d, want %d", p.Replicas, w.in.Workload.Replicas, had-2)
			}
		})
	}
}

// TestAnAutoscalerIsObeyedUpwards, too: the plan follows, and nothing moves for it.
func TestAnAutoscalerIsObeyedUpwards(t *testing.T) {
	for name, stop := range map[string]func(*input.Inputs){
		"deciding": func(*input.Inputs) {}, "frozen": func(in *input.Inputs) { in.Paused = true }, "tripped": func(in *input.Inputs) { in.Tripped = "a wave did harm" },
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.people()
			stop(&w.in)
			had, before := w.in.InForce.Replicas, w.owners()
			w.scale(had + 1)
			w.until(t, "the plan follows", 20*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Replicas == had+1 && w.in.InForce.Rollout == nil })
			if !maps.Equal(before, w.owners()) {
				t.Errorf("clusters moved: %v, before %v", w.owners(), before)
			}
			if w.in.Workload.Replicas != had+1 || *w.in.Workload.EnvReplicas != strconv.Itoa(16) {
				t.Errorf("%d replicas, env %s; want %d and 16", w.in.Workload.Replicas, *w.in.Workload.EnvReplicas, had+1)
			}
		})
	}
}

// TestWhatIsRememberedOfARolloutEndsWithIt: a leader that took it for the next rollout's would go where the last one went, and
// count for its cause.
func TestWhatIsRememberedOfARolloutEndsWithIt(t *testing.T) {
	w := undecided(t, skewed(24)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.imbalanced()
	seen := map[rollout.Outcome]bool{}
	for i := range 300 {
		if i == 100 {
			w.imbalanced()
			w.setLoad("c000", 500)
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: w.in.InForce.Replicas + 1}
			for _, s := range w.in.Discovered.Secrets {
				w.taken[s.Name] = true // nobody takes up what is given to him: the wave turns back
			}
		}
		out := w.step(30 * time.Second)
		m := out.Memory.Changes
		if w.in.InForce.Rollout == nil && (m.Cause != "" || m.Target != nil) {
			t.Fatalf("after %q the cause %s and the target %v stay", out.Progress.Outcome, m.Cause, m.Target)
		}
		if w.in.InForce.Rollout != nil && m.Cause == "" {
			t.Fatalf("nobody remembers the cause of %+v", w.in.InForce.Rollout)
		}
		seen[out.Progress.Outcome] = true
	}
	if !seen[rollout.Finished] || !seen[rollout.TurnedBack] {
		t.Errorf("the test itself failed: outcomes %v", seen)
	}
}

// TestARollbackNeedNotWaitForTheWavesOfABalance.
func TestARollbackNeedNotWaitForTheWavesOfABalance(t *testing.T) {
	w := inWaves(t)
	earlier := w.in.InForce.Clone()
	for name, was := range earlier.Rollout.Was {
		earlier.Clusters[name] = plan.Row{Replica: was, Server: earlier.Clusters[name].Server}
	}
	earlier.Rollout = nil
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
	w.until(t, "the way back begins", 5*time.Minute, func(out outcome.Outcome) bool { return out.Memory.Changes.Cause == change.Rollback })
	w.until(t, "the earlier plan holds", 20*time.Minute, func(out outcome.Outcome) bool { return out.Done })
	for name, row := range earlier.Clusters {
		if got := w.owners()[name]; got != row.Replica {
			t.Errorf("%s is on %d, and was on %d", name, got, row.Replica)
		}
	}
}
