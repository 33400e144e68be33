package diff

import (
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// GrowsWithin is how long clusters wait for their replica to be resized, from the beginning of a stage on: a node that
// has room resizes within seconds, and one that says nothing must not hold a rollout up for good.
const GrowsWithin = 2 * time.Minute

// growing are the replicas that clusters are not written to yet, since the plan has them larger than their pods are,
// and why. Nothing waits for what only a new pod mends.
func growing(p plan.Plan, seen observed.State, o Options) map[int]string {
	r := p.Rollout
	over := r == nil || r.Stage == plan.Reverting || o.Now.Sub(r.Since) >= GrowsWithin // a way back waits for nothing
	if over || p.Sizes == nil || o.BreakGlass {
		return nil
	}
	small := map[int]string{}
	for _, u := range Unmets(p, seen.Pods, seen.Workload.Unmanaged, o) {
		if u.Coming() {
			small[u.Replica] = u.String()
		}
	}
	return small
}
