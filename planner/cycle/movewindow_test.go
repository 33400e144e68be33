package cycle

import (
	"strings"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// What levels waits for its maintenance window, and begins as soon as that opens; a pin waits for none.
func TestLevellingWaitsForItsWindow(t *testing.T) {
	w := newWorld(lognormal(3, 40)...)
	now := w.in.Now
	w.in.Config.Change.Moves.Timing = config.Timing{Mode: change.Maintenance, Windows: []config.Window{
		{Begin: now.Add(60 * time.Minute).Format("15:04"), End: now.Add(90 * time.Minute).Format("15:04")}}}
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.cycle()
	first := w.in.InForce.Clone()
	w.run(58)
	if !w.in.InForce.SameEnforced(first) {
		t.Fatalf("it began before the window: %s", w.last.Reason)
	}
	w.run(3)
	if w.in.InForce.SameEnforced(first) {
		t.Errorf("it did not begin in the window: %v", w.last.Candidate)
	}
	w.run(60)
	w.in.Pins = plan.Pins{"c000": (w.row(t, "c000") + 1) % 3}
	want := w.in.Pins["c000"]
	w.run(3)
	if got := w.row(t, "c000"); got != want {
		t.Errorf("the pin waits for the window: replica %d, want %d", got, want)
	}
}

// TestNoWaveBeginsOutsideTheWindow: what began within it ends between two waves, when the window is over, and when somebody turns
// levelling off.
func TestNoWaveBeginsOutsideTheWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		moves  func(now time.Time) config.Timing // once the first wave has begun
		lasts  int                               // minutes that no other wave begins for
		reason string
	}{
		"the window is over": {func(now time.Time) config.Timing {
			return config.Timing{Mode: change.Maintenance, Windows: []config.Window{
				{Begin: now.Add(2 * time.Hour).Format("15:04"), End: now.Add(3 * time.Hour).Format("15:04")}}}
		}, 110, "(MaintenanceWindow)"},
		"it is turned off": {func(time.Time) config.Timing { return config.Timing{Mode: change.Off} }, 180, "(UpdatePolicy)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(skewed(24)...)
			w.in.Config.Change.Moves.Rate = nil
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
			}
			w.until(t, "the first wave of several", 3*time.Hour, func(outcome.Outcome) bool {
				r := w.in.InForce.Rollout
				return r != nil && r.Wave == 1 && r.Waves > 1
			})
			w.in.Config.Change.Moves.Timing = tc.moves(w.in.Now)
			ended := ""
			w.until(t, "no rollout", 10*time.Minute, func(out outcome.Outcome) bool {
				ended = out.Progress.Why
				return w.in.InForce.Rollout == nil
			})
			if len(w.waves) != 1 || !strings.Contains(ended, tc.reason) {
				t.Errorf("waves of %v, and it ended since %q, want one wave, and %s", w.waves, ended, tc.reason)
			}
			began := w.in.Now
			w.until(t, "some hours", 4*time.Hour, func(outcome.Outcome) bool { return w.in.Now.Sub(began) >= time.Duration(tc.lasts)*time.Minute })
			if len(w.waves) != 1 {
				t.Errorf("waves of %v within %s, want the first alone", w.waves, w.in.Now.Sub(began))
			}
			w.in.Config.Change.Moves.Timing = config.Timing{}
			w.until(t, "a level fleet", 2*time.Hour, func(outcome.Outcome) bool {
				return w.in.InForce.Rollout == nil && outcome.Imbalance(w.last.Now) <= 1.1
			})
		})
	}
}

// TestACooldownEndsNoWaves: each wave is a move, and what goes by the last move is of beginnings.
func TestACooldownEndsNoWaves(t *testing.T) {
	w := newLiveWorld(skewed(24)...)
	w.in.Config.Change.Moves.Rate = nil
	w.in.Config.Change.Moves.Timing = config.Timing{Cooldown: config.Duration(6 * time.Hour)}
	for i := range w.in.Discovered.Secrets {
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
	}
	w.until(t, "several waves", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && len(w.waves) > 1 })
}
