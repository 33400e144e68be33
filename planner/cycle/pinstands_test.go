package cycle

import (
	"slices"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
)

// few lets time pass in which no more than three pods ever get ready.
func (w *liveWorld) few(minutes int) {
	for range minutes {
		w.in.Workload.ReadyReplicas = min(w.in.Workload.Replicas, 3)
		w.step(time.Minute)
	}
}

// pinFails is a fleet of three replicas, level, in which a Secret asks for ten that never run: it has been tried once.
func pinFails(t *testing.T, rollout config.Rollout) *liveWorld {
	t.Helper()
	w := newLiveWorld(skewed(24)...)
	w.in.Config.Rollout = rollout
	w.few(3 * 60)
	w.secret("c005").Pin = "12"
	w.few(2 * 60)
	if p, failed := w.in.InForce, w.in.Memory.Changes.PinFailed; failed.IsZero() || p.Rollout != nil || p.Replicas != 3 {
		t.Fatalf("%d replicas, under way %+v, and the pin failed at %s", p.Replicas, p.Rollout, failed)
	}
	return w
}

// TestASecretsPinThatFailsStopsNoLevelling while it stands: one annotation that can never be done had nothing levelled any more, and
// what levels must not bring about what it asks for.
func TestASecretsPinThatFailsStopsNoLevelling(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		t.Run(mode, func(t *testing.T) {
			w := pinFails(t, rollout)
			w.imbalanced()
			most := 0
			for range 20 * 60 {
				w.few(1)
				if most = max(most, w.in.InForce.Replicas); w.in.InForce.Rollout != nil {
					most = max(most, w.in.InForce.Rollout.Replicas)
				}
			}
			trip := w.last.Memory.Changes.Trip
			if level := outcome.Imbalance(w.last.Now); level > 1.1 || most != 3 || trip != nil {
				t.Errorf("makespan over mean %.2f, up to %d replicas, trip %+v; %v", level, most, trip, messages(w.last))
			}
			if !slices.Contains(problems(w.last), "rollout/PinWaits/Pin") {
				t.Errorf("the pin waits, and people are told %v", problems(w.last))
			}
		})
	}
}

// TestASecretsPinThatWaitsForTheDayStopsNoLevelling: the modes that restart the fleet do so once a day for Secrets' pins.
func TestASecretsPinThatWaitsForTheDayStopsNoLevelling(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		if rollout.Live != nil {
			continue // replicas come, and nobody restarts
		}
		t.Run(mode, func(t *testing.T) {
			w := newLiveWorld(skewed(24)...)
			w.in.Config.Rollout = rollout
			w.secret("c005").Pin = "3"
			w.until(t, "the first pin", 5*time.Hour, func(outcome.Outcome) bool {
				return w.in.InForce.Replicas == 4 && w.in.InForce.Rollout == nil
			})
			w.secret("c007").Pin = "9"
			w.imbalanced()
			for range 20 * 60 {
				w.step(time.Minute)
				if n := w.in.InForce.Replicas; n > 4 {
					t.Fatalf("%d replicas in the day of the first pin", n)
				}
			}
			if level := outcome.Imbalance(w.last.Now); level > 1.15 || w.row(t, "c005") != 3 {
				t.Errorf("makespan over mean %.2f, the first pin's cluster on replica %d: %v", level, w.row(t, "c005"), messages(w.last))
			}
			w.until(t, "the second pin", 24*time.Hour, func(outcome.Outcome) bool {
				return w.row(t, "c007") == 9 && w.in.InForce.Rollout == nil
			})
		})
	}
}

// TestNoRollbackBringsAboutWhatASecretsPinWaitsFor: it would fail of that, too, and three of them stop ballast.
func TestNoRollbackBringsAboutWhatASecretsPinWaitsFor(t *testing.T) {
	for mode, rollout := range rolloutsOf() {
		t.Run(mode, func(t *testing.T) {
			w := pinFails(t, rollout)
			earlier := w.in.InForce.Clone()
			w.imbalanced()
			for range 10 * 60 {
				if w.few(1); outcome.Imbalance(w.last.Now) < 1.1 && w.in.InForce.Rollout == nil {
					break
				}
			}
			w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
			for range 60 {
				if w.few(1); w.last.Done {
					break
				}
			}
			left := 0
			for name, row := range earlier.Clusters {
				if w.row(t, name) != row.Replica {
					left++
				}
			}
			if !w.last.Done || left > 0 || w.in.InForce.Replicas != 3 {
				t.Errorf("done: %t, %d clusters are not back, %d replicas: %v", w.last.Done, left, w.in.InForce.Replicas, messages(w.last))
			}
		})
	}
}

// TestNoVoteBringsAboutWhatASecretsPinWaitsFor: what was voted for while it counted is elected no more.
func TestNoVoteBringsAboutWhatASecretsPinWaitsFor(t *testing.T) {
	w := adopted(t, skewed(24)...)
	w.until(t, "it is level", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 0 && w.in.InForce.Rollout == nil })
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(6 * time.Hour), MinSamples: 10}}
	w.secret("c005").Pin = "12"
	w.in.Paused = true
	w.few(5 * 60) // votes for thirteen replicas
	w.in.Paused = false
	most := 0
	for range 10 * 60 {
		if w.few(1); !w.in.Memory.Changes.PinFailed.IsZero() && w.in.InForce.Rollout != nil {
			most = max(most, w.in.InForce.Rollout.Replicas)
		}
	}
	if failed := w.in.Memory.Changes.PinFailed; failed.IsZero() || most > 3 {
		t.Errorf("the pin failed at %s, and a vote began %d replicas after it: %v", failed, most, messages(w.last))
	}
}
