package planner

import (
	"time"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Comparison is what stands against the plan in force.
type Comparison struct {
	Replicas []plan.Replica // what each replica carries under the plan, by the rows' loads
	Pins     plan.Pins      // data.pins and the Secrets' annotations together
	Agenda   rollout.Agenda
	Problems []Problem
}

// Compare says what differs between what stands and the plan in force, without asking Prometheus.
func Compare(in discover.Input, w discover.Workload, doc plan.Document) Comparison {
	fleet, _, _ := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 1}, time.Time{}) // nothing known, so nothing is lost
	c := Comparison{Pins: allPins(doc.Pins, fleet.Clusters)}
	for _, p := range fleet.Problems {
		c.Problems = append(c.Problems, Problem{Phase: PhaseDiscover, Subject: p.Secret, Kind: string(p.Kind), Message: p.Message})
	}
	if doc.Plan == nil {
		return c
	}
	view := plan.NewView(*doc.Plan, c.Pins)
	c.Agenda = rollout.Steps(view, Seen(fleet, w), rollout.StepOptions{BreakGlass: doc.BreakGlass})
	loads := make([]plan.Load, len(fleet.Clusters))
	for i, cl := range fleet.Clusters {
		// A row's load is for display; one that cannot be read counts as nothing.
		_ = loads[i].UnmarshalText([]byte(doc.Plan.Clusters[cl.Shard.ID].Load))
	}
	c.Replicas = replicasOf(loadIndexes(fleet, loads), doc.Plan.Replicas, func(i int) int {
		if replica, _, ok := view.Effective(fleet.Clusters[i].Shard.ID); ok {
			return replica
		}
		return discover.Nobody
	})
	return c
}
