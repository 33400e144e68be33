package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// rolloutsOf are the three modes, with stages that end soon.
func rolloutsOf() map[string]config.Rollout {
	soon := config.Duration(10 * time.Minute)
	return map[string]config.Rollout{
		"live":    {Live: &config.LiveRollout{MaxMovesPerWave: 5}, StageTimeout: soon},
		"default": {Default: &config.DefaultRollout{RolloutRestart: true}, StageTimeout: soon},
		"x0y":     {X0Y: &config.X0YRollout{}, StageTimeout: soon},
	}
}

// TestMaxReplicasBelowASecretThatNobodyMayWriteRests: a rollout to fewer replicas began at each election, and was lifted to
// the Secret's replica: 1,439 rollouts in five days.
func TestMaxReplicasBelowASecretThatNobodyMayWriteRests(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		for how, spoil := range map[string]func(*discover.Secret){
			"immutable": func(s *discover.Secret) { s.Immutable = true },
			"opted out": func(s *discover.Secret) { s.Unmanaged = true },
		} {
			t.Run(mode+", "+how, func(t *testing.T) {
				w := newLiveWorld(skewed(24)...)
				w.in.Config.Rollout = rollout
				w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = &config.Replicas{Fixed: 5}, ptr.To(6)
				w.until(t, "five", 30*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 5 && w.in.InForce.Rollout == nil })
				w.add("zz", 1)
				w.secret("zz").Shard = discover.ShardValue{State: discover.ShardValid, N: 4}
				spoil(w.secret("zz"))
				for range 60 {
					w.step(time.Minute)
				}
				w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = nil, ptr.To(3)
				began := 0
				for range 24 * 60 {
					was := w.in.InForce.Rollout
					if w.step(time.Minute); was == nil && w.in.InForce.Rollout != nil {
						began++
					}
				}
				if began > 0 || w.in.InForce.Replicas != 5 || !slices.Contains(problems(w.last), "partition/ReplicasHeld/zz") {
					t.Errorf("%d rollouts in a day, %d replicas, told %v; want none, 5 and who holds them", began, w.in.InForce.Replicas, problems(w.last))
				}
			})
		}
	}
}

// levelled is a fleet under the shipped configuration for three days.
func levelled(t *testing.T) *liveWorld {
	w := adopted(t, skewed(24)...)
	c := config.Default()
	w.in.Config.Evaluate, w.in.Config.Change, w.in.Config.Partition = c.Evaluate, c.Change, c.Partition
	for range 3 * 24 * 60 {
		w.step(time.Minute)
	}
	return w
}

// TestNobodyWaitsADayForWhatHeWrote: the window of the votes is for what loads ask for.
func TestNobodyWaitsADayForWhatHeWrote(t *testing.T) {
	soon := func(t *testing.T, w *liveWorld, what string, done func() bool) {
		t.Helper()
		w.until(t, what, time.Hour, func(outcome.Outcome) bool { return done() })
	}
	t.Run("a number", func(t *testing.T) {
		w := levelled(t)
		w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
		soon(t, w, "five", func() bool { return w.in.Workload.Replicas == 5 })
	})
	t.Run("a least number", func(t *testing.T) {
		w := levelled(t)
		w.in.Config.Partition.MinReplicas = ptr.To(4)
		soon(t, w, "four", func() bool { return w.in.Workload.Replicas == 4 })
	})
	t.Run("an autoscaler's replica", func(t *testing.T) {
		w := levelled(t)
		w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
		w.step(time.Minute)
		w.scale(4)
		soon(t, w, "clusters on the fourth", func() bool { return len(w.on(3)) > 0 })
	})
}

// TestANumberInStepsRestartsTheFleetOnceADay: what the move budget puts off is not the number yet.
func TestANumberInStepsRestartsTheFleetOnceADay(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		if rollout.Live != nil {
			continue // restarts nothing
		}
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(skewed(60)...)
			w.in.Config.Rollout, w.in.Config.Change = rollout, config.Default().Change
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 6}
			w.until(t, "six", 100*time.Hour, func(outcome.Outcome) bool { return w.in.Workload.Replicas == 6 && w.in.InForce.Rollout == nil })
			for range 26 * 60 {
				w.step(time.Minute)
			}
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2}
			last, restarts := w.in.Memory.Changes.Restarted, 0
			for range 24 * 60 {
				if w.step(time.Minute); !w.in.Memory.Changes.Restarted.Equal(last) {
					last, restarts = w.in.Memory.Changes.Restarted, restarts+1
				}
			}
			if restarts != 1 {
				t.Errorf("%d restarts in a day, want 1", restarts)
			}
		})
	}
}

