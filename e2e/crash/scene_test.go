package crash_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"ballast/planner/plan"
)

// sceneOf is a fleet of three replicas that is far from level.
func sceneOf(mode crashMode, goals ...crashGoal) crashCase {
	return crashCase{seed: 11, mode: mode, replicas: 3, env: "3", goals: append([]crashGoal{crashAdopt()}, goals...),
		loads: map[string]float64{"c00": 31, "c01": 17, "c02": 23, "c03": 5, "c04": 12, "c05": 28, "c06": 9, "c07": 14}}
}

// TestCrashScenes are the crashes that have a name.
func TestCrashScenes(t *testing.T) {
	server := anyServer.Start(t)
	for _, mode := range crashModes() {
		t.Run(string(mode), func(t *testing.T) {
			t.Run("a pod that is never ready", func(t *testing.T) { neverReady(t, server, mode) })
			c := sceneOf(mode, crashGrow(1), crashShrink())
			ends := newCrashRun(t, server, c).reach(c)
			for name, kills := range map[string]func(*crashRun) func(crashKind, bool) bool{
				"killed after each plan that Secrets differ from":                         afterThePlan,
				"killed before each rollout and wave is in the history, its whereto lost": beforeTheHistory,
				"leaders that live for a write or two":                                    shortLived,
			} {
				t.Run(name, func(t *testing.T) {
					r := newCrashRun(t, server, c)
					r.faults.kills = kills(r)
					same := 0
					for k, end := range r.reach(c) {
						same += r.allow(c.goals[k], end, ends[k])
					}
					if r.leaders < 4 {
						r.fatal("only %d leaders", r.leaders)
					}
					t.Logf("%d leaders, %d writes, %d rollouts in %s; %d of %d goals ended the same; events %v", r.leaders, r.faults.steps, r.watch.rollouts, r.clock.Since(epoch), same, len(ends), r.told)
				})
			}
		})
	}
}

// afterThePlan kills a leader as soon as the API server has a plan that a Secret differs from, once a plan.
func afterThePlan(r *crashRun) func(crashKind, bool) bool {
	killed := int64(0)
	return func(k crashKind, after bool) bool {
		if k != crashPlan || !after || r.watch.plan == nil || r.watch.plan.Revision == killed || !r.moves() {
			return false
		}
		killed = r.watch.plan.Revision
		return true
	}
}

// moves reports whether a Secret carries another shard than its row's.
func (r *crashRun) moves() bool {
	for name, row := range r.watch.plan.Clusters {
		if shard, stamped := r.fleet.Shards[name]; !stamped || shard != row.Replica {
			return true
		}
	}
	return false
}

// beforeTheHistory kills a leader that would save where its rollout goes, or that a wave began, once a plan.
func beforeTheHistory(r *crashRun) func(crashKind, bool) bool {
	killed, rollouts := int64(0), 0
	return func(k crashKind, after bool) bool {
		p := r.watch.plan
		if k != crashHistory || after || p == nil || p.Rollout == nil || p.Revision == killed {
			return false
		}
		if begins := r.watch.rollouts > rollouts; !begins && len(p.Rollout.Was) == 0 {
			return false
		}
		killed, rollouts = p.Revision, r.watch.rollouts
		// Where a live rollout goes must be saved at one time or another.
		return r.watch.mode != plan.ModeLive || r.watch.rollouts < 8
	}
}

// shortLived kills a leader after its first write; in mode live after its second, or nobody would ever know where a rollout
// goes. What it only says does not count, or it might die before it does anything.
func shortLived(r *crashRun) func(crashKind, bool) bool {
	return func(k crashKind, after bool) bool {
		return after && k != crashSaid && r.leader.writes >= map[bool]int{true: 2, false: 1}[r.watch.mode == plan.ModeLive]
	}
}

// TestARollbackOutlivesTheHistory: each revision's first two writes of the history die with their leaders, those by which the
// peace after a person's rollback is kept as well. The plan that the person goes back to, and that peace, must not.
func TestARollbackOutlivesTheHistory(t *testing.T) {
	server := anyServer.Start(t)
	for _, mode := range crashModes() {
		t.Run(string(mode), func(t *testing.T) {
			c := sceneOf(mode, crashRollback())
			r := newCrashRun(t, server, c)
			died := map[int64]int{}
			r.faults.kills = func(k crashKind, after bool) bool {
				if k != crashHistory || after || r.watch.plan == nil || r.watch.plan.Rollout != nil || died[r.watch.plan.Revision] == 2 {
					return false
				}
				died[r.watch.plan.Revision]++
				return true
			}
			r.reach(c)
			if r.leaders < 7 {
				r.fatal("only %d leaders", r.leaders)
			}
		})
	}
}

// neverReady: a fleet of three is to have five replicas, and the fourth pod is never ready, so that OrderedReady never starts
// the fifth.
func neverReady(t *testing.T, server *rest.Config, mode crashMode) {
	c := sceneOf(mode, crashGrow(2))
	r := newCrashRun(t, server, c)
	r.watch.mode = crashModeOf(r.config.Rollout)
	r.lead()
	r.settle()
	before, pods := r.end(), r.fleet.Pods[0]
	r.fleet.Broken[3] = true
	r.fix(5)
	r.until("the stage that waits for pods", 10*time.Minute, func() bool { return r.in(plan.Scaling, plan.Restoring) })
	since := r.watch.plan.Rollout.Since
	r.until("the way back", 5*time.Minute+30*time.Second, func() bool { return r.in(plan.Reverting) })
	if waited := r.clock.Since(since); waited < 4*time.Minute {
		r.fatal("it turned back after %s, before its deadline", waited)
	}
	if r.fleet.Pods[4] != nil {
		r.fatal("OrderedReady started pod 4 behind one that is not ready")
	}
	r.until("the end", 3*time.Minute, func() bool { return r.watch.plan.Rollout == nil && r.fleet.Settled(r.clock.Now()) })
	r.wantEnd("on the way back", before)
	if mode != crashX0Y && r.fleet.Pods[0] != pods {
		r.fatal("pod 0 was restarted")
	}
	if mode == crashX0Y && r.watch.zeroings != 1 {
		r.fatal("the workload was stopped %d times", r.watch.zeroings)
	}
	if diff := cmp.Diff([]int{1, 1}, []int{r.told["RolloutTurnedBack"], r.told["RolloutReverted"]}); diff != "" {
		r.fatal("events of the way back: %s", diff)
	}
	rollouts, revision := r.watch.rollouts, r.watch.plan.Revision
	for began := r.clock.Now(); r.clock.Since(began) < heldOffFor-6*time.Minute; {
		r.second()
	}
	if r.watch.rollouts != rollouts || r.watch.plan.Revision != revision {
		r.fatal("it was tried again within half an hour: revision %d", r.watch.plan.Revision)
	}
	delete(r.fleet.Broken, 3)
	r.settle()
	r.has(5)
}

func (r *crashRun) in(stages ...plan.Stage) bool {
	p := r.watch.plan
	return p != nil && p.Rollout != nil && slices.Contains(stages, p.Rollout.Stage)
}
