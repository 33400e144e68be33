package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
)

// Where clusters are to leave a replica whose node has no room it is remembered since when, and what of it the pod has; from anew while
// a rollout is under way, and for a day once clusters have left. Without that option nothing is remembered.
func TestACrampedReplicaIsRememberedUntilClustersHaveLeft(t *testing.T) {
	f := infeasible(t)
	f.runs(3, 10, 40)
	if f.Memory.Cramped != nil {
		t.Errorf("nobody asked for it: %v", f.Memory.Cramped)
	}
	is := func(when string, want map[int]memory.Cramped) {
		t.Helper()
		if diff := cmp.Diff(want, f.Memory.Cramped); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	f.run(10, 40)
	since := f.Now
	is("at first", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.runs(20, 10, 40)
	is("later", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.runs(50, 10, 40)
	f.Unmet = nil // the plan's size is what the pod has by now
	f.run(10, 40)
	wants(t, f, "as large as it is", [2]string{"2024Mi", "4048Mi"}, [2]string{"2024Mi", "10048Mi"})
	is("while it stays as large as it is", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.Plan.Rollout, f.Givers = &plan.Rollout{Stage: plan.Moving}, map[int]bool{0: true, 1: true}
	f.run(10, 40)
	left := f.Now
	is("while clusters leave it", map[int]memory.Cramped{1: {Since: left, Has: 40, Left: left}})
	f.Plan.Rollout, f.Givers = nil, nil
	f.run(10, 10)
	is("once they have left", map[int]memory.Cramped{1: {Left: left}})
	f.Now = left.Add(leftFor - 2*time.Minute)
	f.run(10, 10)
	is("for a day", map[int]memory.Cramped{1: {Left: left}})
	f.run(10, 10)
	is("after it", map[int]memory.Cramped{})
}
