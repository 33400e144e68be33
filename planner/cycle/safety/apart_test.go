package safety

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// TestTheWorkOfWhatMovedIsApartWhetherItIsSeenOrNot: one that takes long by nature makes no replica slower, and trips nothing.
func TestTheWorkOfWhatMovedIsApartWhetherItIsSeenOrNot(t *testing.T) {
	done := func(n uint64) harm.Work { return harm.Work{Reconciles: n, Seconds: 10 * float64(n)} }
	c := &Breaker{Draft: &outcome.Draft{In: input.Inputs{
		InForce:  &plan.Plan{Clusters: map[string]plan.Row{"moved": {Server: plan.ServerHash(sim.Server("moved"))}, "stays": {Server: plan.ServerHash(sim.Server("stays"))}}},
		Observed: input.Observed{Work: map[int]input.ServerWork{0: {sim.Server("moved"): done(5), sim.Server("stays"): done(1)}}},
	}}}
	want := map[harm.Portion]harm.Work{harm.PortionOf(0, sim.Server("stays")): done(1)}
	if diff := cmp.Diff(want, c.work([]string{"moved", "never planned"})); diff != "" {
		t.Errorf("what is not seen (-want +got):\n%s", diff)
	}
	c.Out.Fleet = standing.Fleet(input.Inputs{Discovered: discover.Input{Secrets: []discover.Secret{sim.Secret("moved"), sim.Secret("stays")}}})
	if diff := cmp.Diff(want, c.work([]string{"moved"})); diff != "" {
		t.Errorf("what is seen (-want +got):\n%s", diff)
	}
}
