package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// blockedMoves are the moves that wait, as people see them.
func (w *world) blockedMoves() (out []resize.Blocked) {
	for _, b := range w.last.Waiting() {
		if b.Resource == resize.ResourceClusters {
			out = append(out, b)
		}
	}
	return out
}

// windowIn opens in a while, for an hour.
func windowIn(now time.Time, in time.Duration) config.Timing {
	at := now.Add(in)
	return config.Timing{Mode: change.Maintenance, Windows: []config.Window{{Begin: at.Format("15:04"), End: at.Add(time.Hour).Format("15:04")}}}
}

// evaluations are all there are, quick enough for a test.
func evaluations() map[string]config.Evaluate {
	return map[string]config.Evaluate{
		"none":        {None: &config.None{}},
		"mostWanted":  {MostWanted: &config.MostWanted{Window: config.Duration(10 * time.Minute), MinSamples: 5}},
		"costBenefit": {CostBenefit: &config.CostBenefit{Horizon: config.Duration(24 * time.Hour)}},
	}
}

// TestMovesThatWaitAreSeen: by which rule, since when and until when, and how many there would be. They begin in the first cycle
// in which the rule lets them, and nothing waits then.
func TestMovesThatWaitAreSeen(t *testing.T) {
	opens := 10 * time.Hour
	off := func(w *world) { w.in.Config.Change.Moves.Mode = change.Off }
	for name, test := range map[string]struct {
		blocks func(*world)
		frees  func(*world) // nil: time does
		want   resize.Blocked
	}{
		"Off": {off, func(w *world) { w.in.Config.Change.Moves.Mode = change.Auto },
			resize.Blocked{Reason: change.UpdatePolicy, Why: "the mode is Off"}},
		"window": {func(w *world) { w.in.Config.Change.Moves.Timing = windowIn(epoch, opens) }, nil,
			resize.Blocked{Reason: change.OutsideMaintenance, Until: epoch.Add(opens), Why: "the next maintenance window begins then"}},
		"cooldown": {func(w *world) {
			w.in.Config.Change.Moves.Cooldown = config.Duration(opens)
			w.in.Memory.Changes.Ledger = change.Ledger{{At: epoch, Moves: 1, Cause: change.Pin}}
		}, nil, resize.Blocked{Reason: change.StabilizationWindow, Until: epoch.Add(opens), Why: "the last change was less than 10h ago"}},
	} {
		for evaluation, evaluate := range evaluations() {
			t.Run(name+" "+evaluation, func(t *testing.T) {
				w := newWorld(lognormal(3, 40)...)
				w.in.Config.Evaluate = evaluate
				test.blocks(w)
				w.cycle()
				first := w.in.InForce.Clone()
				w.run(480)
				got := w.blockedMoves()
				if len(got) != 1 || !w.in.InForce.SameEnforced(first) {
					t.Fatalf("%d wait, and the plan is as it was: %v (%s)", len(got), w.in.InForce.SameEnforced(first), w.last.Candidate.Verdict)
				}
				since, n := got[0].Since, got[0].By()
				if began := since.Sub(epoch); n < 2 || n > 40 || began > 7*time.Hour {
					t.Errorf("%v moves wait since %s", n, began)
				}
				want := test.want
				want.Replica, want.Resource, want.Direction, want.From, want.To, want.Since = size.All, resize.ResourceClusters, change.Moves, "0", got[0].To, since
				if diff := cmp.Diff(want, got[0]); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				w.run(119)
				if got := w.blockedMoves(); len(got) != 1 || !got[0].Since.Equal(since) || !w.in.InForce.SameEnforced(first) {
					t.Errorf("a minute before it ends %v wait", got)
				}
				if test.frees != nil {
					test.frees(w)
				}
				w.run(1)
				if got := w.blockedMoves(); w.last.Next.Rollout == nil || got != nil {
					t.Errorf("as it ended nothing began, and %v waits: %s", got, w.last.Candidate.Verdict)
				}
			})
		}
	}
}

