package plan

import (
	"strings"
	"testing"

	"ballast/planner/cycle"
	"ballast/planner/discover"
)

// TestPlanSaysWhatItsWritesCostArgoCD: the first stamps of a fleet, and the moves.
func TestPlanSaysWhatItsWritesCostArgoCD(t *testing.T) {
	stands := discover.ShardValue{State: discover.ShardValid}
	var out cycle.Outcome
	out.Fleet.Clusters = []discover.Cluster{{}, {}, {Explicit: stands}, {Unmanaged: true}, {Implicit: true}}
	if got := unstamped(out); got != 2 {
		t.Errorf("%d Secrets name no replica, want 2", got)
	}
	const begins = "  Each cluster Secret that is written has Argo CD look again at every ApplicationSet with a cluster generator: "
	for want, n := range map[string][2]int{
		"":                                    {0, 0},
		begins + "1 write for these moves.\n": {0, 1},
		begins + "2 writes in one burst for owners that no Secret names yet.\n":                           {2, 0},
		begins + "2 writes in one burst for owners that no Secret names yet, 3 writes for these moves.\n": {2, 3},
	} {
		var said strings.Builder
		if writeWrites(&said, n[0], n[1]); said.String() != want {
			t.Errorf("%v: it says %q, want %q", n, said.String(), want)
		}
	}
}