// TestADeploymentsReplicasGoAsTheBudgetLetsThem: each wave off the replicas that go counted as the day's restart, though nothing
// restarted: one cluster a day left them (sim/life, seeds 330, 350 and 410), where the budget lets a quarter of the fleet.
func TestADeploymentsReplicasGoAsTheBudgetLetsThem(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		if rollout.X0Y != nil {
			continue // stops every replica for each of its steps
		}
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(slices.Repeat([]float64{10}, 12)...)
			w.in.Workload.Kind, w.in.Workload.DynamicDistribution, w.in.Workload.EnvReplicas = plan.Deployment, true, nil
			if w.in.Config.Rollout = rollout; rollout.Default != nil {
				rollout.Default.RolloutRestart = false
			}
			w.in.Config.Partition.MaxReplicas = ptr.To(3)
			w.until(t, "a level fleet", 3*time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 4 && w.in.InForce.Rollout == nil })
			w.in.Memory.Changes.Restarted, w.in.Memory.Changes.Ledger = time.Time{}, nil
			w.in.Config.Change = config.Default().Change
			w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}, {Percent: 50, Period: config.Duration(24 * time.Hour)}}
			w.in.Config.Partition.MaxReplicas = ptr.To(1)
			began, restarts, last := w.in.Now, 0, time.Time{}
			w.until(t, "one replica", 28*time.Hour, func(outcome.Outcome) bool { // eight clusters, one an hour and six a day
				if at := w.in.Memory.Changes.Restarted; !at.Equal(last) {
					last, restarts = at, restarts+1
				}
				return w.in.Workload.Replicas == 1 && w.in.InForce.Rollout == nil
			})
			if restarts != 1 {
				t.Errorf("%d restarts in %s, want one, once nothing is left on what goes", restarts, w.in.Now.Sub(began))
			}
		})
	}
}

// TestASecretsPinThatFailsStopsNobodyElse: whoever may annotate one Secret asks for 13 replicas of which ten never run.
func TestASecretsPinThatFailsStopsNobodyElse(t *testing.T) {
	w := adopted(t, skewed(24)...)
	for range 3 * 60 {
		w.step(time.Minute)
	}
	w.secret("c005").Pin = "12"
	began := 0
	for range 24 * 60 {
		was := w.in.InForce.Rollout
		w.in.Workload.ReadyReplicas = min(w.in.Workload.Replicas, 3)
		if w.step(time.Minute); was == nil && w.in.InForce.Rollout != nil {
			began++
		}
	}
	if trip := w.last.Memory.Changes.Trip; trip != nil || began > 2 || !slices.Contains(problems(w.last), "rollout/PinWaits/Pin") {
		t.Fatalf("%d rollouts, trip %+v, told %v; want no trip, and a pin that waits", began, trip, problems(w.last))
	}
	w.secret("c005").Pin = ""
	for i := range 24 {
		w.setLoad(fmt.Sprintf("c%03d", i), float64(10+40*(i%2)))
	}
	w.waves = nil
	for range 24 * 60 {
		w.in.Workload.ReadyReplicas = w.in.Workload.Replicas
		w.step(time.Minute)
	}
	if len(w.waves) == 0 {
		t.Errorf("nothing was levelled in the day after: %v", problems(w.last))
	}
}

// TestAPlansPinWaitsForNoSecrets: one in data.pins asks for fewer replicas than a Secret's that waits.
func TestAPlansPinWaitsForNoSecrets(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(skewed(24)...)
			w.in.Config.Rollout, w.in.Config.Change = rollout, config.Default().Change
			for range 3 * 60 {
				w.step(time.Minute)
			}
			had := w.in.InForce.Replicas
			w.secret("c005").Pin = fmt.Sprint(had)
			w.until(t, "the Secret's pin", 5*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == had+1 && w.in.InForce.Rollout == nil })
			w.secret("c005").Pin = fmt.Sprint(had + 3)
			w.step(time.Minute)
			w.in.Pins = plan.Pins{"c001": had + 1}
			w.until(t, "the plan's pin", time.Hour, func(outcome.Outcome) bool { return w.row(t, "c001") == had+1 && w.in.InForce.Rollout == nil })
		})
	}
}

