package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
)

// A person goes back to a plan of fewer replicas than partition.minReplicas allows today: its rows come back, and the replicas stay, or the next
// election would bring them back with a second change.
func TestAWayBackKeepsTheLeastReplicas(t *testing.T) {
	w := adopted(t, skewed(12)...)
	least := w.in.InForce.Replicas
	earlier := w.in.InForce.Clone()
	earlier.Replicas, earlier.ControllerReplicas = least-1, least-1
	want := map[string]int{}
	for name, row := range earlier.Clusters {
		if row.Replica == least-1 {
			row.Replica = 0
		}
		earlier.Clusters[name], want[name] = row, row.Replica
	}
	w.in.Config.Partition.MinReplicas = &least
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
	w.until(t, "the earlier plan holds", 2*time.Hour, func(out outcome.Outcome) bool {
		if got := w.in.InForce.Replicas; got < least {
			t.Fatalf("%d replicas, and partition.minReplicas is %d", got, least)
		}
		return out.Done
	})
	got := map[string]int{}
	for name, row := range w.in.InForce.Clusters {
		got[name] = row.Replica
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-earlier +now):\n%s", diff)
	}
}
