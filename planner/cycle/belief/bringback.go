package belief

import (
	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// BringBack is the plan that a leader goes by which believes none, for want of the key: what the one that stands says, every
// number within what is configured or stands. Where that holds every replica stopped it is to be written, with the count of
// before the stop; false: nothing is held stopped.
func BringBack(stands plan.Plan, in input.Inputs) (plan.Plan, bool) {
	nothing := discover.Known{} // is known, so nothing is lost
	fleet, _, _ := discover.Discover(in.Discovered, nothing, discover.Options{MaxShrink: 1}, in.Now)
	bounded := WithinBounds(stands, in, fleet)
	if !stands.Mode.Enforced() || !adopt.NoReplicaRuns(stands.Rollout) {
		return bounded, false
	}
	return rollout.Abandon(bounded), true
}
