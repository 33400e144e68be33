package cycle

import (
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
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
