package cycle

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
)

// asked is a fleet of 40 clusters in which a person asks for something that takes many waves of one cluster.
func asked(t *testing.T, ask func(w *liveWorld)) *liveWorld {
	t.Helper()
	w := undecided(t, skewed(40)...)
	w.in.Config.Rollout.Live.MaxMovesPerWave = 1
	w.in.Config.Change.Moves.Rate = nil
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: w.in.InForce.Replicas}
	for range 3 {
		w.step(time.Minute)
	}
	if w.in.InForce.Replicas < 3 || w.in.InForce.Rollout != nil {
		t.Fatalf("the test itself failed: %d replicas, %+v", w.in.InForce.Replicas, w.in.InForce.Rollout)
	}
	ask(w)
	return w
}

// asksBack asks for a plan that has everything of replica 0 on replica 1, and the other way round.
func (w *liveWorld) asksBack() {
	earlier := w.in.InForce.Clone()
	for name, row := range earlier.Clusters {
		if row.Replica < 2 {
			row.Replica = 1 - row.Replica
			earlier.Clusters[name] = row
		}
	}
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
}

func (w *liveWorld) cordons(replica int) {
	w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(20*time.Hour).UTC().Format(time.RFC3339))
}

// TestWhatAPersonAskedForMakesRoomForAReplicaThatNobodyWorksFor, between two waves, and goes on once that is empty.
func TestWhatAPersonAskedForMakesRoomForAReplicaThatNobodyWorksFor(t *testing.T) {
	for cause, ask := range map[change.Cause]func(*liveWorld){
		change.Rollback: (*liveWorld).asksBack,
		change.Drain:    func(w *liveWorld) { w.cordons(0) },
	} {
		t.Run(string(cause), func(t *testing.T) {
			w := asked(t, ask)
			w.until(t, "a wave of many that leaves replica 2 alone, so that it ends well", time.Hour, func(out outcome.Outcome) bool {
				r := w.in.InForce.Rollout
				return out.Memory.Changes.Cause == cause && len(r.Moves) > 0 && !slices.Contains(slices.Collect(maps.Values(r.Moves)), 2)
			})
			if waves := w.in.InForce.Rollout.Waves; waves < 10 {
				t.Fatalf("the test itself failed: %d waves are expected", waves)
			}
			w.down[2] = true
			sick := -1
			w.until(t, "a failover begins", 30*time.Minute, func(out outcome.Outcome) bool {
				if sick < 0 && len(out.Replicas.Unwell()) > 0 {
					sick = len(w.waves)
				}
				failover := out.Memory.Changes.Cause == change.Failover && w.in.InForce.Rollout != nil
				if sick >= 0 && !failover && len(w.waves) > sick {
					t.Fatalf("another wave of the %s began", cause)
				}
				return failover
			})
			w.until(t, "replica 2 is empty", time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 })
			w.until(t, "what was asked for holds", 3*time.Hour, func(out outcome.Outcome) bool {
				return w.in.InForce.Rollout == nil && (out.Done || cause == change.Drain && len(w.on(0)) == 0)
			})
			if n := len(w.on(2)); n != 0 {
				t.Errorf("%d clusters are on replica 2 that nobody works for", n)
			}
		})
	}
}

// TestARollbackThatStandsLetsAFailoverGoFirst, where nothing is under way yet.
func TestARollbackThatStandsLetsAFailoverGoFirst(t *testing.T) {
	w := asked(t, func(*liveWorld) {})
	w.in.Config.Rollout.Live.MaxMovesPerWave = 40
	w.down[2] = true
	var out outcome.Outcome
	for len(out.Replicas.Unwell()) == 0 {
		w.in.Rollback = nil
		before := clone(t, w.in)
		if out = w.step(10 * time.Second); len(out.Replicas.Unwell()) > 0 {
			w.in = before
		}
	}
	w.asksBack()
	out = w.step(10 * time.Second)
	if cause := out.Memory.Changes.Cause; cause != change.Failover || w.in.InForce.Rollout == nil {
		t.Errorf("the first rollout is for %q, want %s", cause, change.Failover)
	}
	w.until(t, "the earlier plan holds", 3*time.Hour, func(out outcome.Outcome) bool { return out.Done })
}

// TestAFailoverThatFailedLeavesThePersonsWayBackFree: it would fail again, and again keep the rollback waiting.
func TestAFailoverThatFailedLeavesThePersonsWayBackFree(t *testing.T) {
	for name, test := range map[string]struct {
		failed change.Cause
		want   change.Cause
	}{
		"a failover":  {change.Failover, change.Rollback},
		"a levelling": {change.Balance, change.Failover},
	} {
		t.Run(name, func(t *testing.T) {
			w := asked(t, func(*liveWorld) {})
			w.down[2] = true
			w.until(t, "the failover begins", 30*time.Minute, func(out outcome.Outcome) bool { return out.Memory.Changes.Cause == change.Failover })
			in := clone(t, w.in)
			rows := in.InForce.Clone()
			for cluster, was := range rows.Rollout.Was {
				row := rows.Clusters[cluster]
				row.Replica = was
				rows.Clusters[cluster] = row
			}
			rows.Rollout = nil
			in.InForce, in.Memory.Changes.Cause, in.Memory.Changes.Target = &rows, "", nil
			in.Memory.HoldOff = in.Now.Add(-time.Minute)
			in.Memory.Changes.Failures = harm.Failures{{At: in.Memory.HoldOff, Cause: test.failed, What: harm.OnlyMoves}}
			w.in = in
			w.asksBack()
			if out := Run(w.in); out.Memory.Changes.Cause != test.want || out.Next.Rollout == nil {
				t.Errorf("the next rollout is for %q (%q), want %s", out.Memory.Changes.Cause, out.Reason, test.want)
			}
		})
	}
}

// TestWhatHasNoApplicationKeepsNobodyFromGoingBack: somebody has Secrets of no use pinned to a replica that dies, and lets go of them as a
// person asks for an earlier plan. Their failover comes after it, that of clusters with Applications before it.
func TestWhatHasNoApplicationKeepsNobodyFromGoingBack(t *testing.T) {
	for name, test := range map[string]struct {
		idle bool
		age  time.Duration
		want change.Cause
	}{
		"without Applications":        {true, 70 * time.Minute, change.Rollback},
		"younger than an hour":        {false, 2 * time.Minute, change.Rollback},
		"with Applications for hours": {false, 70 * time.Minute, change.Failover},
	} {
		t.Run(name, func(t *testing.T) {
			w := asked(t, func(*liveWorld) {})
			w.in.Config.Rollout.Live.MaxMovesPerWave = 100
			w.idle = map[string]bool{}
			own := []string{"aa0", "aa1", "aa2", "aa3", "aa4"}
			for _, name := range own {
				w.add(name, 0)
				w.secret(name).Pin, w.idle[name] = "2", test.idle
			}
			for end := w.in.Now.Add(test.age); w.in.Now.Before(end); {
				w.step(time.Minute)
			}
			w.down[2] = true
			w.until(t, "the fleet's clusters have left replica 2", 45*time.Minute, func(outcome.Outcome) bool {
				return slices.Equal(own, w.on(2)) && w.in.InForce.Rollout == nil
			})
			for _, name := range own {
				w.secret(name).Pin = ""
			}
			w.asksBack()
			out := w.step(30 * time.Second)
			if cause := out.Memory.Changes.Cause; cause != test.want || w.in.InForce.Rollout == nil {
				t.Errorf("the first rollout is for %q, want %s", cause, test.want)
			}
		})
	}
}
