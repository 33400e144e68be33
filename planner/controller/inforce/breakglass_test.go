package inforce

import "testing"

// TestBreakGlassIsToldWhenItIsOpened, by the watch or by a cycle, whichever is first, and once: a cycle that had read the
// plan before the watch told does not close it.
func TestBreakGlassIsToldWhenItIsOpened(t *testing.T) {
	k := &Known{}
	for i, step := range []struct{ watched, read, want bool }{
		{false, false, false}, {false, true, true}, {true, true, false}, {false, false, false}, {true, true, true}, {true, false, false}, {true, true, false},
	} {
		k.document.BreakGlass = step.watched
		if got := k.SwitchedOff(step.read); got != step.want {
			t.Errorf("step %d, %+v: told is %v", i, step, got)
		}
	}
}
