package plan

import "testing"

// Reverting is two ways back: a wave's, between pods that stay, and that of counts, for which pods come, go or restart.
func TestTheTwoWaysBack(t *testing.T) {
	wave := map[string]int{"a": 1}
	for name, test := range map[string]struct {
		rollout             Rollout
		takesBack, replaces bool
	}{
		"a wave goes back":     {Rollout{Mode: ModeLive, Stage: Reverting, Moves: wave}, true, false},
		"the counts go back":   {Rollout{Mode: ModeLive, Stage: Reverting}, false, true},
		"a wave is on its way": {Rollout{Mode: ModeLive, Stage: Moving, Moves: wave}, false, false},
		"replicas come":        {Rollout{Mode: ModeLive, Stage: Scaling, Moves: wave}, false, true},
		"replicas go":          {Rollout{Mode: ModeLive, Stage: Shrinking}, false, true},
	} {
		if got := test.rollout.TakesWaveBack(); got != test.takesBack {
			t.Errorf("%s: it takes a wave back: %t, want %t", name, got, test.takesBack)
		}
		if got := test.rollout.Replaces(); got != test.replaces {
			t.Errorf("%s: it replaces pods: %t, want %t", name, got, test.replaces)
		}
	}
}
