package cycle

import (
	"fmt"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
)

// TestYoungClustersLeaveADeadReplicaWithinTheHoursShare: thirty clusters that are ten minutes old, and have Applications, are on the replica that
// dies. Within the hour no more than the others take on freely and the hour's share leaves, and none of it keeps a drain or a rollback waiting.
func TestYoungClustersLeaveADeadReplicaWithinTheHoursShare(t *testing.T) {
	w := undecided(t, skewed(40)...)
	capacity := config.Decimal("0.01") // nothing fits
	w.in.Config.Change.Moves.Rate, w.in.Config.Partition.Capacity, w.in.Config.Partition.Replicas = shipped(), &capacity, &config.Replicas{Fixed: 3}
	fleet := len(w.in.Discovered.Secrets)
	for i, name := range w.on(2) {
		w.secret(name).Pin = fmt.Sprint(i % 2)
	}
	w.until(t, "replica 2 is empty", time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
	for i := range 30 {
		name := fmt.Sprintf("new%03d", i)
		w.add(name, 10)
		w.secret(name).Pin, w.secret(name).Created = "2", w.in.Now
	}
	for range 10 {
		w.step(time.Minute)
	}
	for i := range 30 {
		w.secret(fmt.Sprintf("new%03d", i)).Pin = ""
	}
	w.step(time.Minute)
	theirs, carried, most := len(w.on(2)), 0.0, 0.0
	for name, at := range w.owners() {
		if load := w.loadOf(name); at != 2 {
			carried, most = carried+load, max(most, load)
		}
	}
	if theirs != 30 {
		t.Fatalf("the test itself failed: %d clusters are on replica 2", theirs)
	}
	w.in.Memory.Changes.Ledger, w.down[2] = nil, true
	for range 60 {
		w.step(time.Minute)
	}
	left := theirs - len(w.on(2))
	hour := fleet / 10
	freely := int(carried/4/10) + 2 // the lightest first; one each to the last unit
	if left == 0 || left > freely+hour {
		t.Errorf("%d of %d clusters left within the hour, want %d freely and %d of the hour's share at most", left, theirs, freely, hour)
	}
	for _, r := range w.in.Memory.Changes.Ledger.Before(change.Drain) {
		t.Errorf("a drain waits for %d moves of %s, want no young cluster's", r.Moves, r.Cause)
	}
}

// loadOf is what was measured of a cluster last.
func (w *liveWorld) loadOf(name string) float64 {
	for _, s := range w.in.Fetched[0].Samples {
		if s.Key == w.secret(name).Server {
			return s.Value
		}
	}
	return 0
}
