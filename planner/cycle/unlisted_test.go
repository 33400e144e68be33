package cycle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/ownership"
)

// counts has the observation say that number of Applications of each cluster.
func counts(o *ownership.Observation, apps int) {
	for name, c := range o.Clusters {
		c.Apps = apps
		o.Clusters[name] = c
	}
}

// TestAWaveThatNobodyTakesUpIsNotDone where the Applications of its clusters may not be listed, or were listed before the clusters had an
// owner: that no new owner shows them is no proof that there are none.
func TestAWaveThatNobodyTakesUpIsNotDone(t *testing.T) {
	for name, says := range map[string]func(w *liveWorld, o *ownership.Observation){
		"not to be listed": func(_ *liveWorld, o *ownership.Observation) { counts(o, ownership.Unknown) },
		"listed before":    func(w *liveWorld, o *ownership.Observation) { counts(o, 0); o.Counted = w.in.Now.Add(-9 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := asked(t, (*liveWorld).asksBack)
			w.says = func(o *ownership.Observation) { says(w, o) }
			w.until(t, "a wave begins", 10*time.Minute, func(outcome.Outcome) bool {
				r := w.in.InForce.Rollout
				return r != nil && len(r.Moves) > 0
			})
			r := *w.in.InForce.Rollout
			for name := range r.Moves {
				w.taken[name] = true
			}
			for range 9 {
				w.step(30 * time.Second)
				now := w.in.InForce.Rollout
				if now == nil || now.Wave != r.Wave || now.Stage != r.Stage {
					t.Fatalf("wave %d in stage %s was left for %+v, though nobody took up %v", r.Wave, r.Stage, now, slices.Sorted(maps.Keys(r.Moves)))
				}
			}
		})
	}
}

// TestWhatAnOwnerShowsIsServedWhateverItsNumber: replica 2 is dead, its clusters are still quoted as its own, and no Application of theirs is
// listed. They count as they are failed over, and leave before what a person asks for.
func TestWhatAnOwnerShowsIsServedWhateverItsNumber(t *testing.T) {
	w := asked(t, func(*liveWorld) {})
	w.in.Config.Rollout.Live.MaxMovesPerWave = 40
	theirs := w.on(2)
	w.says = func(o *ownership.Observation) {
		counts(o, 0)
		for _, s := range w.in.Discovered.Secrets {
			if c := o.Clusters[s.Name]; s.Shard.N == 2 && w.down[2] {
				c.Owners = []int{2}
				o.Clusters[s.Name] = c
			}
		}
	}
	w.step(time.Minute)
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
		t.Fatalf("the first rollout is for %q, want %s", cause, change.Failover)
	}
	counted := out.Counted[change.Failover]
	w.until(t, "replica 2 is empty", time.Hour, func(out outcome.Outcome) bool {
		counted += out.Counted[change.Failover]
		return len(w.on(2)) == 0
	})
	if counted != len(theirs) {
		t.Errorf("%d moves count as failovers, want all %d", counted, len(theirs))
	}
}

// TestANarrowedSettingHidesNoOrphan: application.namespaces is emptied, and the planner lists no Application of c005 any more; the controllers
// go by the setting that they started with, and none of them has it. Once all have started since, it is nobody's.
func TestANarrowedSettingHidesNoOrphan(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: w.in.InForce.Replicas}
	setting, started, lists := "wide", w.in.Now.Add(-time.Hour), 1
	w.says = func(o *ownership.Observation) {
		o.Setting = setting
		for i := range o.Pods {
			o.Pods[i].Started = started
		}
		c := o.Clusters["c005"]
		c.Apps = lists
		o.Clusters["c005"] = c
	}
	w.step(time.Minute)
	setting, lists, w.taken["c005"] = "narrow", 0, true
	out := w.until(t, "c005 is told as an orphan", 5*time.Minute, func(out outcome.Outcome) bool {
		return slices.ContainsFunc(out.Verdict.Orphans, func(o ownership.Orphan) bool { return o.Cluster == "c005" })
	})
	changed := func(out outcome.Outcome) bool {
		return slices.ContainsFunc(messages(out), func(m string) bool {
			return strings.HasPrefix(m, "ApplicationsUnseen: Argo CD's setting application.namespaces is another one since ")
		})
	}
	if !changed(out) {
		t.Errorf("nothing is told of the setting: %v", messages(out))
	}
	w.step(10 * time.Minute)
	started = w.in.Now
	if out = w.step(time.Minute); len(out.Verdict.Orphans) != 0 || changed(out) {
		t.Errorf("all controllers have started since, and yet: %v", messages(out))
	}
}
