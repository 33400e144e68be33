package sizing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
)

// A replica has what came to it in a wave before, and receives no more for that.
func TestWhatArrivedInAWaveBeforeIsNotReceived(t *testing.T) {
	p := plan.Plan{Clusters: map[string]plan.Row{"a": {Replica: 0}, "b": {Replica: 1}, "c": {Replica: 2}, "d": {Replica: 0}},
		Rollout: &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Moves: map[string]int{"c": 2}, Was: map[string]int{"c": 0}}}
	target := map[string]int{"a": 0, "b": 1, "c": 2, "d": 3} // a and b moved before, c moves now, d is to
	if diff := cmp.Diff(map[int]bool{2: true, 3: true}, ReceiversOf(p, target)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
