// Package belief is what a cycle begins from where a plan or a past was lost, or is not to be believed.
package belief

import (
	"maps"

	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Why a plan that stands in the ConfigMap is not believed. Whatever it is, the newest own plan is put back over it.
const (
	PlanForeign = "PlanForeign" // it matches its digest, and no planner of this installation wrote it
	PlanBroken  = "PlanBroken"  // it does not match its digest, or cannot be read
	PlanOlder   = "PlanOlder"   // it is our own, of a revision that was passed: a backup
)

// PlanFaults are the kinds of problems by which a plan is not believed.
func PlanFaults() []string { return []string{PlanForeign, PlanBroken, PlanOlder} }

// PlanFaultProblem tells people of it.
func PlanFaultProblem(kind string) problem.Problem {
	message := map[string]string{
		PlanForeign: "the plan that stood in the ConfigMap was written by nobody of this installation (its MAC is missing or wrong): a forgery, or a backup" +
			" from elsewhere; the newest own plan is written over it. See who wrote it with `ballast audit`, and take the right to write the ConfigMap from who should not have it",
		PlanBroken: "the plan that stood in the ConfigMap did not match its digest or could not be read; the newest own plan is written over it. See who wrote it with `ballast audit`",
		PlanOlder:  "the plan that stood in the ConfigMap was an older one: somebody restored a backup; the newest is put back. To go back on purpose, use `ballast rollback`",
	}[kind]
	return problem.Problem{Phase: problem.PhaseStore, Kind: kind, Message: message}
}

// WithinBounds is a plan that was read, with every number within what the configuration allows or what stands already:
// a number beyond both was never decided. Only our own x0y stops every replica.
func WithinBounds(p plan.Plan, in input.Inputs, fleet discover.Fleet) plan.Plan {
	rows := p.Clusters
	p.Clusters = nil
	p = p.Clone()
	stands := evidenced(in.Workload, fleet)
	p.MaxReplicas = min(max(p.MaxReplicas, 1), max(adopt.DefaultMaxReplicas, stands))
	most := max(adopt.MaxReplicas(in.Config.Partition, p), stands)
	if p.Replicas < 0 || p.Replicas == 0 && !adopt.NoReplicaRuns(p.Rollout) {
		p.Replicas = standing.Replicas(in.Workload)
	}
	p.Replicas = min(p.Replicas, most)
	p.ControllerReplicas = boundedEnv(p.ControllerReplicas, most, in.Workload)
	p.NextControllerReplicas = boundedEnv(p.NextControllerReplicas, most, in.Workload)
	if in.Observed.Known { // what the pods have stands, and while nobody sees it nothing is taken from them
		resize.Evidence{Size: in.Config.Size, Template: in.Workload.Resources, Pods: in.Observed.Pods,
			Memory: in.Memory.Sizes}.Bound(p)
	}
	if r := p.Rollout; r != nil {
		boundRollout(r, most, in.Workload)
	}
	p.Clusters = within(rows, most)
	return p
}

// within leaves out rows beyond the most replicas: those clusters are placed anew.
func within(rows map[string]plan.Row, most int) map[string]plan.Row {
	beyond := func(_ string, row plan.Row) bool { return row.Replica < 0 || row.Replica >= most }
	for name, row := range rows {
		if beyond(name, row) {
			rows = maps.Clone(rows)
			maps.DeleteFunc(rows, beyond)
			break
		}
	}
	return rows
}

// evidenced is the number of replicas that there is evidence of: pods, the env, and shards that Secrets carry which
// ballast writes. In others, opted out or immutable, people may write any number.
func evidenced(w discover.Workload, fleet discover.Fleet) int {
	n := max(standing.Replicas(w), standing.ControllerReplicas(w))
	for _, c := range fleet.Clusters {
		if ours := !c.Unmanaged && !c.Immutable; ours && c.Explicit.State == discover.ShardValid {
			n = max(n, min(c.Explicit.N+1, discover.MostReplicas))
		}
	}
	return n
}

// boundRollout bounds where a rollout comes from and goes to.
func boundRollout(r *plan.Rollout, most int, w discover.Workload) {
	r.From.Replicas, r.Replicas = min(max(r.From.Replicas, 1), most), min(max(r.Replicas, 1), most)
	r.From.ControllerReplicas = boundedEnv(r.From.ControllerReplicas, most, w)
	r.ControllerReplicas = boundedEnv(r.ControllerReplicas, most, w)
	for _, moves := range []map[string]int{r.Moves, r.Was} {
		for name, replica := range moves {
			if replica < 0 || replica >= most {
				delete(moves, name)
			}
		}
	}
}

// boundedEnv bounds what the env is held at; 0 is one that is not held.
func boundedEnv(env, most int, w discover.Workload) int {
	return min(max(env, 0), max(most, standing.ControllerReplicas(w)))
}

// PutBack is the reason of a plan that takes the place of one that was lost or is not believed.
func PutBack(fault string) string {
	return "put back the last plan, which was " + map[string]string{"": "deleted",
		PlanForeign: "overwritten by a foreign one",
		PlanBroken:  "broken", PlanOlder: "overwritten by an older one"}[fault]
}

// stood is how many replicas there are, or were before all were stopped: what the env says, but none beyond the highest
// shard where each cluster's Secret has one. Under live the env is maxReplicas, of which most never ran.
func stood(w discover.Workload, fleet discover.Fleet) int {
	n := standing.Replicas(w)
	if w.Replicas > 0 || len(fleet.Clusters) == 0 {
		return n
	}
	highest := 0
	for _, c := range fleet.Clusters {
		switch {
		case c.FixedAt != nil:
			highest = max(highest, *c.FixedAt)
		case c.Explicit.State == discover.ShardValid:
			highest = max(highest, c.Explicit.N)
		default:
			return n
		}
	}
	return min(n, highest+1)
}

// FirstPlan is the fleet as it is: it moves nothing and scales nothing.
func FirstPlan(in input.Inputs) plan.Plan {
	return plan.Plan{
		Mode:               in.Config.Mode,
		Target:             standing.TargetOf(in.Workload),
		PlannerUser:        in.PlannerUser,
		Replicas:           stood(in.Workload, discover.All(in.Discovered, in.Now)),
		ControllerReplicas: standing.Env(in.Workload),
		Clusters:           map[string]plan.Row{},
	}
}

// BringBack is the plan that a leader goes by which believes none, for want of the key: what the one that stands says,
// every number within what is configured or stands. Where that holds every replica stopped it is to be written, with
// the count of before the stop; false: nothing is held stopped.
func BringBack(stands plan.Plan, in input.Inputs) (plan.Plan, bool) {
	bounded := WithinBounds(stands, in, discover.All(in.Discovered, in.Now))
	if !stands.Mode.Enforced() || !adopt.NoReplicaRuns(stands.Rollout) {
		return bounded, false
	}
	return rollout.Abandon(bounded), true
}