// TestWhatWasRefusedBecomesNoReference: an hour's drop is believed after half of it, and is no usual hour.
func TestWhatWasRefusedBecomesNoReference(t *testing.T) {
	w, see := cold(t)
	w.in.Config.Poll.MaxDrop, w.in.Config.Poll.MinCoverage = config.Default().Poll.MaxDrop, config.Default().Poll.MinCoverage
	see(1)
	w.cycle()
	begun, refused := w.in.Now, 0
	for range 12 * 60 {
		w.in.Now = w.in.Now.Add(time.Minute)
		see(1)
		if age := w.in.Now.Sub(begun); age > 3*time.Hour && age < 4*time.Hour {
			see(1.0 / 1000)
		}
		if w.cycle().Table.Frozen {
			refused++
		}
		if got := w.in.InForce.References["events"]; got != "600" {
			t.Fatalf("after %s events count as shares of %s, want 600", w.in.Now.Sub(begun), got)
		}
	}
	if refused == 0 || len(w.in.Memory.Young) > 0 {
		t.Errorf("%d cycles were refused; still young: %v", refused, w.in.Memory.Young)
	}
}

// TestNoRebaseBesideMetricsThatAreRefused: a wish would wait for just the cycle in which the drop is believed.
func TestNoRebaseBesideMetricsThatAreRefused(t *testing.T) {
	w, see := measuredForLong(t)
	see(1.0 / 1000)
	w.in.Now = w.in.Now.Add(time.Minute)
	if out := w.cycle(); !out.Table.Frozen {
		t.Fatal("the drop was believed")
	}
	w.in.Rebase = configmap.RebaseAnew
	w.in.Now = w.in.Now.Add(time.Minute)
	see(1.0 / 1000)
	out := w.cycle()
	if told := problems(out); !out.Rebased || !slices.Contains(told, "normalize/RebaseRefused/"+plan.AnnotationRebase) || w.in.InForce.References["events"] != "600" {
		t.Errorf("a rebase beside it: answered %t, %v, events %s", out.Rebased, told, w.in.InForce.References["events"])
	}
}

// TestARebaseInTheFirstMinutesIsNoMoreCertain than what it replaces.
func TestARebaseInTheFirstMinutesIsNoMoreCertain(t *testing.T) {
	w, see := cold(t)
	see(1.0 / 64)
	w.cycle()
	w.in.Rebase, w.in.Now = configmap.RebaseAnew, w.in.Now.Add(10*time.Minute)
	see(1.0 / 32)
	if out := w.cycle(); !out.Rebased {
		t.Fatalf("it was not done: %v", problems(out))
	}
	w.in.Rebase = ""
	for range 4 * 60 {
		w.in.Now = w.in.Now.Add(time.Minute)
		see(1)
		w.cycle()
	}
	if got := shares(t, w)["events"]; got != "25.0%" {
		t.Errorf("events make %s of the load, young: %v", got, w.in.Memory.Young)
	}
}

// measuredForLong is that fleet when its references are not young any more.
func measuredForLong(t *testing.T) (w *world, see func(events float64)) {
	w, see = cold(t)
	w.in.Config.Poll.MaxDrop, w.in.Config.Poll.MinCoverage = config.Default().Poll.MaxDrop, config.Default().Poll.MinCoverage
	see(1)
	w.cycle()
	w.in.Now = w.in.Now.Add(fullWindow)
	see(1)
	if w.cycle(); len(w.in.Memory.Young) > 0 {
		t.Fatalf("still young: %v", w.in.Memory.Young)
	}
	return w, see
}

// TestNoRebaseUnderACapacity: it would ask for another number of replicas, at the word of whoever may annotate the plan.
func TestNoRebaseUnderACapacity(t *testing.T) {
	w, see := measuredForLong(t)
	w.in.Config.Partition.Capacity = ptr.To(config.Decimal("0.6"))
	w.in.Rebase, w.in.Now = configmap.RebaseAnew, w.in.Now.Add(30*24*time.Hour)
	see(2)
	out := w.cycle()
	if !out.Rebased || w.in.InForce.References["events"] != "600" || !strings.Contains(strings.Join(messages(out), " "), "partition.capacity is a share of what they are") {
		t.Errorf("answered %t, events %s, %v", out.Rebased, w.in.InForce.References["events"], messages(out))
	}
}

