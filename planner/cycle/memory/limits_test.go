package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
	"ballast/planner/sim"
)

// TestWhatLimitsChangesIsSmall whatever number of Secrets there is and however long their names: of a history that is full the largest
// parts are left out, and a next leader without the ledger would move as much again.
func TestWhatLimitsChangesIsSmall(t *testing.T) {
	m := Memory{HoldOff: sim.Epoch, Heaviest: track.Heaviest{Share: 0.25, At: sim.Epoch}}
	m.Changes.Ownership.Last, m.Changes.Pinned = map[string]int{}, map[string]time.Time{}
	for i := range 3000 {
		name := strings.Repeat("n", 245) + fmt.Sprintf("%08d", i*7919)
		m.Changes.Ownership.Last[name], m.Changes.Pinned[name] = i, sim.Epoch
	}
	for i := range 24 * 60 {
		m.Changes.Ledger = m.Changes.Ledger.Add(sim.Epoch.Add(time.Duration(i)*time.Minute), change.Causes()[i%6], i%7)
	}
	m.Changes.Unserved = change.Ledger{}.Add(sim.Epoch, change.Failover, 3)
	m.Changes.Trip, m.Changes.TripTold = &harm.Trip{At: sim.Epoch, Reason: harm.Slowed, Why: "it did"}, true
	parts, stale := m.Parts(nil)
	if n := len(parts[partLimits]); n > 16<<10 || len(stale) > 0 {
		t.Errorf("%d bytes, want a few thousand; stale: %v", n, stale)
	}
	got, dropped := Of(map[string][]byte{partLimits: parts[partLimits]})
	want := Memory{HoldOff: m.HoldOff, Heaviest: m.Heaviest, Changes: Changes{Ledger: m.Changes.Ledger, Unserved: m.Changes.Unserved, Trip: m.Changes.Trip, TripTold: true}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()); diff != "" || len(dropped) > 0 {
		t.Errorf("alone it says (dropped %v, -want +got):\n%s", dropped, diff)
	}
}