// TestMovesThatSomethingElseHoldsAreNotBlockedByARule: a person's freeze, or the mode, says so itself.
func TestMovesThatSomethingElseHoldsAreNotBlockedByARule(t *testing.T) {
	for name, change := range map[string]func(*world){
		"frozen":  func(w *world) { w.in.Paused = true },
		"Observe": func(w *world) { w.in.Config.Mode = plan.Observe },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(3, 40)...)
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			w.in.Config.Change.Moves.Mode = "Off"
			w.cycle()
			w.run(60)
			if got := w.blockedMoves(); len(got) != 1 {
				t.Fatalf("before, %v wait", got)
			}
			change(w)
			w.run(2)
			if got := w.blockedMoves(); got != nil {
				t.Errorf("%v waits for change.moves", got)
			}
		})
	}
}

// TestMovesThatWaitForTheirRateAreSeen: once the budget is used up, until it has room, and then they go on at once.
func TestMovesThatWaitForTheirRateAreSeen(t *testing.T) {
	w := newWorld(lognormal(3, 40)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.cycle()
	w.known()
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 5, Period: config.Duration(4 * time.Hour)}}
	w.run(60)
	got := w.blockedMoves()
	if len(got) != 1 || got[0].Reason != change.RateLimit || got[0].By() < 1 {
		t.Fatalf("%v wait: %s", got, w.last.Candidate.Verdict)
	}
	last := w.in.Memory.Changes.Ledger[len(w.in.Memory.Changes.Ledger)-1]
	before := len(w.in.Memory.Changes.Ledger)
	for w.in.Now.Before(last.At.Add(4 * time.Hour)) {
		w.run(1)
		if got := w.blockedMoves(); len(got) > 1 || len(got) == 1 && got[0].Reason != change.RateLimit {
			t.Fatalf("at %s %v wait", w.in.Now, got)
		}
	}
	w.run(2)
	if after := len(w.in.Memory.Changes.Ledger); after <= before {
		t.Errorf("the budget has room, and nothing moved: %s", w.last.Candidate.Verdict)
	}
}

// TestNothingThatIsLevelWaits: a rule of change is seen only where it keeps something from happening.
func TestNothingThatIsLevelWaits(t *testing.T) {
	for evaluation, evaluate := range evaluations() {
		w := newWorld(alike(30, 1)...)
		w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
		w.run(60)
		w.in.Config.Evaluate, w.in.Config.Change.Moves.Mode = evaluate, change.Off
		w.run(120)
		if got := w.blockedMoves(); got != nil {
			t.Errorf("%s: %v waits", evaluation, got)
		}
	}
}

// TestACooldownLongerThanADayIsKept: of moves the ledger forgets none that a cooldown asks for.
func TestACooldownLongerThanADayIsKept(t *testing.T) {
	w := newWorld(lognormal(3, 40)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.in.Config.Change.Moves.Cooldown = config.Duration(72 * time.Hour)
	w.in.Memory.Changes.Ledger = change.Ledger{{At: epoch, Moves: 1, Cause: change.Pin}}
	w.run(2)
	for _, hours := range []time.Duration{24, 48, 71} {
		w.in.Now = epoch.Add(hours * time.Hour)
		w.run(2)
		if got := w.blockedMoves(); len(got) != 1 || got[0].Reason != change.StabilizationWindow || !got[0].Until.Equal(epoch.Add(72*time.Hour)) {
			t.Errorf("after %d hours %v waits", hours, got)
		}
	}
	w.in.Now = epoch.Add(72 * time.Hour)
	w.run(1)
	if w.last.Next.Rollout == nil {
		t.Errorf("after the cooldown nothing began: %s", w.last.Candidate.Verdict)
	}
}

// TestMovesThatTheOneRestartHoldsAreNotBlockedByARule: they would not begin if change.moves let them, and the verdict says what does hold
// them.
func TestMovesThatTheOneRestartHoldsAreNotBlockedByARule(t *testing.T) {
	w := awaiting(t, skewed(12)...)
	w.in.Config.Change.Moves.Mode = change.Off
	for range 3 * 60 {
		w.step(time.Minute)
		if got := w.blockedMoves(); got != nil {
			t.Fatalf("%v waits for change.moves", got)
		}
	}
	if got := w.last.Candidate.Verdict; !strings.Contains(got, gate.RestartWaits) {
		t.Errorf("the candidate says %q, want what it waits for: %s", got, gate.RestartWaits)
	}
}
