package safety

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
)

// TestNoPodsFiguresKeepTheHistoryFromBeingWritten: what a pod says it did goes into the memory when a wave begins, and
// JSON has no infinite number.
func TestNoPodsFiguresKeepTheHistoryFromBeingWritten(t *testing.T) {
	most := harm.Work{Reconciles: 1 << 53, Seconds: math.MaxFloat64}
	for name, tc := range map[string]struct {
		work map[int]input.ServerWork
		want map[harm.Portion]harm.Work
	}{
		"of two servers": {map[int]input.ServerWork{0: {"https://a": most, " https://a": most}},
			map[harm.Portion]harm.Work{harm.PortionOf(0, "https://a"): most, harm.PortionOf(0, " https://a"): most}},
		"as a saved input has them": {map[int]input.ServerWork{
			0: {"https://a": {Reconciles: 1, Seconds: math.Inf(1)}}, 1: {"https://a": {Reconciles: 1, Seconds: math.NaN()}},
		}, map[harm.Portion]harm.Work{harm.PortionOf(0, "https://a"): {Reconciles: 1, Seconds: math.MaxFloat64}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Breaker{Draft: &outcome.Draft{In: input.Inputs{Observed: input.Observed{Work: tc.work}}}}
			began := c.signs(nil)
			if diff := cmp.Diff(tc.want, began.Work); diff != "" {
				t.Errorf("work (-want +got):\n%s", diff)
			}
			m := memory.Memory{Changes: memory.Changes{Began: began, Trip: &harm.Trip{Reason: harm.Orphaned, Why: "it tripped"}}}
			parts, stale := m.Parts(nil)
			back, dropped := memory.Of(parts)
			if len(stale)+len(dropped) > 0 || back.Changes.Trip == nil {
				t.Errorf("stale %v, dropped %v; the next leader knows of the trip: %v", stale, dropped, back.Changes.Trip)
			}
		})
	}
}