// TestReferencesUnderACapacityAreNotTakenAnewByThemselves: a fleet that doubles in its first hours would have twice the references, and
// half of its replicas at the load that it has. Without the capacity they are taken at once.
func TestReferencesUnderACapacityAreNotTakenAnewByThemselves(t *testing.T) {
	w := shippedPlans(t, 60)
	w.in.Config.Partition.Capacity = ptr.To(config.Decimal("0.4"))
	w.cycles(60, func(int) {})
	for i := range 60 {
		w.setLoad(fmt.Sprintf("c%03d", i), 20)
	}
	w.cycles(1000, func(minute int) {
		if n := w.in.InForce.Replicas; minute > 600 && n != 6 {
			t.Fatalf("minute %d: %d replicas, want the 6 that carry twice the load", minute, n)
		}
	})
	told := slices.ContainsFunc(messages(w.last), func(m string) bool {
		return strings.HasPrefix(m, "RebaseRefused: the references are not what is usual (apps is 600 and a full window shows 1200) and are kept: partition.capacity is a share")
	})
	if got := w.in.InForce.References["apps"]; got != "600" || !told {
		t.Errorf("the reference is %s, want 600, and it says %q", got, messages(w.last))
	}
	w.in.Config.Partition.Capacity = nil
	w.cycles(2, func(int) {})
	if got := w.in.InForce.References["apps"]; got != "1200" {
		t.Errorf("without a capacity the reference is %s, want 1200: %q", got, messages(w.last))
	}
}

// TestWhatMovedLatelyMayOnlyRise whatever the mode: a new owner has made nothing yet.
func TestWhatMovedLatelyMayOnlyRise(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		t.Run(mode, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 12)...)
			w.in.Config.Rollout, w.in.Config.Failover = rollout, nil
			w.step(time.Minute)
			name := w.on(1)[0]
			back := w.in.InForce.Clone()
			row := back.Clusters[name]
			row.Replica = 0
			back.Clusters[name] = row
			w.in.Rollback = &input.Rollback{Revision: 1, Plan: &back}
			w.until(t, "it moved", time.Hour, func(outcome.Outcome) bool { return w.row(t, name) == 0 && w.in.InForce.Rollout == nil })
			w.in.Rollback = nil
			w.setLoad(name, 1)
			measured := func() float64 {
				i := slices.IndexFunc(w.last.Fleet.Clusters, func(c discover.Cluster) bool { return c.Shard.ID == name })
				return w.last.Table.Columns[0].Values[i]
			}
			for minute := range 18 {
				if w.step(time.Minute); measured() != 10 {
					t.Fatalf("%d minutes after it moved it has %v, want 10", minute+1, measured())
				}
			}
			for range 5 {
				w.step(time.Minute)
			}
			if measured() != 1 {
				t.Errorf("23 minutes after it moved it has %v, want 1", measured())
			}
		})
	}
}

// TestAWorkloadThatOptedOutIsLevelledAboveMaxReplicas: its number is nobody's to change, and asking for another kept all else.
func TestAWorkloadThatOptedOutIsLevelledAboveMaxReplicas(t *testing.T) {
	w := adopted(t, slices.Repeat([]float64{10}, 24)...)
	for range 3 * 60 {
		w.step(time.Minute)
	}
	w.in.Workload.Unmanaged, w.in.Config.Partition.MaxReplicas = true, ptr.To(2)
	for i := range 24 {
		w.setLoad(fmt.Sprintf("c%03d", i), float64(10+90*(i%3/2)))
	}
	w.waves = nil
	for range 2 * 24 * 60 {
		w.step(time.Minute)
	}
	if len(w.waves) == 0 || w.in.InForce.Replicas != 3 {
		t.Errorf("%d waves, %d replicas: %v", len(w.waves), w.in.InForce.Replicas, messages(w.last))
	}
}

// TestACapTooSmallForTheFleetRests: three replicas of two clusters each are no home for 25. It asked for the same moves for ever.
func TestACapTooSmallForTheFleetRests(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(skewed(25)...)
			w.in.Config.Rollout = rollout
			w.in.Config.Partition.MaxClustersPerReplica, w.in.Config.Partition.MaxReplicas = 2, ptr.To(3)
			for range 24 * 60 {
				w.step(time.Minute)
			}
			writes := w.writes
			for range 24 * 60 {
				w.step(time.Minute)
			}
			if w.writes != writes || !slices.Contains(problems(w.last), "partition/CapTooSmall/") {
				t.Errorf("%d plans on the second day, told %v", w.writes-writes, problems(w.last))
			}
			for replica := range 3 {
				if n := len(w.on(replica)); n > 9 {
					t.Errorf("replica %d has %d clusters, want 9 at most", replica, n)
				}
			}
		})
	}
}
