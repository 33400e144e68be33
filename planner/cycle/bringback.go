package cycle

import (
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// BringBack is the plan to write where the one that stands holds every replica stopped and no plan is believed, for
// want of the key: the count of before, every number within what is configured or stands. False: nothing is held
// stopped.
func BringBack(stands plan.Plan, in Inputs) (plan.Plan, bool) {
	if !stands.Mode.Enforced() || !noReplicaRuns(stands.Rollout) {
		return stands, false
	}
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, in.Now) // nothing known, so nothing is lost
	return rollout.Abandon(withinBounds(stands, in, fleet)), true
}
