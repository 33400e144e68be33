package snapshot

import (
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// drainTimeout is the deadline of the one stage in which nothing is reconciled.
const drainTimeout = 5 * time.Minute

// ModeOf is the rollout mode that the configuration names.
func ModeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

func inCluster(fleet discover.Fleet, in input.Inputs) observed.InCluster {
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			return observed.InCluster{Implicit: true, Algorithm: string(standing.Algorithm(in))}
		}
	}
	return observed.InCluster{}
}
